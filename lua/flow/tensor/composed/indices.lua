-- indices.lua: elements that tensors of positions name: taken, put, added up. Positions count from 1 and from the end where they are
-- negative; numbers of segments, which are identities as labels are, count from 0.

local errors = require "flow.errors"
local native = require "flow.ffi"
local tensor = require "flow.tensor"
local tools = require "flow.tensor.composed.tools"
local takes = require("flow.signature").takes

local raise = errors.raise
local ops, define, operand = tools.ops, tools.define, tools.operand

local function positions_of(value, what)
  local positions = operand(value, what, "int32")
  if tools.is_float(positions) then positions = positions:to("int64") end
  return positions
end

-- x with the dimensions of another shape but along an axis.
local function broadcast_but(x, dims, axis)
  local wanted, own, same = {}, tools.dims(x), true
  for i, n in ipairs(dims) do
    wanted[i] = i == axis and own[i] or n
    same = same and wanted[i] == own[i]
  end
  return same and x or ops.broadcast_to(x, require("flow.tensor.shapes").of(wanted))
end

-- The elements at positions of x's rank along an axis: y[i][j] = x[positions[i][j]][j] along the first; without an axis of the flattened
-- tensor. Other axes broadcast.
takes "x, positions, axis?"
define(function(x, positions, axis)
  x, positions = operand(x, "take_along_axis"), positions_of(positions, "take_along_axis")
  if axis == nil then x, positions, axis = ops.flatten(x), ops.flatten(positions), 1 end
  axis = tools.axis(x, axis, "take_along_axis")
  local dims, own = tools.dims(x), tools.dims(positions)
  if #dims ~= #own then raise("flow.take_along_axis: positions of rank %d for a tensor of rank %d", #own, #dims) end
  local common = {}
  for i = 1, #dims do common[i] = dims[i] == 1 and own[i] or dims[i] end
  x, positions = broadcast_but(x, common, axis), broadcast_but(positions, common, axis)
  return tools.take_along(x, ops.positions_from_zero(positions, dims[axis], "flow.take_along_axis"), axis)
end, "take_along_axis")

---- positions of several axes ----------------------------------------------------------------------

-- Of positions {..., k} in the first k of these dimensions: numbers from 0 of the flattened part, and its size.
local function flat_numbers(positions, dims, what)
  local rank = #tools.dims(positions)
  local k = rank > 0 and tools.length(positions, rank, what) or 0
  if k < 1 or k > #dims then raise("flow.%s: the last axis of the positions names 1 to %d axes, got %d", what, #dims, k) end
  local numbers, size = nil, 1
  for i = 1, k do
    if dims[i] < 0 then raise("flow.%s: axis %d is that of the batch, whose size is not known in a trace", what, i) end
    local own = ops.positions_from_zero(ops.squeeze(tools.part(positions, rank, i, i), rank), dims[i], "flow." .. what):to("int64")
    numbers = numbers and numbers * dims[i] + own or own
    size = size * dims[i]
  end
  return numbers, size, k
end

-- The sizes after axis k, and their product.
local function rest_of(dims, k)
  local rest, size = {}, 1
  for i = k + 1, #dims do
    rest[#rest + 1] = dims[i]
    size = size * dims[i]
  end
  return rest, size
end

local function joined(a, b)
  local list = { unpack(a) }
  for _, n in ipairs(b) do list[#list + 1] = n end
  return list
end

-- x at positions {..., k}, each of which names an element of the first k axes.
takes "x, positions"
define(function(x, positions)
  x, positions = operand(x, "gather_nd"), positions_of(positions, "gather_nd")
  local dims = tools.dims(x)
  local numbers, size, k = flat_numbers(positions, dims, "gather_nd")
  return tools.gather(ops.reshape_raw(x, joined({ size }, (rest_of(dims, k)))), numbers)
end, "gather_nd")

---- loops over values on the host ------------------------------------------------------------------
--
-- Extremes, replacements and sums and products of whole numbers round nothing, so that loops over values on the host find what the ops
-- below find in a trace: they take each row once. Zeros have no sign afterwards, as sums of zeros have none there. Products of floats are
-- of doubles and rounded once.

-- Whether the loops take rows of this tensor of these numbers.
local function takes_loops(rows, numbers)
  return tools.is_free(rows) and tools.is_free(numbers) and numbers.dtype == "int64" and not rows.dtype:find "float16"
    and rows.dtype ~= "bool"
end

-- What a loop does with an element of a row and that of the result which is there. math.max has no branch that depends on values, which
-- would be predicted wrongly; 64-bit integers have none.
local EXTREME = [[
  local old = to[at]
  if value == value and old == old then to[at] = %s(old, value) + 0 elseif old == old then to[at] = value end
]]
local EXTREME_OF_INT64 = "if value %s to[at] then to[at] = value end"
local STEPS = {
  max = { EXTREME:format "max", EXTREME_OF_INT64:format ">" }, min = { EXTREME:format "min", EXTREME_OF_INT64:format "<" },
  set = { "to[at] = value + 0" }, add = { "to[at] = to[at] + value" }, mul = { "to[at] = to[at] * value" },
}
-- Puts rows of `from`, of `width` elements, to those of `to` that `of` names from 0; `seen` says which of these had one, the first is taken
-- as it is, or is nil. Returns true, or nil where a number is out of range. Rows of one element have no loop of their own.
local LOOP = [[
  local max, min = math.max, math.min
  return function(to, from, of, count, width, size, seen)
    for i = 0, count - 1 do
      local number = tonumber(of[i])
      if number < 0 or number >= size then return nil end
      if seen ~= nil and seen[number] == 0 then
        seen[number] = 1
        for j = 0, width - 1 do to[number * width + j] = from[i * width + j] + 0 end
      else
        EACH
      end
    end
    return true
  end
]]
local loops = {}
-- A function for each dtype: LuaJIT compiles a loop for the type of its elements.
local function loop_of(how, width, dtype)
  local name = how .. (width == 1 and "1 " or " ") .. dtype
  if not loops[name] then
    local step = dtype == "int64" and STEPS[how][2] or STEPS[how][1]
    local each = width == 1 and "local at, value = number, from[i] " .. step
      or "for j = 0, width - 1 do local at, value = number * width + j, from[i * width + j] " .. step .. " end"
    loops[name] = loadstring(LOOP:gsub("EACH", function() return each end), "=rows")()
  end
  return loops[name]
end

-- Puts each row of {n, width} to the row of result that its number names, by the step called `how`, and returns result; nil where a number
-- is out of range: the ops below say what is wrong. fresh: the first row for each is taken as it is.
local function put_rows(result, rows, numbers, how, fresh)
  rows, numbers = rows:contiguous(), numbers:contiguous()
  local dims = tools.dims(result)
  local size, width = dims[1], dims[2]
  local seen = fresh and native.array("uint8_t", size) or nil
  local loop = loop_of(how, width, rows.dtype)
  local done = loop(native.data(result), native.data(rows), native.data(numbers), tonumber(numbers.size), width, size, seen)
  return done and result
end

---- sums -------------------------------------------------------------------------------------------

-- What an int64 is added up in: two parts of PART bits and what is above them, so that float64 holds the sums of 2^31 of each.
local PART = 2 ^ 22

-- added(), below, of int64: sums that leave the range wrap, as those of ops.sum do.
local function added_int64(values, numbers, size, width)
  local rows = ops.reshape_raw(values, { tools.dims(numbers)[1], width })
  local above = ops.floor_divide(rows, PART)
  local parts = ops.concat({ ops.mod(rows, PART), ops.mod(above, PART), ops.floor_divide(above, PART) }, 2):to("float64")
  local sums = tools.scatter_rows(parts, numbers, { size, 3 * width }):to("int64")
  local function part(i) return tools.part(sums, 2, (i - 1) * width + 1, i * width) end
  return part(1) + (part(2) + part(3) * PART) * PART
end

-- What was added to rows of zeros {size, width}, in x's dtype: smaller integers are added in float64, which holds their sums up to 2^53.
local function added(values, numbers, size, width)
  local dtype = values.dtype
  if not tools.is_float(values) and takes_loops(values, numbers) then
    local sums = tools.filled(values, { size, width }, 0, dtype == "int64" and dtype or "float64")
    local result = put_rows(sums, ops.reshape_raw(values, { numbers.size, width }), ops.flatten(numbers), "add")
    if result then return result:to(dtype) end
  end
  if dtype == "int64" then return added_int64(values, ops.flatten(numbers), size, width) end
  local exact = tools.is_float(values) and values or values:to("float64")
  local flat = ops.flatten(numbers)
  local sum = tools.scatter_rows(ops.reshape_raw(exact, { tools.dims(flat)[1], width }), flat, { size, width })
  return exact.dtype == dtype and sum or sum:to(dtype)
end

-- A tensor of zeros of this shape with values at positions {n, k}; where a position occurs several times, their sum.
takes "positions, values, shape"
define(function(positions, values, shape)
  positions, values = positions_of(positions, "scatter"), operand(values, "scatter")
  local dims = tensor.check_dims("flow.scatter", shape)
  local numbers, size, k = flat_numbers(positions, dims, "scatter")
  local _, width = rest_of(dims, k)
  return ops.reshape_raw(added(values, numbers, size, width), dims)
end, "scatter")

---- segments ---------------------------------------------------------------------------------------

-- For each of these numbers, which are in order, whether it is the last one of its kind.
local function is_last_of(sorted)
  local count = sorted.size
  return ops.concat({ ops.ne(tools.part(sorted, 1, 2, count), tools.part(sorted, 1, 1, count - 1)),
    tools.filled(sorted, { math.min(count, 1) }, true, "bool") }, 1)
end

-- The same of numbers in any order.
local function is_last(numbers)
  local order = tools.argsort(numbers, 1) - 1
  local last = is_last_of(tools.gather(numbers, order)):to("float32"):expand_dims(-1)
  return ops.gt(tools.scatter_rows(last, order, { numbers.size, 1 }):squeeze(-1), 0)
end

-- Of rows {n, width} and their numbers from 0 the extreme or the product of each number's rows, {size, width}: the rows are sorted by
-- number, and pairs are combined that are 1, 2, 4, ... apart (Hillis and Steele, "Data Parallel Algorithms", 1986).
local function combined_rows(rows, numbers, size, combine, nothing)
  local count = numbers.size
  local loop = combine == ops.maximum and "max" or combine == ops.minimum and "min" or "mul"
  if takes_loops(rows, numbers) then
    local wide = loop == "mul" and (tools.is_float(rows) and "float64" or "int64")
    local result = put_rows(tools.filled(rows, { size, tools.dims(rows)[2] }, nothing, wide), rows, numbers, loop, loop ~= "mul")
    if result then return result:to(rows.dtype) end
  end
  local filled = tools.filled(rows, { size, tools.dims(rows)[2] }, nothing)
  if count == 0 then return filled end
  local order = tools.argsort(numbers, 1) - 1
  local sorted, of = tools.gather(rows, order), tools.gather(numbers, order)
  local distance = 1
  while distance < count do
    local same = ops.eq(tools.part(of, 1, distance + 1, count), tools.part(of, 1, 1, count - distance)):expand_dims(-1)
    local later, earlier = tools.part(sorted, 1, distance + 1, count), tools.part(sorted, 1, 1, count - distance)
    sorted = ops.concat({ tools.part(sorted, 1, 1, distance), ops.where(same, combine(later, earlier), later) }, 1)
    distance = distance * 2
  end
  local last = is_last_of(of)
  local kept = ops.where(last:expand_dims(-1), sorted, 0):to(rows.dtype)
  local hit = added(last:to("float32"), of, size, 1)
  return ops.where(ops.gt(hit, 0), added(kept, of, size, tools.dims(rows)[2]), filled)
end

-- The numbers of segments, and how many segments there are; a number outside is left out as Keras does.
local function segments_of(data, ids, count, what)
  data, ids = operand(data, what), positions_of(ids, what)
  if #tools.dims(ids) ~= 1 then
    raise("flow.%s: segment_ids are one for each row, got shape %s", what, tensor.shape_text(tools.dims(ids)))
  end
  if ids.dtype == "bool" then raise("flow.%s: segment_ids are whole numbers, got bool", what) end
  if count == nil then
    if tensor.is_symbolic(ids) then raise("flow.%s: num_segments is needed in a trace, where the ids have no values yet", what) end
    count = ids.size > 0 and ops.max(ids):item() + 1 or 0
  end
  count = tools.whole(count, 0, what, "num_segments")
  local dims = tools.dims(data)
  local rest, width = rest_of(dims, 1)
  local rows = ops.reshape_raw(data, { tools.dims(ids)[1], width })
  local inside = ops.logical_and(ops.ge(ids, 0), ops.lt(ids, count))
  return rows, ops.where(inside, ids, count):to("int64"), count, width, rest
end

-- Defines a segment reduction. reduce(rows, numbers, count, width) has one segment more than the result: rows whose number is out of range
-- go there.
local function segment_op(name, reduce)
  takes "data, segment_ids, num_segments?, sorted = false"
  define(function(data, ids, count)
    local rows, numbers, size, width, rest = segments_of(data, ids, count, name)
    local result = reduce(rows, numbers, size + 1, width)
    return ops.reshape_raw(tools.part(result, 1, 1, size), joined({ size }, rest))
  end, name)
end
local LEAST = { int8 = -128, uint8 = 0, int32 = -2 ^ 31, bool = 0, int64 = -2LL ^ 63 }
local MOST = { int8 = 127, uint8 = 255, int32 = 2 ^ 31 - 1, bool = 1, int64 = 9223372036854775807LL, float16 = 65504,
  bfloat16 = 3.3895313892515355e38, float32 = 3.4028234663852886e38, float64 = 1.7976931348623157e308 }
for _, dtype in ipairs { "float16", "bfloat16", "float32", "float64" } do LEAST[dtype] = -MOST[dtype] end
segment_op("segment_sum", function(rows, numbers, size, width) return added(rows, numbers, size, width) end)
segment_op("segment_max", function(rows, numbers, size)
  return combined_rows(rows, numbers, size, ops.maximum, LEAST[rows.dtype])
end)
segment_op("segment_min", function(rows, numbers, size)
  return combined_rows(rows, numbers, size, ops.minimum, MOST[rows.dtype])
end)
segment_op("segment_prod", function(rows, numbers, size) return combined_rows(rows, numbers, size, ops.mul, 1) end)

---- updates ----------------------------------------------------------------------------------------

local COMBINE = { add = "add", max = "maximum", min = "minimum", mul = "mul" }
local NEUTRAL = { add = function() return 0 end, mul = function() return 1 end,
  max = function(dtype) return dtype:find "float" and -math.huge or LEAST[dtype] end,
  min = function(dtype) return dtype:find "float" and math.huge or MOST[dtype] end }

-- x with updates at positions {n, k}: in place of what was there (of several the last one), or reduced with it: "add", "max", "min", "mul".
takes "x, positions, updates, reduction?"
define(function(x, positions, updates, reduction)
  x, positions = operand(x, "scatter_update"), positions_of(positions, "scatter_update")
  updates = operand(updates, "scatter_update", x.dtype):to(x.dtype)
  if reduction ~= nil and not COMBINE[reduction] then
    raise("flow.scatter_update: reduction is \"add\", \"max\", \"min\", \"mul\" or nil, got %s", errors.describe(reduction))
  end
  local dims = tools.dims(x)
  local numbers, size, k = flat_numbers(positions, dims, "scatter_update")
  local _, width = rest_of(dims, k)
  numbers = ops.flatten(numbers)
  local flat, rows = ops.reshape_raw(x, { size, width }), updates:reshape { numbers.size, width }
  local result
  if reduction ~= "add" and reduction ~= "mul" and takes_loops(rows, numbers) and tools.is_free(flat) then
    result = put_rows(ops.clone(flat), rows, numbers, reduction or "set")
  end
  if result then return ops.reshape_raw(result, dims) end
  if reduction == nil then
    local last = is_last(numbers)
    local there = ops.gt(added(last:to("float32"), numbers, size, 1), 0)
    result = ops.where(there, added(ops.where(last:expand_dims(-1), rows, 0):to(x.dtype), numbers, size, width), flat)
  elseif reduction == "add" then
    result = flat + added(rows, numbers, size, width)
  else
    local combine = ops[COMBINE[reduction]]
    result = combine(flat, combined_rows(rows, numbers, size, combine, NEUTRAL[reduction](x.dtype)))
  end
  return ops.reshape_raw(result:to(x.dtype), dims)
end, "scatter_update")

---- conditions -------------------------------------------------------------------------------------

-- The first of the choices whose condition holds, element by element, else the default.
takes "conditions, choices, default = 0"
define(function(conditions, choices, default)
  if type(conditions) ~= "table" or type(choices) ~= "table" or #conditions ~= #choices or #conditions == 0 then
    raise("flow.select takes a list of conditions and one of as many choices")
  end
  local result = default or 0
  for i = #conditions, 1, -1 do result = ops.where(conditions[i], choices[i], result) end
  return result
end, "select")

-- Numbers from 0 of the elements that are not 0, of an eager tensor in its order.
local function numbers_where(x, what)
  tensor.need_value(x, what .. "()")
  local set = ops.ne(ops.flatten(tools.numbers(x, what)), 0):to("uint8")
  local count = ops.sum(set):item()
  return tools.part(tools.argsort(set, 1, true), 1, 1, count) - 1
end

-- A list with a tensor of positions for each axis: where x is not 0. Of eager tensors.
define(function(x)
  x = operand(x, "nonzero")
  local numbers, list, dims = numbers_where(x, "nonzero"), {}, tools.dims(x)
  for axis = #dims, 1, -1 do
    list[axis] = ops.mod(numbers, math.max(dims[axis], 1)) + 1
    numbers = ops.floor_divide(numbers, math.max(dims[axis], 1))
  end
  return list
end, "nonzero")

-- The elements, or the rows along an axis, for which a mask of the first axes holds. Of eager masks.
takes "x, mask, axis = 1"
define(function(x, mask, axis)
  x, mask = operand(x, "boolean_mask"), operand(mask, "boolean_mask")
  axis = tools.axis(x, axis or 1, "boolean_mask")
  local dims, own, merged = tools.dims(x), tools.dims(mask), {}
  for i = 1, #own do
    if #own == 0 or dims[axis + i - 1] ~= own[i] then
      raise("flow.boolean_mask: a mask of shape %s for %s from axis %d on", tensor.shape_text(own), tensor.shape_text(dims), axis)
    end
  end
  for i = 1, axis - 1 do merged[i] = dims[i] end
  merged[axis] = mask.size
  for i = axis + #own, #dims do merged[#merged + 1] = dims[i] end
  return ops.take(ops.reshape_raw(x, merged), numbers_where(mask, "boolean_mask") + 1, axis)
end, "boolean_mask")

-- Which of maxlen places each length has: a mask with one more axis. Without maxlen the largest length, of eager tensors.
takes "lengths, maxlen?: whole, { dtype: string = 'bool'; name? }"
define(function(lengths, most, options)
  lengths = operand(lengths, "sequence_mask", "int32")
  if lengths.dtype == "bool" then raise "flow.sequence_mask: lengths are numbers, got bool" end
  if not most then
    tensor.need_value(lengths, "flow.sequence_mask without maxlen")
    most = lengths.size > 0 and math.max(tonumber(ops.max(lengths):item()), 0) or 0
  end
  return ops.lt(tensor.arange(most, { dtype = "int32" }), ops.expand_dims(lengths, -1)):to(options and options.dtype or "bool")
end, "sequence_mask")

-- The positions on each axis of a tensor of this shape, of positions in it when it is flattened; a list of tensors.
takes "positions, shape"
define(function(positions, shape)
  positions = positions_of(positions, "unravel_index")
  local dims, size = tensor.check_dims("flow.unravel_index", shape), 1
  for _, n in ipairs(dims) do size = size * n end
  local numbers, list = ops.positions_from_zero(positions, size, "flow.unravel_index"), {}
  for axis = #dims, 1, -1 do
    list[axis] = (ops.mod(numbers, dims[axis]) + 1):to(positions.dtype)
    numbers = ops.floor_divide(numbers, dims[axis])
  end
  return list
end, "unravel_index")
