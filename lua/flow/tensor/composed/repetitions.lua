-- repetitions.lua: flow.repeat_ where the number of repetitions is a tensor: one for each element, or the rows of a batch.

local native = require "flow.ffi"
local errors = require "flow.errors"
local tensor = require "flow.tensor"
local shapes = require "flow.tensor.shapes"
local tools = require "flow.tensor.composed.tools"

local raise, ops = errors.raise, tools.ops
local WHAT = "flow.repeat_"

-- x with element i of an axis counts[i] times.
local function by_counts(x, counts, axis)
  local n, positions = tools.length(x, axis, WHAT), {}
  local is_list = type(counts[1]) == "table" and not getmetatable(counts[1])
  if #counts == 1 and not is_list then return ops.repeat_(x, counts[1], axis) end
  if #counts ~= n and not is_list then raise("%s: %d numbers of repetitions for axis %d, which has %d elements", WHAT, #counts, axis, n) end
  for i, count in ipairs(counts) do
    if type(count) ~= "number" or count < 0 or count ~= math.floor(count) then
      raise("%s: number %d of repetitions is a whole number from 0, got %s", WHAT, i, errors.describe(count))
    end
    for _ = 1, count do positions[#positions + 1] = i end
  end
  if #positions == 0 then return tools.part(x, axis, 1, 0) end
  return ops.take(x, positions, axis)
end

-- counts: a list, a tensor with values, or the rows of a batch in a trace. copies_by_rows: of array_ops.lua.
return function(x, counts, axis, copies_by_rows)
  if shapes.is_rows(counts) then
    if tensor.raw_shape(x)[axis] == 1 then return copies_by_rows(x, counts, axis, WHAT) end
    raise("%s: by the rows of a batch an axis of one element can be repeated, axis %d has more: use flow.tile", WHAT, axis)
  elseif native.is_tensor(counts) then
    tensor.need_value(counts, WHAT .. ": the numbers of repetitions")
    counts = counts:totable()
    if type(counts) == "number" then counts = { counts } end
  elseif type(counts) ~= "table" or getmetatable(counts) then
    raise("%s: the number of repetitions is a whole number from 0, got %s", WHAT, errors.describe(counts))
  end
  return by_counts(x, counts, axis)
end
