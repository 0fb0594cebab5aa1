--- Reductions, what chooses from an axis, and softmax: the rules of lists of doubles.
local flow = require "flow"
local arrays = require "spec.support.arrays"
local arguments = require "spec.backend.random_ops.arguments"

local DTYPES, FLOATS = arguments.DTYPES, arguments.FLOATS
local is_float, float_of = arguments.is_float, arguments.float_of
local values, input, to_tensor = arguments.values, arguments.input, arguments.to_tensor
local maximum, minimum = arrays.maximum, arrays.minimum

local ops = {}

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
    return { fails = function() return flow[name](x, axes, keepdims) end, message = "no elements along" }
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
local function floating(dtype) return is_float(dtype) and dtype or "float32" end
local function log_of_sum(list)
  local sum = 0
  for i = 1, #list do sum = sum + math.exp(list[i]) end
  return math.log(sum)
end
ops.logsumexp = function(s) return reduced(s, "logsumexp", log_of_sum, DTYPES, floating, { low = -9, high = 9 }) end
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
    if nothing and not empty then return { fails = function() return flow[name](x, axis) end, message = "no elements along" } end
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

return ops
