-- choices_spec.lua: initializers and regularizers with options: in layers, in losses, in configs, and what is said about wrong ones.
local support = require "spec.support.init"
local flow = require "flow"
local layers = flow.layers
local message_of = support.message_of

local function fails(part, f)
  local text = message_of(f)
  assert.truthy(text:find(part, 1, true), text)
end

describe("initializers", function()
  it("with options fill weights as they say", function()
    local layer = layers.Dense(400, { kernel_initializer = flow.initializers.RandomNormal { mean = 3, stddev = 0.01, seed = 5 },
                                      bias_initializer = flow.initializers.Constant(7) })
    layer:build { -1, 100 }
    assert.near(3, layer.kernel:value():mean():item(), 0.001)
    assert.near(0.01, ((layer.kernel:value() - 3):square():mean():sqrt():item()), 0.0005)
    assert.equal(7, layer.bias:value():min():item())
    local config = layer:get_config().kernel_initializer
    assert.equal("RandomNormal", config.class_name)
    assert.same({ mean = 3, stddev = 0.01, seed = 5 }, config.config)
  end)

  it("that do not exist, or options that they do not take, are named", function()
    fails('flow.initializers has no "HeNormall"; did you mean "HeNormal"?', function() return flow.initializers.HeNormall end)
    fails('RandomNormal: unknown option "sttdev"; did you mean "stddev"?', function() flow.initializers.RandomNormal { sttdev = 1 } end)
    fails("kernel_initializer must be", function() layers.Dense(3, { kernel_initializer = 3 }) end)
  end)
end)

describe("regularizers", function()
  local function dense(options)
    options.kernel_initializer, options.bias_initializer = "ones", "ones"
    local layer = layers.Dense(2, options)
    layer:build { -1, 3 }
    layer.kernel:assign { { 1, -2 }, { 3, 0 }, { -1, 1 } }
    return layer
  end

  it("give l1 * sum |w| + l2 * sum w^2", function()
    local layer = dense { kernel_regularizer = flow.regularizers.L1L2(0.5, 0.25), bias_regularizer = "l2" }
    assert.equal(2, #layer.losses)
    assert.near(0.5 * 8 + 0.25 * 16, layer.losses[1]:item(), 1e-6)
    assert.near(0.01 * 2, layer.losses[2]:item(), 1e-8)
    assert.near(0.01 * 16, dense({ kernel_regularizer = "l2" }).losses[1]:item(), 1e-7)
    assert.near(0.1 * 8, dense({ kernel_regularizer = flow.regularizers.L1(0.1) }).losses[1]:item(), 1e-6)
    assert.same({}, dense({}).losses)
  end)

  it("count in training, in evaluation and in nested models, but not for frozen layers", function()
    local inner = flow.Sequential { layers.Input { 3 }, layers.Dense(2, { kernel_initializer = "ones", kernel_regularizer = "l1" }) }
    local model = flow.Sequential { layers.Input { 3 }, inner, layers.Dense(1, { kernel_initializer = "zeros" }) }
    model:compile { optimizer = flow.optimizers.SGD(0.5), loss = "mse" }
    local x, y = flow.ones { 4, 3 }, flow.zeros { 4, 1 }
    assert.near(0.06, model:evaluate(x, y, { verbose = 0 }).loss, 1e-7)      -- the error itself is 0
    assert.near(0.06, model:train_on_batch(x, y).loss, 1e-7)
    assert.near(1 - 0.5 * 0.01, inner.layers[1].kernel:value():mean():item(), 1e-6)
    inner.trainable = false
    assert.near(0, model:train_on_batch(x, y).loss, 1e-7)
  end)

  it("stand in configs and come back", function()
    local model = flow.Sequential { layers.Input { 3 }, layers.Dense(2, { kernel_regularizer = flow.regularizers.L2(0.125) }) }
    local config = model.layers[1]:get_config().kernel_regularizer
    assert.same({ "L2", 0.125, "keras.regularizers" }, { config.class_name, config.config.l2, config.module })
    local again = flow.models.model_from_json(model:to_json())
    assert.equal(model:to_json(), again:to_json())
    fails('kernel_regularizer "l3" is not known', function() layers.Dense(2, { kernel_regularizer = "l3" }) end)
    fails('activity_regularizer "l3" is not known', function() layers.Dense(2, { activity_regularizer = "l3" }) end)
  end)
end)
