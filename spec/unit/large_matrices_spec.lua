-- Symmetric eigenvalues and singular values of matrices of many rows, which take another way than those of a few
-- (kernels/cpu/decompositions).
local flow = require "flow"

local function normal(m, n, seed, dtype) return flow.random.normal({ m, n }, { seed = seed, dtype = "float32" }):to(dtype or "float64") end
local function most(x) return x.size > 0 and flow.max(flow.abs(x)):item() or 0 end
local function orthogonal(q) return most(flow.matmul(q:transpose(), q) - flow.eye(q.shape[2], { dtype = q.dtype })) end

-- A matrix with these singular values, falling, as many as its smaller size.
local function with_values(values, m, n)
  local k = #values
  local left, right = flow.qr(normal(m, k, 5)), flow.qr(normal(n, k, 6))
  return flow.matmul(left * flow.tensor(values, { dtype = "float64" }), right:transpose())
end

local function check_svd(x, values, allowed)
  local u, s, v = flow.svd(x, false)
  assert.is_true(orthogonal(u) < 1e-12 and orthogonal(v:transpose()) < 1e-12)
  assert.is_true(most(flow.matmul(u * s, v) - x) <= 1e-13 * (most(s) + 1e-300) * #values)
  for i, value in ipairs(values) do
    if not (math.abs(s[i]:item() - value) <= allowed) then error(("value %d is %.17g, expected %.17g"):format(i, s[i]:item(), value)) end
  end
end

describe("symmetric matrices", function()
  it("of 1 to 120 rows are what their parts make", function()
    for _, n in ipairs { 1, 2, 5, 6, 7, 8, 9, 16, 17, 33, 100, 120 } do
      local x = normal(n, n, n)
      x = x + x:transpose()
      local w, v = flow.eigh(x)
      assert.is_true(orthogonal(v) < 1e-12)
      assert.is_true(most(flow.matmul(x, v) - v * w) < 1e-13 * n * (most(x) + 1))
      for i = 2, n do assert.is_true(w[i - 1]:item() <= w[i]:item()) end
    end
  end)

  it("with equal, no, tiny and huge eigenvalues, diagonal ones and blocks have their eigenvalues", function()
    local n = 30
    local q = flow.qr(normal(n, n, 3))
    local lists = { equal = {}, none = {}, graded = {}, tiny = {}, huge = {}, signs = {} }
    for i = 1, n do
      lists.equal[i], lists.none[i], lists.graded[i] = i <= 10 and 1 or i <= 20 and 2 or 3, 0, 10 ^ (i - n)
      lists.tiny[i], lists.huge[i], lists.signs[i] = i * 1e-300, i * 1e300 / n, i <= 15 and -1 or 1
    end
    for name, list in pairs(lists) do
      for _, turned in ipairs { true, false } do
        local values = flow.tensor(list, { dtype = "float64" })
        local x = turned and flow.matmul(q * values, q:transpose()) or flow.eye(n, { dtype = "float64" }) * values
        local w, v = flow.eigh(x)
        assert.is_true(orthogonal(v) < 1e-12, name)
        for i = 1, n do
          if not (math.abs(w[i]:item() - list[i]) <= 1e-14 * n * math.abs(list[n])) then error(name .. ": " .. i .. ": " .. w[i]:item()) end
        end
      end
    end
    local blocks = flow.zeros({ 40, 40 }, { dtype = "float64" })
    blocks[{ { 1, 20 }, { 1, 20 } }] = flow.ones({ 20, 20 }, { dtype = "float64" })
    local w, v = flow.eigh(blocks)
    assert.is_true(orthogonal(v) < 1e-12 and math.abs(w[40]:item() - 20) < 1e-12 and most(w[{ { 1, 39 } }]) < 1e-12)
  end)
end)

describe("singular values", function()
  it("of matrices of all shapes are those that they were made of", function()
    for _, shape in ipairs { { 7, 7 }, { 8, 30 }, { 30, 8 }, { 60, 60 }, { 100, 40 } } do
      local k = math.min(shape[1], shape[2])
      local lists = { equal = {}, falling = {}, graded = {}, none = {}, half = {} }
      for i = 1, k do
        lists.equal[i], lists.falling[i], lists.graded[i], lists.none[i] = 2, k + 1 - i, 10 ^ (-12 * (i - 1) / k), 0
        lists.half[i] = i <= k / 2 and k + 1 - i or 0
      end
      for _, list in pairs(lists) do check_svd(with_values(list, shape[1], shape[2]), list, 1e-14 * k * (list[1] + 1e-300)) end
    end
  end)

  it("of huge and tiny matrices stay within the range", function()
    for _, scale in ipairs { 1e-160, 1e150, 1e306 } do
      local list = {}
      for i = 1, 12 do list[i] = (13 - i) * scale end
      check_svd(with_values(list, 12, 12), list, 1e-12 * scale)
    end
  end)
end)
