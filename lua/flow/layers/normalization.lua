-- normalization.lua: layer:adapt(data) of Normalization: mean and variance of data into the layer's variables, adapt_mean and
-- adapt_variance. As in Keras mean and variance are what calls compute with: tensors that broadcast against the input, {1, 3} for
-- rows of 3 numbers, of the variables or of what the layer was given.

local native = require "flow.ffi"
local json = require "flow.json"
local errors = require "flow.errors"
local object = require "flow.object"
local tensor = require "flow.tensor"
local passes = require "flow.tensor.passes"
local ops = require "flow.tensor.ops"
local layer_config = require "flow.layers.layer_config"

local raise = errors.raise

-- The batches of data: one tensor or nested lists of numbers, a list of tensors, or a data set, whose elements may be (inputs, labels).
local function each_batch(layer, data)
  local is_list = type(data) == "table" and not getmetatable(data) and (type(data[1]) == "number" or type(data[1]) == "table")
  if is_list then data = tensor.tensor(data) end
  if native.is_tensor(data) then data = { data } end
  if passes.is_dataset(data) then return passes.adapt(layer, data) end
  if type(data) ~= "table" or not native.is_tensor(data[1]) then
    raise("adapt() takes a tensor, a list of batches or a data set, got %s", errors.describe(data))
  end
  local i = 0
  return function()
    i = i + 1
    return data[i]
  end
end

-- Mean, variance and number of values for each place of the kept axes.
local function moments(x, reduced)
  local mean, count = x, 1
  for _, axis in ipairs(reduced) do
    mean = mean:mean(axis, true)
    count = count * x.shape[axis]
  end
  local variance = (x - mean):square()
  for _, axis in ipairs(reduced) do variance = variance:mean(axis, true) end
  return mean:to "float64", variance:to "float64", count      -- for many batches
end

-- What Keras' formula of the lack-of-fit sum of squares makes of two samples.
local function merge(total, mean, variance, count)
  if not total then return { mean = mean, variance = variance, count = count } end
  local all = total.count + count
  local weight = count / all
  local new = total.mean * (1 - weight) + mean * weight
  local old_part = (total.variance + (total.mean - new):square()) * (1 - weight)
  return { mean = new, variance = old_part + (variance + (mean - new):square()) * weight, count = all }
end

-- The positions of the axes that are kept, of an input of this rank: { [3] = true }.
local function kept_axes(layer, rank)
  local kept, axes = {}, layer._axes
  if type(axes) == "number" then axes = { axes } end
  for _, axis in ipairs(axes or { -1 }) do kept[axis < 0 and rank + 1 + axis or axis] = true end
  return kept
end

-- The mean or the variance in the form that broadcasts against the input; nil: the layer is not built.
local function spread(layer, name)
  local given, input = layer:get_config()[name], rawget(layer, "_input_shape")
  if not layer._built or not input then return nil end
  if type(input[1]) == "table" then input = input[1] end
  local rank, shape = #input, {}
  local kept = kept_axes(layer, rank)
  for axis = 1, rank do shape[axis] = kept[axis] and input[axis] or 1 end
  if given == nil or given == json.null then return ops.reshape(layer_config.variable(layer, name):value(), shape) end
  return ops.broadcast_to(ops.operand(given, "float32", "Normalization"), shape)
end

return function(Normalization)
  local fields = Normalization.fields
  function fields.mean(self) return spread(self, "mean") end
  function fields.variance(self) return spread(self, "variance") end
  function fields.adapt_mean(self) return layer_config.variable(self, "mean") end
  function fields.adapt_variance(self) return layer_config.variable(self, "variance") end

  function Normalization:adapt(data)
    local total, reduced
    for x in each_batch(self, data) do
      self:build { unpack(x.shape) }
      if #self.weights == 0 then raise("%s: adapt() is for layers without given mean and variance", object.title(self)) end
      self(x, { training = false })                      -- checks the shape
      if not reduced then
        reduced = {}
        local rank = #x.shape
        local kept = kept_axes(self, rank)
        for axis = 1, rank do
          if not kept[axis] then reduced[#reduced + 1] = axis end
        end
      end
      local mean, variance, count = moments(x:to("float32"), reduced)
      if count > 0 then total = merge(total, mean, variance, count) end      -- a batch without rows says nothing
    end
    if not total then raise("%s: adapt() found no data", object.title(self)) end
    for name, v in pairs { mean = self.adapt_mean, variance = self.adapt_variance } do v:assign(total[name]:reshape { unpack(v.shape) }) end
  end
end
