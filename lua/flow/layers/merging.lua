-- merging.lua: Keras' functions beside the classes of layers that merge: layers.add { a, b } is layers.Add()({ a, b }).

local signature = require "flow.signature"
local layers = require "flow.layers"

local takes = signature.takes

for name, class in pairs { add = "Add", average = "Average", maximum = "Maximum", minimum = "Minimum", multiply = "Multiply",
                           subtract = "Subtract" } do
  takes("inputs: data, { name?, dtype? } -- layers." .. name .. " { a, b }")
  layers[name] = function(inputs, options) return layers[class](options)(inputs) end
end

takes "inputs: data, axis: integer = -1, { name?, dtype? } -- layers.concatenate({ a, b }, axis)"
function layers.concatenate(inputs, axis, options)
  options.axis = axis
  return layers.Concatenate(options)(inputs)
end

takes "inputs: data, axes: data, normalize: boolean = false, { name?, dtype? } -- layers.dot({ a, b }, axes)"
function layers.dot(inputs, axes, normalize, options)
  options.axes, options.normalize = axes, normalize
  return layers.Dot(options)(inputs)
end
