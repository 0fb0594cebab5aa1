-- quantized_spec.lua: what Keras quantizes to int8 computes here as there, whether it was quantized here or Keras' file has bytes
-- (quantized.py).
local support = require "spec.support.init"
local flow = require "flow"
local json = require "flow.json"
local native = require "flow.ffi"

local golden = json.decode(flow.io.read_file "spec/golden/quantized.json")
local ids = flow.tensor({ { 0, 1, 2, 3, 4 }, { 5, 6, 7, 8, 9 } }, { dtype = "int32" })
local function difference(model, values)
  local y = model:predict(ids, { verbose = 0 })
  if type(y) == "table" then y = flow.concatenate({ y[1]:reshape { -1 }, y[2]:reshape { -1 } }, 1) end
  return (y:reshape { -1 } - flow.tensor(values)):abs():max():item()
end

-- The same as numbers and with_lora in quantized.py.
local function numbers(seed, shape)
  local count, list = 1, {}
  for _, size in ipairs(shape) do count = count * size end
  for i = 1, count do list[i] = (i - 1 + seed) * 37 % 101 / 101 - 0.5 end
  return flow.tensor(list):reshape(shape)
end

local function with_lora(order)
  local layers = flow.layers
  local input = flow.Input({ 5 }, { dtype = "int32" })
  local embedding, einsum = layers.Embedding(10, 6), layers.EinsumDense("abc,cd->abd", { output_shape = { -1, 4 }, bias_axes = "d",
                                                                                         activation = "relu" })
  local dense, last = layers.Dense(4), layers.Dense(4, { activation = "tanh" })
  local rows = layers.ReversibleEmbedding(7, 4, { tie_weights = false })
  local h = dense(einsum(embedding(input)))
  h = h + layers.GlobalAveragePooling1D { keepdims = true }(rows(input % 7))
  h = last(h)
  local model, at = flow.Model { inputs = input, outputs = { h, rows(flow.stop_gradient(h), { reverse = true }) } }, 0
  for _, layer in ipairs(model.layers) do
    for _, v in ipairs(layer.weights) do
      v:assign(numbers(at, v.shape))
      at = at + 1
    end
  end
  local function lora()
    local count = 0
    for _, layer in ipairs(model.layers) do
      if layer == embedding or layer == einsum or layer == dense or layer == rows then
        layer:enable_lora(2, 3)
        for _, v in ipairs(layer.trainable_variables) do
          local letter = v.name:match "^lora_.*_([ab])$"
          if letter then v:assign(numbers((letter == "a" and 40 or 50) + count, v.shape)) end
        end
        count = count + 1
      end
    end
  end
  if order == "lq" then lora() end
  model:quantize "int8"
  if order == "ql" then lora() end
  return model
end

-- The tensors of a file of weights below the places of some layers.
local function tensors(path, of)
  local file, found = require("flow.saving.tensor_file").open(path, path:find "%.keras$" and "model.weights.h5" or nil), {}
  for i = 1, file.count do
    local name = file:name_of(i)
    for _, place in ipairs(of) do
      if name:sub(1, #place) == place then found[name] = { file:dtype(i), file:read(i) } end
    end
  end
  file:close()
  return found
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

  it("makes files of weights that Keras' quantized models read: the same bytes and scales", function()
    local path, model = support.folder() .. "/int8.weights.h5", flow.load_model "spec/golden/unquantized.keras"
    model:quantize "int8"
    model:save_weights(path)
    local expected = tensors("spec/golden/quantized.weights.h5", { "layers/" })
    local found, count = tensors(path, { "layers/" }), 0
    for name, one in pairs(expected) do
      count = count + 1
      assert.is_table(found[name], name)
      assert.same({ one[1], one[2].shape }, { found[name][1], found[name][2].shape }, name)
      local far = (one[2]:to "float32" - found[name][2]:to "float32"):abs():max():item()
      assert.is_true(far <= (one[1] == "int8" and 0 or 1e-6 * one[2]:abs():max():item()), name)
    end
    for _ in pairs(found) do count = count - 1 end
    assert.equal(0, count)
  end)

  it("makes .keras files in which Keras finds a policy of int8 and bytes; those of attentions are floats, which it cannot read", function()
    local path, model = support.folder() .. "/int8.keras", flow.load_model "spec/golden/unquantized.keras"
    model:quantize "int8"
    local before = model:predict(ids, { verbose = 0 })
    model:save(path)
    for _, one in ipairs { flow.load_model(path), flow.models.shared(path) } do
      assert.equal(0, (one:predict(ids, { verbose = 0 }) - before):abs():max():item())
    end
    local text = model:to_json()
    local policies = 0
    for _ in text:gmatch '"QuantizedDTypePolicy"' do policies = policies + 1 end
    assert.equal(4, policies)      -- Embedding, two EinsumDense, Dense
    local keras, ours = tensors("spec/golden/quantized.keras", { "layers/" }), tensors(path, { "layers/" })
    for name, one in pairs(keras) do
      assert.equal(name:find "attention" and "float32" or one[1], ours[name] and ours[name][1] or "float32", name)
    end
  end)

  it("writes floats where Keras cannot read bytes: dots in equations, inside of SpectralNormalization and of scripts' classes", function()
    local layers = flow.layers
    local Own = layers.Layer:extend "OwnWithDense"
    function Own:init() self.dense = layers.Dense(3) end
    function Own:call(x) return self.dense(x) end
    local model = flow.Sequential { layers.Input { 4 }, layers.EinsumDense("...a,ab->...b", { output_shape = { 3 } }),
                                    layers.SpectralNormalization(layers.Dense(3)), Own(), layers.Dense(2) }
    local x, path = flow.random.normal({ 5, 4 }, { seed = 1 }), support.folder() .. "/floats.keras"
    model:quantize "int8"
    local before = model:predict(x, { verbose = 0 })
    model:save(path)
    local kinds = {}
    for _, one in pairs(tensors(path, { "layers/" })) do kinds[one[1]] = (kinds[one[1]] or 0) + 1 end
    assert.equal(1, kinds.int8)
    local again = flow.load_model(path, { custom_objects = { OwnWithDense = Own } })
    assert.equal(0, (again:predict(x, { verbose = 0 }) - before):abs():max():item())
  end)

  for _, order in ipairs { "lq", "ql" } do
    it("goes with LoRA, " .. (order == "lq" and "before" or "after") .. " it, as in Keras: predictions, training, files", function()
      local model, expected = with_lora(order), golden.lora[order]
      assert.is_true(difference(model, expected.before) < 2e-6)
      local names = {}
      for i, v in ipairs(model.trainable_variables) do names[i] = v.path:match "/(.*)" end
      assert.same(expected.trainable, names)
      model:compile { optimizer = flow.optimizers.SGD(0.1), loss = "mse" }
      model:fit(ids, { flow.ones { 2, 5, 4 }, flow.ones { 2, 5, 7 } }, { epochs = 3, verbose = 0, shuffle = false })
      assert.is_true(difference(model, expected.after) < 1e-5)
      local path = support.folder() .. "/lora.keras"
      model:save(path)
      assert.is_true(difference(flow.load_model(path), expected.again) < 1e-5)
      assert.is_true(difference(flow.load_model "spec/golden/quantized_lora.keras", expected.again) < 1e-5)
      local ours, keras = tensors(path, { "layers/" }), tensors("spec/golden/quantized_lora.keras", { "layers/" })
      for name, one in pairs(keras) do assert.same({ one[1], one[2].shape }, { ours[name][1], ours[name][2].shape }, name) end
    end)
  end

  it("of one layer, without data", function()
    local layer = flow.layers.Embedding(3, 2)
    layer:build { -1, 2 }
    layer.embeddings:assign { { 1, 0.3 }, { 0.001, 0.0005 }, { 0, 0 } }
    layer:quantize()
    local y = layer(flow.tensor({ { 0, 1, 2 } }, { dtype = "int32" }))
    local expected = flow.tensor { { { 1, 38 / 127 }, { 0.0010001, 63 / 127 * 0.0010001 }, { 0, 0 } } }
    assert.near(0, (y - expected):abs():max():item(), 1e-6)
    assert.same({}, layer.trainable_variables)
    layer.trainable = true
    assert.same({}, layer.trainable_variables)
    assert.matches("is for Dense, EinsumDense, embeddings and attentions",
      support.message_of(function() flow.layers.Conv1D(2, 2):quantize() end), 1, true)
  end)

  it("of another kind is refused by name", function()
    local config = flow.layers.Dense(2):get_config()
    config.dtype = { class_name = "QuantizedDTypePolicy", config = { mode = "int4", source_name = "float32" } }
    assert.matches("Dense is quantized to int4 in this file", support.message_of(function() flow.layers.Dense.from_config(config) end), 1,
      true)
  end)
end)
