--- Random chains of tensor ops over views: slices with steps, transposes, broadcasts, with sizes of 0, in all dtypes. Each step is known
--- twice: as a call of the library, and as an array of doubles that plain loops compute (spec/support/arrays.lua), with a bound of the
--- error that rounding to its dtype may have made. One seed, one chain.
local flow = require "flow"
local arrays = require "spec.support.arrays"
local arguments = require "spec.backend.random_ops.arguments"

local is_float, float_of, as, promoted = arguments.is_float, arguments.float_of, arguments.as, arguments.promoted
local random_chains = {}

local MOST_ELEMENTS, LARGEST = 1500, 2 ^ 15
local BITS = { float32 = 24, float16 = 11, bfloat16 = 8, float64 = 53 }

---- values --------------------------------------------------------------------------------------------------------------------------

--- Whether a float of that dtype holds x as it is.
local function holds(dtype, x)
  if x == 0 then return true end
  local fraction = math.frexp(x) * 2 ^ BITS[dtype]
  if fraction ~= math.floor(fraction) then return false end
  return dtype ~= "float16" or x * 2 ^ 24 == math.floor(x * 2 ^ 24)
end

local function largest_of(array)
  local most = 0
  for i = 1, array.n do most = math.max(most, math.abs(array[i])) end
  return most
end

--- A value of the chain: the array, whose elements are off by at most `off`, as a tensor of that dtype has them. nil: the step is not
--- taken, since its elements are too many or too large. computed: the size of the terms that were added up, 0 for elements that moved.
local function value(array, dtype, off, computed)
  if array.n > MOST_ELEMENTS or #array.shape > 5 then return nil end
  local exact = true
  for i = 1, array.n do
    if is_float(dtype) then exact = exact and holds(dtype, array[i]) else array[i] = as(dtype, array[i]) end
  end
  local most = largest_of(array)
  if most > LARGEST or (computed or 0) > LARGEST then return nil end
  if is_float(dtype) and not exact then off = off + (math.max(most, computed or 0) * arguments.EPSILON[dtype]) + 2 ^ -24 end
  return { array = array, dtype = dtype, off = off }
end

---- steps -----------------------------------------------------------------------------------------------------------------------------

--- Each: f(s, v, another) gives the new value, or nil where it does not fit, the call, which is a function of the tensors of v and of the
--- other operand, and that operand, if there is one. another(shape, exactly): a value that broadcasts with that shape, or has it.
local steps = {}

function steps.slice(s, v)
  local shape = v.array.shape
  if #shape == 0 then return end
  local key, lists, kept = {}, {}, {}
  for axis, n in ipairs(shape) do
    local dropped
    key[axis], lists[axis], dropped = arguments.index(s, n)
    if not dropped then kept[#kept + 1] = #lists[axis] end
  end
  return value(arrays.reshape(arrays.pick(v.array, lists), kept), v.dtype, v.off), function(x) return x[key] end
end

function steps.transpose(s, v)
  local order = {}
  for i = 1, #v.array.shape do table.insert(order, s.draw(1, i), i) end
  return value(arrays.transpose(v.array, order), v.dtype, v.off), function(x) return x:transpose(order) end
end

function steps.broadcast(s, v)
  local shape = {}
  for axis, n in ipairs(v.array.shape) do shape[axis] = n == 1 and s.draw(0, 4) or n end
  if s.maybe(0.5) then table.insert(shape, 1, s.draw(0, 3)) end
  return value(arrays.broadcast_to(v.array, shape), v.dtype, v.off), function(x) return x:broadcast_to(shape) end
end

function steps.reshape(s, v)
  local shape = arguments.shape_of(s, v.array.n)
  return value(arrays.reshape(v.array, shape), v.dtype, v.off), function(x) return x:reshape(shape) end
end

function steps.expand(s, v)
  local axis, shape = s.draw(1, #v.array.shape + 1), { unpack(v.array.shape) }
  table.insert(shape, axis, 1)
  return value(arrays.reshape(v.array, shape), v.dtype, v.off), function(x) return x:expand_dims(axis) end
end

function steps.flip(s, v)
  if #v.array.shape == 0 then return end
  local axis, lists = s.draw(1, #v.array.shape), {}
  for i, n in ipairs(v.array.shape) do
    lists[i] = {}
    for k = 1, n do lists[i][k] = i == axis and n + 1 - k or k end
  end
  return value(arrays.pick(v.array, lists), v.dtype, v.off), function(x) return flow.flip(x, axis) end
end

function steps.concat(s, v, another)
  if #v.array.shape == 0 then return end
  local axis, other = s.draw(1, #v.array.shape), another(v.array.shape, true)
  return value(arrays.concat({ v.array, other.array }, axis), promoted("concatenate", v.dtype, other.dtype), math.max(v.off, other.off)),
    function(x, y) return flow.concat({ x, y }, axis) end, other
end

--- Of one operand, with a result of its dtype.
for name, f in pairs { neg = function(x) return -x end, abs = math.abs, relu = function(x) return math.max(x, 0) end,
                       copy = function(x) return x end } do
  steps[name] = function(_, v)
    if v.dtype == "bool" and name ~= "copy" then return end
    return value(arrays.map(f, v.array), v.dtype, v.off, largest_of(v.array)), function(x) return flow[name](x) end
  end
end

function steps.square(_, v)
  local most = largest_of(v.array)
  if v.dtype == "bool" then return end
  return value(arrays.map(function(x) return x * x end, v.array), v.dtype, v.off * (2 * most + v.off), most * most),
    function(x) return flow.square(x) end
end

function steps.cast(s, v)
  local dtype = s.pick(arguments.DTYPES)
  if not is_float(dtype) and v.off > 0 then return end      -- where it is cut is not known
  local from_float = is_float(v.dtype)
  local function convert(x)
    if dtype == "bool" then return x ~= 0 and 1 or 0 end
    if is_float(dtype) or not from_float then return x end
    x = x < 0 and math.ceil(x) or math.floor(x)
    return math.min(math.max(x, arguments.LOW[dtype]), arguments.HIGH[dtype])
  end
  return value(arrays.map(convert, v.array), dtype, v.off), function(x) return x:to(dtype) end
end

--- Of two operands: Keras' name for the dtype of the result, f, and the error from the sizes and errors of both.
for name, entry in pairs {
  add = { "add", function(a, b) return a + b end, function(_, _, e, d) return e + d end },
  sub = { "subtract", function(a, b) return a - b end, function(_, _, e, d) return e + d end },
  mul = { "multiply", function(a, b) return a * b end, function(a, b, e, d) return a * d + b * e + e * d end, true },
  maximum = { "maximum", function(a, b) return math.max(a, b) end, function(_, _, e, d) return math.max(e, d) end },
  minimum = { "minimum", function(a, b) return math.min(a, b) end, function(_, _, e, d) return math.min(e, d) end },
} do
  local keras, f, error_of, product = unpack(entry)
  steps[name] = function(s, v, another)
    local other = another(v.array.shape)
    if (v.dtype == "bool" or other.dtype == "bool") and name ~= "mul" then return end
    local a, b = largest_of(v.array), largest_of(other.array)
    local call, first, second = function(x, y) return flow[name](x, y) end, v, other
    if s.maybe(0.3) then call, first, second = function(x, y) return flow[name](y, x) end, other, v end
    local size = product and a * b or a + b
    if size > LARGEST then return end
    local dtype = promoted(keras, first.dtype, second.dtype)
    -- Operands are brought to the dtype of the result first.
    local rounding = is_float(dtype) and arguments.EPSILON[dtype] or 0
    local e = v.off + (v.dtype ~= dtype and a * rounding or 0)
    local d = other.off + (other.dtype ~= dtype and b * rounding or 0)
    return value(arrays.zip(f, first.array, second.array), dtype, error_of(a, b, e, d), size), call, other
  end
end

for name, f in pairs { eq = function(a, b) return a == b end, lt = function(a, b) return a < b end,
                       ge = function(a, b) return a >= b end } do
  steps[name] = function(_, v, another)
    local other = another(v.array.shape)
    if v.off > 0 or other.off > 0 or not holds("bfloat16", largest_of(v.array)) or largest_of(other.array) > 100 then return end
    return value(arrays.zip(function(a, b) return f(a, b) and 1 or 0 end, v.array, other.array), "bool", 0),
      function(x, y) return flow[name](x, y) end, other
  end
end

function steps.where(_, v, another)
  local other = another(v.array.shape)
  if v.off > 0 then return end
  local dtype = promoted("where", other.dtype, v.dtype)
  local off = other.off + (is_float(dtype) and math.max(largest_of(v.array), largest_of(other.array)) * arguments.EPSILON[dtype] or 0)
  return value(arrays.zip(function(p, u, w) return p ~= 0 and u or w end, v.array, other.array, v.array), dtype, off),
    function(x, y) return flow.where(x, y, x) end, other
end

--- Of axes: sums, means, largest and smallest elements.
for _, name in ipairs { "sum", "mean", "max", "min" } do
  steps[name] = function(s, v)
    local shape, axes, set, count = v.array.shape, {}, {}, 1
    for axis, n in ipairs(shape) do
      if s.maybe(0.5) then
        axes[#axes + 1], set[axis], count = axis, true, count * n
      end
    end
    if #axes == 0 or count == 0 and name ~= "sum" then return end
    local keep, most = s.maybe(0.4), largest_of(v.array)
    local function fold(list)
      local result = name == "max" and -math.huge or name == "min" and math.huge or 0
      for _, x in ipairs(list) do
        result = name == "max" and math.max(result, x) or name == "min" and math.min(result, x) or result + x
      end
      return name == "mean" and result / #list or result
    end
    local adds = name == "sum" or name == "mean"
    local dtype = name == "mean" and float_of(v.dtype) or v.dtype
    if name == "sum" and not is_float(v.dtype) then dtype = "int64" end
    local off = name == "sum" and v.off * count or v.off
    local wide = dtype == "float64" and 2 ^ -52 or 2 ^ -23
    if adds and is_float(dtype) then off = off + count * most * wide * (name == "sum" and count or 1) end
    return value(arrays.reduce(fold, v.array, set, keep), dtype, off, adds and most * (name == "sum" and count or 1) or most),
      function(x) return flow[name](x, axes, keep) end
  end
end

function steps.cumsum(s, v)
  if #v.array.shape == 0 or not is_float(v.dtype) then return end
  local axis, stride = s.draw(1, #v.array.shape), 1
  local n = v.array.shape[axis]
  for i = axis + 1, #v.array.shape do stride = stride * v.array.shape[i] end
  local result = arrays.map(function(x) return x end, v.array)
  for i = 1, result.n do
    if math.floor((i - 1) / stride) % n > 0 then result[i] = result[i] + result[i - stride] end
  end
  local most = largest_of(v.array)
  return value(result, v.dtype, (v.off + most * arguments.EPSILON[v.dtype] * n) * n, most * n),
    function(x) return flow.cumsum(x, axis) end
end

local NAMES, VIEWS = {}, { "slice", "slice", "transpose", "transpose", "broadcast", "reshape", "expand", "flip" }
for name in pairs(steps) do NAMES[#NAMES + 1] = name end
table.sort(NAMES)

---- a chain -----------------------------------------------------------------------------------------------------------------------------

--- Chain number `seed`: { inputs = tensors, run(...) gives a list of the results of its steps for those tensors, expected = a value for
--- each result, title }.
function random_chains.of(seed)
  local s, chain = arguments.source(seed), { inputs = {}, expected = {} }
  local values, names, wanted = {}, {}, s.draw(2, 6)
  local program = {}      -- { call, position of its operand, position of the other one }; values: inputs, then results, in their order
  local function input(shape)
    local array, tensor, dtype = arguments.input(s, shape, arguments.DTYPES, -4, 4, true)
    local v = { array = array, dtype = dtype, off = 0, position = -#chain.inputs - 1 }
    chain.inputs[#chain.inputs + 1] = tensor
    values[#values + 1] = v
    return v
  end
  local function another(shape, exactly)
    local found = {}
    for _, v in ipairs(values) do
      local both = arrays.broadcast_shape({ shape = shape }, v.array)
      local same = #v.array.shape == #shape
      for axis, n in ipairs(shape) do same = same and v.array.shape[axis] == n end
      if both and (same or not exactly) then found[#found + 1] = v end
    end
    if #found > 0 and s.maybe(0.6) then return s.pick(found) end
    return input(exactly and shape or s.partner(shape))
  end
  local last = input(s.shape(1))
  for _ = 1, 60 do
    if #program >= wanted then break end
    local name = s.pick(s.maybe(0.45) and VIEWS or NAMES)
    local v = s.maybe(0.8) and last or s.pick(values)
    local made, call, other = steps[name](s, v, another)
    if made then
      program[#program + 1] = { call, v.position, other and other.position }
      made.position = #program
      values[#values + 1], chain.expected[#program], names[#program] = made, made, name
      last = made
    end
  end
  function chain.run(...)
    local given, results = { ... }, {}
    local function at(position)
      if position == nil then return nil end
      return position < 0 and given[-position] or results[position]
    end
    for i, step in ipairs(program) do results[i] = step[1](at(step[2]), at(step[3])) end
    return results
  end
  chain.title = ("chain %d: %s"):format(seed, table.concat(names, ", "))
  return chain
end

return random_chains
