--- Random calls of the public tensor ops over all dtypes and shapes, sizes of 0 among them, compared with NumPy's rules in doubles
--- (spec/support/arrays.lua). FLOW_CASES says how many; a failure names its number, and FLOW_CASE=number runs that one alone.
local ffi = require "ffi"
local flow = require "flow"
local arrays = require "spec.support.arrays"
local promotions = require "spec.golden.promotions"
local public = require "flow.tensor.ops"

ffi.cdef "double erf(double); double expm1(double); double log1p(double);"

local CASES, ONLY = tonumber(os.getenv "FLOW_CASES" or 400), tonumber(os.getenv "FLOW_CASE")

---- dtypes ------------------------------------------------------------------------------------------------------------------------

local DTYPES = { "float32", "float16", "bfloat16", "float64", "int8", "uint8", "int32", "int64", "bool" }
local EPSILON = { float32 = 2 ^ -23, float16 = 2 ^ -10, bfloat16 = 2 ^ -7, float64 = 2 ^ -52 }
local LARGEST = { float32 = 3.4028235e38, float16 = 65504, bfloat16 = 3.3895314e38, float64 = math.huge }
local LOW, HIGH = { int8 = -128, uint8 = 0, int32 = -2 ^ 31, int64 = -2 ^ 63 },
  { int8 = 127, uint8 = 255, int32 = 2 ^ 31 - 1, int64 = 2 ^ 63 }
local FLOATS, INTEGERS, NUMBERS = {}, {}, {}
for i, dtype in ipairs(DTYPES) do
  if i <= 4 then FLOATS[#FLOATS + 1] = dtype elseif i < 9 then INTEGERS[#INTEGERS + 1] = dtype end
  if i < 9 then NUMBERS[#NUMBERS + 1] = dtype end
end
local function is_float(dtype) return EPSILON[dtype] ~= nil end
local function float_of(dtype) return is_float(dtype) and dtype or "float32" end

local place = {}
for i, dtype in ipairs(DTYPES) do place[dtype] = i end
local promoted = {}      -- by op, first dtype, second dtype: Keras' table
for _, group in ipairs(promotions) do
  for op in group.ops:gmatch "%S+" do
    promoted[op] = {}
    for first, row in pairs(group) do
      promoted[op][first] = {}
      for dtype in row:gmatch "%S+" do table.insert(promoted[op][first], dtype == "int16" and "int32" or dtype) end
    end
  end
end

--- A double as an element of that dtype would hold it: integers wrap, what is too large for a float is infinite.
local function as(dtype, x)
  if dtype == "bool" then return x ~= 0 and 1 or 0 end
  if is_float(dtype) then
    if x == x and math.abs(x) > LARGEST[dtype] * (1 + EPSILON[dtype] / 2) then return x > 0 and math.huge or -math.huge end
    return x
  end
  if dtype == "int64" then return x end
  local size = HIGH[dtype] - LOW[dtype] + 1
  return (x - LOW[dtype]) % size + LOW[dtype]
end

---- random arguments ----------------------------------------------------------------------------------------------------------------

--- A source of numbers that depend on the seed alone.
local function source(seed)
  local state = (seed * 2654435761 + 12345) % 2147483647
  local function unit()
    state = state * 48271 % 2147483647
    return (state - 1) / 2147483646
  end
  for _ = 1, 3 do unit() end
  local s = {}
  function s.draw(low, high) return low + math.min(math.floor(unit() * (high - low + 1)), high - low) end
  function s.pick(list) return list[s.draw(1, #list)] end
  function s.maybe(p) return unit() < p end
  function s.shape(least, most)
    local shape = {}
    for axis = 1, s.draw(least or 0, most or 4) do shape[axis] = s.maybe(0.1) and 0 or s.draw(1, s.maybe(0.2) and 19 or 4) end
    return shape
  end
  --- A shape that broadcasts with that one.
  function s.partner(shape)
    local result, skip = {}, s.draw(0, #shape)
    for axis = skip + 1, #shape do result[#result + 1] = s.maybe(0.3) and 1 or shape[axis] end
    return result
  end
  return s
end

--- The tensor of an array; now and then a view with strides of its own.
local function to_tensor(s, array, dtype)
  local function nest(list, shape, depth, from)
    if depth > #shape then return dtype == "bool" and list[from + 1] ~= 0 or dtype ~= "bool" and list[from + 1] end
    local inner, nested = arrays.product({ unpack(shape, depth + 1) }), {}
    for i = 1, shape[depth] do nested[i] = nest(list, shape, depth + 1, from + (i - 1) * inner) end
    return nested
  end
  local function make(a)
    if a.n == 0 then return flow.zeros(a.shape, { dtype = dtype }) end
    return flow.tensor(nest(a, a.shape, 1, 0), { dtype = dtype })
  end
  if #array.shape < 2 or s.maybe(0.6) then return make(array) end
  local order, back = {}, {}
  for i = 1, #array.shape do table.insert(order, s.draw(1, i), i) end
  for i, axis in ipairs(order) do back[axis] = i end
  return make(arrays.transpose(array, order)):transpose(back)
end

local function array_of(t)
  local list, n = { shape = t.shape, n = t.size }, 0
  local function flatten(value)
    if type(value) == "table" then
      for i = 1, #value do flatten(value[i]) end
    else
      n = n + 1
      list[n] = type(value) == "boolean" and (value and 1 or 0) or tonumber(value)
    end
  end
  flatten(t:totable())
  return list
end

--- Elements that every dtype holds exactly. low, high: of floats and signed integers.
local function values(s, shape, dtype, low, high)
  low, high = low or -4, high or 4
  local special = is_float(dtype) and low < 0 and s.maybe(0.05)
  return arrays.build(shape, function()
    if dtype == "bool" then return s.draw(0, 1) end
    if special and s.maybe(0.2) then return s.pick { 0 / 0, 1 / 0, -1 / 0 } end
    if is_float(dtype) then return s.draw(math.ceil(low * 4), math.floor(high * 4)) / 4 end
    return s.draw(dtype == "uint8" and math.max(low, 0) or math.ceil(low), math.floor(high))
  end)
end

--- A random array and its tensor.
local function input(s, shape, dtypes, low, high)
  local dtype = s.pick(dtypes)
  local array = values(s, shape, dtype, low, high)
  return array, to_tensor(s, array, dtype), dtype
end

---- the ops ---------------------------------------------------------------------------------------------------------------------------

--- Each op: f(s) gives a list of { found, expected array, dtype, scale, count }. scale: what errors are in proportion to besides the
--- result, a number or one for each element; count: how many roundings there are.
local ops = {}

local function round(x)
  local down = math.floor(x)
  if x - down ~= 0.5 then return math.floor(x + 0.5) end
  return down % 2 == 0 and down or down + 1
end
local function maximum(a, b) return (a ~= a or b ~= b) and 0 / 0 or math.max(a, b) end
local function minimum(a, b) return (a ~= a or b ~= b) and 0 / 0 or math.min(a, b) end
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
  { "cos", math.cos, DTYPES, "float" }, { "tanh", tanh, DTYPES, "float" }, { "sigmoid", sigmoid, DTYPES, "float" },
  { "erf", ffi.C.erf, DTYPES, "float" }, { "softplus", softplus, DTYPES, "float" },
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
    local result = promoted[keras][other][place[dtype]]
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
             promoted.where[first][place[second]], 0, 0 } }
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

--- Axes as a user names them and as a set; nil for all.
local function random_axes(s, rank)
  local set, list = {}, {}
  if rank == 0 or s.maybe(0.25) then
    for axis = 1, rank do set[axis] = true end
    return nil, set
  end
  for axis = 1, rank do
    if s.maybe(0.5) then
      set[axis] = true
      table.insert(list, s.draw(1, #list + 1), s.maybe(0.3) and axis - rank - 1 or axis)
    end
  end
  if #list == 0 then
    set[rank] = true
    return s.maybe(0.5) and -1 or { rank }, set
  end
  return list, set
end

local function fold(f, start) return function(list)
  local result = start
  for i = 1, #list do result = f(result, list[i]) end
  return result
end end

local function total(list)
  local sum = 0
  for i = 1, #list do sum = sum + list[i] end
  return sum
end
local function average(list) return total(list) / #list end
local function variance(list)
  local mean, sum = average(list), 0
  for i = 1, #list do sum = sum + (list[i] - mean) ^ 2 end
  return sum / #list
end

--- Compares a reduction, which must fail where it has nothing to choose from.
local function reduced(s, name, f, dtypes, result, options)
  options = options or {}
  local a, x, dtype = input(s, s.shape(), dtypes, options.low, options.high)
  local axes, set = random_axes(s, #a.shape)
  local keepdims = s.maybe(0.4)
  local nothing, empty = false, false
  for axis, dim in ipairs(a.shape) do
    if dim == 0 then
      if set[axis] then nothing = true else empty = true end
    end
  end
  if options.chooses and nothing and not empty then
    return { fails = function() return flow[name](x, axes, keepdims) end, message = "nothing to choose from" }
  end
  return { { flow[name](x, axes, keepdims), arrays.reduce(f, a, set, keepdims), result(dtype), options.scale or 16,
             (options.count or 1) * (4 + a.n) } }
end

local function same(dtype) return dtype end
local function accumulated(dtype) return is_float(dtype) and dtype or "int64" end
ops.sum = function(s) return reduced(s, "sum", total, DTYPES, accumulated, { scale = 4 }) end
ops.prod = function(s) return reduced(s, "prod", fold(function(a, b) return a * b end, 1), DTYPES, accumulated, { low = -1, high = 1 }) end
ops.max = function(s) return reduced(s, "max", fold(maximum, -1 / 0), DTYPES, same, { chooses = true }) end
ops.min = function(s) return reduced(s, "min", fold(minimum, 1 / 0), DTYPES, same, { chooses = true }) end
local function boolean() return "bool" end
local function either(a, b) return (a ~= 0 or b ~= 0) and 1 or 0 end
local function both(a, b) return (a ~= 0 and b ~= 0) and 1 or 0 end
ops.any = function(s) return reduced(s, "any", fold(either, 0), DTYPES, boolean) end
ops.all = function(s) return reduced(s, "all", fold(both, 1), DTYPES, boolean) end
ops.mean = function(s) return reduced(s, "mean", average, DTYPES, float_of, { scale = 4 }) end
ops.std = function(s) return reduced(s, "std", function(list) return math.sqrt(variance(list)) end, DTYPES, float_of, { count = 400 }) end
ops.var = function(s) return reduced(s, "var", variance, DTYPES, float_of, { count = 4 }) end

local function position_of(better) return function(list)
  local best = 1
  for i = 2, #list do
    local a, b = list[i], list[best]
    if better(a, b) or (a ~= a and b == b) then best = i end
  end
  return best
end end
for name, better in pairs { argmax = function(a, b) return a > b end, argmin = function(a, b) return a < b end } do
  ops[name] = function(s)
    local a, x = input(s, s.shape(), DTYPES)
    local rank, set, axis = #a.shape, {}, nil
    if rank > 0 and s.maybe(0.7) then
      axis = s.draw(1, rank)
      set[axis] = true
    else
      for i = 1, rank do set[i] = true end
    end
    local empty, nothing = false, false
    for i, dim in ipairs(a.shape) do
      if dim == 0 then
        if set[i] then nothing = true else empty = true end
      end
    end
    if nothing and not empty then return { fails = function() return flow[name](x, axis) end, message = "nothing to choose from" } end
    local checks = { { flow[name](x, axis), arrays.reduce(position_of(better), a, set), "int64", 0, 0 } }
    if name == "argmax" and rank > 0 and axis == rank then
      checks[2] = { x:classes(), arrays.map(function(position) return position - 1 end, checks[1][2]), "int64", 0, 0 }
    end
    return checks
  end
end

--- exponentials of x - max along an axis, and their sum
local function softmax(a, axis)
  local set = { [axis] = true }
  local largest = arrays.reduce(fold(maximum, -1 / 0), a, set, true)
  local e = arrays.zip(function(x, m) return math.exp(x - m) end, a, largest)
  local sums = arrays.reduce(total, e, set, true)
  return arrays.zip(function(x, sum) return x / sum end, e, sums),
    arrays.zip(function(x, m, sum) return x - m - math.log(sum) end, a, largest, sums)
end
for i, name in ipairs { "softmax", "log_softmax" } do
  ops[name] = function(s)
    local dtype = s.pick(FLOATS)
    local a = values(s, s.shape(1), dtype, 0, 4)
    local axis = s.draw(1, #a.shape)
    local found = flow[name](to_tensor(s, a, dtype), s.maybe(0.5) and axis or axis - #a.shape - 1)
    return { { found, (select(i, softmax(a, axis))), dtype, 1, 16 } }
  end
end

ops.reshape = function(s)
  local a, x, dtype = input(s, s.shape(), DTYPES)
  local left, shape = a.n, {}
  for _ = 1, s.draw(0, 3) do
    local divisors = {}
    for d = 1, math.max(left, 1) do
      if left % d == 0 then divisors[#divisors + 1] = d end
    end
    shape[#shape + 1] = s.pick(divisors)
    left = left / shape[#shape]
  end
  shape[#shape + 1] = left
  local asked = { unpack(shape) }
  if s.maybe(0.4) and a.n > 0 then asked[s.draw(1, #asked)] = -1 end
  return { { x:reshape(asked), arrays.reshape(a, shape), dtype, 0, 0 }, { x:flatten(), arrays.reshape(a, { a.n }), dtype, 0, 0 } }
end

ops.broadcast_to = function(s)
  local shape = s.shape()
  local a, x, dtype = input(s, s.partner(shape), DTYPES)
  return { { x:broadcast_to(shape), arrays.broadcast_to(a, shape), dtype, 0, 0 } }
end

ops.expand_dims = function(s)
  local a, x, dtype = input(s, s.shape(0, 3), DTYPES)
  local axis, shape = s.draw(1, #a.shape + 1), { unpack(a.shape) }
  table.insert(shape, axis, 1)
  local found = x:expand_dims(axis)
  local back = found:squeeze(axis)
  return { { found, arrays.reshape(a, shape), dtype, 0, 0 }, { back, a, dtype, 0, 0 } }
end

ops.transpose = function(s)
  local a, x, dtype = input(s, s.shape(), DTYPES)
  local order, reversed = {}, {}
  for i = 1, #a.shape do
    table.insert(order, s.draw(1, i), i)
    table.insert(reversed, 1, i)
  end
  local turned = arrays.transpose(a, order)
  local checks = { { x:transpose(order), turned, dtype, 0, 0 }, { x:permute(order), turned, dtype, 0, 0 },
                   { x:transpose(), arrays.transpose(a, reversed), dtype, 0, 0 } }
  if #order > 0 then
    local swapped, i, j = { unpack(reversed) }, s.draw(1, #order), s.draw(1, #order)
    table.sort(swapped)
    swapped[i], swapped[j] = swapped[j], swapped[i]
    checks[4] = { x:swapaxes(i, j - #order - 1), arrays.transpose(a, swapped), dtype, 0, 0 }
  end
  return checks
end

--- A random index of one axis: what the user writes and the positions it names.
local function random_index(s, n)
  local kind = s.draw(1, 3)
  local positions = {}
  if kind == 1 and n > 0 then
    local position = s.draw(1, n)
    return s.maybe(0.5) and position or position - n - 1, { position }, true
  elseif kind == 2 then
    for i = 1, n do positions[i] = i end
    return {}, positions
  end
  local from, step = s.draw(1, n + 1), s.draw(1, 3)
  local to = s.draw(from - 1, n)
  for i = from, to, step do positions[#positions + 1] = i end
  return { from, to > 0 and s.maybe(0.3) and to - n - 1 or to, step }, positions
end

ops.index = function(s)
  local a, x, dtype = input(s, s.shape(1), DTYPES)
  local key, lists, shape = {}, {}, {}
  local count = s.draw(1, #a.shape)
  for axis, n in ipairs(a.shape) do
    local dropped
    if axis <= count then
      key[axis], lists[axis], dropped = random_index(s, n)
    else
      lists[axis] = {}
      for i = 1, n do lists[axis][i] = i end
    end
    if not dropped then shape[#shape + 1] = #lists[axis] end
  end
  local taken = arrays.reshape(arrays.pick(a, lists), shape)
  local checks = { { x[key], taken, dtype, 0, 0 } }
  if s.maybe(0.5) then      -- an assignment changes those and no others
    local own, marks = x:clone(), arrays.map(function() return 0 end, a)
    own[key] = 1
    for _, list in ipairs(lists) do for i, position in ipairs(list) do list[position < 0 and i or -position] = true end end
    arrays.build(a.shape, function(positions, i)
      local hit = 1
      for axis, list in ipairs(lists) do hit = list[-positions[axis]] and hit or 0 end
      marks[i] = hit
      return 0
    end)
    checks[2] = { own, arrays.zip(function(v, hit) return hit == 1 and 1 or v end, a, marks), dtype, 0, 0 }
  end
  return checks
end

ops.concat = function(s)
  local shape, list, tensors, dtype = s.shape(1), {}, {}, nil
  local axis = s.draw(1, #shape)
  for i = 1, s.draw(1, 4) do
    local own, found = { unpack(shape) }
    own[axis] = s.maybe(0.2) and 0 or s.draw(1, 4)
    list[i], tensors[i], found = input(s, own, DTYPES)
    dtype = dtype and promoted.concatenate[dtype][place[found]] or found
  end
  return { { flow.concat(tensors, s.maybe(0.5) and axis or axis - #shape - 1), arrays.concat(list, axis), dtype, 0, 0 } }
end

ops.stack = function(s)
  local shape, list, tensors, dtype = s.shape(0, 3), {}, {}, nil
  local axis, longer = s.draw(1, #shape + 1), { unpack(shape) }
  table.insert(longer, axis, 1)
  for i = 1, s.draw(1, 4) do
    local found
    list[i], tensors[i], found = input(s, shape, DTYPES)
    list[i] = arrays.reshape(list[i], longer)
    dtype = dtype and promoted.stack[dtype][place[found]] or found
  end
  return { { flow.stack(tensors, axis), arrays.concat(list, axis), dtype, 0, 0 } }
end

local function all_positions(shape)
  local lists = {}
  for axis, n in ipairs(shape) do
    lists[axis] = {}
    for i = 1, n do lists[axis][i] = i end
  end
  return lists
end

ops.split = function(s)
  local a, x, dtype = input(s, s.shape(1), DTYPES)
  local axis = s.draw(1, #a.shape)
  local n, cuts, before, checks = a.shape[axis], {}, 0, {}
  for i = 1, s.draw(0, 3) do
    cuts[i] = s.draw(before, n)
    before = cuts[i]
  end
  local parts = flow.split(x, cuts, axis)
  for i = 1, #cuts + 1 do
    local lists = all_positions(a.shape)
    lists[axis] = {}
    for position = (cuts[i - 1] or 0) + 1, cuts[i] or n do table.insert(lists[axis], position) end
    checks[i] = { parts[i], arrays.pick(a, lists), dtype, 0, 0 }
  end
  local slices, shape = flow.unstack(x, axis), { unpack(a.shape) }
  table.remove(shape, axis)
  assert.equals(n, #slices)
  for i = 1, n do
    local lists = all_positions(a.shape)
    lists[axis] = { i }
    checks[#checks + 1] = { slices[i], arrays.reshape(arrays.pick(a, lists), shape), dtype, 0, 0 }
  end
  return checks
end

ops.take = function(s)
  local a, x, dtype = input(s, s.shape(1, 3), DTYPES)
  local axis = s.draw(1, #a.shape)
  local n = a.shape[axis]
  local shape = s.shape(0, 2)
  if n == 0 then shape = { 0 } end
  local places = arrays.build(shape, function() return s.draw(1, n) end)
  local asked = arrays.map(function(p) return s.maybe(0.3) and p - n - 1 or p end, places)
  return { { flow.take(x, to_tensor(s, asked, s.pick { "int32", "int64", "int8" }), axis), arrays.take(a, places, axis), dtype, 0, 0 } }
end

ops.flip = function(s)
  local a, x, dtype = input(s, s.shape(), DTYPES)
  local axis, lists = #a.shape > 0 and s.maybe(0.7) and s.draw(1, #a.shape) or nil, all_positions(a.shape)
  for i, list in ipairs(lists) do
    if axis == nil or i == axis then
      for k = 1, #list do list[k] = #list + 1 - k end
    end
  end
  return { { flow.flip(x, axis), arrays.pick(a, lists), dtype, 0, 0 } }
end

ops.tile = function(s)
  local a, x, dtype = input(s, s.shape(1, 3), DTYPES)
  local repeats, lists = {}, all_positions(a.shape)
  for axis, list in ipairs(lists) do
    repeats[axis] = s.maybe(0.1) and 0 or s.draw(1, 3)
    lists[axis] = {}
    for _ = 1, repeats[axis] do for _, position in ipairs(list) do table.insert(lists[axis], position) end end
  end
  local axis, count, again = s.draw(1, #a.shape), s.draw(0, 3), all_positions(a.shape)
  again[axis] = {}
  for position = 1, a.shape[axis] do for _ = 1, count do table.insert(again[axis], position) end end
  return { { flow.tile(x, repeats), arrays.pick(a, lists), dtype, 0, 0 },
           { flow.repeat_(x, count, axis), arrays.pick(a, again), dtype, 0, 0 } }
end

ops.pad = function(s)
  local a, x, dtype = input(s, s.shape(1, 3), DTYPES)
  local mode = s.pick { "constant", "reflect", "symmetric" }
  local skip = mode == "reflect" and 1 or 0
  local widths = {}
  for axis, n in ipairs(a.shape) do
    local most = mode == "constant" and 3 or math.max(n - skip, 0)
    widths[axis] = { s.draw(0, most), s.draw(0, most) }
  end
  local value = s.draw(0, 1)
  local padded = arrays.pad(a, widths, value, mode ~= "constant" and skip or nil)
  return { { flow.pad(x, widths, { mode = mode, constant_values = value }), padded, dtype, 0, 0 } }
end

ops.matmul = function(s)
  local rank, outer = s.draw(0, 2), {}
  for i = 1, rank do outer[i] = s.maybe(0.1) and 0 or s.draw(1, 3) end
  local inner = s.maybe(0.1) and 0 or s.draw(1, 9)
  local first, second = s.partner(outer), s.partner(outer)
  for _, dim in ipairs { s.maybe(0.1) and 0 or s.draw(1, 20), inner } do first[#first + 1] = dim end
  for _, dim in ipairs { inner, s.maybe(0.1) and 0 or s.draw(1, 20) } do second[#second + 1] = dim end
  if s.maybe(0.1) then first = { inner } end
  if s.maybe(0.1) then second = { inner } end
  local one = s.pick(NUMBERS)
  local a = values(s, first, one, 0, 4)
  local b, y, other = input(s, second, NUMBERS, 0, 4)
  local expected, scales = arrays.matmul(a, b)
  return { { flow.matmul(to_tensor(s, a, one), y), expected, promoted.matmul[one][place[other]], scales, 4 + inner } }
end

ops.one_hot = function(s)
  local labels, x = input(s, s.shape(0, 3), INTEGERS, -1, 5)
  local count, shape = s.draw(0, 5), { unpack(labels.shape) }
  shape[#shape + 1] = count
  local expected = arrays.build(shape, function(positions, i)
    return labels[math.ceil(i / count)] == positions[#shape] - 1 and 1 or 0
  end)
  return { { flow.one_hot(x, count), expected, "float32", 0, 0 } }
end

ops.top_k = function(s)
  local shape = s.shape(1)
  if shape[#shape] == 0 then shape[#shape] = 3 end
  local a, x, dtype = input(s, shape, DTYPES)
  local k = s.draw(1, shape[#shape])
  local positions = arrays.reduce(function(list)
    local order = {}
    for i = 1, #list do order[i] = i end
    table.sort(order, function(i, j)
      local u, v = list[i], list[j]
      if u ~= u or v ~= v then
        if (u ~= u) ~= (v ~= v) then return u ~= u end
        return i < j
      end
      if u ~= v then return u > v end
      return i < j
    end)
    return { order = order, list = list }
  end, a, { [#shape] = true })
  local out = { unpack(shape) }
  out[#out] = k
  local function each(f) return arrays.build(out, function(place_, i) return f(positions[math.ceil(i / k)], place_[#out]) end) end
  local found, found_positions = flow.top_k(x, k)
  return { { found, each(function(entry, rank) return entry.list[entry.order[rank]] end), dtype, 0, 0 },
           { found_positions, each(function(entry, rank) return entry.order[rank] end), "int64", 0, 0 } }
end

ops.full_like = function(s)
  local a, x, dtype = input(s, s.shape(), DTYPES)
  local function filled(value) return arrays.map(function() return value end, a) end
  return { { flow.zeros_like(x), filled(0), dtype, 0, 0 }, { flow.ones_like(x), filled(1), dtype, 0, 0 },
           { flow.full_like(x, 1), filled(1), dtype, 0, 0 }, { flow.full(a.shape, 3), filled(3), "float32", 0, 0 } }
end

---- the comparison --------------------------------------------------------------------------------------------------------------------

local function compare(what, check)
  local found, expected, dtype, scale, roundings = unpack(check)
  assert.equals(dtype, found.dtype, what .. ": dtype")
  assert.same(expected.shape, found.shape, what .. ": shape")
  local list = array_of(found)
  for i = 1, expected.n do
    local wanted, got = as(dtype, expected[i]), list[i]
    local near = wanted == got or (wanted ~= wanted and got ~= got)
    if not near and is_float(dtype) then
      -- 16-bit results come from float32 and are rounded once; formulas of several ops round after each of them.
      local size = math.max(math.abs(wanted), type(scale) == "table" and scale[i] or scale)
      near = math.abs(wanted - got) <= size * EPSILON[dtype] * roundings
    end
    if not near then
      error(("%s: element %d of %s %s is %.17g, expected %.17g"):format(what, i, dtype, table.concat(found.shape, "x"), got, wanted), 0)
    end
  end
end

local names = {}
for name in pairs(ops) do names[#names + 1] = name end
table.sort(names)

describe("random calls of tensor ops", function()
  it("are made of every op that users call", function()
    local known, missing = {}, {}
    for _, name in ipairs(names) do known[rawget(public, name) or 0] = true end
    -- Called beside another op in the function of that one, or no op on elements.
    for _, name in ipairs { "squeeze", "unstack", "repeat_", "zeros_like", "ones_like", "swapaxes", "permute", "flatten",
                            "to", "classes", "operand", "full_raw", "reshape_raw", "slice_from_zero", "exponential" } do
      known[assert(rawget(public, name), name)] = true
    end
    for name, f in pairs(public) do
      if type(f) == "function" and not known[f] then missing[#missing + 1] = name end
    end
    assert.same({}, missing)
  end)

  for index, name in ipairs(names) do
    it(name, function()
      local failures = {}
      for case = index, CASES, #names do
        if not ONLY or ONLY == case then
          local ok, message = pcall(function()
            local checks = ops[name](source(case))
            if checks.fails then
              local succeeded, text = pcall(checks.fails)
              assert.is_false(succeeded, "there should be an error")
              assert.is_truthy(tostring(text):find(checks.message, 1, true), text)
            end
            for i, check in ipairs(checks) do compare(("case %d, result %d"):format(case, i), check) end
          end)
          if not ok then failures[#failures + 1] = ("FLOW_CASE=%d: %s"):format(case, tostring(message)) end
        end
      end
      if #failures > 0 then error(("%d failures, the first: %s"):format(#failures, failures[1]), 0) end
    end)
  end
end)
