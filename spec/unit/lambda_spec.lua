-- lambda_spec.lua: layers.Lambda: a function as a layer, in models, in training, with masks; files refuse it.
local support = require "spec.support.init"
local flow = require "flow"
local layers = flow.layers

local function problem(f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  return message
end

describe("Lambda", function()
  it("is the function, eagerly, in a Sequential and with what it is to get after the inputs", function()
    local x = flow.random.normal({ 3, 4 }, { seed = 1 })
    local twice = layers.Lambda(function(t) return t * 2 end, { name = "twice" })
    local shifted = layers.Lambda(function(t, options) return t + options.by end, nil, nil, { by = 1 })
    local model = flow.Sequential { flow.Input { 4 }, twice, shifted }
    local wanted = (x * 2 + 1):totable()
    assert.same(wanted, shifted(twice(x)):totable())
    assert.same(wanted, model:predict(x, { verbose = 0 }):totable())
    assert.equal("twice", model.layers[1].name)
    assert.same({}, model.weights)
  end)

  it("takes several inputs, gives several outputs, and gradients go through it", function()
    local a, b, shared = flow.Input { 4 }, flow.Input { 4 }, layers.Dense(3, { kernel_initializer = "ones" })
    local both = layers.Lambda(function(list) return { (list[1] - list[2]):square(), list[1] } end)({ shared(a), shared(b) })
    assert.same({ 2, 3 }, { #both, both[1].shape[2] })
    local model = flow.Model { inputs = { a, b }, outputs = layers.Dense(1)(layers.Concatenate()(both)) }
    model:compile { loss = "mse", optimizer = flow.optimizers.SGD(0.001) }
    local x, z = flow.random.normal({ 8, 4 }, { seed = 1 }), flow.random.normal({ 8, 4 }, { seed = 2 })
    local before = shared.kernel:value():totable()
    local losses = model:fit({ x, z }, flow.zeros { 8, 1 }, { epochs = 5, verbose = 0 }).history.loss
    assert.is_true(losses[5] < losses[1])
    assert.not_same(before, shared.kernel:value():totable())
  end)

  it("passes a mask on where a function gives it", function()
    local ids = flow.tensor({ { 1, 2, 0 }, { 3, 0, 0 } }, { dtype = "int32" })
    local function last_steps(mask)
      flow.set_random_seed(1)
      local model = flow.Sequential { layers.Embedding(10, 3, { mask_zero = true }),
                                      layers.Lambda(function(t) return t * 1 end, { mask = mask }), layers.LSTM(2) }
      return model(ids):totable()
    end
    flow.set_random_seed(1)
    local wanted = flow.Sequential { layers.Embedding(10, 3, { mask_zero = true }), layers.LSTM(2) }(ids):totable()
    assert.same(wanted, last_steps(function(_, mask) return mask end))
    assert.not_same(wanted, last_steps(nil))
  end)

  it("is refused by files, with what to write in its place, and takes functions only", function()
    local model = flow.Sequential { flow.Input { 4 }, layers.Lambda(function(t) return t end, { name = "same" }) }
    local message = problem(model.save, model, support.path(".keras"))
    assert.truthy(message:find('Lambda "same": files hold no functions of Lua: write a layer with layers.Layer:extend', 1, true), message)
    assert.truthy(problem(layers.Lambda, 3):find("f is a function, got the number 3", 1, true))
  end)
end)
