-- wrapped_files_spec.lua: models without Lua run files that hold wrappers, tables of inputs and outputs by name, many inputs, and masks, to
-- the bits that Lua gives; what they lack they name.
local flow = require "flow"
local native = require "flow.ffi"
local model_files = require "spec.support.model_files"
local support = require "spec.support.init"

local layers, C = flow.layers, native.C

local function normal(...) return flow.random.normal({ ... }, { seed = 5 }) end

--- One step of a compiled file in C: the loss, and the model that it saves then.
local function trained_in_c(file, x, y)
  local out, loss = native.out("flow_model"), native.array("double", 1)
  native.check(C.flow_model_load(native.context, file, out))
  local model = native.own(out, C.flow_model_release)
  local pointers = native.pointers { x }
  native.check(C.flow_model_train(native.context, model, pointers, 1, native.pointer(y), loss))
  native.check(C.flow_model_save(model, file .. ".c.keras"))
  native.close(model, C.flow_model_release)
  return loss[0], flow.load_model(file .. ".c.keras")
end

local function in_c_message(model, inputs)
  local file = support.file("model.keras", "")
  model:save(file)
  return select(2, pcall(model_files.predict_in_c, file, inputs))
end

describe("files with wrappers, in models without Lua,", function()
  it("keep masks through Bidirectional, RNN and TimeDistributed, of sequences of any length", function()
    local model = flow.Sequential { layers.Input { -1 }, layers.Embedding(20, 6, { mask_zero = true }),
      layers.Bidirectional(layers.LSTM(4, { return_sequences = true })), layers.Bidirectional(layers.GRU(3, { return_sequences = true }),
        { merge_mode = "ave" }), layers.TimeDistributed(layers.Dense(5)),
      layers.RNN({ layers.LSTMCell(4), layers.GRUCell(3) }, { return_sequences = true, go_backwards = true }),
      layers.RNN(layers.SimpleRNNCell(4)), layers.Dense(2) }
    for _, steps in ipairs { 1, 2, 7 } do
      local words = flow.random.randint({ 3, steps }, 0, 20, { seed = steps }):to "float32"
      words[{ {}, { steps, steps } }] = 0
      model_files.assert_returns(model, { words })
    end
  end)

  it("give states, and take them", function()
    local x, states = flow.Input { 5, 4 }, {}
    for i = 1, 4 do states[i] = flow.Input { 3 } end
    local results = layers.Bidirectional(layers.LSTM(3, { return_state = true, return_sequences = true }), { merge_mode = false })(x,
      { initial_state = states })
    local model = flow.Model { inputs = { x, unpack(states) }, outputs = results }
    model_files.assert_returns(model, { normal(2, 5, 4), normal(2, 3), normal(2, 3) + 1, normal(2, 3) * 2, normal(2, 3) - 1 })
  end)

  it("give every output of what TimeDistributed holds", function()
    local image = layers.Input { 4, 2 }
    local two = flow.Model { inputs = image, outputs = { layers.Dense(3)(image), layers.Flatten()(image) } }
    local states, steps = layers.LSTM(3, { return_state = true }), layers.GRU(2, { return_state = true, return_sequences = true })
    for _, inner in ipairs { states, steps, two } do
      local x = layers.Input { 5, 4, 2 }
      local model = flow.Model { inputs = x, outputs = layers.TimeDistributed(inner)(x) }
      model_files.assert_returns(model, { normal(3, 5, 4, 2) })
    end
    local row = layers.Input { 6 }      -- of one step after the other: its statistics are those of a step
    local both = flow.Model { inputs = row, outputs = { layers.BatchNormalization()(row), layers.Dense(2)(row) } }
    local x = layers.Input { 5, 6 }
    local results = layers.TimeDistributed(both)(x)
    local model = flow.Model { inputs = x, outputs = layers.Concatenate() { results[1], results[2] } }
    model_files.assert_returns(model, { normal(3, 5, 6) })
    model:compile { optimizer = "sgd", loss = "mse" }
    local file, x_values, y = support.file("several.keras", ""), normal(3, 5, 6), normal(3, 5, 8)
    model:save(file)
    local loss, trained = trained_in_c(file, x_values, y)
    assert.near(model:train_on_batch(x_values, y).loss, loss, 1e-6)
    model_files.assert_same_bits({ model:predict(x_values) }, { trained:predict(x_values) }, "after a step")
  end)

  it("run whole models on each step, and layers that keep statistics step by step when they train", function()
    local inner = flow.Sequential { layers.Input { 6, 6, 1 }, layers.Conv2D(3, 3), layers.BatchNormalization(), layers.Flatten() }
    local model = flow.Sequential { layers.Input { 4, 6, 6, 1 }, layers.TimeDistributed(inner), layers.Bidirectional(layers.GRU(3)),
      layers.Dense(2) }
    local x, y, file = normal(3, 4, 6, 6, 1), normal(3, 2), support.file("model.keras", "")
    model_files.assert_returns(model, { x })
    model:compile { optimizer = "sgd", loss = "mse" }
    model:save(file)
    local loss, again = trained_in_c(file, x, y)
    assert.near(model:train_on_batch(x, y).loss, loss, 1e-6)
    for i, v in ipairs(model.variables) do model_files.assert_same_bits({ v:value() }, { again.variables[i]:value() }, v.name) end
  end)

  it("leave pictures as they are where layers change them in training only, which they refuse", function()
    local model = flow.Sequential { layers.Input { 4, 4, 3 }, layers.RandomBrightness(0.2),
      layers.RandomTranslation(0.1, 0.1), layers.Flatten(), layers.Dense(2) }
    local x, y, file = normal(3, 4, 4, 3), normal(3, 2), support.file("model.keras", "")
    model:compile { optimizer = "sgd", loss = "mse" }
    model_files.assert_returns(model, { x })
    model:save(file)
    local _, message = pcall(trained_in_c, file, x, y)
    assert.truthy(message:find('RandomBrightness "random_brightness[_%d]*": it changes pictures at random in training, which only Lua can'),
      message)
  end)

  it("name what they do not have", function()
    local Own = layers.Layer:extend "OwnOfWrapped"
    function Own:call(x) return x end
    local x = normal(2, 5, 4)
    local message = in_c_message(flow.Sequential { layers.Input { 5, 4 }, layers.TimeDistributed(Own { name = "mine" }) }, { x })
    assert.truthy(message:find('the layer "mine" is of class OwnOfWrapped, which the library does not have', 1, true), message)
    local spectral = layers.SpectralNormalization(layers.Dense(2), { name = "spectral" })
    message = in_c_message(flow.Sequential { layers.Input { 5, 4 }, spectral }, { x })
    assert.truthy(message:find('the layer "spectral" is of class SpectralNormalization', 1, true), message)
    local cells = {}
    for i = 1, 4 do cells[i] = layers.LSTMCell(2) end
    message = in_c_message(flow.Sequential { layers.Input { 5, 4 }, layers.RNN(cells, { name = "tall" }) }, { x })
    assert.truthy(message:find("its cells have more than 6 states", 1, true), message)
  end)
end)

describe("files with inputs and outputs", function()
  it("by name have them in the order of the names, in nested models, too", function()
    local a, b = flow.Input({ 3 }, { name = "zeta" }), flow.Input({ 4 }, { name = "alpha" })
    local joined = layers.concatenate { a, b }
    local inner = flow.Model { inputs = { p = a, q = b }, outputs = { second = layers.Dense(2)(joined), first = layers.Dense(1)(joined) } }
    local x, y = normal(2, 3), normal(2, 4)
    local file = support.file("model.keras", "")
    inner:save(file)
    local found, expected = model_files.predict_in_c(file, { x, y }), inner:predict({ p = x, q = y }, { verbose = 0 })
    model_files.assert_same_bits({ expected.first, expected.second }, found, "by name")
    local c, d = flow.Input { 4 }, flow.Input { 3 }
    local results = inner { q = c, p = d }
    model_files.assert_returns(flow.Model { inputs = { c, d }, outputs = { results.second, results.first } }, { y, x })
  end)

  it("may have many, and operations on them", function()
    local inputs, values = {}, {}
    for i = 1, 60 do inputs[i], values[i] = flow.Input { 1 }, normal(3, 1) * i end
    local joined, outputs = flow.concat(inputs, 2), {}
    for i = 1, 40 do outputs[i] = layers.Dense(1)(i % 2 == 0 and joined or layers.concatenate(inputs)) end
    model_files.assert_returns(flow.Model { inputs = inputs, outputs = outputs }, values)
  end)
end)
