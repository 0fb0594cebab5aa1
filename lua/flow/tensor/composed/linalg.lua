-- linalg.lua: linear algebra over the last two axes of tensors, any number of matrices at once.
--
-- Matrices are processed column by column with ops, so that results can be differentiated and traced like everything else. When nothing is
-- recorded, eliminations.lua computes the same in doubles. Singular values and eigenvalues are found by Jacobi's rotations (rotations.lua).
-- The number of rotations depends on the values, so these functions take eager tensors only, and have first derivatives only.

local errors = require "flow.errors"
local tensor = require "flow.tensor"
local native = require "flow.ffi"
local tools = require "flow.tensor.composed.tools"
local eliminations = require "flow.tensor.composed.eliminations"
local rotations = require "flow.tensor.composed.rotations"
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
local function columns(x, first, last) return tools.part(x, #tools.dims(x), first, last) end
local function rows(x, first, last) return tools.part(x, #tools.dims(x) - 1, first, last) end
local function unit(n, like) return tensor.eye(n, { dtype = like.dtype }) end

-- The identity for each of x's matrices of n rows.
local function units(x, n)
  local dims = tools.dims(x)
  dims[#dims - 1], dims[#dims] = n, n
  return tools.filled(x, dims, 0) + unit(n, x)
end

---- triangles --------------------------------------------------------------------------------------

-- a beside b, {..., n, n + k}, with as many matrices of each; and k.
local function beside(a, b)
  local dims, of_b = tools.dims(a), tools.dims(b)
  local k = of_b[#of_b]
  dims[#dims] = k
  local right = b + tools.filled(a, dims, 0)
  local more = tools.dims(right)
  more[#more] = tools.dims(a)[#dims]
  return ops.concat({ a + tools.filled(a, more, 0), right }, -1), k
end

-- Solves a x = b for a triangular a; b is {..., n, k}. The other triangle of a is not read.
local function solve_triangle(a, b, lower, n)
  if tools.is_free(a) and tools.is_free(b) then
    local both, k = beside(a, b)
    return eliminations.solve_triangle(both, n, k, lower)
  end
  local known = {}
  for step = 1, n do
    local i = lower and step or n - step + 1
    local row, right = rows(a, i, i), rows(b, i, i)
    if step > 1 then
      local part = lower and columns(row, 1, i - 1) or columns(row, i + 1, n)
      right = right - ops.matmul(part, ops.concat(known, -2))
    end
    table.insert(known, lower and #known + 1 or 1, right / columns(row, i, i))
  end
  return n > 0 and ops.concat(known, -2) or b
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
  local n
  a, n = matrices(a, "solve_triangular", true)
  local right, back = right_side(a, b, "solve_triangular")
  return back(solve_triangle(a, right, lower, n))
end, "solve_triangular")

-- L with L L^T = x, of symmetric positive definite matrices, or L^T; where they are not, NaN.
takes "x, upper: boolean = false"
define(function(x, upper)
  local n
  x, n = matrices(x, "cholesky", true)
  if tools.is_free(x) then
    local factor = eliminations.cholesky(x, n)
    return upper and turned(factor) or factor
  end
  local symmetric = (x + turned(x)) * 0.5      -- both triangles share the gradient; the values are those of the lower one
  x = symmetric + ops.stop_gradient(x - symmetric)
  local made = {}
  for j = 1, n do
    local column = rows(columns(x, j, j), j, n)
    if j > 1 then
      local before = rows(ops.concat(made, -1), j, n)
      column = column - ops.matmul(before, turned(rows(before, 1, 1)))
    end
    local root = ops.sqrt(rows(column, 1, 1))
    column = ops.concat({ root, rows(column, 2, n - j + 1) / root }, -2)
    if j > 1 then column = ops.concat({ ops.zeros_like(rows(columns(x, 1, 1), 1, j - 1)), column }, -2) end
    made[j] = column
  end
  local factor = n > 0 and ops.concat(made, -1) or x
  return upper and turned(factor) or factor
end, "cholesky")

-- The inverse of the matrix whose factor of Cholesky x is.
takes "x, upper: boolean = false"
define(function(x, upper)
  local n
  x, n = matrices(x, "cholesky_inverse", true)
  local inverse = solve_triangle(upper and turned(x) or x, units(x, n), true, n)
  return ops.matmul(turned(inverse), inverse)
end, "cholesky_inverse")

---- elimination ------------------------------------------------------------------------------------

-- Gauss' elimination with the largest pivot of each column: a is beside b, {..., n, n + k}. Returns the triangle with what b has become,
-- the sign of the row swaps, and the pivots' positions from 1.
local function eliminate(x, n)
  local sign, pivots, place = nil, {}, tensor.arange(1, n + 1):reshape { n, 1 }
  for j = 1, n do
    local column = ops.stop_gradient(columns(x, j, j))
    local size = ops.where(ops.ge(place, j), ops.abs(column), -1)
    local pivot = ops.expand_dims(ops.argmax(size, -2), -2)      -- {..., 1, 1}
    local order = ops.where(ops.eq(place, j), pivot, ops.where(ops.eq(place, pivot), j, place:to("int64")))
    order = order + ops.zeros_like(x, { dtype = "int64" })
    x = tools.take_along(x, order - 1, #tools.dims(x) - 1)
    local swapped = ops.where(ops.eq(pivot, j), 1, -1):to(x.dtype)
    sign = sign and sign * swapped or swapped
    pivots[j] = pivot
    local head = rows(x, j, j)
    local factor = ops.where(ops.gt(place, j), ops.divide_no_nan(columns(x, j, j), columns(head, j, j)), 0)
    x = x - factor * ops.where(ops.ge(tensor.arange(1, tools.dims(x)[#tools.dims(x)] + 1), j), head, 0):to(x.dtype)
  end
  return x, sign, pivots
end

takes "a, b"
define(function(a, b)
  local n
  a, n = matrices(a, "solve", true)
  local right, back = right_side(a, b, "solve")
  local both, k = beside(a, right)
  if tools.is_free(both) then return back(eliminations.solve(both, n, k)) end
  local x = eliminate(both, n)
  return back(solve_triangle(columns(x, 1, n), columns(x, n + 1, n + k), false, n))
end, "solve")
define(function(x)
  local n
  x, n = matrices(x, "inv", true)
  return ops.solve(x, units(x, n))
end, "inv")

local function pivots_of(x, what)
  local n
  x, n = matrices(x, what, true)
  local triangle, sign = (tools.is_free(x) and eliminations.eliminate or eliminate)(x, n, n)
  return ops.diagonal(triangle, 0, -2, -1), ops.squeeze(ops.squeeze(sign, -1), -1)
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
  local n
  x, n = matrices(x, "lu_factor", true)
  if tools.is_free(x) then return eliminations.lu_factor(x, n) end
  local upper, _, pivots = eliminate(x, n)
  local order = {}
  for j = 1, n do order[j] = ops.squeeze(pivots[j], -1) end
  local moved = x
  local place = tensor.arange(1, n + 1):reshape { n, 1 }
  for j = 1, n do
    local turn = ops.where(ops.eq(place, j), pivots[j], ops.where(ops.eq(place, pivots[j]), j, place:to("int64")))
    moved = tools.take_along(moved, turn + ops.zeros_like(x, { dtype = "int64" }) - 1, #tools.dims(x) - 1)
  end
  local lower = turned(solve_triangle(turned(upper), turned(moved), true, n))      -- L U = the rows in their order
  return ops.tril(lower, -1) + upper, ops.concat(order, -1):to("int32")
end, "lu_factor")

---- orthogonal factors -----------------------------------------------------------------------------

-- Q and R with Q R = x by Householder's reflections, as LAPACK signs them. mode: "reduced", or "complete" with all of Q.
takes "x, mode: 'reduced'|'complete' = 'reduced'"
define(function(x, mode)
  local m, n
  x, m, n = matrices(x, "qr")
  if tools.is_free(x) then
    local q, r = eliminations.qr(x, m, n)
    if mode == "complete" or m <= n then return q, r end
    return columns(q, 1, n), rows(r, 1, n)
  end
  local r, q, place = x, units(x, m), tensor.arange(1, m + 1):reshape { m, 1 }
  for j = 1, math.min(m - 1, n) do
    local column = ops.where(ops.ge(place, j), columns(r, j, j), 0):to(x.dtype)
    local head = rows(column, j, j)
    local length = ops.sqrt(ops.sum(ops.square(column), -2, true))
    local beta = ops.where(ops.ge(head, 0), -length, length)
    local flat = ops.eq(ops.stop_gradient(length), ops.abs(ops.stop_gradient(head)))      -- nothing below: no reflection
    local v = column - ops.where(ops.eq(place, j), beta, 0):to(x.dtype)
    local square = ops.sum(ops.square(v), -2, true)
    local factor = ops.where(flat, 0, 2 / ops.where(flat, 1, square)):to(x.dtype)
    r = r - factor * ops.matmul(v, ops.matmul(turned(v), r))
    q = q - ops.matmul(ops.matmul(q, v), turned(v)) * factor
  end
  r = ops.triu(r)
  if mode == "complete" or m <= n then return q, r end
  return columns(q, 1, n), rows(r, 1, n)
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

-- A tangent of x that is zero in value and x's in gradient: y + J(tangent) is y with the derivative J.
local function tangent(x) return x - ops.stop_gradient(x) end
local function recorded(x) return tensor.is_symbolic(x) or native.C.flow_tape_depth(native.context) > 0 end

local function off_diagonal_inverse(differences)
  local zero = ops.eq(differences, 0)
  return ops.where(zero, 0, 1 / ops.where(zero, 1, differences)):to(differences.dtype)
end

-- Eigenvalues in order {..., n} and eigenvectors as columns {..., n, n} of symmetric matrices. dw = diag(V^T dA V), dV = V (F * V^T dA V).
define(function(x)
  local n
  x, n = matrices(x, "eigh", true)
  local w, to_w = tools.doubles_beside(x, { n })
  local v, to_v = tools.doubles_beside(x, { n, n })
  rotations.each_matrix(x, n, n, "eigh", { { to = to_w, size = n }, { to = to_v, size = n * n } }, function(a, number)
    local values, vectors, order = rotations.symmetric_eigen(a, n)
    for j = 1, n do
      to_w[number * n + j - 1] = values[order[j]]
      for i = 0, n - 1 do to_v[(number * n + i) * n + j - 1] = vectors[i * n + order[j]] end
    end
  end)
  w, v = w:to(x.dtype), v:to(x.dtype)
  if not recorded(x) then return w, v end
  local lower = ops.tril(tangent(x))
  local change = lower + turned(ops.tril(lower, -1))
  local inner = ops.matmul(turned(v), ops.matmul(change, v))
  local f = off_diagonal_inverse(ops.expand_dims(w, -2) - ops.expand_dims(w, -1))
  return w + ops.diagonal(inner, 0, -2, -1), v + ops.matmul(v, f * inner)
end, "eigh")

-- U, s and V^T of tall matrices. full: U {m, m}.
local function tall_svd(x, m, n, full)
  local width = full and m or n
  local u, to_u = tools.doubles_beside(x, { m, width })
  local s, to_s = tools.doubles_beside(x, { n })
  local vt, to_v = tools.doubles_beside(x, { n, n })
  local all = { { to = to_u, size = m * width }, { to = to_s, size = n }, { to = to_v, size = n * n } }
  rotations.each_matrix(x, m, n, "svd", all, function(a, number)
    local sizes, v, order = rotations.columns_orthogonal(a, m, n)
    local own, rank = native.array("double", m * width), 0
    for j = 1, n do
      local from = order[j]
      to_s[number * n + j - 1] = sizes[from]
      if sizes[from] > 0 then
        rank = rank + 1
        for i = 0, m - 1 do own[i * width + j - 1] = a[i * n + from] / sizes[from] end
      end
      for i = 0, n - 1 do to_v[(number * n + j - 1) * n + i] = v[i * n + from] end
    end
    rotations.complete(own, m, width, rank)
    for k = 0, m * width - 1 do to_u[number * m * width + k] = own[k] end
  end)
  return u:to(x.dtype), s:to(x.dtype), vt:to(x.dtype)
end

-- U, s and V^T with U diag(s) V^T = x, s in falling order; full_matrices: U and V are square. compute_uv = false: s alone. J. Townsend,
-- "Differentiating the singular value decomposition", 2016.
takes "x, full_matrices: boolean = true, compute_uv: boolean = true"
define(function(x, full, compute_uv)
  if full == nil then full = true end
  local m, n
  x, m, n = matrices(x, "svd")
  if m < n then
    if compute_uv == false then return ops.svd(turned(x), full, false) end
    local u, s, vt = ops.svd(turned(x), full)
    return turned(vt), s, turned(u)
  end
  local u, s, vt = tall_svd(x, m, n, full)
  if full and n == 0 then u = units(x, m) end      -- of no columns
  if recorded(x) then
    local thin, v = columns(u, 1, n), turned(vt)
    local change = tangent(x)
    local inner = ops.matmul(turned(thin), ops.matmul(change, v))
    local across, down = ops.expand_dims(s, -2), ops.expand_dims(s, -1)
    local f = off_diagonal_inverse(ops.square(across) - ops.square(down))
    s = s + ops.diagonal(inner, 0, -2, -1)
    if compute_uv ~= false then
      if full and m > n then raise("flow.svd: derivatives of U and V are those of full_matrices = false, got %d by %d matrices", m, n) end
      local other = turned(inner)
      local rest = ops.matmul(change, v) - ops.matmul(thin, inner)
      u = u + ops.matmul(thin, f * (inner * across + down * other)) + rest / ops.where(ops.eq(across, 0), 1, across)
      vt = vt + turned(ops.matmul(v, f * (down * inner + other * across)))
    end
  end
  if compute_uv == false then return s end
  return u, s, vt
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
