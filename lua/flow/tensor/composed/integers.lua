-- integers.lua: functions of whole numbers: bits, shifts, common divisors.
--
-- Bits are found by division, which rounds down, so that those of negative numbers are their two's complement; of tensors with values on
-- the host by LuaJIT's functions of 64 bits, eight bytes at a time.

local bit = require "bit"
local errors = require "flow.errors"
local native = require "flow.ffi"
local tensor = require "flow.tensor"
local tools = require "flow.tensor.composed.tools"

local ops, define, operand = tools.ops, tools.define, tools.operand

local BITS = { bool = 1, int8 = 8, uint8 = 8, int32 = 32, int64 = 64 }

local function whole(x, what)
  if not BITS[x.dtype] then errors.raise("flow.%s: whole numbers or bools, got %s", what, x.dtype) end
  return x
end

-- Both operands in the dtype that they have together.
local function pair(a, b, what)
  if type(a) == "number" then a = operand(a, what, operand(b, what).dtype) end
  a = operand(a, what, "int32")
  b = operand(b, what, a.dtype)
  if a.dtype == "bool" and b.dtype == "bool" then return a, b end
  local dtype = ops.add(a, b).dtype
  return whole(a, what):to(dtype), whole(b, what):to(dtype)
end

-- 2^0, 2^1, ..., which of int64 ends with -2^63.
local function powers_of(dtype)
  return ops.pow(tools.constant(2, "int64"), require("flow.tensor").arange(BITS[dtype], { dtype = "int64" }))
end

-- Bits as int64 along a new last axis; the power of the last bit of int64 is negative, so its bit is the sign.
local function bits_of(x, powers)
  local bits = ops.mod(ops.floor_divide(x:to("int64"):expand_dims(-1), powers), 2)
  if x.dtype ~= "int64" then return bits end
  return ops.concat({ tools.part(bits, #tools.dims(bits), 1, 63), ops.lt(x, 0):to("int64"):expand_dims(-1) }, -1)
end

-- The dimensions of a and b together.
local function common_dims(a, b)
  local of_a, of_b = tools.dims(a), tools.dims(b)
  if #of_b == 0 or table.concat(of_a, ",") == table.concat(of_b, ",") then return of_a end
  return #of_a == 0 and of_b or tools.dims(a + b)
end

-- a and b of one dtype as they lie in memory, broadcast to one shape, and a tensor for the result.
local function packed_pair(a, b)
  local dims = common_dims(a, b)
  local function packed(x) return ops.broadcast_to(x, dims):contiguous() end
  return packed(a), packed(b), tensor.new(native.dtype(a.dtype), dims)
end

-- f, which works on each bit alone, of the elements of a and b: of their bytes, eight of which are a word of 64 bits.
local function by_words(f, a, b)
  local x, y, result = packed_pair(a, b)
  local bytes = tonumber(result.size) * native.C.flow_dtype_size(native.dtype(result.dtype))
  local function pointers(ctype)
    return native.cast(ctype, native.data(x)), native.cast(ctype, native.data(y)), native.cast(ctype, native.data(result))
  end
  local words = math.floor(bytes / 8)
  local from_x, from_y, to = pointers "int64_t *"
  for i = 0, words - 1 do to[i] = f(from_x[i], from_y[i]) end
  from_x, from_y, to = pointers "uint8_t *"
  for i = words * 8, bytes - 1 do to[i] = f(from_x[i], from_y[i]) end
  return result
end

-- Defines an operation on bits: of_bools for bool, of_words for 64 bits at a time, combine(x, y) for tensors of bits, 0 or 1, which have
-- one more axis.
local function of_bits(name, of_bools, of_words, combine)
  local what = "bitwise_" .. name
  define(function(a, b)
    a, b = pair(a, b, what)
    if a.dtype == "bool" then return of_bools(a, b) end
    if tools.is_free(a) and tools.is_free(b) then return by_words(of_words, a, b) end
    local powers = powers_of(a.dtype)
    local x, y = bits_of(a, powers), bits_of(b, powers)
    return ops.sum(combine(x, y) * powers, -1):to(a.dtype)
  end, what)
end
of_bits("and", ops.logical_and, bit.band, ops.mul)
of_bits("or", ops.logical_or, bit.bor, ops.maximum)
of_bits("xor", ops.ne, bit.bxor, function(x, y) return ops.ne(x, y):to("int64") end)

-- All bits turned round: -1 - x.
define(function(x)
  x = whole(operand(x, "bitwise_not", "int32"), "bitwise_not")
  if x.dtype == "bool" then return ops.logical_not(x) end
  return x.dtype == "uint8" and 255 - x or -1 - x
end, "bitwise_not", "bitwise_invert")

-- A loop over values on the host, for each dtype, since LuaJIT compiles it for the types of its elements. step: an expression of x and b,
-- which is less than the bits of what it is computed in; beyond: one of x for other b.
local SHIFT = [[
  local lshift, arshift = bit.lshift, bit.arshift
  return function(to, from, by, count)
    for i = 0, count - 1 do
      local x, b = from[i], tonumber(by[i])
      if b < 0 then to[i] = 0 elseif b < BITS then to[i] = STEP else to[i] = BEYOND end
    end
  end
]]
local function shift_loop(step, beyond, dtype)
  local source = SHIFT:gsub("BITS", dtype == "int64" and 64 or 32):gsub("STEP", step):gsub("BEYOND", beyond)
  return setfenv(loadstring(source, "=shift"), { bit = bit, tonumber = tonumber })()
end

-- Defines a shift: f(a, b) of tensors of int64; step and beyond: shift_loop.
local function shifted(name, f, step, beyond)
  local loops = {}
  local function shift(a, b)
    a, b = pair(a, b, name)
    if a.dtype == "bool" then a, b = a:to("int32"), b:to("int32") end
    if not (tools.is_free(a) and tools.is_free(b)) then return f(a:to("int64"), b:to("int64")):to(a.dtype) end
    local x, y, result = packed_pair(a, b)
    loops[a.dtype] = loops[a.dtype] or shift_loop(step, beyond, a.dtype)
    loops[a.dtype](native.data(result), native.data(x), native.data(y), tonumber(result.size))
    return result
  end
  define(shift, "bitwise_" .. name, name)
end
shifted("left_shift", function(a, b) return a * ops.pow(tools.constant(2, "int64"), b) end, "lshift(x, b)", "0")
shifted("right_shift", function(a, b)
  local quotient = ops.floor_divide(a, ops.pow(tools.constant(2, "int64"), ops.minimum(b, 62)))
  return ops.where(ops.gt(b, 62), -ops.lt(a, 0):to("int64"), quotient)
end, "arshift(x, b)", "x < 0 and -1 or 0")

-- Steps that Euclid's algorithm can need: two consecutive Fibonacci numbers take longest.
local MOST_STEPS = { int8 = 12, uint8 = 14, int32 = 46, int64 = 92 }
-- Euclid's algorithm on all elements at once, until all are done; in a trace, which has no values to look at, as many steps as two numbers
-- of the dtype can need.
local function gcd(a, b)
  a, b = ops.abs(a), ops.abs(b)
  for _ = 1, MOST_STEPS[a.dtype] do
    if not require("flow.tensor").is_symbolic(b) and not ops.any(b):item() then break end
    a, b = ops.where(ops.eq(b, 0), a, b), ops.where(ops.eq(b, 0), 0, ops.mod(a, b)):to(b.dtype)
  end
  return a
end
define(function(a, b)
  a, b = pair(a, b, "gcd")
  if a.dtype == "bool" then return ops.logical_or(a, b) end
  return gcd(a, b)
end, "gcd")
define(function(a, b)
  a, b = pair(a, b, "lcm")
  if a.dtype == "bool" then return ops.logical_and(a, b) end
  local divisor = gcd(a, b)
  return ops.abs(ops.floor_divide(a, ops.maximum(divisor, 1):to(a.dtype)) * b)
end, "lcm")
