-- predict_again_spec.lua: predict_on_batch of one tensor after another of the same sizes, which takes the step of the last call
-- (steps.again in lua/flow/train/steps.lua).
local flow = require "flow"
local layers = flow.layers

local function numbers(t) return t:flatten():totable() end

local function small()
  flow.random.set_seed(3)
  return flow.Sequential { layers.Input { 4 }, layers.Dense(5, { activation = "tanh" }), layers.Dense(2) }
end

local function rows(n, seed) return flow.random.normal({ n, 4 }, { seed = seed }) end

describe("predict_on_batch, called again", function()
  it("gives what the first call of another model with these weights gives", function()
    local model = small()
    for seed = 1, 5 do
      for _, n in ipairs { 3, 1, 3, 7 } do
        local fresh = small()
        assert.same(numbers(fresh:predict_on_batch(rows(n, seed))), numbers(model:predict_on_batch(rows(n, seed))))
      end
    end
  end)

  it("makes no table, array or text: what is left to the collector is the result", function()
    local model, x = small(), rows(1, 1)
    for _ = 1, 300 do model:predict_on_batch(x):close() end
    collectgarbage()
    collectgarbage("stop")
    local before = collectgarbage("count")
    for _ = 1, 100 do model:predict_on_batch(x):close() end
    local bytes = 1024 * (collectgarbage("count") - before) / 100
    collectgarbage("restart")
    assert.is_true(bytes < 1000, bytes)
  end)

  it("follows the weights, what is trainable, the precision and compile", function()
    local model, x = small(), rows(2, 1)
    local before = numbers(model:predict_on_batch(x))
    model:predict_on_batch(x)
    for _, v in ipairs(model.trainable_variables) do v:assign(v:value() * 2) end
    local after = numbers(model:predict_on_batch(x))
    assert.are_not.same(before, after)
    assert.same(after, numbers(model(x)))
    model.layers[1].trainable = false
    assert.same(after, numbers(model:predict_on_batch(x)))
    flow.config.set_precision("exact")
    local exact = numbers(model:predict_on_batch(x))
    flow.config.set_precision("fast")
    for i = 1, #after do assert.near(after[i], exact[i], 1e-5) end
    assert.same(after, numbers(model:predict_on_batch(x)))
    model:compile { optimizer = "sgd", loss = "mse", run_eagerly = true }
    assert.same(after, numbers(model:predict_on_batch(x)))
  end)

  it("takes other sizes, dtypes, lists, views and strides in between", function()
    local model, x = small(), rows(6, 2)
    local all = model:predict_on_batch(x)
    assert.same(numbers(all), numbers(model:predict_on_batch(x)))
    assert.same(numbers(all), numbers(model:predict_on_batch(x:totable())))
    assert.same(numbers(all), numbers(model:predict_on_batch(x:transpose():contiguous():transpose())))
    assert.same(numbers(all[{ { 3, 4 } }]), numbers(model:predict_on_batch(x[{ { 3, 4 } }])))
    local halves = model:predict_on_batch(x:to("float64"))
    assert.same({ 6, 2 }, halves.shape)
    assert.same(numbers(all), numbers(model:predict_on_batch(x)))
    local ok, message = pcall(model.predict_on_batch, model, flow.zeros { 6, 3 })
    assert.is_false(ok)
    assert.is_truthy(tostring(message):find("3", 1, true))
    assert.is_false((pcall(model.predict_on_batch, model, flow.zeros { 0, 4 })))
    assert.is_false((pcall(model.predict_on_batch, model, flow.tensor(1))))
  end)

  it("returns several outputs, and outputs by name, as the first call does", function()
    local input = flow.Input { 4 }
    local a, b = layers.Dense(2)(input), layers.Dense(3)(input)
    local x = rows(2, 1)
    for _, outputs in ipairs { { a, b }, { first = a, second = b } } do
      local model = flow.Model { inputs = input, outputs = outputs }
      local once, again = model:predict_on_batch(x), model:predict_on_batch(x)
      for key, t in pairs(once) do assert.same(numbers(t), numbers(again[key])) end
      for key in pairs(again) do assert.is_truthy(once[key]) end
    end
  end)

  it("tells which sample has an index that a table lacks", function()
    local model = flow.Sequential { layers.Input({ 2 }, { dtype = "int32" }), layers.Embedding(5, 3), layers.Flatten() }
    local right, wrong = flow.zeros({ 2, 2 }, { dtype = "int32" }), flow.tensor({ { 1, 2 }, { 3, 5 } }, { dtype = "int32" })
    model:predict_on_batch(right)
    local ok, message = pcall(model.predict_on_batch, model, wrong)
    assert.is_false(ok)
    assert.is_truthy(tostring(message):find("sample 2 of the data", 1, true), message)
    assert.same({ 2, 6 }, model:predict_on_batch(right).shape)
  end)
end)
