-- statistics.lua: order, sums and counts: sorting and what follows from it, cumulated sums, reductions that leave NaN out, histograms.

local errors = require "flow.errors"
local native = require "flow.ffi"
local tensor = require "flow.tensor"
local tools = require "flow.tensor.composed.tools"
local takes = require("flow.signature").takes

local raise = errors.raise
local ops, define, operand, floats = tools.ops, tools.define, tools.operand, tools.floats

tools.alias("amax", "max")
tools.alias("amin", "min")

takes "x, axis?: number|list, keepdims: boolean = false"
define(function(x, axis, keepdims)
  x = operand(x, "ptp")
  return ops.max(x, axis, keepdims) - ops.min(x, axis, keepdims)
end, "ptp")
takes "x, axis?: number|list"
define(function(x, axis) return ops.sum(ops.ne(tools.numbers(x, "count_nonzero"), 0):to("int32"), axis):to("int32") end, "count_nonzero")

-- Weights are of x's shape, or, of rank 1, for the elements of an axis.
takes "x, axis?: number|list, weights?: data"
define(function(x, axis, weights)
  if weights == nil then return ops.mean(x, axis) end
  x, weights = tools.pair(x, weights, "average", true)
  if #tools.dims(weights) < #tools.dims(x) then
    if type(axis) ~= "number" then raise("flow.average: weights of another shape than x are for one axis") end
    local shape = {}
    for i = 1, #tools.dims(x) do shape[i] = i == tools.axis(x, axis, "average") and -1 or 1 end
    weights = ops.reshape(weights, shape)
  end
  weights = weights + ops.zeros_like(x)
  return ops.sum(x * weights, axis) / ops.sum(weights, axis)
end, "average")

---- sorting ----------------------------------------------------------------------------------------

-- x and a number from 1 for the axis; without an axis (false, or nil where that is the default) flattened.
local function along(x, axis, default, what)
  if axis == nil then axis = default end
  if not axis then return ops.flatten(x), 1 end
  if #tools.dims(x) == 0 then x = ops.expand_dims(x, 1) end
  return x, tools.axis(x, axis, what)
end

-- Positions from 1 that put x in order, the smallest first; equal ones stay in their order, NaN comes last.
takes "x, axis = -1, { descending: boolean = false }"
define(function(x, axis, options)
  x, axis = along(operand(x, "argsort"), axis, -1, "argsort")
  return tools.argsort(x, axis, options and options.descending)
end, "argsort")
takes "x, axis = -1, { descending: boolean = false }"
define(function(x, axis, options)
  x, axis = along(operand(x, "sort"), axis, -1, "sort")
  return tools.take_along(x, tools.argsort(x, axis, options and options.descending, 0), axis)
end, "sort")
-- Positions whose element number kth is the one that it is in order, with none larger before and none smaller after: all in order.
takes "x, kth, axis = -1"
define(function(x, kth, axis)
  x, axis = along(operand(x, "argpartition"), axis, -1, "argpartition")
  local n = tools.length(x, axis, "argpartition")
  local k = type(kth) == "number" and kth < 0 and kth + n + 1 or kth
  if type(k) ~= "number" or k ~= math.floor(k) or k < 1 or k > n then
    raise("flow.argpartition: kth is a position on an axis of %d elements, got %s", n, errors.describe(kth))
  end
  return tools.argsort(x, axis)
end, "argpartition")

---- quantiles --------------------------------------------------------------------------------------

-- Where a quantile falls between two elements, at `at` from 0: the two numbers, and the share of the second.
local METHODS = {
  linear = function(at) return at end, lower = math.floor, higher = math.ceil, midpoint = function(at)
    return (math.floor(at) + math.ceil(at)) / 2
  end,
  nearest = function(at) return math.floor(at) + (at % 1 > 0.5 and 1 or at % 1 < 0.5 and 0 or math.floor(at) % 2) end,
}
-- The same of tensors: where NaN is left out, the number of elements differs from row to row.
local ROW_METHODS = {
  linear = METHODS.linear, lower = ops.floor, higher = ops.ceil, nearest = ops.round,
  midpoint = function(at) return (ops.floor(at) + ops.ceil(at)) * 0.5 end,
}

-- What a user gave for q, a number, a list or a tensor, as a list of numbers from 0 to `most`, and whether it was one number.
local function numbers_of(q, most, what)
  if type(q) ~= "number" and type(q) ~= "table" then q = operand(q, what):totable() end
  local single = type(q) == "number"
  local list = single and { q } or q
  for i = 1, errors.check_list("flow." .. what .. ": q", list) do
    if type(list[i]) ~= "number" or not (list[i] >= 0 and list[i] <= most) then
      raise("flow.%s: quantiles are from 0 to %d, got %s", what, most, errors.describe(list[i]))
    end
  end
  return list, single
end

-- The quantile q, from 0 to 1, of the last axis, which is in order.
local function at_quantile(sorted, q, method, what)
  local rank = #tools.dims(sorted)
  local n = tools.length(sorted, rank, what)
  local at = METHODS[method](q * (n - 1))
  local below = math.min(math.floor(at), n - 1)
  local first = ops.squeeze(tools.part(sorted, rank, below + 1, below + 1), rank)
  if at == below then return first end
  local second = ops.squeeze(tools.part(sorted, rank, below + 2, below + 2), rank)
  return first + (second - first) * (at - below)
end

-- NaN among the elements makes the result NaN, unless they are left out (nan).
local function quantile(x, q, axis, method, keepdims, what, nan)
  x, method = floats(x, what), method or "linear"
  if not METHODS[method] then raise("flow.%s: method %s", what, errors.choices(tostring(method), METHODS)) end
  local list, single = numbers_of(q, 1, what)
  local flat, keep = tools.flattened(x, axis, keepdims, what)
  local sorted, results = ops.sort(flat, -1), {}
  local bad = ops.isnan(flat)
  local last = #tools.dims(sorted)
  if tools.length(sorted, last, what) == 0 then raise("flow.%s: there are no elements to choose from", what) end
  for i, entry in ipairs(list) do
    local result
    if nan then
      local count = ops.sum(ops.logical_not(bad):to(x.dtype), -1, true)
      local at = ROW_METHODS[method](ops.maximum((count - 1) * entry, 0))
      local below = ops.floor(at)
      local clean = ops.where(ops.isnan(sorted), 0, sorted)
      local function element(number) return tools.take_along(clean, ops.minimum(number, tools.dims(sorted)[last] - 1):to("int32"), last) end
      local first = element(below)
      result = ops.squeeze(first + (element(ops.ceil(at)) - first) * (at - below), last)
      result = ops.where(ops.squeeze(ops.gt(count, 0), last), result, 0 / 0)
    else
      result = ops.where(ops.any(bad, -1), 0 / 0, at_quantile(sorted, entry, method, what))
    end
    results[i] = keep(result)
  end
  return single and results[1] or ops.stack(results, 1)
end

for _, nan in ipairs { "", "nan" } do
  local left_out = nan == "nan"
  takes "x, axis?: number|list, keepdims: boolean = false"
  define(function(x, axis, keepdims) return quantile(x, 0.5, axis, nil, keepdims, nan .. "median", left_out) end, nan .. "median")
  takes "x, q: data, axis?: number|list, { method = 'linear', keepdims: boolean = false; }"
  define(function(x, q, axis, options)
    options = options or {}
    return quantile(x, q, axis, options.method, options.keepdims, nan .. "quantile", left_out)
  end, nan .. "quantile")
  takes "x, q: data, axis?: number|list, { method = 'linear', keepdims: boolean = false; }"
  define(function(x, q, axis, options)
    options = options or {}
    local list, single = numbers_of(q, 100, nan .. "percentile")
    local parts = {}
    for i, entry in ipairs(list) do parts[i] = entry / 100 end
    return quantile(x, single and parts[1] or parts, axis, options.method, options.keepdims, nan .. "percentile", left_out)
  end, nan .. "percentile")
end

---- reductions without NaN -------------------------------------------------------------------------

local REDUCTION = "x, axis?: number|list, keepdims: boolean = false"
local function without(x, value) return ops.where(ops.isnan(x), value, x) end

local function nan_reduction(name, f)
  takes(REDUCTION)
  define(function(x, axis, keepdims)
    x = operand(x, name)
    if not tools.is_float(x) then return ops[name:sub(4)](x, axis, keepdims) end      -- whole numbers and bools are never NaN
    return f(x, axis, keepdims)
  end, name)
end
nan_reduction("nansum", function(x, axis, keepdims) return ops.sum(without(x, 0), axis, keepdims) end)
nan_reduction("nanprod", function(x, axis, keepdims) return ops.prod(without(x, 1), axis, keepdims) end)
for name, nothing in pairs { max = -math.huge, min = math.huge } do
  nan_reduction("nan" .. name, function(x, axis, keepdims)
    local result = ops[name](without(x, nothing), axis, keepdims)
    return ops.where(ops.all(ops.isnan(x), axis, keepdims), 0 / 0, result)
  end)
  nan_reduction("nanarg" .. name, function(x, axis, keepdims) return ops["arg" .. name](without(x, nothing), axis, keepdims) end)
end
nan_reduction("nanmean", function(x, axis, keepdims)
  return ops.sum(without(x, 0), axis, keepdims) / ops.sum(ops.logical_not(ops.isnan(x)):to(x.dtype), axis, keepdims)
end)
nan_reduction("nanvar", function(x, axis, keepdims)
  local squares = ops.where(ops.isnan(x), 0, ops.square(x - ops.nanmean(x, axis, true)))      -- NaN of infinities stays
  return ops.sum(squares, axis, keepdims) / ops.sum(ops.logical_not(ops.isnan(x)):to(x.dtype), axis, keepdims)
end)
nan_reduction("nanstd", function(x, axis, keepdims) return ops.sqrt(ops.nanvar(x, axis, keepdims)) end)

---- cumulated --------------------------------------------------------------------------------------

takes "x, axis?, { dtype?; reverse: boolean = false, exclusive: boolean = false }"
define(function(x, axis, options)
  options = options or {}
  x, axis = along(tools.numbers(x, "cumsum"), axis, nil, "cumsum")
  if options.dtype then x = x:to(options.dtype) end
  return tools.apply("cumsum", { x }, function(a)
    a.along.axis, a.along.reverse, a.along.exclusive = axis - 1, options.reverse and 1 or 0, options.exclusive and 1 or 0
  end)
end, "cumsum")

-- Elements of an axis of which running_products multiplies one after the other, and up to how many it does not cut it in such runs.
local RUN, FEW = 32, 64

-- Products of the elements up to each one of an axis of n: of short ones by pairs that are 1, 2, 4, ... apart; of long ones in runs, all
-- runs at once, an element after the other, and each run times the product of the runs before it.
local function running_products(x, axis)
  local dims = tools.dims(x)
  local n, distance = dims[axis], 1
  local function joined(...) return ops.concat({ ... }, axis) end
  if n <= FEW or #dims >= native.C.FLOW_MAX_RANK then
    while distance < n do
      x = joined(tools.part(x, axis, 1, distance), tools.part(x, axis, distance + 1, n) * tools.part(x, axis, 1, n - distance))
      distance = distance * 2
    end
    return x
  end
  local runs, order, back = math.ceil(n / RUN), { axis + 1 }, {}
  if runs * RUN > n then x = joined(x, ops.ones_like(tools.part(x, axis, 1, runs * RUN - n))) end
  table.insert(dims, axis + 1, RUN)
  dims[axis] = runs
  for i = 1, #dims do order[#order + 1] = i ~= axis + 1 and i or nil end
  for i, from in ipairs(order) do back[from] = i end
  local turned, products = ops.transpose(ops.reshape_raw(x, dims), order), {}
  for i = 1, RUN do
    local own = tools.part(turned, 1, i, i)
    products[i] = i == 1 and own or products[i - 1] * own
  end
  local totals = ops.squeeze(products[RUN], 1)
  local before = running_products(joined(ops.ones_like(tools.part(totals, axis, 1, 1)), tools.part(totals, axis, 1, runs - 1)), axis)
  local result = ops.transpose(ops.concat(products, 1) * before, back)
  table.remove(dims, axis + 1)
  dims[axis] = runs * RUN
  result = ops.reshape_raw(result, dims)
  return runs * RUN > n and tools.part(result, axis, 1, n) or result
end

-- Products of the elements up to each one. reverse: from each one on; exclusive: of the others only.
takes "x, axis?, { dtype?; reverse: boolean = false, exclusive: boolean = false }"
define(function(x, axis, options)
  options = options or {}
  x, axis = along(tools.numbers(x, "cumprod"), axis, nil, "cumprod")
  if options.dtype then x = x:to(options.dtype) end
  if options.reverse then
    return ops.flip(ops.cumprod(ops.flip(x, axis), axis, { exclusive = options.exclusive }), axis)
  end
  local n = tools.length(x, axis, "cumprod")
  if options.exclusive and n > 0 then
    x = ops.concat({ ops.ones_like(tools.part(x, axis, 1, 1)), tools.part(x, axis, 1, n - 1) }, axis)
  end
  return running_products(x, axis)
end, "cumprod")
-- Whole numbers are never NaN.
local function cleaned(x, value, what)
  x = operand(x, what)
  return tools.is_float(x) and without(x, value) or x
end
takes "x, axis?, { dtype?; }"
define(function(x, axis, options) return ops.cumsum(cleaned(x, 0, "nancumsum"), axis, options or {}) end, "nancumsum")
takes "x, axis?, { dtype?; }"
define(function(x, axis, options) return ops.cumprod(cleaned(x, 1, "nancumprod"), axis, options or {}) end, "nancumprod")

---- places in order --------------------------------------------------------------------------------

-- How many elements of a sorted sequence are below each value (or, or_equal, not above it): from none on the count grows by 2^k, ..., 2, 1
-- wherever the element that would be the last of them is below, too. NaN is above all numbers, as sort has it.
local function count_below(sequence, values, or_equal)
  local n = tools.length(sequence, 1, "searchsorted")
  local is_nan = tools.is_float(values) and ops.isnan(values)
  local count, most, step = ops.zeros_like(values, { dtype = "int32" }), 0, 1
  while 2 * step <= n do step = 2 * step end
  while step >= 1 and n > 0 do
    local next_count = count + step
    most = most + step
    local within = most > n and ops.le(next_count, n)
    local last = tools.gather(sequence, (within and ops.minimum(next_count, n) or next_count) - 1)
    local below = ops[or_equal and "le" or "lt"](last, values)
    if is_nan then below = ops.logical_or(below, or_equal and is_nan or ops.logical_and(is_nan, ops.eq(last, last))) end
    count = ops.where(within and ops.logical_and(below, within) or below, next_count, count)
    step = step / 2
  end
  return count
end

-- Positions from 1 before which the values would be in a sorted sequence: n + 1 is after its end.
takes "sorted_sequence, values, side: 'left'|'right' = 'left'"
define(function(sequence, values, side)
  sequence = operand(sequence, "searchsorted")
  if #tools.dims(sequence) ~= 1 then raise("flow.searchsorted: a sorted sequence has one axis, got %d", #tools.dims(sequence)) end
  return count_below(sequence, operand(values, "searchsorted", sequence.dtype), side == "right") + 1
end, "searchsorted")

-- Numbers of bins, labels from 0: how many edges of `bins`, in order, are not above each value.
define(function(x, bins)
  x = operand(x, "digitize")
  bins = operand(bins, "digitize", x.dtype)
  return count_below(bins, x, true)
end, "digitize")

-- How often each number from 0 occurs along the last axis, or the sum of its weights; at least minlength counts.
takes "x, weights?: data, minlength: whole = 0"
define(function(x, weights, minlength)
  x = operand(x, "bincount", "int32")
  if tools.is_float(x) or x.dtype == "bool" then x = x:to("int32") end
  local rank, size = #tools.dims(x), minlength or 0
  if not tensor.is_symbolic(x) then
    if x.size > 0 then
      if ops.min(x):item() < 0 then raise("flow.bincount: a number is negative: %g", ops.min(x):item()) end
      size = math.max(size, tonumber(ops.max(x):item()) + 1)
    end
  elseif size == 0 then raise("flow.bincount: minlength is needed in a trace, where the numbers have no values yet") end
  local counted = weights ~= nil and tools.pair(weights, x, "bincount") or tools.filled(x, tools.dims(x), 1, "int32")
  if rank == 1 then return ops.segment_sum(counted, x, size) end
  local hits = ops.eq(x:expand_dims(-1), tensor.arange(size)):to(counted.dtype)
  return ops.sum(hits * counted:expand_dims(-1), -2):to(counted.dtype)
end, "bincount")

-- How many elements fall in each of `bins` parts of equal width of a range, or between given edges, and the edges. The last part has both
-- of its ends.
takes "x, bins: data = 10, range?: data"
define(function(x, bins, range)
  x, bins = floats(ops.flatten(operand(x, "histogram")), "histogram"), bins or 10
  local edges
  if type(bins) == "number" then
    tools.whole(bins, 1, "histogram", "the number of bins")
    local low, high
    if range ~= nil then
      if native.is_tensor(range) then range = range:totable() end
      if type(range) ~= "table" or type(range[1]) ~= "number" or type(range[2]) ~= "number" or #range ~= 2 then
        raise("flow.histogram: range is a list of two numbers, got %s", errors.describe(range))
      end
      low, high = range[1], range[2]
    elseif x.size == 0 then low, high = 0, 1
    else low, high = ops.min(x):item(), ops.max(x):item() end
    if low == high then low, high = low - 0.5, high + 0.5 end
    if not (low < high) then
      raise("flow.histogram: the range is from %s to %s, expected two numbers in order", tostring(low), tostring(high))
    end
    edges = tensor.linspace(low, high, bins + 1, { dtype = x.dtype })
  else
    edges = operand(bins, "histogram", x.dtype):to(x.dtype)
  end
  local count = tools.length(edges, 1, "histogram") - 1
  local last = tools.part(edges, 1, count + 1, count + 1)
  local bin = count_below(edges, x, true) - 1
  bin = ops.where(ops.eq(x, last), count - 1, bin)
  return { ops.segment_sum(ops.ones_like(x), ops.where(ops.isnan(x), -1, bin), count), edges }
end, "histogram")

-- Whether elements of a are among those of b.
takes "a, b, { assume_unique: boolean = false, invert: boolean = false; }"
define(function(a, b, options)
  a, b = operand(a, "isin"), ops.flatten(operand(b, "isin"))
  local found = ops.any(ops.eq(ops.expand_dims(a, -1), b), -1)
  return options and options.invert and ops.logical_not(found) or found
end, "isin")

-- The different elements in order, of eager tensors; with options a list: they, the first positions of each, the positions in them of all
-- elements, how often each occurs.
takes "x, { sorted: boolean = true, return_index: boolean = false, return_inverse: boolean = false, return_counts: boolean = false; }"
define(function(x, options)
  x, options = operand(x, "unique"), options or {}
  local dims = tools.dims(x)
  x = ops.flatten(x)
  tensor.need_value(x, "unique()")
  local n = x.size
  local order = tools.argsort(x, 1)
  local sorted = tools.gather(x, order - 1)
  local function neighbours() return tools.part(sorted, 1, 2, n), tools.part(sorted, 1, 1, n - 1) end
  local first = tools.filled(x, { math.min(n, 1) }, true, "bool")
  if n > 0 then first = ops.concat({ first, ops.ne(neighbours()) }, 1) end
  local results = { ops.boolean_mask(sorted, first) }
  local number = ops.cumsum(first:to("int32"), 1)
  if options.return_index then results[#results + 1] = ops.boolean_mask(order, first) end
  if options.return_inverse then
    results[#results + 1] = ops.scatter(order:expand_dims(-1), number, { n }):reshape(dims)
  end
  if options.return_counts then
    results[#results + 1] = ops.segment_sum(ops.ones_like(number), number - 1, results[1].size)
  end
  return #results > 1 and results or results[1]
end, "unique")

-- Whether the label of each row, from 0, is among the k largest of its predictions; ties count.
define(function(targets, predictions, k)
  targets, predictions = operand(targets, "in_top_k", "int32"), floats(predictions, "in_top_k")
  if tools.is_float(targets) then targets = targets:to("int32") end
  local classes = tools.length(predictions, #tools.dims(predictions), "in_top_k")
  local inside = ops.logical_and(ops.ge(targets, 0), ops.lt(targets, classes))
  local own = tools.take_along(predictions, ops.where(inside, targets, 0):to(targets.dtype):expand_dims(-1), #tools.dims(predictions))
  local above = ops.sum(ops.gt(predictions, own):to("int32"), -1)
  local finite = ops.logical_and(inside, ops.isfinite(ops.squeeze(own, -1)))
  return ops.logical_and(ops.lt(above, k), finite)
end, "in_top_k")

---- signals ----------------------------------------------------------------------------------------

takes "y, x?: data, dx = 1, axis = -1"
define(function(y, x, dx, axis)
  y = floats(y, "trapezoid")
  axis = tools.axis(y, axis or -1, "trapezoid")
  local n = tools.length(y, axis, "trapezoid")
  local middle = (tools.part(y, axis, 2, n) + tools.part(y, axis, 1, n - 1)) * 0.5
  if x == nil then return ops.sum(middle * (dx or 1), axis) end
  x = operand(x, "trapezoid", y.dtype)
  local steps = ops.diff(x, 1, #tools.dims(x) == 1 and 1 or axis)
  if #tools.dims(x) == 1 then
    local shape = {}
    for i = 1, #tools.dims(y) do shape[i] = i == axis and n - 1 or 1 end
    steps = steps:reshape(shape)
  end
  return ops.sum(middle * steps, axis)
end, "trapezoid")

-- Correlation coefficients of the rows of x.
define(function(x)
  x = floats(x, "corrcoef")
  if #tools.dims(x) == 1 then return ops.div(ops.var(x), ops.var(x)) end
  local centered = x - ops.mean(x, -1, true)
  local covariance = ops.matmul(centered, ops.swapaxes(centered, 1, 2))
  local deviation = ops.sqrt(ops.diagonal(covariance))
  return covariance / ops.expand_dims(deviation, 2) / deviation
end, "corrcoef")

-- c[k] = sum over n of a[n + k] b[n]: where the shorter one is inside the longer ("valid"), as many as the longer has ("same"), or all.
takes "a, b, mode: 'valid'|'same'|'full' = 'valid'"
define(function(a, b, mode)
  a, b = tools.pair(a, b, "correlate", true)
  if #tools.dims(a) ~= 1 or #tools.dims(b) ~= 1 then raise("flow.correlate: two tensors of one axis") end
  local n, m = tools.length(a, 1, "correlate"), tools.length(b, 1, "correlate")
  local padded = ops.pad(a, { { m - 1, m - 1 } })
  local windows = ops.expand_dims(tensor.arange(n + m - 1), 2) + tensor.arange(m)
  local full = ops.sum(tools.gather(padded, windows) * b, -1)
  mode = mode or "valid"
  if mode == "full" then return full end
  local length, shorter = math.max(n, m), math.min(n, m)
  if mode == "valid" then return tools.part(full, 1, shorter, length) end
  local first = math.floor((n + m - 1 - length) / 2)
  return tools.part(full, 1, first + 1, first + length)
end, "correlate")
