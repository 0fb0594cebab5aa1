-- bytes.lua: weights that Keras' quantize("int8") has made bytes of. In a file, the group of such a layer begins with the bytes and ends
-- with their scales: kernel, bias, kernel_scale, or embeddings, embeddings_scale (keras.src.layers.core: variable_serialization_spec). Here
-- the layer gets the floats that these stand for, of which it makes the same bytes (core/layers/quantization.h).

local errors = require "flow.errors"
local object = require "flow.object"
local ops = require "flow.tensor.ops"
local quantization = require "flow.layers.quantization"

local bytes = {}

-- Whether a group of `count` tensors in a file has the bytes and the scales of a layer with that many other variables.
function bytes.are_in(file, path, count, variables)
  local first = count == #variables + 1 and file:find(path .. "/0")
  return first and file:dtype(first) == "int8"
end

-- The scales of an EinsumDense, which stand as the axes of its output, as those of the kernel; 1 where the kernel's axis is summed.
local function scales_of_einsum(layer, scale, shape)
  local kernel, output = layer.equation:match ",([^-]*)->(.*)$"
  kernel, output = kernel:gsub("%s", ""), output:gsub("[%s.]", "")
  local sizes, order, result = {}, {}, {}
  for letter in output:gmatch "." do
    local axis = kernel:find(letter, 1, true)
    if axis then sizes[#sizes + 1] = shape[axis] end
  end
  for axis = 1, #shape do
    local letter, position = kernel:sub(axis, axis), 0
    result[axis] = 1
    for other in output:gmatch "." do
      position = position + (kernel:find(other, 1, true) and 1 or 0)
      if other == letter then order[#order + 1], result[axis] = position, shape[axis] end
    end
  end
  return ops.transpose(ops.reshape(scale, sizes), order):reshape(result)
end

-- Those of the other layers: one for each entry of the kernel's last axes, or, of a table, for each of its rows.
local function scales_of(layer, scale, shape)
  if layer._record_name == "EinsumDense" then return scales_of_einsum(layer, scale, shape) end
  if layer._record_name == "Embedding" then return ops.reshape(scale, { shape[1], 1 }) end
  local sizes, left = {}, scale.size
  for axis = #shape, 1, -1 do
    sizes[axis] = left > 1 and shape[axis] or 1
    left = left / sizes[axis]
  end
  return ops.reshape(scale, sizes)
end

-- The floats of a variable of a layer that a file has in bytes at `position`, with scales at position `scale`.
function bytes.read(file, layer, v, position, scale)
  local content, shape = file:read(position), v.shape
  local ok, scales = pcall(scales_of, layer, file:read(scale), shape)
  if not ok then errors.raise("%s: %s: the scales of %s do not fit %s", file.path, object.title(layer), v.name, v.path) end
  return content:to "float32" / scales
end

-- The layer computes in bytes from now on.
function bytes.quantize(layer)
  if layer.quantization_mode then return end
  if not quantization.can(layer) then
    errors.raise("%s: its weights are bytes in the file; it computes in float32 only", object.title(layer))
  end
  quantization.set(layer, "QUANTIZED_BY_ROW")
end

return bytes
