-- shared_model_calls_spec.lua: a shared model is called as other models are.
local flow = require "flow"
local support = require "spec.support.init"
local layers = flow.layers

describe("flow.models.shared", function()
  local one, two = flow.Input { 3 }, flow.Input { 3 }
  local path, other = support.file("one.keras", ""), support.file("two.keras", "")
  local model = flow.Model { inputs = one, outputs = layers.Dense(2)(one) }
  local pair = flow.Model { inputs = { one, two }, outputs = { layers.Dense(2)(one), layers.Add()({ one, two }) } }
  model:save(path)
  pair:save(other)
  local x, y = flow.random.normal({ 7, 3 }, { seed = 1 }), flow.random.normal({ 7, 3 }, { seed = 2 })

  it("predicts with the options of a model's predict", function()
    local shared, expected = flow.models.shared(path), model:predict(x, { verbose = 0 }):totable()
    for _, options in ipairs { {}, { verbose = 0 }, { verbose = "auto", batch_size = 3 }, { batch_size = 7 }, { batch_size = 1 } } do
      assert.same(expected, shared:predict(x, options):totable())
    end
    assert.same(expected, shared:predict_on_batch(x):totable())
    assert.same(expected, shared(x):totable())
    assert.same(expected, shared(x, { training = false }):totable())
    local both = flow.models.shared(other)
    for i, result in ipairs(pair:predict({ x, y }, { verbose = 0 })) do
      assert.same(result:totable(), both:predict({ x, y }, { batch_size = 2, verbose = 0 })[i]:totable())
    end
  end)

  it("refuses what it cannot do", function()
    local shared = flow.models.shared(path)
    assert.truthy(support.message_of(function() shared:predict(x, { steps = 1 }) end):find("steps", 1, true))
    assert.truthy(support.message_of(function() shared:predict(x, { batch_size = 0 }) end):find("batch_size", 1, true))
    assert.truthy(support.message_of(function() shared(x, { training = true }) end):find("flow.load_model gives one that trains", 1, true))
    assert.truthy(support.message_of(function() flow.models.shared(other):predict(x) end):find("has 2 inputs", 1, true))
  end)
end)
