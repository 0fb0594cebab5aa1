-- quantized_files.lua: reads weights that Keras' quantize("int8") has turned into bytes. In a file the group of such a layer has bytes
-- first and their scales last: kernel, bias, kernel_scale, or embeddings, embeddings_scale, and those of a second table
-- (keras.src.layers.core: variable_serialization_spec; kernels/byte_kernels.lua writes them). Here the layer gets the floats that the bytes
-- stand for, from which it makes the same bytes (core/layers/quantization.h).

local errors = require "flow.errors"
local object = require "flow.object"
local byte_kernels = require "flow.layers.kernels.byte_kernels"
local quantization = require "flow.layers.quantization"

local quantized_files = {}

-- Whether a group of `count` tensors in a file has the bytes and the scales of a layer with these variables.
function quantized_files.has(file, path, count, variables)
  local _, expected = byte_kernels.places(variables)
  local first = count > #variables and count == expected and file:find(path .. "/0")
  return first and file:dtype(first) == "int8"
end

-- The floats for a variable of a layer, from bytes at `position` of the file and scales at position `scale`.
function quantized_files.read(file, layer, v, position, scale)
  local content = file:read(position)
  local ok, floats = pcall(byte_kernels.floats, layer, v, content, file:read(scale))
  if not ok then errors.raise("%s: %s: the scales of %s do not fit %s", file.path, object.title(layer), v.name, v.path) end
  return floats
end

-- The layer computes in bytes from now on.
function quantized_files.quantize(layer)
  if layer.quantization_mode then return end
  if not quantization.can(layer, true) then
    errors.raise("%s: its weights are bytes in the file; it computes in float32 only", object.title(layer))
  end
  quantization.set(layer, "QUANTIZED_BY_ROW")
end

return quantized_files
