--- Elementwise ops and the rules of their elements, in doubles.
local ffi = require "ffi"
local flow = require "flow"
local arrays = require "spec.support.arrays"
local arguments = require "spec.backend.random_ops.arguments"

ffi.cdef "double erf(double); double erfc(double); double expm1(double); double log1p(double);"

local DTYPES, NUMBERS, LOW, HIGH = arguments.DTYPES, arguments.NUMBERS, arguments.LOW, arguments.HIGH
local is_float, float_of, promoted = arguments.is_float, arguments.float_of, arguments.promoted
local as, array_of, input = arguments.as, arguments.array_of, arguments.input
local maximum, minimum = arrays.maximum, arrays.minimum

local ops = {}

local function round(x)
  local down = math.floor(x)
  if x - down ~= 0.5 then return math.floor(x + 0.5) end
  return down % 2 == 0 and down or down + 1
end
local function truth(f) return function(a, b) return f(a, b) and 1 or 0 end end
local function finite(x) return x - x == 0 end
local function sigmoid(x) return 1 / (1 + math.exp(-x)) end
local function softplus(x) return x ~= x and x or math.max(x, 0) + ffi.C.log1p(math.exp(-math.abs(x))) end
local function tanh(x) return x ~= x and x or x > 20 and 1 or x < -20 and -1 or math.tanh(x) end
local function limit(low, high, x) return x ~= x and x or math.min(math.max(x, low), high) end

--- name, function, dtypes, kind of the result ("same", "float" or a dtype), range.
for _, entry in ipairs {
  { "neg", function(x) return -x end, NUMBERS, "same" }, { "abs", math.abs, NUMBERS, "same" },
  { "sign", function(x) return x ~= x and x or x > 0 and 1 or x < 0 and -1 or 0 end, NUMBERS, "same" },
  { "square", function(x) return x * x end, NUMBERS, "same" }, { "relu", function(x) return maximum(x, 0) end, NUMBERS, "same" },
  { "floor", math.floor, NUMBERS, "same" }, { "ceil", math.ceil, NUMBERS, "same" }, { "round", round, NUMBERS, "same" },
  { "copy", function(x) return x end, DTYPES, "same" }, { "stop_gradient", function(x) return x end, DTYPES, "same" },
  { "exp", math.exp, DTYPES, "float" }, { "expm1", ffi.C.expm1, DTYPES, "float" }, { "log", math.log, DTYPES, "float", 0, 4 },
  { "log1p", ffi.C.log1p, DTYPES, "float", 0, 4 }, { "sqrt", math.sqrt, DTYPES, "float", 0, 4 },
  { "rsqrt", function(x) return 1 / math.sqrt(x) end, DTYPES, "float", 0, 4 },
  { "reciprocal", function(x) return 1 / x end, DTYPES, "float" }, { "sin", math.sin, DTYPES, "float" },
  { "cos", math.cos, DTYPES, "float" }, { "tan", math.tan, DTYPES, "float", -1.4, 1.4 },
  { "arctan", math.atan, DTYPES, "float" },
  { "tanh", tanh, DTYPES, "float" }, { "sigmoid", sigmoid, DTYPES, "float" },
  { "erf", ffi.C.erf, DTYPES, "float" }, { "erfc", ffi.C.erfc, DTYPES, "float" }, { "softplus", softplus, DTYPES, "float" },
  { "logical_not", truth(function(x) return x == 0 end), DTYPES, "bool" }, { "is_finite", truth(finite), DTYPES, "bool" },
  { "isnan", truth(function(x) return x ~= x end), DTYPES, "bool" },
  { "elu", function(x) return x > 0 and x or ffi.C.expm1(x) end, DTYPES, "float" },
  { "selu", function(x) return 1.0507009873554805 * (x > 0 and x or 1.6732632423543772 * ffi.C.expm1(x)) end, DTYPES, "float" },
  { "swish", function(x) return x == -1 / 0 and 0 / 0 or x * sigmoid(x) end, DTYPES, "float" },
  { "silu", function(x) return x == -1 / 0 and 0 / 0 or x * sigmoid(x) end, DTYPES, "float" },
  { "leaky_relu", function(x) return x > 0 and x or 0.2 * x end, DTYPES, "float" },
  { "relu6", function(x) return limit(0, 6, x) end, NUMBERS, "same" },
  { "softsign", function(x) return x / (1 + math.abs(x)) end, DTYPES, "float" },
  { "hard_sigmoid", function(x) return limit(0, 6, x + 3) / 6 end, DTYPES, "float" },
  { "hard_silu", function(x) return x * limit(0, 6, x + 3) / 6 end, DTYPES, "float" },
  { "hard_swish", function(x) return x * limit(0, 6, x + 3) / 6 end, DTYPES, "float" },
  { "mish", function(x) return x * tanh(softplus(x)) end, DTYPES, "float" },
} do
  local name, f, dtypes, kind, low, high = unpack(entry)
  ops[name] = function(s)
    local a, x, dtype = input(s, s.shape(), dtypes, low, high)
    return { { flow[name](x), arrays.map(f, a), kind == "same" and dtype or kind == "float" and float_of(dtype) or kind, 1, 8 } }
  end
end

ops.gelu = function(s)
  local a, x, dtype = input(s, s.shape(), DTYPES)
  local root, exact = math.sqrt(2 / math.pi), s.maybe(0.4)
  local function f(v)
    if exact then return v * (1 + ffi.C.erf(v / math.sqrt(2))) / 2 end
    return v * (1 + tanh(v * (root + root * 0.044715 * v * v))) / 2
  end
  if exact then return { { flow.gelu(x, { approximate = false }), arrays.map(f, a), float_of(dtype), 1, 16 } } end
  return { { flow.gelu(x), arrays.map(f, a), float_of(dtype), 1, 16 } }
end

local function modulo(a, b) return b == 0 and 0 / 0 or a - math.floor(a / b) * b end

--- name, Keras' name, function of doubles, dtypes, range of the second operand.
for _, entry in ipairs {
  { "add", "add", function(a, b) return a + b end, NUMBERS }, { "sub", "subtract", function(a, b) return a - b end, NUMBERS },
  { "mul", "multiply", function(a, b) return a * b end, DTYPES }, { "div", "divide", function(a, b) return a / b end, DTYPES },
  { "divide_no_nan", "divide_no_nan", function(a, b) return b == 0 and 0 or a / b end, DTYPES },
  { "pow", "power", function(a, b) return a ^ b end, NUMBERS, 0, 3, 0, 4 }, { "mod", "mod", modulo, NUMBERS, 1, 4 },
  { "maximum", "maximum", maximum, DTYPES }, { "minimum", "minimum", minimum, DTYPES },
  { "eq", "equal", truth(function(a, b) return a == b end), DTYPES },
  { "ne", "not_equal", truth(function(a, b) return a ~= b end), DTYPES },
  { "lt", "less", truth(function(a, b) return a < b end), DTYPES }, { "le", "less_equal", truth(function(a, b) return a <= b end), DTYPES },
  { "gt", "greater", truth(function(a, b) return a > b end), DTYPES },
  { "ge", "greater_equal", truth(function(a, b) return a >= b end), DTYPES },
  { "logical_and", "logical_and", truth(function(a, b) return a ~= 0 and b ~= 0 end), DTYPES },
  { "logical_or", "logical_or", truth(function(a, b) return a ~= 0 or b ~= 0 end), DTYPES },
} do
  local name, keras, f, dtypes, low, high, first_low, first_high = unpack(entry)
  ops[name] = function(s)
    local shape = s.shape()
    local a, x, dtype = input(s, shape, dtypes, first_low, first_high)
    local b, y, other
    if s.maybe(0.3) then
      y = s.draw(low or 0, high or 4)
      if s.maybe(0.3) and (name ~= "pow" and name ~= "mod") then y = y + 0.5 end
      other = y == math.floor(y) and "a whole number" or "a fraction"
      b = { shape = {}, n = 1, y }
    else
      b, y, other = input(s, s.partner(shape), dtypes, low, high)
    end
    local result = promoted(keras, other, dtype)
    if s.maybe(0.5) then return { { flow[name](x, y), arrays.zip(f, a, b), result, 1, 4 } } end
    if low then return { { flow[name](x, y), arrays.zip(f, a, b), result, 1, 4 } } end      -- its operands are not of one range
    return { { flow[name](y, x), arrays.zip(f, b, a), result, 1, 4 } }
  end
end

ops.where = function(s)
  local shape = s.shape()
  local condition, c = input(s, s.partner(shape), DTYPES)
  local a, x, first = input(s, shape, DTYPES)
  local b, y, second = input(s, s.partner(shape), DTYPES)
  return { { flow.where(c, x, y), arrays.zip(function(p, u, v) return p ~= 0 and u or v end, condition, a, b),
             promoted("where", first, second), 0, 0 } }
end

ops.clip = function(s)
  local a, x, dtype = input(s, s.shape(), NUMBERS)
  local low = s.draw(0, 2)
  return { { flow.clip(x, low, low + 1), arrays.map(function(v) return limit(low, low + 1, v) end, a), dtype, 0, 0 } }
end

ops.cast = function(s)
  local _, x, dtype = input(s, s.shape(), DTYPES, -300, 300)
  local a, wanted = array_of(x), s.pick(DTYPES)      -- bfloat16 does not hold all of them
  return { { x:to(wanted), arrays.map(function(v)
    if wanted == "bool" then return v ~= 0 and 1 or 0 end
    if is_float(wanted) then return v end
    if not is_float(dtype) then return as(wanted, v) end
    if v ~= v then return 0 end
    v = v < 0 and math.ceil(v) or math.floor(v)
    return math.min(math.max(v, LOW[wanted]), HIGH[wanted])
  end, a), wanted, 1, 1 } }
end

return ops
