-- elementwise.lua: functions of numbers that are made of others: inverse and hyperbolic functions, logarithms to other bases, tests, and
-- what NumPy has for real and complex numbers, of real ones.

local errors = require "flow.errors"
local native = require "flow.ffi"
local tools = require "flow.tensor.composed.tools"
local formulas = require "flow.tensor.composed.formulas"
local takes = require("flow.signature").takes

local ops, define, floats, operand = tools.ops, tools.define, tools.floats, tools.operand
local pi, log = math.pi, math.log

-- A formula of floats, for formulas.apply, under its names.
local function of_floats(f, name, ...)
  define(function(x) return formulas.apply(f, floats(x, name)) end, name, ...)
end

-- Of two operands, floats of one dtype.
local function pair(a, b, what) return tools.pair(a, b, what, true) end
local function of_pairs(f, name, ...)
  define(function(a, b)
    a, b = pair(a, b, name)
    return formulas.apply(f, a, b)
  end, name, ...)
end

---- powers and logarithms --------------------------------------------------------------------------

of_floats(function(o, x) return o.exp(x * log(2)) end, "exp2")
of_floats(function(o, x) return o.log(x) * (1 / log(2)) end, "log2")
of_floats(function(o, x) return o.log(x) * (1 / log(10)) end, "log10")
of_floats(function(o, x) return o.sign(x) * o.pow(o.abs(x), 1 / 3) end, "cbrt")

-- log(e^a + e^b): the larger one and what the other adds; equal infinities have no difference.
of_pairs(function(o, a, b)
  local larger = o.maximum(a, b)
  local distance = o.where(o.eq(a, b), 0, o.abs(a - b))
  return larger + o.log1p(o.exp(-distance))
end, "logaddexp")
define(function(a, b)
  a, b = pair(a, b, "logaddexp2")
  return ops.logaddexp(a * log(2), b * log(2)) * (1 / log(2))
end, "logaddexp2")
-- The larger leg is taken out, so that squares do not overflow.
of_pairs(function(o, a, b)
  a, b = o.abs(a), o.abs(b)
  local larger, smaller = o.maximum(a, b), o.minimum(a, b)
  local safe = o.where(o.eq(larger, 0), 1, larger)
  local length = safe * o.sqrt(1 + o.square(smaller / safe)) * o.cast(o.gt(larger, 0), a.dtype)
  return o.where(o.eq(larger, math.huge), larger, length)
end, "hypot")
of_pairs(function(o, a, b) return a * o.pow(o.full_like(a, 2), b) end, "ldexp")

---- trigonometric and hyperbolic functions ---------------------------------------------------------

-- Of half the angle, so that the slope at 1 and -1 is infinite, and no product of 0 and infinity.
of_floats(function(o, x) return o.arctan(x / (1 + o.sqrt(1 - x) * o.sqrt(1 + x))) * 2 end, "arcsin")
of_floats(function(o, x)
  local size = o.where(o.lt(x, 0), -x, x)
  local angle = o.arctan(o.sqrt(1 - size) / o.sqrt(1 + size)) * 2
  return o.where(o.lt(x, 0), pi - angle, angle)
end, "arccos")
-- The angle of (x, y): of the quotient that is at most 1, turned into its quadrant. If both are infinite, the quotient is that of their
-- signs.
of_pairs(function(o, y, x)
  local both = o.eq(o.minimum(o.abs(y), o.abs(x)), math.huge)
  y, x = o.where(both, o.sign(y), y), o.where(both, o.sign(x), x)
  local steep = o.gt(o.abs(y), o.abs(x))
  local above, below = o.where(steep, x, y), o.where(steep, y, x)
  local angle = o.arctan(above / o.where(o.eq(below, 0), 1, below))
  local half = o.where(o.signbit(y), -pi, o.full_like(y, pi))
  return o.where(steep, half * 0.5 - angle, angle + o.where(o.signbit(x), half, 0))
end, "arctan2")
of_floats(function(o, x) return (o.expm1(x) - o.expm1(-x)) * 0.5 end, "sinh")
of_floats(function(o, x)
  local half = o.minimum(o.maximum(x, -1), 1) * 0.5
  local near = 1 + o.square(o.expm1(half) - o.expm1(-half)) * 0.5      -- 1 + 2 sinh(x / 2)^2, whose slope does not cancel
  return o.where(o.lt(o.abs(x), 1), near, (o.exp(x) + o.exp(-x)) * 0.5)
end, "cosh")
of_floats(function(o, x)
  local size = o.abs(x)
  local bounded = o.minimum(size, 1e8)      -- beyond it the square would overflow, and 1 does not count
  local near = o.log1p(bounded + o.square(bounded) / (1 + o.sqrt(1 + o.square(bounded))))
  local y = o.sign(x) * o.where(o.gt(size, 1e8), o.log(o.maximum(size, 1)) + log(2), near)
  return o.where(o.eq(x, 0), x, y)      -- the slope of sign(x) |x| is 0 at 0
end, "arcsinh")
of_floats(function(o, x)
  local bounded = o.where(o.gt(x, 1e8), 1e8, x)      -- as in arcsinh
  local near = o.log1p(bounded - 1 + o.sqrt(bounded - 1) * o.sqrt(bounded + 1))
  return o.where(o.gt(x, 1e8), o.log(o.maximum(x, 1)) + log(2), near)
end, "arccosh")
of_floats(function(o, x) return o.log1p(x * 2 / (1 - x)) * 0.5 end, "arctanh")
of_floats(function(o, x) return x * (pi / 180) end, "deg2rad")
of_floats(function(o, x) return x * (180 / pi) end, "rad2deg")
of_floats(function(o, x)
  local angle = o.where(o.eq(x, 0), 1, x) * pi
  return o.where(o.eq(x, 0), 1, o.sin(angle) / angle)
end, "sinc")

---- the error function and Bessel's ----------------------------------------------------------------

local function polynomial(x, coefficients)
  local y = coefficients[1]
  for i = 2, #coefficients do y = y * x + coefficients[i] end
  return y
end

-- M. Giles, "Approximating the erfinv function", 2012: within 4 units in the last place of float32. Two of Newton's steps give float64 its
-- digits; the gradient is that of the inverse, sqrt(pi) / 2 e^(y^2).
local CENTRAL = { 2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164,
  0.246640727, 1.50140941 }
local TAIL = { -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047, 1.00167406,
  2.83297682 }
local function slope(o, at) return o.exp(o.square(at)) * (math.sqrt(pi) / 2) end
local function central(o, w) return polynomial(o.minimum(w, 5) - 2.5, CENTRAL) end
local function tail(o, w) return polynomial(o.sqrt(o.maximum(w, 5)) - 3, TAIL) end
local function step_of_newton(o, value, y) return y - (o.erf(y) - value) * slope(o, y) end
-- What |value| >= 1 has in place of y, and of how steep it is there.
local function edges(o, value, y)
  local size = o.abs(value)
  return o.where(o.ge(size, 1), o.where(o.eq(size, 1), o.sign(value) * math.huge, 0 / 0), y)
end
local function slope_within(o, value, y)
  return o.where(o.ge(o.abs(value), 1), o.where(o.gt(o.abs(value), 1), 0 / 0, o.full_like(value, 0)), slope(o, y))
end
define(function(x)
  x = floats(x, "erfinv")
  local value = ops.stop_gradient(x)
  local w = formulas.apply(function(o, v) return -o.log((1 - v) * (1 + v)) end, value)
  local y = ops.where(ops.lt(w, 5), formulas.apply(central, w), formulas.apply(tail, w)) * value
  if x.dtype == "float64" then
    for _ = 1, 2 do y = formulas.apply(step_of_newton, value, y) end
  end
  y = formulas.apply(edges, value, y)
  return y + (x - value) * formulas.apply(slope_within, value, y)
end, "erfinv")

-- The modified Bessel function of the first kind, order 0: M. Abramowitz and I. Stegun, 9.8.1 and 9.8.2, errors below 2e-7.
of_floats(function(o, x)
  local size = o.abs(x)
  local t = o.square(o.minimum(size, 3.75) / 3.75)
  local near = polynomial(t, { 0.0045813, 0.0360768, 0.2659732, 1.2067492, 3.0899424, 3.5156229, 1 })
  local large = o.maximum(size, 3.75)
  local far = polynomial(3.75 / large, { 0.00392377, -0.01647633, 0.02635537, -0.02057706, 0.00916281, -0.00157565, 0.00225319, 0.01328592,
    0.39894228 }) * o.exp(large) * o.rsqrt(large)
  return o.where(o.lt(size, 3.75), near, far)
end, "i0")

---- division and rounding --------------------------------------------------------------------------

define(function(a, b) return ops.div(a, b) end, "true_divide")
-- The remainder of the quotient without its fraction: it has the sign of a.
define(function(a, b)
  a, b = ops.operands(a, b, "flow.fmod")
  return formulas.apply(function(o, x, y)
    local rest = o.mod(o.abs(x), o.abs(y))
    return o.where(o.lt(x, 0), -rest, rest)
  end, a, b)
end, "fmod")
define(function(x)
  x = operand(x, "trunc")
  if not tools.is_float(x) then return x end
  return formulas.apply(function(o, y) return o.sign(y) * o.floor(o.abs(y)) end, x)
end, "trunc", "fix")
define(function(x) return ops.abs(floats(x, "fabs")) end, "fabs")

-- The larger and the smaller operand, the other one where one is NaN.
for name, of in pairs { fmax = "maximum", fmin = "minimum" } do
  define(function(a, b)
    a, b = ops.operands(a, b, "flow." .. name)
    if not tools.is_float(a) and not tools.is_float(b) then return ops[of](a, b) end      -- whole numbers are never NaN
    return formulas.apply(function(o, x, y) return o.where(o.isnan(x), y, o.where(o.isnan(y), x, o[of](x, y))) end, a, b)
  end, name)
end

of_pairs(function(o, a, b)
  return o.where(o.eq(a, 0), b, o.where(o.isnan(a), a, o.cast(o.gt(a, 0), a.dtype)))
end, "heaviside")

---- tests ------------------------------------------------------------------------------------------

define(function(x)
  x = operand(x, "isinf")
  if not tools.is_float(x) then return ops.zeros_like(x, { dtype = "bool" }) end
  return formulas.apply(function(o, y) return o.eq(o.abs(y), math.huge) end, x)
end, "isinf")
define(function(x) return ops.eq(floats(x, "isposinf"), math.huge) end, "isposinf")
define(function(x) return ops.eq(floats(x, "isneginf"), -math.huge) end, "isneginf")
define(function(x) return ops.full_like(operand(x, "isreal"), true, { dtype = "bool" }) end, "isreal")
-- Whether the sign is set, of -0 too.
define(function(x)
  x = operand(x, "signbit")
  if not tools.is_float(x) then return ops.lt(tools.numbers(x, "signbit"), 0) end
  return formulas.apply(function(o, y) return o.lt(o.where(o.eq(y, 0), o.reciprocal(y), y), 0) end, x)
end, "signbit")
define(function(a, b)
  local function is_set(x) return ops.ne(x, 0) end
  return ops.ne(is_set(operand(a, "logical_xor")):to("uint8"), is_set(operand(b, "logical_xor")):to("uint8"))
end, "logical_xor")

-- |a - b| <= atol + rtol |b|; equal infinities are close, NaN only with equal_nan.
takes "a, b, { rtol: number = 1e-5, atol: number = 1e-8, equal_nan: boolean = false; }"
define(function(a, b, options)
  options = options or {}
  a, b = pair(a, b, "isclose")
  local near = formulas.apply(function(o, x, y)
    local within = o.le(o.abs(x - y), (options.atol or 1e-8) + o.abs(y) * (options.rtol or 1e-5))
    return o.logical_or(o.logical_and(within, o.isfinite(y)), o.eq(x, y))
  end, a, b)
  return options.equal_nan and ops.logical_or(near, ops.logical_and(ops.isnan(a), ops.isnan(b))) or near
end, "isclose")
takes "a, b, { rtol: number = 1e-5, atol: number = 1e-8, equal_nan: boolean = false; }"
define(function(a, b, options) return ops.all(ops.isclose(a, b, options)) end, "allclose")

-- NaN and infinities as numbers; without a number for an infinity it is the largest of the dtype.
local LARGEST = { float32 = 3.4028234663852886e38, float64 = 1.7976931348623157e308, float16 = 65504, bfloat16 = 3.3895313892515355e38 }
takes "x, nan = 0, posinf?, neginf?"
define(function(x, nan, posinf, neginf)
  x = operand(x, "nan_to_num")
  if not tools.is_float(x) then return x end
  nan, posinf, neginf = nan or 0, posinf or LARGEST[x.dtype], neginf or -LARGEST[x.dtype]
  local function replaced(o, y)
    y = o.where(o.isnan(y), nan, y)
    y = o.where(o.eq(y, math.huge), posinf, y)
    return o.where(o.eq(y, -math.huge), neginf, y)
  end
  local numbers = type(nan) == "number" and type(posinf) == "number" and type(neginf) == "number"
  return numbers and formulas.apply(replaced, x) or replaced(ops, x)
end, "nan_to_num")

---- complex numbers, of real ones ------------------------------------------------------------------

for _, name in ipairs { "real", "conj", "conjugate" } do define(function(x) return operand(x, name) end, name) end
define(function(x) return ops.zeros_like(operand(x, "imag")) end, "imag")
define(function(x)
  x = floats(x, "angle")
  return formulas.apply(function(o, y) return o.where(o.isnan(y), y, o.where(o.signbit(y), pi, o.full_like(y, 0))) end, x)
end, "angle")

---- casts ------------------------------------------------------------------------------------------

-- Numbers beyond a dtype become its largest or smallest.
local RANGES = { int8 = { -128, 127 }, uint8 = { 0, 255 }, int32 = { -2 ^ 31, 2 ^ 31 - 1 }, bool = { 0, 1 } }
define(function(x, dtype)
  x = operand(x, "saturate_cast")
  native.dtype(dtype)
  local range = RANGES[dtype]
  if range and not tools.is_float(x) then x = ops.clip(x:to("int64"), range[1], range[2]) end
  if dtype == "bool" and tools.is_float(x) then x = ops.clip(x, 0, 1) end
  local largest = LARGEST[dtype]
  if largest and tools.is_float(x) then x = ops.where(ops.isnan(x), x, ops.clip(x, -largest, largest)) end
  return x:to(dtype)
end, "saturate_cast")

-- The same bytes as numbers of another dtype; of an eager tensor.
local SIZES = { float16 = 2, bfloat16 = 2, float32 = 4, float64 = 8, int8 = 1, uint8 = 1, bool = 1, int32 = 4, int64 = 8 }
takes "x, dtype? -- x:reshape(shape)"
define(function(x, dtype)
  local tensor = require "flow.tensor"
  x = operand(x, "view")
  if dtype ~= nil and type(dtype) ~= "string" then
    errors.raise("flow.view takes a dtype such as \"int32\", got %s; another shape: x:reshape(shape)", errors.describe(dtype))
  end
  dtype = dtype or x.dtype
  native.dtype(dtype)
  tensor.need_value(x, "view()")
  local shape, from, to = tensor.raw_shape(x), SIZES[x.dtype], SIZES[dtype]
  if from ~= to then
    if #shape == 0 or shape[#shape] * from % to ~= 0 then
      errors.raise("view(): %s of shape %s cannot be read as %s", x.dtype, tensor.shape_text(shape), dtype)
    end
    shape[#shape] = shape[#shape] * from / to
  end
  local source, made = tensor.on_host(x):contiguous(), tensor.new(native.dtype(dtype), shape)
  if source.size > 0 then native.copy(native.data(made), native.data(source), source.size * from) end
  return made
end, "view")

-- The next number of the dtype after a on the way to b, of eager tensors: as an integer a float's bits count its neighbours.
define(function(a, b)
  a, b = pair(a, b, "nextafter")
  local integer = ({ float32 = "int32", float64 = "int64" })[a.dtype]
  if not integer then errors.raise("flow.nextafter: float32 or float64, got %s", a.dtype) end
  a, b = ops.broadcast_to(a, (a + b).shape), ops.broadcast_to(b, (a + b).shape)
  local outward = ops.eq(ops.gt(a, 0):to("uint8"), ops.gt(b, a):to("uint8"))
  local next_one = ops.view(ops.view(a, integer) + ops.where(outward, 1, -1):to(integer), a.dtype)
  local least = ops.view(ops.ones_like(ops.view(a, integer)), a.dtype)
  next_one = ops.where(ops.eq(a, 0), ops.sign(b) * least, next_one)
  return ops.where(ops.logical_or(ops.isnan(a), ops.isnan(b)), a + b, ops.where(ops.eq(a, b), b, next_one))
end, "nextafter")
