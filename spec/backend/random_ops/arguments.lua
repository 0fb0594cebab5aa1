--- Random arguments of tensor ops, the same ones for the same seed: dtypes and what they hold, arrays of doubles and their tensors.
local flow = require "flow"
local arrays = require "spec.support.arrays"
local promotions = require "spec.golden.promotions"

local arguments = {}

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
function arguments.float_of(dtype) return is_float(dtype) and dtype or "float32" end

local place = {}
for i, dtype in ipairs(DTYPES) do place[dtype] = i end
local promotion_of = {}      -- by op, first dtype, second dtype: Keras' table
for _, group in ipairs(promotions) do
  for op in group.ops:gmatch "%S+" do
    promotion_of[op] = {}
    for first, row in pairs(group) do
      promotion_of[op][first] = {}
      for dtype in row:gmatch "%S+" do table.insert(promotion_of[op][first], dtype == "int16" and "int32" or dtype) end
    end
  end
end

--- The dtype of the result of an op, by Keras' name, of those two; the first may be "a whole number" or "a fraction".
function arguments.promoted(op, first, second) return promotion_of[op][first][place[second]] end

--- A double as an element of that dtype would hold it: integers wrap, what is too large for a float is infinite.
function arguments.as(dtype, x)
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
function arguments.source(seed)
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

--- The tensor of an array; now and then a view with its own strides.
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

function arguments.array_of(t)
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

-- What the small integers hold at most.
local LEAST, MOST = { int8 = -128, uint8 = 0 }, { int8 = 127, uint8 = 255 }

--- Elements that the dtype holds exactly. low, high: of floats and of integers as far as the dtype goes.
local function values(s, shape, dtype, low, high, finite)
  low, high = math.max(low or -4, LEAST[dtype] or -math.huge), math.min(high or 4, MOST[dtype] or math.huge)
  local special = is_float(dtype) and low < 0 and not finite and s.maybe(0.05)
  return arrays.build(shape, function()
    if dtype == "bool" then return s.draw(0, 1) end
    if special and s.maybe(0.2) then return s.pick { 0 / 0, 1 / 0, -1 / 0 } end
    if is_float(dtype) then return s.draw(math.ceil(low * 4), math.floor(high * 4)) / 4 end
    return s.draw(math.ceil(low), math.floor(high))
  end)
end

--- A random index of one axis: what the user writes and the positions it names.
function arguments.index(s, n)
  local kind = s.draw(1, 3)
  local positions = {}
  if kind == 1 and n > 0 then
    local position = s.draw(1, n)
    return s.maybe(0.5) and position or position - n - 1, { position }, true
  elseif kind == 2 then
    for i = 1, n do positions[i] = i end
    return {}, positions
  end
  if n > 0 and s.maybe(0.3) then
    local from, to, step = s.draw(1, n), s.draw(1, n), s.draw(-3, -1)
    for i = from, to, step do positions[#positions + 1] = i end
    return { s.maybe(0.3) and from - n - 1 or from, s.maybe(0.3) and to - n - 1 or to, step }, positions
  end
  local from, step = s.draw(1, n + 1), s.draw(1, 3)
  local to = s.draw(from - 1, n)
  for i = from, to, step do positions[#positions + 1] = i end
  return { from, to > 0 and s.maybe(0.3) and to - n - 1 or to, step }, positions
end

--- A random array and its tensor; finite: without infinities and NaN.
function arguments.input(s, shape, dtypes, low, high, finite)
  local dtype = s.pick(dtypes)
  local array = values(s, shape, dtype, low, high, finite)
  return array, to_tensor(s, array, dtype), dtype
end

-- A shape of one to four dimensions for n elements.
function arguments.shape_of(s, n)
  local shape = {}
  for _ = 1, s.draw(0, 3) do
    local divisors = {}
    for d = 1, math.max(n, 1) do
      if n % d == 0 then divisors[#divisors + 1] = d end
    end
    shape[#shape + 1] = s.pick(divisors)
    n = n / shape[#shape]
  end
  shape[#shape + 1] = n
  return shape
end

arguments.DTYPES, arguments.FLOATS, arguments.INTEGERS, arguments.NUMBERS = DTYPES, FLOATS, INTEGERS, NUMBERS
arguments.EPSILON, arguments.LOW, arguments.HIGH = EPSILON, LOW, HIGH
arguments.is_float, arguments.to_tensor, arguments.values = is_float, to_tensor, values

return arguments
