-- products.lua: products of vectors and matrices that are made of matmul and of elementwise ones.

local errors = require "flow.errors"
local tensor = require "flow.tensor"
local tools = require "flow.tensor.composed.tools"
local takes = require("flow.signature").takes

local raise = errors.raise
local ops, define, operand, pair = tools.ops, tools.define, tools.operand, tools.pair

local function size_of(dims)
  local size = 1
  for _, n in ipairs(dims) do size = size * n end
  return size
end

-- The sum of products over these axes of a and of b, lists of numbers from 1.
local function contract(a, b, of_a, of_b, what)
  local function arranged(x, axes, first)
    local dims, taken, order, rest, inner = tools.dims(x), {}, {}, {}, 1
    for _, axis in ipairs(axes) do
      taken[axis] = true
      inner = inner * dims[axis]
    end
    for axis = 1, #dims do
      if not taken[axis] then order[#order + 1], rest[#rest + 1] = axis, dims[axis] end
    end
    local all = {}
    for _, axis in ipairs(first and axes or order) do all[#all + 1] = axis end
    for _, axis in ipairs(first and order or axes) do all[#all + 1] = axis end
    local outer = size_of(rest)
    local in_order = true
    for place, axis in ipairs(all) do in_order = in_order and place == axis end
    x = in_order and x or ops.transpose(x, all)
    return ops.reshape_raw(x, first and { inner, outer } or { outer, inner }), rest, inner
  end
  local left, rows, k = arranged(a, of_a, false)
  local right, columns, n = arranged(b, of_b, true)
  if k ~= n then raise("flow.%s: the axes that are summed have %d and %d elements", what, k, n) end
  for _, axis in ipairs(columns) do rows[#rows + 1] = axis end
  return ops.reshape_raw(ops.matmul(left, right), rows)
end

-- axes: how many of the last of a and the first of b are summed, or a list of two: those of a and those of b.
takes "a, b, axes: data = 2"
define(function(a, b, axes)
  a, b = pair(a, b, "tensordot")
  axes = axes or 2
  local of_a, of_b = {}, {}
  if type(axes) == "number" then
    tools.whole(axes, 0, "tensordot", "axes")
    local rank = #tools.dims(a)
    if axes > math.min(rank, #tools.dims(b)) then
      raise("flow.tensordot: %d axes are summed of tensors of rank %d and %d", axes, rank, #tools.dims(b))
    end
    for i = 1, axes do of_a[i], of_b[i] = rank - axes + i, i end
  else
    local function list_of(x) return type(x) == "table" and x or { x } end
    if type(axes) ~= "table" or #axes ~= 2 then raise("flow.tensordot: axes are a number or two lists, got %s", errors.describe(axes)) end
    errors.check_holes("flow.tensordot: axes", axes)
    for i, axis in ipairs(list_of(axes[1])) do of_a[i] = tools.axis(a, axis, "tensordot") end
    for i, axis in ipairs(list_of(axes[2])) do of_b[i] = tools.axis(b, axis, "tensordot") end
    if #of_a ~= #of_b then raise("flow.tensordot: %d axes of a and %d of b", #of_a, #of_b) end
  end
  return contract(a, b, of_a, of_b, "tensordot")
end, "tensordot")

-- The sum over the last axis of a and the last but one of b, or its only one; of a number the product.
define(function(a, b)
  a, b = ops.operands(a, b, "flow.dot")
  local m, n = #tools.dims(a), #tools.dims(b)
  if m == 0 or n == 0 then return a * b end
  if n <= 2 or m == 1 then return ops.matmul(a, b) end
  a, b = pair(a, b, "dot")
  return contract(a, b, { m }, { n - 1 }, "dot")
end, "dot")
-- Sums over the last axes of both.
define(function(a, b)
  a, b = pair(a, b, "inner")
  local m, n = #tools.dims(a), #tools.dims(b)
  if m == 0 or n == 0 then return a * b end
  return contract(a, b, { m }, { n }, "inner")
end, "inner")
define(function(a, b)
  a, b = pair(a, b, "outer")
  return ops.expand_dims(ops.flatten(a), 2) * ops.flatten(b)
end, "outer")
define(function(a, b)
  a, b = pair(a, b, "vdot")
  a, b = ops.flatten(a), ops.flatten(b)
  if tools.is_float(a) and tools.dims(a)[1] == tools.dims(b)[1] then return ops.matmul(a, b) end
  return ops.sum(a * b):to(a.dtype)      -- a number beside a vector, too
end, "vdot")

-- Each element of a times all of b: {m p, n q} of {m, n} and {p, q}.
define(function(a, b)
  a, b = pair(a, b, "kron")
  local function shape_of(x, rank)
    local dims = tools.dims(x)
    while #dims < rank do table.insert(dims, 1, 1) end
    return dims
  end
  local rank = math.max(#tools.dims(a), #tools.dims(b))
  local m, n, wide, narrow, joined = shape_of(a, rank), shape_of(b, rank), {}, {}, {}
  for i = 1, rank do
    wide[2 * i - 1], wide[2 * i], narrow[2 * i - 1], narrow[2 * i], joined[i] = m[i], 1, 1, n[i], m[i] * n[i]
  end
  return ops.reshape_raw(ops.reshape_raw(a, wide) * ops.reshape_raw(b, narrow), joined)
end, "kron")

-- Of vectors of 2 or 3 elements along the last axis, or along the axes named.
takes "a, b, { axisa = -1, axisb = -1, axisc = -1, axis?: integer; }"
define(function(a, b, options)
  options = options or {}
  a, b = pair(a, b, "cross")
  local own = options.axis
  local function vectors(x, axis)
    x = ops.moveaxis(x, axis, -1)
    local n = tools.length(x, #tools.dims(x), "cross")
    if n ~= 2 and n ~= 3 then raise("flow.cross: vectors have 2 or 3 elements, got %d", n) end
    local parts = ops.unstack(x, nil, -1)
    return parts, n
  end
  local x, m = vectors(a, own or options.axisa or -1)
  local y, n = vectors(b, own or options.axisb or -1)
  local last = x[1] * y[2] - x[2] * y[1]
  if m == 2 and n == 2 then return last end
  local nothing = ops.zeros_like(last)
  local a3, b3 = x[3] or nothing, y[3] or nothing
  local stacked = ops.stack({ x[2] * b3 - a3 * y[2], a3 * y[1] - x[1] * b3, last }, -1)
  return ops.moveaxis(stacked, -1, own or options.axisc or -1)
end, "cross")

-- Powers of the elements of x as columns: from n - 1 down to 0, or up.
takes "x, n?: whole, increasing: boolean = false"
define(function(x, n, increasing)
  x = operand(x, "vander")
  n = n or tools.length(x, 1, "vander")
  local powers = increasing and tensor.arange(n) or tensor.arange(n - 1, -1, -1)
  return ops.pow(ops.expand_dims(x, -1), powers:to(x.dtype))
end, "vander")

-- Euclidean distances of the rows {..., m, k} and {..., n, k}: {..., m, n}.
define(function(a, b)
  a, b = tools.floats(a, "cdist"), tools.floats(b, "cdist")
  local difference = ops.expand_dims(a, -2) - ops.expand_dims(b, -3)
  return ops.sqrt(ops.sum(ops.square(difference), -1))
end, "cdist")
