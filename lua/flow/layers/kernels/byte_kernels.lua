-- byte_kernels.lua: kernels as bytes, for layers that compute in int8 by rows of their inputs (flow/layers/quantization.lua). As in Keras
-- (keras.src.quantizers.quantizers.abs_max_quantize) a byte is the weight times a scale: 127 / (the largest absolute weight along the axes
-- that the product sums + 1e-7). Layers here keep floats: round() replaces them by bytes / scale, and split() makes the same bytes again
-- for files, then without the 1e-7.

local ops = require "flow.tensor.ops"

local byte_kernels = {}

local NAMES = { kernel = true, embeddings = true, reverse_embeddings = true }
local EPSILON, NONE = 1e-7, 1e-30

-- The letters of an EinsumDense's kernel and of its output, as two strings without spaces.
local function letters(layer)
  local kernel, output = layer.equation:gsub("%s", ""):match ",([^-]*)->(.*)$"
  return kernel, output
end

-- The axes along which a kernel's weights share a scale: those that the product sums, or those of a row of an Embedding's table.
local function summed(layer, v)
  local class, axes = layer._record_name, {}
  if class == "EinsumDense" then
    local kernel, output = letters(layer)
    for axis = 1, #kernel do
      if not output:find(kernel:sub(axis, axis), 1, true) then axes[#axes + 1] = axis end
    end
    return axes
  end
  if v.name == "embeddings" then return { 2 } end
  return v.path:find("/attention_output/", 1, true) and { 1, 2 } or { 1 }
end

-- The kernels of a built layer, a list of { variable =, axes = the axes that share a scale }.
function byte_kernels.of(layer)
  local list = {}
  for _, v in ipairs(layer.weights) do
    if NAMES[v.name] then list[#list + 1] = { variable = v, axes = summed(layer, v) } end
  end
  return list
end

-- The bytes of values, as floats, and the scales, whose shape has a 1 for each of the axes.
local function split(values, axes, epsilon)
  if #axes == 0 then axes = nil end      -- one number each
  local largest = axes and values:abs():max(axes, true) or values:abs()
  local scales = 127 / ops.maximum(largest + epsilon, NONE)
  return ops.clip(ops.round(values * scales), -127, 127), scales
end

-- Any values rounded to what bytes can stand for.
function byte_kernels.rounded(values, axes)
  local bytes, scales = split(values, axes, EPSILON)
  return bytes / scales
end

-- Rounds all kernels of a layer so.
function byte_kernels.round(layer)
  for _, kernel in ipairs(byte_kernels.of(layer)) do
    local v = kernel.variable
    v:assign(byte_kernels.rounded(v:value():to "float32", kernel.axes):to(v.dtype))
  end
end

-- The scales in the shape that Keras keeps. Those of an EinsumDense, and of the projections of an attention, have the axes of the output.
local function as_in_keras(layer, scales, axes)
  if layer._record_name:find "Attention$" then
    local shape = ops.squeeze(scales, axes).shape
    for _ = 1, #layer._input_shape[1] - 1 do table.insert(shape, 1, 1) end
    return ops.reshape(scales, shape)
  end
  if layer._record_name ~= "EinsumDense" then return ops.squeeze(scales, axes) end
  local kernel, output = letters(layer)
  local order, sizes = {}, {}
  for letter in output:gmatch "." do
    local axis = kernel:find(letter, 1, true)
    if axis then order[#order + 1] = axis end
    sizes[#sizes + 1] = axis and scales.shape[axis] or 1
  end
  for _, axis in ipairs(axes) do order[#order + 1] = axis end
  return ops.transpose(scales, order):reshape(sizes)
end

-- What a file keeps in place of a kernel: bytes and their scales. values: in place of the kernel's own; they are not rounded yet.
function byte_kernels.stored(layer, kernel, values)
  local bytes, scales = split((values or kernel.variable:value()):to "float32", kernel.axes, values and EPSILON or 0)
  return bytes:to "int8", as_in_keras(layer, scales, kernel.axes)
end

-- The tensors of a layer's group in a file, in Keras' order: kernel, bias, kernel_scale; or embeddings, embeddings_scale, and the same for
-- a second table. value_of(v): what to write for a variable; by default its value.
function byte_kernels.group(layer, variables, value_of)
  local kernels, list, last = {}, {}, {}
  for _, kernel in ipairs(byte_kernels.of(layer)) do kernels[kernel.variable.path] = kernel end
  for _, v in ipairs(variables) do
    local kernel = kernels[v.path]
    if kernel then
      local bytes, scales = byte_kernels.stored(layer, kernel, value_of and value_of(v))
      list[#list + 1] = bytes
      if v.name == "kernel" then last[#last + 1] = scales else list[#list + 1] = scales end
    else
      list[#list + 1] = v:value()
    end
  end
  for _, scales in ipairs(last) do list[#list + 1] = scales end
  return list
end

local TABLES = { embeddings = true, reverse_embeddings = true }

-- Where a group has the variables, a list of { number, number of the scales or nil }, and how many tensors it has.
function byte_kernels.places(variables)
  local list, at = {}, 0
  for i, v in ipairs(variables) do
    list[i] = { at, TABLES[v.name] and at + 1 or v.name == "kernel" and #variables or nil }
    at = at + (TABLES[v.name] and 2 or 1)
    if v.name == "kernel" then list.count = #variables + 1 end
  end
  return list, list.count or at
end

-- The scales of an EinsumDense, which have the axes of its output, with the kernel's axes; 1 for those that are summed.
local function scales_of_einsum(layer, scale, shape)
  local kernel, output = letters(layer)
  output = output:gsub("%.", "")
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

-- The scales of any layer with the kernel's axes. Files of other layers have one for each entry of the kernel's last axes, or for each row
-- of an Embedding's table.
local function scales_of(layer, v, scale, shape)
  if layer._record_name == "EinsumDense" then return scales_of_einsum(layer, scale, shape) end
  if v.name == "embeddings" then return ops.reshape(scale, { shape[1], 1 }) end
  local sizes, left = {}, scale.size
  for axis = #shape, 1, -1 do
    sizes[axis] = left > 1 and shape[axis] or 1
    left = left / sizes[axis]
  end
  return ops.reshape(scale, sizes)
end

-- The floats that a file's bytes and scales stand for; raises if they do not fit the variable.
function byte_kernels.floats(layer, v, content, scale)
  return content:to "float32" / scales_of(layer, v, scale, v.shape)
end

-- x rounded to bytes with a scale for each row; the gradient passes as if nothing was rounded. axes: of a row.
function byte_kernels.round_rows(x, axes)
  local floats = x:to "float32"
  local rounded = ops.stop_gradient(byte_kernels.rounded(floats, axes):to(x.dtype))
  return rounded + (x - ops.stop_gradient(x))
end

return byte_kernels
