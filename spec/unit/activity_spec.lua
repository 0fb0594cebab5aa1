-- activity_spec.lua: activity_regularizer: partial batches, replicas, evaluation, C, layers written in Lua. Values against Keras:
-- spec/golden/layer_options_spec.lua.
local support = require "spec.support.init"
local flow = require "flow"
local native = require "flow.ffi"
local layers = flow.layers

local function new_model(regularizer)
  flow.set_random_seed(6)
  local hidden = layers.Dense(4, { activation = "tanh", activity_regularizer = regularizer })
  return flow.Sequential { layers.Input { 3 }, hidden, layers.Dense(1) }
end
local x, y = flow.random.normal({ 10, 3 }, { seed = 1 }), flow.random.normal({ 10, 1 }, { seed = 2 })

describe("activity_regularizer", function()
  it("divides by the rows of each batch, also of a smaller last one, in evaluation, too", function()
    local model, plain = new_model(flow.regularizers.L2(0.5)), new_model(nil)
    for _, m in ipairs { model, plain } do m:compile { optimizer = "sgd", loss = "mse" } end
    local expected, hidden = 0, plain.layers[1](x)
    for _, rows in ipairs { { 1, 4 }, { 5, 8 }, { 9, 10 } } do
      local count = rows[2] - rows[1] + 1
      expected = expected + count * 0.5 * hidden[{ rows }]:square():sum():item() / count
    end
    local with = model:evaluate(x, y, { batch_size = 4, verbose = 0 }).loss
    local without = plain:evaluate(x, y, { batch_size = 4, verbose = 0 }).loss
    assert.near(expected / 10, with - without, 1e-5)
  end)

  it("is the same on two replicas, each of which divides by its rows", function()
    flow.config.set_logical_devices("cpu", 2)
    local losses = {}
    for i, devices in ipairs { { "cpu:0" }, { "cpu:0", "cpu:1" } } do
      local strategy, model = flow.distribute.MirroredStrategy { devices = devices }, nil
      strategy.scope(function()
        model = new_model("l1_l2")
        model:compile { optimizer = flow.optimizers.SGD(0.1), loss = "mse" }
      end)
      losses[i] = model:fit(x[{ { 1, 8 } }], y[{ { 1, 8 } }], { epochs = 3, batch_size = 4, verbose = 0, shuffle = false }).history.loss
    end
    for i = 1, 3 do assert.near(losses[1][i], losses[2][i], 1e-6) end
  end)

  it("counts where a file is trained in C", function()
    local path = support.file("activity.keras", "")
    local model = new_model(flow.regularizers.L1L2(0.1, 0.2))
    model:compile { optimizer = flow.optimizers.SGD(0.1), loss = "mse" }
    model:save(path)
    local out, loss = native.out("flow_model"), native.array("double", 1)
    native.try(native.C.flow_model_load, native.context, path, out)
    local in_c = native.own(out, native.C.flow_model_release)
    native.try(native.C.flow_model_train, native.context, in_c, native.pointers { x }, 1, native.pointer(y), loss)
    assert.near(flow.load_model(path):train_on_batch(x, y).loss, loss[0], 1e-6)
  end)

  -- Of Keras 3.15, on TensorFlow and on Torch: {} and 0.1082 + 0.1418 + 0.1818 for these layers and inputs.
  it("counts in TimeDistributed for layers inside of its layer, step by step, and not for that layer itself", function()
    local steps = flow.arange(0, 24):reshape { 4, 3, 2 }:to "float32" / 10
    local function added(make)
      local inputs = flow.Input { 3, 2 }
      local model = flow.Model { inputs = inputs, outputs = layers.TimeDistributed(make())(inputs) }
      model:compile { optimizer = flow.optimizers.SGD(0.1), loss = "mse" }
      local targets = model(steps)
      local loss = 0
      for _, value in ipairs(model.losses) do loss = loss + value:item() end
      local path = support.file("distributed.keras", "")
      model:save(path)
      assert.near(loss, model:test_on_batch(steps, targets).loss, 1e-6)
      if #model.trainable_variables == 0 then return loss end
      local out, in_c = native.out("flow_model"), native.array("double", 1)
      native.try(native.C.flow_model_load, native.context, path, out)
      local loaded = native.own(out, native.C.flow_model_release)
      native.try(native.C.flow_model_train, native.context, loaded, native.pointers { steps }, 1, native.pointer(targets), in_c)
      assert.near(loss, in_c[0], 1e-6)
      return loss
    end
    local function dense() return layers.Dense(2, { kernel_initializer = "ones", activity_regularizer = "l2" }) end
    assert.equal(0, added(dense))
    assert.equal(0, added(function() return layers.ActivityRegularization { l2 = 0.01 } end))
    assert.near(0.4318, added(function() return flow.Sequential { layers.Input { 2 }, dense() } end), 1e-6)
    local shared, inputs = dense(), flow.Input { 3, 2 }
    local model = flow.Model { inputs = inputs, outputs = { layers.TimeDistributed(shared)(inputs), shared(inputs) } }
    model(steps)
    assert.equal(1, #model.losses)
    assert.near(0.4318, model.losses[1]:item(), 1e-6)
  end)

  it("is for layers written in Lua, too, and comes back from files", function()
    local Twice = layers.Layer:extend "Twice"
    function Twice:call(inputs) return inputs * 2 end
    local inputs = flow.Input { 3 }
    local model = flow.Model { inputs = inputs, outputs = Twice { activity_regularizer = flow.regularizers.L1(0.5) }(inputs) }
    model(flow.ones { 4, 3 })
    assert.near(3, model.losses[1]:item(), 1e-6)
    local again = flow.models.model_from_json(model:to_json(), { custom_objects = { Twice = Twice } })
    again(flow.ones { 4, 3 })
    assert.near(3, again.losses[1]:item(), 1e-6)
    local own = Twice { activity_regularizer = function(t) return t:max() end }
    own(flow.ones { 4, 3 })
    assert.near(0.5, own.losses[1]:item(), 1e-6)
    assert.truthy(support.message_of(function() Twice { activity_regularizer = "l3" }(flow.ones { 1, 2 }) end)
      :find("activity_regularizer is one such as", 1, true))
  end)

  it("is not an option of layers to which Keras does not give it", function()
    for _, name in ipairs { "SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D", "LSTMCell" } do
      local text = support.message_of(function() return layers[name] { 0.5, activity_regularizer = "l2" } + 0 end)
      assert.truthy(text:find('unknown option "activity_regularizer"', 1, true), text)
    end
  end)
end)
