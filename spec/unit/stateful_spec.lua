-- stateful_spec.lua: stateful = true: states from call to call, resetting them, sizes of batches, traced functions, replicas, C, backups.
local support = require "spec.support.init"
local flow = require "flow"
local model_files = require "spec.support.model_files"

local layers = flow.layers

local function normal(shape, seed) return flow.random.normal(shape, { seed = seed }) end
local function near(a, b, tolerance)
  assert.same({ unpack(a.shape) }, { unpack(b.shape) })
  local distance = (a - b):abs():max():item()
  assert.is_true(distance <= (tolerance or 1e-6), distance)
end
local function says(text, f, ...)
  local ok, found = pcall(f, ...)
  assert.is_false(ok, "no error that says " .. text)
  assert.is_truthy(tostring(found):find(text, 1, true), found)
end

-- Makers of stateful layers, with a shape {rows, steps, ...} for them.
local KINDS = {
  SimpleRNN = { { 2, 6, 3 }, function(options) return layers.SimpleRNN(4, options) end },
  LSTM = { { 2, 6, 3 }, function(options) return layers.LSTM(4, options) end },
  GRU = { { 2, 6, 3 }, function(options) return layers.GRU(4, options) end },
  RNN = { { 2, 6, 3 }, function(options) return layers.RNN({ layers.LSTMCell(4), layers.GRUCell(2) }, options) end },
  ConvLSTM1D = { { 2, 6, 5, 2 }, function(options) return layers.ConvLSTM1D(3, 2, options) end },
  ConvLSTM2D = { { 2, 6, 5, 4, 2 }, function(options) return layers.ConvLSTM2D(3, 2, options) end },
  ConvLSTM3D = { { 2, 6, 3, 4, 3, 2 }, function(options) return layers.ConvLSTM3D(2, 2, options) end },
}

-- Steps first .. last of x.
local function steps_of(x, first, last) return x[{ {}, { first, last } }] end

describe("a stateful layer", function()
  for name, kind in pairs(KINDS) do
    local shape, make = kind[1], kind[2]

    it("goes on where its last call ended: " .. name, function()
      local x = normal(shape, 1)
      local layer, whole = make { stateful = true, return_sequences = true }, make { return_sequences = true }
      assert.same({}, layer.states)
      local first = layer(steps_of(x, 1, 2))
      local function all()
        layer:reset_states()
        return flow.concat({ layer(steps_of(x, 1, 2)), layer(steps_of(x, 3, 3)), layer(steps_of(x, 4, 6)) }, 2)
      end
      whole:build { -1, unpack(shape, 2) }
      whole:set_weights(layer:get_weights())
      near(whole(x), all())
      assert.is_true((layer(steps_of(x, 1, 2)) - first):abs():max():item() > 1e-4)
      layer:reset_state()
      near(first, layer(steps_of(x, 1, 2)), 0)
      near(whole(x), all())
      for _, v in ipairs(layer.states) do assert.same({ false, 2 }, { v.trainable, v.shape[1] }) end
      assert.equal(#whole.weights, #layer.weights)
    end)

    it("does so in a traced function and in a model: " .. name, function()
      local x, layer = normal(shape, 1), make { stateful = true }
      local input = flow.Input({ 2, unpack(shape, 3) }, { batch_size = 2 })
      local model, f = flow.Model { inputs = input, outputs = layer(input) }, flow.fn(function(t) return layer(t) end)
      local results = {}
      for i, call in ipairs { layer, f, function(t) return model:predict(t, { verbose = 0 }) end, model } do
        model:reset_states()
        for k = 1, 3 do
          local y = call(steps_of(x, 2 * k - 1, 2 * k))
          if i == 1 then results[k] = y else near(results[k], y) end
        end
      end
    end)

    it("says which batches it can take: " .. name, function()
      local layer, x = make { stateful = true }, normal(shape, 1)
      says("the number of rows is not known here", make { stateful = true }, flow.Input { unpack(shape, 2) })
      layer(x)
      says("the batch has 1 rows, the states are those of 2: give batches of 2 rows", layer, x[{ { 1, 1 } }])
      local input = flow.Input { batch_shape = shape }
      local model = flow.Model { inputs = input, outputs = layer(input) }
      says("drop_remainder = true", model.predict, model, normal({ 3, unpack(shape, 2) }, 1), { batch_size = 2, verbose = 0 })
    end)
  end

  it("keeps the states that a call with initial_state ends with", function()
    local x = normal({ 2, 4, 3 }, 1)
    local layer = layers.LSTM(3, { stateful = true, return_state = true })
    local states = { normal({ 2, 3 }, 2), normal({ 2, 3 }, 3) }
    layer(x)
    local _, h, c = unpack(layer(x, { initial_state = states }))
    near(h, layer.states[1]:value(), 0)
    near(c, layer.states[2]:value(), 0)
    local before = layer(x, { initial_state = { h, c } })[1]
    layer(x, { initial_state = states })
    near(before, layer(x)[1])
  end)

  it("begins a gradient anew with every call", function()
    local layer, x = layers.GRU(2, { stateful = true }), flow.Variable(normal({ 1, 2, 3 }, 1))
    local tape = flow.GradientTape()
    local y = tape:record(function()
      layer(x)
      return layer(normal({ 1, 2, 3 }, 2)):sum()
    end)
    assert.is_nil(tape:gradient(y, x))
  end)

  it("is called step by step in TimeDistributed, and both layers of Bidirectional are reset", function()
    local layer = layers.LSTM(2, { stateful = true })
    local x = normal({ 2, 3, 4, 5 }, 1)
    local y = layers.TimeDistributed(layer)(x)
    layer:reset_states()
    for t = 1, 3 do near(y[{ {}, { t, t } }]:squeeze(2), layer(x[{ {}, { t, t } }]:squeeze(2))) end
    local both = layers.Bidirectional(layers.GRU(2, { stateful = true }))
    local first = both(normal({ 2, 3, 4 }, 1))
    assert.is_true((both(normal({ 2, 3, 4 }, 1)) - first):abs():max():item() > 1e-4)
    both:reset_states()
    near(first, both(normal({ 2, 3, 4 }, 1)), 0)
  end)

  it("is refused where replicas share a batch, and by C", function()
    flow.config.set_logical_devices("cpu", 2)
    local strategy = flow.distribute.MirroredStrategy { "cpu:0", "cpu:1" }
    local model = strategy:scope(function()
      local input = flow.Input({ 3, 2 }, { batch_size = 4 })
      local made = flow.Model { inputs = input, outputs = layers.LSTM(2, { stateful = true })(input) }
      made:compile { optimizer = "sgd", loss = "mse" }
      return made
    end)
    says("gives its 2 replicas parts of it", model.fit, model, normal({ 4, 3, 2 }, 1), normal({ 4, 2 }, 2), { verbose = 0 })
    local alone = flow.Sequential { flow.Input({ 3, 2 }, { batch_size = 4 }), layers.LSTM(2, { stateful = true }) }
    local path = support.path(".keras")
    alone:save(path)
    says("has stateful = true, and the sessions of a model have no states of their own", model_files.predict_in_c, path,
      { normal({ 4, 3, 2 }, 1) })
    os.remove(path)
  end)

  it("goes on after a restart with the states of the backup", function()
    local x, y = normal({ 8, 3, 2 }, 1), normal({ 8, 2 }, 2)
    local function new_model()
      flow.utils.set_random_seed(3)
      local memory = layers.LSTM(2, { stateful = true, dropout = 0.3, name = "memory" })
      local model = flow.Sequential { flow.Input({ 3, 2 }, { batch_size = 2 }), memory }
      model:compile { optimizer = "adam", loss = "mse" }
      return model
    end
    local function fit(model, callbacks)
      return model:fit(x, y, { batch_size = 2, epochs = 4, shuffle = false, verbose = 0, callbacks = callbacks })
    end
    local whole = new_model()
    fit(whole)
    local folder = support.path()
    local Stop = flow.callbacks.Callback:extend("Stop")
    function Stop:on_train_batch_end(batch) if self.epoch == 1 and batch == 2 then error("killed") end end
    function Stop:on_epoch_begin(epoch) self.epoch = epoch end
    assert.is_false(pcall(fit, new_model(), { flow.callbacks.BackupAndRestore(folder, { save_freq = 1 }), Stop() }))
    local again = new_model()
    fit(again, { flow.callbacks.BackupAndRestore(folder, { save_freq = 1 }) })
    for i, v in ipairs(whole.weights) do near(v:value(), again.weights[i]:value(), 0) end
    near(whole.layers[1].states[2]:value(), again.layers[1].states[2]:value(), 0)
  end)
end)

describe("Input with a batch size", function()
  it("fixes the rows of shapes, not of batches", function()
    local input = flow.Input({ 3 }, { batch_size = 4 })
    local model = flow.Model { inputs = input, outputs = layers.Dense(2)(input) }
    assert.equal("(4, 2)", ("(%d, %d)"):format(unpack(model.output_shape)))
    assert.same({ 7, 2 }, { unpack(model:predict(flow.ones { 7, 3 }, { verbose = 0 }).shape) })
    assert.same({ 4, 3 }, flow.Input({ batch_shape = { 4, 3 } }).shape)
    assert.same({ -1, 3 }, flow.Input({ batch_shape = { -1, 3 } }).shape)
    says("give nothing else of a shape", flow.Input, { 3 }, { batch_shape = { 4, 3 } })
    says("begins with the number of rows", flow.Input, { batch_shape = { 0, 3 } })
    says("batch_size", flow.Input, { 3 }, { batch_size = 0 })
  end)
end)
