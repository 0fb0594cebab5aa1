-- eliminations.lua: factors of eager matrices (LU, Cholesky, QR), and the solutions that they give, computed in doubles. It is used when
-- nothing is recorded: the ops of linalg.lua, which take one step for each column, are a hundred times slower. Both give the same numbers,
-- except for rounding.

local native = require "flow.ffi"
local tools = require "flow.tensor.composed.tools"

local eliminations = {}

local doubles_beside, copied_matrices = tools.doubles_beside, tools.copied_matrices

---- kernels: matrices by rows from `a` on ----------------------------------------------------------------------------------------

-- Gauss' elimination of n rows of `width` with the largest pivot of each column, or the first NaN. Factors stay below the diagonal.
-- pivots[j]: the row, from 0, that row j was swapped with. Returns the sign of the swaps.
local function eliminate(a, n, width, pivots)
  local sign = 1
  for j = 0, n - 1 do
    local pivot, best = j, -1
    for i = j, n - 1 do
      local size = math.abs(a[i * width + j])
      if size > best or size ~= size and best == best then pivot, best = i, size end
    end
    if pivots then pivots[j] = pivot end
    if pivot ~= j then
      sign = -sign
      for k = 0, width - 1 do a[j * width + k], a[pivot * width + k] = a[pivot * width + k], a[j * width + k] end
    end
    local head = a[j * width + j]
    for i = j + 1, n - 1 do
      local factor = head == 0 and 0 or a[i * width + j] / head
      a[i * width + j] = factor
      for k = j + 1, width - 1 do a[i * width + k] = a[i * width + k] - factor * a[j * width + k] end
    end
  end
  return sign
end

-- b {n, count} becomes x with a x = b; of a one triangle is read. Rows of both are `width` apart.
local function solve_triangle(a, b, width, n, count, lower)
  for step = 0, n - 1 do
    local i = lower and step or n - 1 - step
    for j = lower and 0 or i + 1, lower and i - 1 or n - 1 do
      local factor = a[i * width + j]
      for k = 0, count - 1 do b[i * width + k] = b[i * width + k] - factor * b[j * width + k] end
    end
    local head = a[i * width + i]
    for k = 0, count - 1 do b[i * width + k] = b[i * width + k] / head end
  end
end

-- The lower triangle L with L L^T = a; NaN from the column on where a is not positive definite.
local function cholesky(a, n)
  for j = 0, n - 1 do
    local square = a[j * n + j]
    for k = 0, j - 1 do square = square - a[j * n + k] * a[j * n + k] end
    local root = math.sqrt(square)
    a[j * n + j] = root
    for i = j + 1, n - 1 do
      local sum = a[i * n + j]
      for k = 0, j - 1 do sum = sum - a[i * n + k] * a[j * n + k] end
      a[i * n + j] = sum / root
    end
    for k = j + 1, n - 1 do a[j * n + k] = 0 end
  end
end

-- a {m, n} becomes R, and q {m, m}, the identity, Q, by Householder's reflections with LAPACK's signs.
local function reflect(a, q, m, n)
  local v = native.array("double", math.max(m, 1))
  for j = 0, math.min(m - 1, n) - 1 do
    local square = 0
    for i = j, m - 1 do square = square + a[i * n + j] * a[i * n + j] end
    local head, length = a[j * n + j], math.sqrt(square)
    if length ~= math.abs(head) then      -- something is below, or a NaN
      local beta = head >= 0 and -length or length
      for i = j, m - 1 do v[i] = a[i * n + j] end
      v[j] = head - beta
      local factor = 0
      for i = j, m - 1 do factor = factor + v[i] * v[i] end
      factor = 2 / factor
      for k = j, n - 1 do
        local sum = 0
        for i = j, m - 1 do sum = sum + v[i] * a[i * n + k] end
        for i = j, m - 1 do a[i * n + k] = a[i * n + k] - factor * sum * v[i] end
      end
      for i = 0, m - 1 do
        local sum = 0
        for k = j, m - 1 do sum = sum + q[i * m + k] * v[k] end
        for k = j, m - 1 do q[i * m + k] = q[i * m + k] - factor * sum * v[k] end
      end
    end
  end
  for i = 1, m - 1 do
    for k = 0, math.min(i, n) - 1 do a[i * n + k] = 0 end
  end
end

---- functions of tensors ----------------------------------------------------------------------------------------------------------

-- What linalg.lua's eliminate gives of x {..., n, width}: the triangle with what stands beside it, and the sign of the swaps {..., 1, 1}.
function eliminations.eliminate(x, n, width)
  local a, count = copied_matrices(x, n, width)
  local triangle, to = doubles_beside(x, { n, width })
  local signs, to_sign = doubles_beside(x, { 1, 1 })
  for number = 0, count - 1 do
    local from = a + number * n * width
    to_sign[number] = eliminate(from, n, width)
    for i = 0, n - 1 do
      for k = i, width - 1 do to[(number * n + i) * width + k] = from[i * width + k] end
    end
  end
  return triangle:to(x.dtype), signs:to(x.dtype)
end

-- x {..., n, n} as L below the diagonal and U, and the pivots' positions from 1, {..., n}.
function eliminations.lu_factor(x, n)
  local a, count = copied_matrices(x, n, n)
  local factors, to = doubles_beside(x, { n, n })
  local positions, to_position = doubles_beside(x, { n })
  local pivots = native.array("int32_t", math.max(n, 1))
  for number = 0, count - 1 do
    eliminate(a + number * n * n, n, n, pivots)
    for i = 0, n * n - 1 do to[number * n * n + i] = a[number * n * n + i] end
    for j = 0, n - 1 do to_position[number * n + j] = pivots[j] + 1 end
  end
  return factors:to(x.dtype), positions:to("int32")
end

-- x {..., n, k}: what solve(a) leaves beside the first n columns of matrices {n, n + k}.
local function solution(beside, n, k, solve)
  local width = n + k
  local a, count = copied_matrices(beside, n, width)
  local x, to = doubles_beside(beside, { n, k })
  for number = 0, count - 1 do
    local from = a + number * n * width
    solve(from, width)
    for i = 0, n - 1 do
      for j = 0, k - 1 do to[(number * n + i) * k + j] = from[i * width + n + j] end
    end
  end
  return x:to(beside.dtype)
end

-- x with a x = b of {..., n, n + k}, which are a beside b.
function eliminations.solve(beside, n, k)
  return solution(beside, n, k, function(a, width)
    eliminate(a, n, width)
    solve_triangle(a, a + n, width, n, k, false)
  end)
end

-- The same of a triangle.
function eliminations.solve_triangle(beside, n, k, lower)
  return solution(beside, n, k, function(a, width) solve_triangle(a, a + n, width, n, k, lower) end)
end

function eliminations.cholesky(x, n)
  local a, count = copied_matrices(x, n, n)
  local factor, to = doubles_beside(x, { n, n })
  for number = 0, count - 1 do
    cholesky(a + number * n * n, n)
    for i = 0, n * n - 1 do to[number * n * n + i] = a[number * n * n + i] end
  end
  return factor:to(x.dtype)
end

-- Q {..., m, m} and R {..., m, n}.
function eliminations.qr(x, m, n)
  local a, count = copied_matrices(x, m, n)
  local r, to_r = doubles_beside(x, { m, n })
  local q, to_q = doubles_beside(x, { m, m })
  local matrices = m > 0 and tonumber(q.size) / (m * m) or 0
  for number = 0, matrices - 1 do
    for i = 0, m - 1 do to_q[(number * m + i) * m + i] = 1 end
    if number < count then reflect(a + number * m * n, to_q + number * m * m, m, n) end
    for i = 0, m * n - 1 do to_r[number * m * n + i] = a[number * m * n + i] end
  end
  return q:to(x.dtype), r:to(x.dtype)
end

return eliminations
