-- linalg.lua: linear algebra over the last two axes of tensors, any number of matrices at once, by ops that take matrices apart (rules and
-- gradients: core/ops/rules/decompositions.c).

local errors = require "flow.errors"
local tensor = require "flow.tensor"
local tools = require "flow.tensor.composed.tools"
local takes = require("flow.signature").takes

local raise = errors.raise
local ops, define, operand = tools.ops, tools.define, tools.operand

-- x in floats, and rows and columns of its matrices.
local function matrices(x, what, square)
  x = tools.floats(x, what)
  local rank = #tools.dims(x)
  if rank < 2 then raise("flow.%s: a matrix or several, got shape %s", what, tensor.shape_text(tools.dims(x))) end
  local m, n = tools.length(x, rank - 1, what), tools.length(x, rank, what)
  if square and m ~= n then raise("flow.%s: square matrices, got shape %s", what, tensor.shape_text(tools.dims(x))) end
  return x, m, n
end

local function turned(x) return ops.swapaxes(x, -1, -2) end
local function unit(n, like) return tensor.eye(n, { dtype = like.dtype }) end

-- One op with `results` outputs, 1 if nil; set(m): its attributes.
local function apply(name, inputs, set, results)
  return tools.apply(name, inputs, set and function(attributes) set(attributes.matrix) end, results)
end

-- Matrices a {..., n, n} and b {..., n, k} with the same axes before.
local function in_common(a, b)
  local function of_numbers(x)      -- in place of its matrices
    local dims = tools.dims(x)
    dims[#dims - 1], dims[#dims] = 1, 1
    return dims
  end
  local of_a, of_b = of_numbers(a), of_numbers(b)
  if table.concat(of_a, " ") == table.concat(of_b, " ") then return a, b end
  local zeros = tools.filled(a, of_a, 0) + tools.filled(b, of_b, 0)
  return a + zeros, b + zeros
end

---- triangles --------------------------------------------------------------------------------------

-- Solves a x = b for a triangular a; b is {..., n, k}. The other triangle of a is not read.
local function solve_triangle(a, b, lower)
  return apply("solve_triangle", { in_common(a, b) }, function(m) m.lower = lower and 1 or 0 end)
end

-- b as matrices beside a; the second result gives a vector back as one.
local function right_side(a, b, what)
  b = operand(b, what, a.dtype):to(a.dtype)
  local vector = #tools.dims(b) == #tools.dims(a) - 1
  if vector then b = ops.expand_dims(b, -1) end
  return b, function(x) return vector and ops.squeeze(x, -1) or x end
end

takes "a, b, lower: boolean = false"
define(function(a, b, lower)
  a = matrices(a, "solve_triangular", true)
  local right, back = right_side(a, b, "solve_triangular")
  return back(solve_triangle(a, right, lower))
end, "solve_triangular")

-- L with L L^T = x, of symmetric positive definite matrices, or L^T; where they are not, NaN.
takes "x, upper: boolean = false"
define(function(x, upper)
  local factor = apply("cholesky", { (matrices(x, "cholesky", true)) })
  return upper and turned(factor) or factor
end, "cholesky")

-- The inverse of the matrix whose factor of Cholesky x is.
takes "x, upper: boolean = false"
define(function(x, upper)
  local n
  x, n = matrices(x, "cholesky_inverse", true)
  local inverse = solve_triangle(upper and turned(x) or x, unit(n, x), true)
  return ops.matmul(turned(inverse), inverse)
end, "cholesky_inverse")

---- elimination ------------------------------------------------------------------------------------

takes "a, b"
define(function(a, b)
  a = matrices(a, "solve", true)
  local right, back = right_side(a, b, "solve")
  return back(apply("solve", { in_common(a, right) }))
end, "solve")
define(function(x)
  local n
  x, n = matrices(x, "inv", true)
  return apply("solve", { in_common(x, unit(n, x)) })
end, "inv")

-- The pivots {..., n}, and the sign {...} that the swaps of rows give.
local function pivots_of(x, what)
  local n
  x, n = matrices(x, what, true)
  local parts = apply("lu", { x }, nil, 3)
  local swapped = ops.ne(parts[2], tensor.arange(n)):to(x.dtype)
  return ops.diagonal(parts[1], 0, -2, -1), ops.prod(1 - 2 * swapped, -1)
end
define(function(x)
  local diagonal, sign = pivots_of(x, "det")
  return ops.prod(diagonal, -1) * sign
end, "det")
-- The sign of the determinant and the logarithm of its size.
define(function(x)
  local diagonal, sign = pivots_of(x, "slogdet")
  return ops.prod(ops.sign(diagonal), -1) * sign, ops.sum(ops.log(ops.abs(diagonal)), -1)
end, "slogdet")
define(function(x)
  local diagonal = pivots_of(x, "logdet")
  return ops.sum(ops.log(ops.abs(diagonal)), -1)
end, "logdet")

-- L below the diagonal, whose own is 1, with U on and above it, and the position, from 1, of the row that each row is swapped with in turn.
define(function(x)
  local parts = apply("lu", { (matrices(x, "lu_factor", true)) }, nil, 3)
  return parts[1], parts[2] + 1
end, "lu_factor")

---- orthogonal factors -----------------------------------------------------------------------------

-- Q and R with Q R = x by Householder's reflections, as LAPACK signs them. mode: "reduced", or "complete" with all of Q.
takes "x, mode: 'reduced'|'complete' = 'reduced'"
define(function(x, mode)
  local parts = apply("qr", { (matrices(x, "qr")) }, function(m) m.full = mode == "complete" and 1 or 0 end, 2)
  return parts[1], parts[2]
end, "qr")

---- norms ------------------------------------------------------------------------------------------

local function singular_values(x)
  local _, s = ops.svd(x, false)
  return s
end

-- Of vectors along one axis, of matrices along two, or of all elements: ord is a number, inf, -inf, "fro" or "nuc".
takes "x, ord?, axis?: number|list, keepdims: boolean = false"
define(function(x, ord, axis, keepdims)
  x = tools.floats(x, "norm")
  if axis == nil and ord == nil then return ops.sqrt(ops.sum(ops.square(x), nil, keepdims)) end
  local axes = tools.axes(x, axis, "norm")
  if ord == nil then return ops.sqrt(ops.sum(ops.square(x), axes, keepdims)) end
  if #axes == 1 then
    local a = axes[1]
    if ord == math.huge or ord == "inf" then return ops.max(ops.abs(x), a, keepdims) end
    if ord == -math.huge then return ops.min(ops.abs(x), a, keepdims) end
    if ord == 0 then return ops.sum(ops.ne(x, 0):to(x.dtype), a, keepdims) end
    if ord == 1 then return ops.sum(ops.abs(x), a, keepdims) end
    if ord == 2 then return ops.sqrt(ops.sum(ops.square(x), a, keepdims)) end
    if type(ord) ~= "number" then raise("flow.norm: the order of a vector's norm is a number, got %s", errors.describe(ord)) end
    return ops.pow(ops.sum(ops.pow(ops.abs(x), ord), a, keepdims), 1 / ord)
  end
  if #axes ~= 2 then raise("flow.norm: an order is for one axis or two, got %d", #axes) end
  if ord == "fro" then return ops.sqrt(ops.sum(ops.square(x), axes, keepdims)) end
  local given = type(axis) == "table" and { tools.axis(x, axis[1], "norm"), tools.axis(x, axis[2], "norm") } or axes
  local y = ops.moveaxis(x, given, { -2, -1 })
  local result
  if ord == 1 or ord == -1 or ord == math.huge or ord == -math.huge or ord == "inf" then
    local sums = ops.sum(ops.abs(y), (ord == 1 or ord == -1) and -2 or -1)
    result = ops[(ord == -1 or ord == -math.huge) and "min" or "max"](sums, -1)
  elseif ord == 2 or ord == -2 then result = ops[ord == 2 and "max" or "min"](singular_values(y), -1)
  elseif ord == "nuc" then result = ops.sum(singular_values(y), -1)
  else raise("flow.norm: the order of a matrix' norm is 1, -1, 2, -2, inf, -inf, \"fro\" or \"nuc\", got %s", errors.describe(ord)) end
  if not keepdims then return result end
  local dims = tools.dims(x)
  for _, a in ipairs(axes) do dims[a] = 1 end
  return ops.reshape_raw(result, dims)
end, "norm")

---- eigenvalues and singular values ----------------------------------------------------------------------

-- Eigenvalues in order {..., n} and eigenvectors as columns {..., n, n} of symmetric matrices.
define(function(x)
  local parts = apply("eigh", { (matrices(x, "eigh", true)) }, nil, 2)
  return parts[1], parts[2]
end, "eigh")

-- U, s and V^T with U diag(s) V^T = x, s in falling order; full_matrices: U and V are square. compute_uv = false: s alone.
takes "x, full_matrices: boolean = true, compute_uv: boolean = true"
define(function(x, full, compute_uv)
  local whole = full ~= false and compute_uv ~= false
  local parts = apply("svd", { (matrices(x, "svd")) }, function(m) m.full = whole and 1 or 0 end, 3)
  if compute_uv == false then return parts[2] end
  return parts[1], parts[2], parts[3]
end, "svd")

-- The pseudo-inverse: singular values below rcond times the largest count as 0.
local DIGITS = { float64 = 2.220446049250313e-16, float32 = 1.1920928955078125e-07, float16 = 9.765625e-4, bfloat16 = 0.0078125 }
takes "x, rcond?: number"
define(function(x, rcond)
  local m, n
  x, m, n = matrices(x, "pinv")
  local u, s, vt = ops.svd(x, false)
  local least = ops.max(s, -1, true) * (rcond or 10 * math.max(m, n) * DIGITS[x.dtype])
  local kept = ops.gt(s, least)
  local inverse = ops.where(kept, 1 / ops.where(kept, s, 1), 0):to(x.dtype)
  return ops.matmul(turned(vt) * ops.expand_dims(inverse, -2), turned(u))
end, "pinv")
-- The number of singular values above tol, by default the largest one times the larger size times the distance of 1 to the next number.
takes "x, tol?: number"
define(function(x, tol)
  local m, n
  x, m, n = matrices(x, "matrix_rank")
  local s = singular_values(ops.stop_gradient(x))
  local least = tol or ops.max(s, -1, true) * (math.max(m, n) * DIGITS[x.dtype])
  return ops.sum(ops.gt(s, least):to("int32"), -1):to("int32")
end, "matrix_rank")
-- x with the least |a x - b|, and of those the shortest.
takes "a, b, rcond?: number"
define(function(a, b, rcond)
  a = matrices(a, "lstsq")
  local right, back = right_side(a, b, "lstsq")
  return back(ops.matmul(ops.pinv(a, rcond), right))
end, "lstsq")
