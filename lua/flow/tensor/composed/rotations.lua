-- rotations.lua: eigenvalues and singular values of eager matrices by Jacobi's rotations, in doubles. Used by linalg.lua.

local native = require "flow.ffi"
local tensor = require "flow.tensor"
local tools = require "flow.tensor.composed.tools"

local rotations = {}

-- Calls f(values, number) for each matrix {m, n} of an eager x: `values` is a copy as doubles by rows, matrices count from 0. Where one has
-- an element that is not finite, `results` ({ to = pointer, size = of one matrix } each) become NaN instead.
function rotations.each_matrix(x, m, n, what, results, f)
  tensor.need_value(x, what .. "()")
  local copies, count = tools.copied_matrices(x, m, n)
  for i = 0, count - 1 do
    local a, finite = copies + i * m * n, true
    for k = 0, m * n - 1 do finite = finite and a[k] - a[k] == 0 end
    if finite then f(a, i)
    else
      for _, result in ipairs(results) do
        for k = i * result.size, (i + 1) * result.size - 1 do result.to[k] = 0 / 0 end
      end
    end
  end
  return count
end

local MOST_SWEEPS, ENOUGH = 60, 1e-15

-- Cosine and sine of the angle that makes the element r of {{p, r}, {r, q}} zero.
local function rotation(p, q, r)
  local zeta = (q - p) / (2 * r)
  local t = (zeta >= 0 and 1 or -1) / (math.abs(zeta) + math.sqrt(1 + zeta * zeta))
  local c = 1 / math.sqrt(1 + t * t)
  return c, c * t
end

-- Rotates columns i and j of a matrix {count, n}.
local function turn_columns(a, count, n, i, j, c, s)
  for k = 0, count - 1 do
    local x, y = a[k * n + i], a[k * n + j]
    a[k * n + i], a[k * n + j] = c * x - s * y, s * x + c * y
  end
end

local function identity(n)
  local v = native.array("double", n * n)
  for i = 0, n - 1 do v[i * n + i] = 1 end
  return v
end

-- Positions from 0, sorted by their values; equal values keep their order.
local function order_of(values, n, before)
  local order = {}
  for i = 1, n do order[i] = i - 1 end
  table.sort(order, function(i, j) return before(values[i], values[j]) or values[i] == values[j] and i < j end)
  return order
end

-- Eigenvalues in order and eigenvectors as columns of a symmetric matrix, of which the lower triangle is read.
function rotations.symmetric_eigen(a, n)
  local v = identity(n)
  for i = 0, n - 1 do
    for j = i + 1, n - 1 do a[i * n + j] = a[j * n + i] end
  end
  for _ = 1, MOST_SWEEPS do
    local off, all = 0, 0
    for i = 0, n - 1 do
      for j = 0, n - 1 do
        all = all + a[i * n + j] ^ 2
        if i ~= j then off = off + a[i * n + j] ^ 2 end
      end
    end
    if off <= (ENOUGH * ENOUGH) * all then break end
    for i = 0, n - 2 do
      for j = i + 1, n - 1 do
        if a[i * n + j] ~= 0 then
          local c, s = rotation(a[i * n + i], a[j * n + j], a[i * n + j])
          turn_columns(a, n, n, i, j, c, s)
          for k = 0, n - 1 do
            local x, y = a[i * n + k], a[j * n + k]
            a[i * n + k], a[j * n + k] = c * x - s * y, s * x + c * y
          end
          turn_columns(v, n, n, i, j, c, s)
        end
      end
    end
  end
  local values = {}
  for i = 0, n - 1 do values[i] = a[i * n + i] end
  return values, v, order_of(values, n, function(x, y) return x < y end)
end

-- One-sided rotations of the columns of a, m >= n, until they are orthogonal (M. Hestenes, 1958).
function rotations.columns_orthogonal(a, m, n)
  local v = identity(n)
  for _ = 1, MOST_SWEEPS do
    local done = true
    for i = 0, n - 2 do
      for j = i + 1, n - 1 do
        local p, q, r = 0, 0, 0
        for k = 0, m - 1 do
          local x, y = a[k * n + i], a[k * n + j]
          p, q, r = p + x * x, q + y * y, r + x * y
        end
        if r ~= 0 and math.abs(r) > ENOUGH * math.sqrt(p * q) then
          done = false
          local c, s = rotation(p, q, r)
          turn_columns(a, m, n, i, j, c, s)
          turn_columns(v, n, n, i, j, c, s)
        end
      end
    end
    if done then break end
  end
  local sizes = {}
  for j = 0, n - 1 do
    local sum = 0
    for k = 0, m - 1 do sum = sum + a[k * n + j] ^ 2 end
    sizes[j] = math.sqrt(sum)
  end
  return sizes, v, order_of(sizes, n, function(x, y) return x > y end)
end

-- Fills the columns of u {m, width} from `first` on with unit vectors that are orthogonal to all columns before them: Gram and Schmidt's
-- method, applied twice, since once is not accurate.
function rotations.complete(u, m, width, first)
  local candidate = 0
  for j = first, width - 1 do
    while true do
      for i = 0, m - 1 do u[i * width + j] = i == candidate and 1 or 0 end
      for _ = 1, 2 do
        for k = 0, j - 1 do
          local dot = 0
          for i = 0, m - 1 do dot = dot + u[i * width + j] * u[i * width + k] end
          for i = 0, m - 1 do u[i * width + j] = u[i * width + j] - dot * u[i * width + k] end
        end
      end
      local size = 0
      for i = 0, m - 1 do size = size + u[i * width + j] ^ 2 end
      size, candidate = math.sqrt(size), candidate + 1
      if size > 1e-8 then
        for i = 0, m - 1 do u[i * width + j] = u[i * width + j] / size end
        break
      end
    end
  end
end

return rotations
