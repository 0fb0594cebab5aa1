-- normalization.lua: layer:adapt(data) of Normalization: mean and variance of data into the layer's variables.

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local tensor = require "flow.tensor"
local passes = require "flow.tensor.passes"

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

return function(Normalization)
  function Normalization:adapt(data)
    local total, reduced
    for x in each_batch(self, data) do
      self:build { unpack(x.shape) }
      if #self.weights == 0 then raise("%s: adapt() is for layers without given mean and variance", object.title(self)) end
      self(x, { training = false })                      -- checks the shape
      if not reduced then
        reduced = {}
        local kept, rank = {}, #x.shape
        local axes = self._axes
        if type(axes) == "number" then axes = { axes } end
        for _, axis in ipairs(axes or { -1 }) do kept[axis < 0 and rank + 1 + axis or axis] = true end
        for axis = 1, rank do
          if not kept[axis] then reduced[#reduced + 1] = axis end
        end
      end
      local mean, variance, count = moments(x:to("float32"), reduced)
      if count > 0 then total = merge(total, mean, variance, count) end      -- a batch without rows says nothing
    end
    if not total then raise("%s: adapt() found no data", object.title(self)) end
    self.mean:assign(total.mean:reshape { unpack(self.mean:value().shape) })
    self.variance:assign(total.variance:reshape { unpack(self.variance:value().shape) })
  end
end
