-- integer_range.lua: which numbers an integer dtype holds, asked where a user's number is written into a tensor of a dtype that was named.
--
-- There, as in NumPy and PyTorch, a number that does not fit, infinity and NaN are errors: written, they would be other numbers. Fractions
-- are cut off. A cast of a tensor, x:to "int8", has no such check: core/tensor/convert.c says what becomes of its elements.

local native = require "flow.ffi"
local errors = require "flow.errors"

local C = native.C
local integer_range = {}

-- By dtype: the doubles next to the numbers that fit, below and above, and how messages name those.
local ranges = {
  [C.FLOW_INT8] = { -129, 128, "-128 to 127" },
  [C.FLOW_UINT8] = { -1, 256, "0 to 255" },
  [C.FLOW_INT32] = { -2 ^ 31 - 1, 2 ^ 31, "-2147483648 to 2147483647" },
  [C.FLOW_INT64] = { -2 ^ 63 - 2048, 2 ^ 63, "-9223372036854775808 to 9223372036854775807" },
}

-- Whether dtype, a number of enum flow_dtype, holds a number. Floats and bool hold every number: here only integers have a range.
function integer_range.holds(dtype, number)
  local range = ranges[dtype]
  return not range or number > range[1] and number < range[2]
end

-- Raises if it does not. value: a number or 64-bit integer; what: the function, as messages name it.
function integer_range.check(dtype, value, what)
  if dtype == C.FLOW_INT64 and native.is_int64(value) then return end      -- a uint64_t beyond it is found where its bits are written
  if not integer_range.holds(dtype, tonumber(value)) then
    errors.raise("%s: %s holds whole numbers from %s, got %s; choose a dtype that holds it", what, native.dtype_names[dtype],
      ranges[dtype][3], native.is_int64(value) and tostring(value) or errors.describe(value))
  end
end

-- The same for an array of count doubles; exact: the 64-bit integers among them, by position.
function integer_range.check_all(dtype, numbers, count, exact, what)
  local range = ranges[dtype]
  if not range then return end
  local least, most = range[1], range[2]
  for i = 0, count - 1 do
    if not (numbers[i] > least and numbers[i] < most) then integer_range.check(dtype, exact[i] or numbers[i], what) end
  end
end

-- The dtype of count numbers from start by step: the one of that name, else int32 of whole numbers if it holds all, int64 if it does not,
-- and float32 of fractions.
function integer_range.dtype_of(name, start, stop, step, count)
  if name then return native.dtype(name) end
  if start % 1 + stop % 1 + step % 1 ~= 0 then return C.FLOW_FLOAT32 end
  local fits = integer_range.holds(C.FLOW_INT32, start) and integer_range.holds(C.FLOW_INT32, start + (count - 1) * step)
  return (count == 0 or fits) and C.FLOW_INT32 or C.FLOW_INT64
end

return integer_range
