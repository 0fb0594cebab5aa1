-- Attributes of layers that scripts set after the layers were made, as Keras' Grad-CAM example does with model.layers[-1].activation.

local support = require "spec.support.init"
local flow = require "flow"
local layers = flow.layers

local x = flow.tensor { { 1, -2, 3 }, { -1, 2, 0.5 } }

local function model_of(...)
  local model = flow.Sequential { layers.Input { 3 }, ... }
  model:compile { optimizer = flow.optimizers.SGD(0), loss = "mse" }
  return model
end

local function largest_difference(a, b) return (a - b):abs():max():item() end

describe("A built-in layer's fields", function()
  it("set its activation: predictions, traces and files go by the new one", function()
    local dense = layers.Dense(2, { activation = "softmax" })
    local model = model_of(dense)
    local traced = flow.fn(function(v) return model(v) end)
    local softmax = model:predict(x, { verbose = 0 })
    local scores = x:matmul(dense.kernel) + dense.bias
    assert.truthy(largest_difference(traced(x), scores:softmax()) < 1e-6)
    for _, none in ipairs { false, "linear", flow.keras.activations.linear } do
      dense.activation = none
      assert.equal("linear", dense.activation)
      assert.truthy(largest_difference(model:predict(x, { verbose = 0 }), scores) < 1e-6)
      assert.truthy(largest_difference(traced(x), scores) < 1e-6)
    end
    dense.activation = function(v) return v * v end
    assert.truthy(largest_difference(model:predict(x, { verbose = 0 }), scores * scores) < 1e-4)
    dense.activation = "softmax"
    assert.equal(0, largest_difference(model:predict(x, { verbose = 0 }), softmax))
    dense.activation = nil
    assert.equal("linear", dense:get_config().activation)
    assert.error_matches(function() dense.activation = "sotfmax" end, "softmax")
    assert.equal("linear", dense.activation)
  end)

  it("set the rate of Dropout and the momentum of BatchNormalization for steps that are compiled", function()
    local dropout, norm = layers.Dropout(0), layers.BatchNormalization()
    local model = model_of(dropout, norm, layers.Dense(1))
    model:fit(x, flow.zeros { 2, 1 }, { verbose = 0 })
    dropout.rate, norm.momentum = 0.9999999, 0
    model:fit(x, flow.zeros { 2, 1 }, { verbose = 0 })
    assert.equal(0, norm.moving_mean:value():abs():max():item())
    assert.error_matches(function() dropout.rate = 2 end, "rate")
    assert.truthy(dropout.rate < 1)
  end)

  it("set regularizers, of the library and of scripts, one in the place of another", function()
    local dense = layers.Dense(1, { kernel_initializer = "ones", kernel_regularizer = function(w) return flow.sum(w) * 5 end })
    local model = model_of(dense)
    assert.equal(15, model.losses[1]:item())
    dense.kernel_regularizer = flow.regularizers.L2(0.5)
    assert.equal(1.5, model.losses[1]:item())
    assert.equal(1, #model.losses)
    dense.kernel_regularizer = function(w) return flow.sum(w) * 7 end
    assert.equal(21, model.losses[1]:item())
    assert.equal(1, #model.losses)
    assert.equal(21, model:evaluate(flow.zeros { 2, 3 }, flow.zeros { 2, 1 }, { verbose = 0 }).loss)
    dense.kernel_regularizer = nil
    assert.equal(0, #model.losses)
    assert.equal(0, model:evaluate(flow.zeros { 2, 3 }, flow.zeros { 2, 1 }, { verbose = 0 }).loss)
  end)

  it("set its name, in files, too, while its variables keep theirs", function()
    local path = support.path(".keras")
    local model = model_of(layers.Dense(2, { name = "before" }))
    local dense = model:get_layer "before"
    dense.name = "after"
    assert.equal(dense, model:get_layer "after")
    assert.equal("after", dense:get_config().name)
    assert.truthy(dense.kernel.path:find "/before/kernel$")
    assert.equal('Dense "after"', tostring(dense))
    model:save(path)
    assert.equal("after", flow.load_model(path).layers[1].name)
    os.remove(path)
    assert.error_matches(function() dense.name = "a/b" end, "contains")
    assert.error_matches(function() dense.name = 3 end, "name is a string")
  end)

  it("set the factors of layers that change pictures", function()
    local brightness = layers.RandomBrightness({ 0.5, 0.5 }, { value_range = { 0, 1 } })
    local pictures = flow.zeros { 1, 2, 2, 3 }
    local traced = flow.fn(function(v) return brightness(v, { training = true }) end)
    assert.equal(0.5, traced(pictures):max():item())
    brightness.factor = { 0.25, 0.25 }
    assert.equal(0.25, brightness(pictures, { training = true }):max():item())
    assert.equal(0.25, traced(pictures):max():item())
    assert.error_matches(function() brightness.factor = 3 end, "from %-1 to 1")
  end)

  it("say what can be set where a field is fixed", function()
    local dense = layers.Dense(2)
    assert.error_matches(function() dense.units = 3 end, "units is fixed when the layer is made.*activation, kernel_regularizer")
    assert.error_matches(function() dense.kernel_constraint = "non_neg" end, "kernel_constraint is fixed")
    assert.error_matches(function() layers.LayerScale(1, 3).init_values = 2 end, "init_values is fixed")
    assert.error_matches(function() layers.LSTM(2).stateful = true end, "stateful is fixed")
  end)
end)

describe("Fields of optimizers and compiled models", function()
  it("are read by their names in Keras, and say what sets them", function()
    local sgd = flow.optimizers.SGD(0.1, 0.75)
    assert.equal(0.75, sgd.momentum)
    assert.is_nil(sgd.clipnorm)
    assert.equal(0.5, flow.optimizers.LossScaleOptimizer(flow.optimizers.Adam(0.1, 0.5)).beta_1)
    assert.error_matches(function() sgd.momentum = 0.5 end, "momentum is fixed when it is made")
    local model = model_of(layers.Dense(1))
    assert.error_matches(function() model.optimizer = sgd end, "compile { optimizer = ... } does")
    model.run_eagerly = true
    assert.truthy(model.run_eagerly)
    model:fit(x, flow.zeros { 2, 1 }, { verbose = 0 })
  end)
end)
