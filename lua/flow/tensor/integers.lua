-- integers.lua: 64-bit integers between Lua and tensors.
--
-- A Lua number holds every whole number up to 2^53. An int64 element of a larger magnitude comes to Lua as an int64_t
-- (9007199254740993LL), which keeps all its bits; every other element comes as a number. Whatever takes a number takes an int64_t or a
-- uint64_t, too, and what is written to an int64 tensor keeps its bits.

local native = require "flow.ffi"
local errors = require "flow.errors"

local C, check = native.C, native.check
local integers = {}

local LIMIT = 2LL ^ 53
local one = native.out("flow_tensor")

integers.is = native.is_int64

-- The int64_t of an int64_t, a uint64_t or a whole number; raises if there is none. what: the caller, as messages name it.
function integers.of(value, what)
  if type(value) == "number" then
    if value ~= math.floor(value) or math.abs(value) >= 2 ^ 63 then
      errors.raise("%s: expected a whole number that an int64 holds, got %s", what, errors.describe(value))
    end
    return native.cast("int64_t", value)
  end
  local result = native.cast("int64_t", value)
  if result < 0 and native.is_uint64(value) then
    errors.raise("%s: %s is above 9223372036854775807, the largest int64", what, tostring(value))
  end
  return result
end

-- An int64_t as Lua code gets it: a number where that is exact, see above.
function integers.to_lua(value)
  if value >= -LIMIT and value <= LIMIT then return tonumber(value) end
  return native.cast("int64_t", value)
end

-- Raises if one of these numbers of a range of integers is a fraction or infinite.
function integers.check_whole(what, numbers, dtype)
  for _, number in ipairs(numbers) do
    if type(number) == "number" and (number % 1 ~= 0 or math.abs(number) == math.huge) then
      errors.raise("%s: its numbers are %s, got %s; { dtype = \"float32\" } counts in fractions", what, tostring(dtype),
        errors.describe(number))
    end
  end
end

-- start, stop and step of a range, whose start is 0 if only one number is given, and whether they are 64-bit integers: one makes all so.
function integers.range(what, start, stop, step)
  if stop == nil then start, stop = 0, start end
  local exact = integers.is(start) or integers.is(stop) or integers.is(step)
  if exact then start, stop, step = integers.of(start, what), integers.of(stop, what), integers.of(step, what) end
  if step == 0 then errors.raise("%s: the step is 0", what) end
  return start, stop, step, exact
end

-- Copies an array of int64_t in the shape of dims into tensor p, or, of rank 0, into all its elements.
local function write(p, values, dims, rank)
  check(C.flow_tensor_borrow(values, C.FLOW_INT64, rank, dims, one))
  local source = one[0]
  local status = C.flow_tensor_copy(p, source)
  C.flow_tensor_release(source)
  check(status)
end

local function shape_of(p)
  local dims, rank = (native.dims {}), C.flow_tensor_rank(p)
  for axis = 0, rank - 1 do dims[axis] = C.flow_tensor_dim(p, axis) end
  return dims, rank
end

-- Sets all elements of tensor p to value.
function integers.fill(p, value, what)
  local values = native.array("int64_t", 1)
  values[0] = integers.of(value, what)
  write(p, values, native.dims {}, 0)
end

-- Writes an array of int64_t, one for each element.
function integers.write(p, values)
  if C.flow_tensor_size(p) > 0 then write(p, values, shape_of(p)) end
end

-- All elements of int64 tensor p as an array of int64_t.
function integers.read(p)
  local count = C.flow_tensor_size(p)
  local values = native.array("int64_t", math.max(count, 1))
  if count > 0 then
    local dims, rank = shape_of(p)
    check(C.flow_tensor_borrow(values, C.FLOW_INT64, rank, dims, one))
    local target = one[0]
    local status = C.flow_tensor_copy(target, p)
    C.flow_tensor_release(target)
    check(status)
  end
  return values
end

return integers
