-- quantization.lua: which layers compute in int8 (core/layers/quantization.h), as tables that .keras files keep beside their configs:
--
--   { mode = "int8", input_range = { low, high } }     the range of the layer's input that calibration found
--   { mode = "int8" }                                  a range for each row of the input, as Keras' quantize("int8"), of a layer whose
--                                                      entry cannot say so in Keras' way
--   { layers = { one of these, or false, ... } }       of a layer written in Lua: those of the layers inside, from the outer to the inner
--
-- Keras does not read them: it opens such layers as the float32 ones that they also are. Dense, EinsumDense and embeddings with a range for
-- each row are written as Keras writes them: with a policy that says int8, and kernels of bytes (kernels/byte_kernels.lua).

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local json = require "flow.json"
local variable = require "flow.tensor.variable"

local C, raise = native.C, errors.raise
local quantization = {}

local made = 0      -- ever: what was traced before belongs to another number
local range = native.array("double", 2)

-- The classes that are quantized without data, as in Keras; those that are "only" are not quantized otherwise.
quantization.BY_ROW = { Dense = "too", EinsumDense = "only", Embedding = "only", MultiHeadAttention = "only", GroupQueryAttention = "only",
                        CachedMultiHeadAttention = "only", ReversibleEmbedding = "only" }

-- Of these, those whose entries say int8 in Keras' way.
local SAID = { Dense = true, EinsumDense = true, Embedding = true, ReversibleEmbedding = true }

-- Whether a layer is one that can be quantized; one with LoRA: by row.
function quantization.can(layer, by_row)
  local in_lua = rawget(layer, "_own_call") and not (by_row and (rawget(layer, "_lora") or rawget(layer, "_low_rank")))
  return layer._handle and not in_lua and C.flow_layer_class_quantizes(C.flow_layer_class_find(layer._record_name)) ~= 0
end

-- Sets how a layer computes, by a name of flow_quantizing without its prefix; low and high: of its input.
function quantization.set(layer, quantizing, low, high)
  native.check(C.flow_layer_quantize(layer._handle, C["FLOW_" .. quantizing], low or 0, high or 0))
  made = made + 1
  rawset(layer, "_quantized", made)
  variable.trainable_version = variable.trainable_version + 1
end

-- The layer computes in bytes by rows from now on: its kernels become what bytes can say, and are not trained any more.
function quantization.by_row(layer)
  if quantization.get(layer) == "QUANTIZED_BY_ROW" then return end
  if not layer._built then
    raise("%s: quantize() is for a layer that is built: call it, or layer:build(shape), before", object.title(layer))
  end
  require("flow.layers.kernels.byte_kernels").round(layer)
  quantization.set(layer, "QUANTIZED_BY_ROW")
end

-- Whether files have the layer as one that Keras has quantized: where Keras can read it, which it cannot with "..." in an equation and
-- inside of SpectralNormalization, and attentions in files of weights alone. weights: it is one of these.
function quantization.said(layer, weights)
  if not layer._handle or rawget(layer, "_stays_floats") or quantization.get(layer) ~= "QUANTIZED_BY_ROW" then return false end
  if not weights and not (SAID[layer._record_name] and not rawget(layer, "_extended")) then return false end
  return not (layer._record_name == "EinsumDense" and layer.equation:find("...", 1, true))
end

-- An entry's config as Keras writes it of a layer that it has quantized. config: a table.
function quantization.as_in_keras(config)
  local source = type(config.dtype) == "table" and config.dtype.config and config.dtype.config.name or config.dtype
  config.dtype = { module = "keras.dtype_policies", class_name = "QuantizedDTypePolicy", config = { mode = "int8", source_name = source },
                   registered_name = json.null }
  return config
end

-- How it is set, as set() takes it.
function quantization.get(layer)
  local quantizing = C.flow_layer_quantization(layer._handle, range)
  for _, name in ipairs { "QUANTIZED", "QUANTIZED_BY_ROW", "CALIBRATING" } do
    if quantizing == C["FLOW_" .. name] then return name, range[0], range[1] end
  end
  return "NOT_QUANTIZED", 0, 0
end

-- Every layer of the library inside a layer or model, itself as well, each once, from the outer to the inner.
function quantization.layers(layer)
  local list = {}
  for _, inside in ipairs(layer:_inside()) do list[#list + 1] = inside._handle and inside or nil end
  return list
end

-- Calls f(...) while no layer inside a model is quantized, and returns what it returns.
function quantization.in_floats(model, f, ...)
  local list, before = {}, {}
  for _, layer in ipairs(quantization.layers(model)) do
    if quantization.get(layer) ~= "NOT_QUANTIZED" then list[#list + 1], before[#list + 1] = layer, { quantization.get(layer) } end
  end
  if #list == 0 then return f(...) end
  return native.between(function()
    for _, layer in ipairs(list) do quantization.set(layer, "NOT_QUANTIZED") end
  end, function()
    for i, layer in ipairs(list) do quantization.set(layer, unpack(before[i])) end
  end, f, ...)
end

-- The config of a layer that Keras has quantized, as that of a layer in floats, and a record of how it is quantized; of any other layer the
-- config as it is. path: of the file, for messages.
function quantization.of_keras(config, class_name, path)
  local policy = config.dtype
  if type(policy) ~= "table" or not tostring(policy.class_name):find "^Quantized" then return config end
  local given, plain = policy.config or {}, {}
  if policy.class_name ~= "QuantizedDTypePolicy" or given.mode ~= "int8" then
    raise("%s: %s is quantized to %s in this file; of what Keras quantizes flowlua reads int8", path, class_name,
      type(given.mode) == "string" and given.mode or policy.class_name)
  end
  for key, value in pairs(config) do plain[key] = value end
  plain.dtype, plain.quantization_config = given.source_name, nil
  return plain, { mode = "int8" }
end

local function record_of(layer)
  local quantizing, low, high = quantization.get(layer)
  if quantizing == "QUANTIZED" then return { mode = "int8", input_range = json.list { low, high } } end
  return quantizing == "QUANTIZED_BY_ROW" and { mode = "int8" } or nil
end

-- What a file keeps of a layer that is not a graph of layers; nil: nothing.
function quantization.describe(layer)
  if layer._handle then return record_of(layer) end
  local list, some = json.list(), false
  for i, inner in ipairs(quantization.layers(layer)) do
    list[i] = record_of(inner) or false
    some = some or list[i] ~= false
  end
  return some and { layers = list } or nil
end

-- Quantizes a layer as a file's record says: with the range of its inputs, or by row where it has none. Raises for a record that it does
-- not know.
local function restore_one(layer, record, path)
  local given = record.input_range
  if record.mode ~= "int8" or given ~= nil and (type(given) ~= "table" or type(given[1]) ~= "number" or type(given[2]) ~= "number") then
    raise("%s: %s: its quantization is not known", path, object.title(layer))
  end
  quantization.set(layer, given and "QUANTIZED" or "QUANTIZED_BY_ROW", given and given[1], given and given[2])
end

-- The layers inside of a wrapper, by their order. An entry that is not a table stands for a layer that is not quantized.
local function restore_inside(layer, list, path)
  local inside = quantization.layers(layer)
  if type(list) ~= "table" or #list ~= #inside then
    raise("%s: %s has %d layers inside, its quantization is of %s", path, object.title(layer), #inside,
      type(list) == "table" and #list or "none")
  end
  for i, inner in ipairs(inside) do
    if type(list[i]) == "table" then restore_one(inner, list[i], path) end
  end
end

-- Sets what describe() gave, if anything, and returns the layer.
function quantization.restore(layer, record, path)
  if record == nil or record == json.null then return layer end
  if type(record) ~= "table" then raise("%s: the quantization of %s is not a table", path, object.title(layer)) end
  if layer._handle then restore_one(layer, record, path) else restore_inside(layer, record.layers, path) end
  return layer
end

return quantization
