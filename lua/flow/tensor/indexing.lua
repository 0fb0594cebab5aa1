-- indexing.lua: a[1], a[{1, 2}], a[{ {}, {1, 2} }] and assignments to them.
--
-- Positions count from 1, -1 is the last. A number takes one position and drops the axis, a list {from, to, step} takes both ends
-- ({-1, 1, -1} turns the order; without ends it goes from one end of the axis to the other), {} takes all; false, which is flow.newaxis, is
-- a new axis of size 1, and "..." stands for as many axes, taken whole, as the others leave. Axes that are not named are taken whole. Read
-- outside of tapes and traces the result is a view of the same memory; otherwise it is an op, so that gradients flow.

local native = require "flow.ffi"
local errors = require "flow.errors"
local tensor = require "flow.tensor"

local C, check, raise = native.C, native.check, errors.raise
local one = native.out("flow_tensor")
local LAST = 4611686018427387903LL    -- INT64_MAX / 2: "to the end" of an axis whose size is known only when a plan runs

local function is_one(value)
  return native.is_tensor(value) and value.rank == 0 and value.dtype ~= "bool" and C.flow_tensor_is_symbolic(native.pointer(value)) == 0
end

-- A position that a user gave: a number, or a tensor of one, as argmax() gives it, that has a value.
local function whole(value, axis)
  if is_one(value) then value = tonumber(value:item()) end
  if type(value) ~= "number" or value ~= math.floor(value) or math.abs(value) >= 2 ^ 53 then
    require "flow.classes.number_of"(value)      -- which notes for Dataset:map what has no value yet
    raise("a position is a whole number from 1, got %s on axis %d%s", errors.describe(value), axis,
      native.is_tensor(value) and ": flow.take(x, positions, axis) takes those that a trace computes" or "")
  end
  return value
end

-- Position from 0 of a user's position on an axis of n elements.
local function position(value, n, axis)
  value = whole(value, axis)
  if n < 0 then tensor.unknown_rows(("position %d of axis %d"):format(value, axis), "needs") end
  local from = value < 0 and value + n or value - 1
  if from < 0 or from >= n then
    raise("position %d is out of range: axis %d has %d elements%s", value, axis, n,
      value == 0 and ", counted from 1" or "")
  end
  return from
end

-- The same of a range that goes back; the end is -1 where the first element is taken. Of no elements it begins and ends at the same place.
local function range_back(entry, n, axis, step)
  local from, to = whole(entry[1] or -1, axis), whole(entry[2] or 1, axis)
  if n < 0 then tensor.unknown_rows(("a range that goes back on axis %d"):format(axis), "needs") end
  if n == 0 and from == -1 and to == 1 then return 0, 0, step end
  local first, last = position(from, n, axis), position(to, n, axis)
  if -step > first then return first, first > last - 1 and first - 1 or first, -1 end      -- one element at most
  return first, math.min(first, last - 1), step
end

-- begin and end (exclusive), from 0, and step of a {from, to, step} on an axis of n elements (n < 0: not known).
local function range(entry, n, axis)
  for key in pairs(entry) do
    if key ~= 1 and key ~= 2 and key ~= 3 then
      raise("a range is {from, to, step}, got a field %s on axis %d%s", tostring(key), axis,
        type(key) == "number" and ": flow.take(x, positions, axis) takes several positions" or "")
    end
  end
  local step = whole(entry[3] or 1, axis)
  if step == 0 then raise("the step of a range is a whole number other than 0, got 0 on axis %d", axis) end
  if step < 0 then return range_back(entry, n, axis, step) end
  local from, to = whole(entry[1] or 1, axis), whole(entry[2] or -1, axis)
  if n < 0 then
    if from < 1 or (to < 1 and to ~= -1) then
      tensor.unknown_rows(("a range {%d, %d} from the end of axis %d"):format(from, to, axis), "needs")
    end
    return from - 1, to == -1 and LAST or to, step
  end
  local first = from < 0 and from + n or from - 1
  local last = to < 0 and to + n + 1 or to
  if first < 0 or first > n or last < 0 or last > n or from == 0 then
    raise("the range {%d, %d} is out of range: axis %d has %d elements%s", from, to, axis, n, from == 0 and ", counted from 1" or "")
  end
  if step >= n then return first, math.max(first, math.min(last, first + 1)), 1 end      -- one element at most: no step overflows
  return first, math.max(first, last), step
end

-- A key with {} for each axis that "..." stands for. Raises for a hole, and where it names more axes than t has; `rank` is that of t.
local function without_ellipsis(t, key, rank)
  local count, ellipsis = 0, nil
  for i = 1, table.maxn(key) do
    if key[i] == nil then raise("entry %d of the list of positions is nil: {} takes the whole axis", i) end
  end
  for i = 1, #key do
    if key[i] == "..." then
      if ellipsis then raise("a tensor is indexed with one \"...\", got two") end
      ellipsis = i
    elseif key[i] ~= false then count = count + 1 end
  end
  if count > rank then raise("%d positions for a tensor of rank %d, shape %s", count, rank, tensor.shape_text(tensor.raw_shape(t))) end
  if not ellipsis then return key end
  local whole_axes = {}
  for i = 1, #key do
    if i ~= ellipsis then whole_axes[#whole_axes + 1] = key[i]
    else
      for _ = 1, rank - count do whole_axes[#whole_axes + 1] = {} end
    end
  end
  return whole_axes
end

-- Calls take(axis, begin, finish, step, dropped, size) for each axis of t, and add() for each new one, in their order.
local function each_axis(t, key, take, add)
  local shape = tensor.raw_shape(t)
  if type(key) == "number" or key == false or is_one(key) then key = { key } end
  if type(key) ~= "table" or getmetatable(key) or type(next(key)) == "string" then
    raise("a tensor is indexed by a position or a list of positions and ranges, got %s%s", errors.describe(key),
      native.is_tensor(key) and ": flow.take(x, positions, axis) takes several positions, flow.where chooses by a condition" or "")
  end
  key = without_ellipsis(t, key, #shape)
  local at = 1
  for axis = 1, #shape do
    while key[at] == false do add() at = at + 1 end
    local entry, n = key[at], shape[axis]
    at = at + 1
    if entry == nil then
      take(axis, 0, n < 0 and LAST or n, 1, false, n)
    elseif type(entry) == "table" then
      local begin, finish, step = range(entry, n, axis)
      take(axis, begin, finish, step, false, n)
    else
      local begin = position(entry, n, axis)
      take(axis, begin, begin + 1, 1, true, n)
    end
  end
  while key[at] == false do add() at = at + 1 end
end

-- The view at one position of the first axis, the commonest key: nothing is allocated but the result.
local function view_at(p, value)
  local from = value - 1
  if not (from >= 0 and from < C.flow_tensor_dim(p, 0)) or from % 1 ~= 0 then from = position(value, C.flow_tensor_dim(p, 0), 1) end
  check(C.flow_tensor_view_at(p, from, one))
  return native.tensor(one[0])
end

-- A view of the selected elements that shares t's memory.
local function view(t, key)
  local p = native.pointer(t)
  local shape, strides, offset, empty = {}, {}, 0, false
  each_axis(t, key, function(axis, begin, finish, step, dropped)
    local stride = C.flow_tensor_stride(p, axis - 1)
    local count = math.ceil((finish - begin) / step)
    offset, empty = offset + begin * stride, empty or count <= 0
    if not dropped then
      shape[#shape + 1] = count
      strides[#strides + 1] = stride * step
    end
  end, function() shape[#shape + 1], strides[#strides + 1] = 1, 1 end)
  if empty then offset = 0 end      -- of no elements none is the first
  local dims, rank = native.dims(shape)
  local steps = native.dims(strides)
  check(C.flow_tensor_view(native.pointer(t), rank, dims, steps, offset, one))
  return native.tensor(one[0])
end

-- The same as ops: slice, then reshape without the dropped axes.
local function slice(t, key)
  local ops = require "flow.tensor.ops"
  local begins, finishes, steps, kept, reshapes = {}, {}, {}, {}, false
  each_axis(t, key, function(axis, begin, finish, step, dropped, n)
    begins[axis], finishes[axis], steps[axis] = begin, finish, step
    reshapes = reshapes or dropped
    if not dropped then
      local whole_axis = begin == 0 and step == 1 and (finish == n or finish == LAST)
      kept[#kept + 1] = whole_axis and n or { axis }
    end
  end, function() kept[#kept + 1], reshapes = 1, true end)
  local result = ops.slice_from_zero(t, begins, finishes, steps)
  if not reshapes then return result end
  local cut = tensor.raw_shape(result)
  for i = 1, #kept do
    if type(kept[i]) == "table" then kept[i] = cut[kept[i][1]] end
  end
  return ops.reshape_raw(result, kept)
end

-- t[key]: a view of the same memory where nobody records; for a symbolic tensor or under a tape the op slice, so that it is in the graph.
function tensor.select(t, key)
  local p = native.pointer(t)
  if C.flow_tensor_is_symbolic(p) ~= 0 or C.flow_tape_depth(native.context) > 0 then return slice(t, key) end
  -- Not in view(): LuaJIT does not compile what makes closures.
  if type(key) == "number" and C.flow_tensor_rank(p) > 0 then return view_at(p, key) end
  return view(t, key)
end

-- t without its first `count` axes, if these have one element each.
local function without_ones(t, count)
  local shape = t.shape
  for i = 1, count do
    if shape[i] ~= 1 then return t end
  end
  return t:reshape { unpack(shape, count + 1) }
end

-- t[key] = value: fills, or copies a tensor or list of the selection's shape, converted to t's dtype. Views of the same memory change, too.
function tensor.assign(t, key, value)
  tensor.need_value(t, "assigning an element")
  if C.flow_tape_depth(native.context) > 0 then
    raise("elements cannot be assigned while a tape records, since gradients would not see it: use flow.where")
  end
  local target = view(t, key)
  local kind = type(value)
  if kind == "number" or kind == "boolean" or native.is_int64(value) then
    tensor.fill(target, value, "assigning an element")
  else
    local source = native.is_tensor(value) and value or tensor.tensor(value, { dtype = t.dtype })
    if source.rank > target.rank then source = without_ones(source, source.rank - target.rank) end
    check(C.flow_tensor_copy(target.p, tensor.need_value(source, "assigning an element")))
  end
end

return tensor
