-- windows.lua: windows that go over the spatial axes of a tensor {batch, ..., channels}: their places, and what is under them.

local errors = require "flow.errors"
local tools = require "flow.tensor.composed.tools"

local raise = errors.raise
local ops = tools.ops
local windows = {}

-- A number for all spatial axes, or a list of one each; in TensorFlow's form also { 1, ..., 1 } with those of batch and channels.
function windows.per_axis(value, count, what, name, least)
  local list = {}
  if type(value) == "table" and #value == count + 2 and value[1] == 1 and value[count + 2] == 1 then
    value = { unpack(value, 2, count + 1) }
  end
  if type(value) == "table" and #value > 0 and #value ~= count then
    raise("flow.%s: %s has %d entries, expected %d", what, name, #value, count)
  end
  for i = 1, count do list[i] = tools.whole(type(value) == "table" and value[i] or value, least or 1, what, name) end
  return list
end

-- {before, after} that an axis of n elements is padded with, so that windows of `extent` elements start at every `stride`th of them.
local function padding_of(padding, n, extent, stride)
  if padding ~= "same" then return 0, 0 end
  local total = math.max((math.ceil(n / stride) - 1) * stride + extent - n, 0)
  return math.floor(total / 2), total - math.floor(total / 2)
end

-- Of x {batch, spatial..., channels} the geometry of windows: { sizes, kernel, stride, dilation, before, after, count }, lists by axis.
function windows.geometry(x, kernel, stride, dilation, padding, what)
  local count = #tools.dims(x) - 2
  if count < 1 or count > 3 then raise("flow.%s: inputs of rank 3, 4 or 5, got %d", what, count + 2) end
  local g = { rank = count, kernel = windows.per_axis(kernel, count, what, "a window"), sizes = {}, before = {}, after = {}, count = {} }
  g.stride = windows.per_axis(stride or (what:find "pool" and g.kernel or 1), count, what, "a stride")
  g.dilation = windows.per_axis(dilation or 1, count, what, "a dilation")
  for i = 1, count do
    local extent = (g.kernel[i] - 1) * g.dilation[i] + 1
    g.sizes[i] = tools.length(x, i + 1, what)
    g.before[i], g.after[i] = padding_of(padding, g.sizes[i], extent, g.stride[i])
    g.count[i] = math.floor((g.sizes[i] + g.before[i] + g.after[i] - extent) / g.stride[i]) + 1
    if g.count[i] < 1 then
      raise("flow.%s: windows of %d elements do not fit in axis %d of %d", what, extent, i + 1, g.sizes[i])
    end
  end
  return g
end

-- What is under each element of the windows over spatial axes of x {batch, spatial..., channels}: a list of tensors {batch, windows...,
-- channels}, the last axis fastest.
function windows.taps(x, kernel, stride, dilation, padding, what)
  local g = windows.geometry(x, kernel, stride, dilation, padding, what)
  local widths, list = { { 0, 0 } }, { x }
  for i = 1, g.rank do widths[i + 1] = { g.before[i], g.after[i] } end
  widths[g.rank + 2] = { 0, 0 }
  list[1] = ops.pad(x, widths)
  for i = 1, g.rank do
    local next_list = {}
    for _, t in ipairs(list) do
      for tap = 0, g.kernel[i] - 1 do
        local first = tap * g.dilation[i] + 1
        next_list[#next_list + 1] = tools.part(t, i + 1, first, first + (g.count[i] - 1) * g.stride[i], g.stride[i])
      end
    end
    list = next_list
  end
  return list, g
end

return windows
