-- adaptive_pooling.lua: AdaptiveAveragePooling1D to 3D and AdaptiveMaxPooling1D to 3D: the mean or the maximum over windows that divide
-- each axis into output_size parts, which may overlap by one (keras.src.layers.pooling.base_adaptive_pooling).

local errors = require "flow.errors"
local object = require "flow.object"
local json = require "flow.json"
local signature = require "flow.signature"
local tensor = require "flow.tensor"
local ops = require "flow.tensor.ops"
local Layer = require "flow.layers.layer"
local entries = require "flow.layers.entries"

local raise = errors.raise
local classes = {}

-- output_size as a new list of `axes` whole numbers from 1; one number is for all axes.
local function sizes_of(name, value, axes)
  local list = type(value) == "table" and value or {}
  if type(value) == "number" then
    for i = 1, axes do list[i] = value end
  end
  for i = 1, math.max(axes, #list) do
    local size = list[i]
    if #list ~= axes or type(size) ~= "number" or size < 1 or size ~= math.floor(size) or size == math.huge then
      raise("%s: output_size is a whole number from 1 or a list of %d, got %s", name, axes, errors.describe(value))
    end
  end
  return json.list { unpack(list) }
end

-- Makes a class. kind: "Average" or "Max"; op: of ops, whose output sizes may differ from call to call; axes: without batch and channels.
local function define(kind, op, axes)
  local name = ("Adaptive%sPooling%dD"):format(kind, axes)
  local class = object.class(name, Layer)
  signature.takes("output_size: number|list, data_format: 'channels_last' = 'channels_last', "
    .. "{ name?: string, trainable: boolean = true, dtype? }")
  signature.constructor(class, "flow.layers." .. name, function(output_size, _, options)
    local self = object.new(class):_prepare(name, options)
    rawset(self, "_sizes", sizes_of(name, output_size, axes))
    return self
  end)

  function class:call(inputs)
    local shape = tensor.raw_shape(inputs)
    if #shape ~= axes + 2 then
      raise("%s: its inputs have %d axes, {batch, ..., channels}, got %d", object.title(self), axes + 2, #shape)
    end
    return ops[op](inputs, { unpack(self._sizes) })
  end

  function class:get_config()
    local config = entries.base(self)
    config.output_size, config.data_format = self._sizes, "channels_last"
    return config
  end

  function class._from_config(_, content)
    if content.data_format == "channels_first" then raise("%s: data_format \"channels_first\" is not supported", name) end
    local options = entries.options(content)
    options.output_size, options.dtype = content.output_size, entries.dtype(content)
    return class(options)
  end
  classes[name] = class
end

for axes = 1, 3 do
  define("Average", "adaptive_average_pool", axes)
  define("Max", "adaptive_max_pool", axes)
end

return classes
