-- quantized_spec.lua: what Keras quantizes to int8 computes here as there, whether it was quantized here or Keras' file has bytes
-- (quantized.py).
local support = require "spec.support.init"
local flow = require "flow"
local json = require "flow.json"
local native = require "flow.ffi"

local golden = json.decode(flow.io.read_file "spec/golden/quantized.json")
local ids = flow.tensor({ { 0, 1, 2, 3, 4 }, { 5, 6, 7, 8, 9 } }, { dtype = "int32" })
local function difference(model, values)
  return (model:predict(ids, { verbose = 0 }):reshape { -1 } - flow.tensor(values)):abs():max():item()
end

describe("quantize \"int8\"", function()
  it("makes Embedding, EinsumDense, Dense and the projections of attentions compute as Keras' do", function()
    local model = flow.load_model "spec/golden/unquantized.keras"
    assert.is_true(difference(model, golden.floats) < 1e-5)
    assert.is_true(difference(model, golden.int8) > 1e-3)
    model:quantize "int8"
    assert.is_true(difference(model, golden.int8) < 1e-5)
    for _, layer in ipairs(model.layers) do
      if #layer.weights > 0 then assert.equal("int8", layer.quantization_mode, layer.name) end
    end
    local path = support.folder() .. "/m.keras"
    model:save(path)
    assert.is_true(difference(flow.load_model(path), golden.int8) < 1e-5)
    assert.is_true(difference(flow.models.shared(path), golden.int8) < 1e-5)
  end)

  it("is read from Keras' files, which hold bytes and their scales", function()
    local model = flow.load_model "spec/golden/quantized.keras"
    assert.is_true(difference(model, golden.int8) < 1e-5)
    assert.equal("int8", model.layers[2].quantization_mode)
    local folder = support.folder()
    local path = folder .. "/again.keras"
    model:save(path)
    assert.is_true(difference(flow.load_model(path), golden.int8) < 1e-5)
    local weights = flow.load_model "spec/golden/unquantized.keras"
    model:save_weights(folder .. "/w.weights.h5")
    weights:load_weights(folder .. "/w.weights.h5")      -- floats: the nearest that bytes can say
    assert.is_true(difference(weights, golden.floats) < 0.1)
  end)

  it("is read from Keras' files by models without Lua, which write them as flowlua does", function()
    local path = support.folder() .. "/again.keras"
    assert.is_true(difference(flow.models.shared "spec/golden/quantized.keras", golden.int8) < 1e-5)
    local model = native.out "flow_model"
    native.check(native.C.flow_model_load(native.context, "spec/golden/quantized.keras", model))
    native.check(native.C.flow_model_save(model[0], path))
    native.C.flow_model_release(model[0])
    assert.is_true(difference(flow.models.shared(path), golden.int8) < 1e-5)
    assert.is_true(difference(flow.load_model(path), golden.int8) < 1e-5)
  end)

  it("of one layer, without data", function()
    local layer = flow.layers.Embedding(3, 2)
    layer:build { -1, 2 }
    layer.embeddings:assign { { 1, 0.3 }, { 0.001, 0.0005 }, { 0, 0 } }
    layer:quantize()
    local y = layer(flow.tensor({ { 0, 1, 2 } }, { dtype = "int32" }))
    local expected = flow.tensor { { { 1, 38 / 127 }, { 0.0010001, 63 / 127 * 0.0010001 }, { 0, 0 } } }
    assert.near(0, (y - expected):abs():max():item(), 1e-6)
    assert.matches("only predicts", support.message_of(function()
      layer(flow.tensor({ { 0 } }, { dtype = "int32" }), { training = true })
    end), 1, true)
    assert.matches("is for Dense, EinsumDense, Embedding and attentions",
      support.message_of(function() flow.layers.Conv1D(2, 2):quantize() end), 1, true)
  end)

  it("of another kind is refused by name", function()
    local config = flow.layers.Dense(2):get_config()
    config.dtype = { class_name = "QuantizedDTypePolicy", config = { mode = "int4", source_name = "float32" } }
    assert.matches("Dense is quantized to int4 in this file", support.message_of(function() flow.layers.Dense.from_config(config) end), 1,
      true)
  end)
end)
