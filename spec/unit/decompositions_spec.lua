-- decompositions_spec.lua: matrices taken apart and put together again, over shapes with sizes of 0 and 1; derivatives against differences;
-- traces and single matrices give the bits of eager calls; what is singular or not finite ends in infinities and NaN.
require "spec.support.init"
local flow = require "flow"

local function turned(x) return x:swapaxes(-1, -2) end
local function unit(n, dtype) return flow.eye(n, { dtype = dtype }) end

local function check(what, found, expected, tolerance)
  local off = (found - expected):to("float64"):abs()
  local largest = off.size > 0 and off:max():item() or 0
  local scale = expected.size > 0 and math.max(1, expected:to("float64"):abs():max():item()) or 1
  assert.is_true(largest <= tolerance * scale, ("%s is off by %g of %g"):format(what, largest, scale))
end

local function check_columns(what, x, dtype, tolerance)
  check(what, flow.matmul(turned(x), x), unit(x.shape[#x.shape], dtype), tolerance)
end

-- Columns 1 to k, or rows.
local function columns(x, k) return x[{ "...", { 1, k } }] end

describe("matrices", function()
  for dtype, tolerance in pairs { float32 = 5e-5, float64 = 1e-11 } do
    it("of " .. dtype .. ", square, are what their parts make", function()
      flow.set_random_seed(7)
      for _, shape in ipairs { { 1, 1 }, { 2, 2 }, { 3, 3 }, { 7, 7 }, { 20, 20 }, { 40, 40 }, { 2, 3, 5, 5 } } do
        local n, what = shape[#shape], " of {" .. table.concat(shape, ", ") .. "}"
        local x = flow.random.normal(shape):to(dtype) + unit(n, dtype) * 3
        check("inv" .. what, flow.matmul(flow.inv(x), x), unit(n, dtype), tolerance)
        local positive = flow.matmul(x, turned(x)) + unit(n, dtype)
        local lower = flow.cholesky(positive)
        check("cholesky" .. what, flow.matmul(lower, turned(lower)), positive, tolerance)
        check("the upper triangle" .. what, flow.tril(lower), lower, 0)
        check("upper cholesky" .. what, flow.cholesky(positive, true), turned(lower), 0)
        check("cholesky_inverse" .. what, flow.matmul(flow.cholesky_inverse(lower), positive), unit(n, dtype), tolerance * 10)
        local right = flow.random.normal({ n, 3 }):to(dtype)
        if #shape == 2 then check("solve" .. what, flow.matmul(x, flow.solve(x, right)), right, tolerance) end
        for _, name in ipairs { "tril", "triu" } do
          local triangle = flow[name](x) + unit(n, dtype) * n
          local solved = flow.solve_triangular(x + unit(n, dtype) * n, right:broadcast_to(flow.matmul(x, right).shape), name == "tril")
          check(name .. what, flow.matmul(triangle, solved), right, tolerance)
        end
        local sign, logarithm = flow.slogdet(x)
        check("det" .. what, flow.det(x), sign * logarithm:exp(), tolerance * 10)
        local w, v = flow.eigh(x + turned(x))
        check("eigh" .. what, flow.matmul(v * w:expand_dims(-2), turned(v)), x + turned(x), tolerance)
        check_columns("eigenvectors" .. what, v, dtype, tolerance)
        check("the order of eigenvalues" .. what, flow.sort(w), w, 0)
      end
    end)

    it("of " .. dtype .. ", tall and wide, are what their parts make", function()
      flow.set_random_seed(8)
      for _, shape in ipairs { { 5, 3 }, { 3, 5 }, { 2, 4, 2 }, { 6, 1 }, { 1, 6 }, { 4, 4 }, { 30, 12 } } do
        local m, n = shape[#shape - 1], shape[#shape]
        local x, k = flow.random.normal(shape):to(dtype), math.min(m, n)
        local what = " of {" .. table.concat(shape, ", ") .. "}"
        for mode, count in pairs { reduced = k, complete = m } do
          local q, r = flow.qr(x, mode)
          assert.equal(count, q.shape[#q.shape])
          check(mode .. " qr" .. what, flow.matmul(q, r), x, tolerance)
          check("R" .. what, flow.triu(r), r, 0)
          check_columns(mode .. " Q" .. what, q, dtype, tolerance)
        end
        for _, full in ipairs { true, false } do
          local u, s, vt = flow.svd(x, full)
          assert.same({ full and m or k, k, full and n or k }, { u.shape[#u.shape], s.shape[#s.shape], vt.shape[#vt.shape - 1] })
          check("svd" .. what, flow.matmul(columns(u, k) * s:expand_dims(-2), turned(columns(turned(vt), k))), x, tolerance)
          check_columns("U" .. what, u, dtype, tolerance)
          check_columns("V" .. what, turned(vt), dtype, tolerance)
          check("the order of singular values" .. what, flow.sort(s, -1, { descending = true }), s, 0)
        end
      end
    end)
  end

  it("without rows or columns have parts without them", function()
    assert.same({ 0, 4, 4 }, flow.inv(flow.zeros { 0, 4, 4 }).shape)
    assert.same({ 0 }, flow.det(flow.zeros { 0, 4, 4 }).shape)
    assert.equal(1, flow.det(flow.zeros { 0, 0 }):item())
    local u, s, vt = flow.svd(flow.zeros { 2, 3, 0 })
    assert.same({ { 2, 3, 3 }, { 2, 0 }, { 2, 0, 0 } }, { u.shape, s.shape, vt.shape })
    check_columns("U", u, "float32", 0)
    local q, r = flow.qr(flow.zeros { 3, 0 })
    assert.same({ { 3, 0 }, { 0, 0 } }, { q.shape, r.shape })
  end)

  it("that are singular or not finite have no result", function()
    assert.equal(0, flow.det(flow.tensor { { 1, 2 }, { 2, 4 } }):item())
    assert.is_false(flow.all(flow.isfinite(flow.inv(flow.tensor { { 1, 2 }, { 2, 4 } }))):item())
    assert.is_true(flow.isnan(flow.cholesky(flow.tensor { { 1, 2 }, { 2, 1 } }))[{ 2, 2 }]:item())
    local beside = flow.tensor { { { 0 / 0, 1 }, { 1, 1 } }, { { 2, 0 }, { 0, 4 } } }      -- the one leaves the other alone
    for name, f in pairs { inv = flow.inv, eigh = flow.eigh, svd = flow.svd, det = flow.det } do
      local first, second = f(beside)
      for _, part in ipairs { first, second } do
        assert.is_true(flow.all(flow.isnan(part[1])):item(), name)
        assert.is_true(flow.all(flow.isfinite(part[2])):item(), name)
      end
    end
  end)

  it("that are semidefinite are not definite for cholesky", function()
    assert.is_true(flow.isnan(flow.cholesky(flow.zeros { 1, 1 })):item())
    assert.is_true(flow.isnan(flow.cholesky(flow.ones { 2, 2 }))[{ 2, 2 }]:item())
  end)

  it("of very large and very small numbers have the parts of others, times a power of two", function()
    local x = flow.tensor({ { 4, 1, 2 }, { 1, 3, 1 }, { 2, 1, 5 } }, "float64")
    local w, v = flow.eigh(x)
    local q, r = flow.qr(x)
    local u, s, vt = flow.svd(x)
    for _, factor in ipairs { 2 ^ -1000, 2 ^ -600, 2 ^ 600, 2 ^ 1000 } do
      local y = x * factor
      local scaled_w, same_v = flow.eigh(y)
      local same_q, scaled_r = flow.qr(y)
      local same_u, scaled_s, same_vt = flow.svd(y)
      for name, pair in pairs { w = { scaled_w / factor, w }, v = { same_v, v }, q = { same_q, q }, r = { scaled_r / factor, r },
                                u = { same_u, u }, s = { scaled_s / factor, s }, vt = { same_vt, vt } } do
        check(name .. " of numbers times " .. factor, pair[1], pair[2], 0)
      end
    end
  end)

  it("have the same parts alone, in a trace and in a batch", function()
    flow.set_random_seed(9)
    local x = flow.random.normal { 6, 4, 4 }
    for name, f in pairs { inv = flow.inv, det = flow.det, qr = flow.qr, svd = flow.svd, eigh = flow.eigh, lu = flow.lu_factor } do
      local eager, traced = { f(x) }, { flow.fn(function(t)
        local parts = { f(t) }
        return parts
      end)(x) }
      if #traced == 1 and not traced[1].shape then traced = traced[1] end
      local alone = { f(x[3]) }
      for i, part in ipairs(eager) do
        assert.is_true(flow.all(flow.eq(part, traced[i])):item(), name .. " in a trace")
        assert.is_true(flow.all(flow.eq(part[3], alone[i])):item(), name .. " alone")
      end
    end
  end)
end)

-- The sum of all results, each element with its own weight.
local function weighted(results)
  local sum = flow.zeros({}, { dtype = "float64" })
  for i, part in ipairs(results) do sum = sum + (part * flow.random.uniform(part.shape, { seed = 5 + i }):to("float64")):sum() end
  return sum
end

local function check_gradient(what, f, x)
  local variable, tape, h = flow.Variable(x), flow.GradientTape(), 1e-6
  local y = tape:record(function() return weighted { f(variable:value()) } end)
  local found, values = tape:gradient(y, variable):reshape({ -1 }):totable(), x:reshape({ -1 }):totable()
  local function at(i, change)
    local moved = { unpack(values) }
    moved[i] = moved[i] + change
    return weighted({ f(flow.tensor(moved, { dtype = "float64" }):reshape(x.shape)) }):item()
  end
  for i = 1, #values do
    local expected = (at(i, h) - at(i, -h)) / (2 * h)
    assert.is_true(math.abs(found[i] - expected) <= 1e-6 * math.max(1, math.abs(expected)),
      ("%s: element %d is %.9g, differences give %.9g"):format(what, i, found[i], expected))
  end
end

describe("derivatives of decompositions", function()
  local function draw(shape) return flow.random.normal(shape):to "float64" end
  it("are those that differences give", function()
    flow.set_random_seed(3)
    local a, b = draw { 2, 4, 4 } + unit(4, "float64") * 2, draw { 2, 4, 3 }
    for _, name in ipairs { "inv", "det", "logdet", "qr", "lu_factor" } do
      check_gradient(name, function(x) return (flow[name](x)) end, a)
    end
    check_gradient("solve by a", function(x) return flow.solve(x, b) end, a)
    check_gradient("solve by b", function(x) return flow.solve(a, x) end, b)
    check_gradient("a lower triangle", function(x) return flow.solve_triangular(x, b, true) end, a)
    check_gradient("an upper triangle", function(x) return flow.solve_triangular(x, b, false) end, a)
    for _, upper in ipairs { true, false } do
      check_gradient("cholesky", function(x) return flow.cholesky(flow.matmul(x, turned(x)), upper) end, a)
    end
    check_gradient("cholesky_inverse", function(x) return flow.cholesky_inverse(flow.tril(x)) end, a)
    for _, shape in ipairs { { 5, 3 }, { 3, 5 }, { 2, 4, 4 } } do
      check_gradient("both of qr", flow.qr, draw(shape))
      check_gradient("all of svd", function(x) return flow.svd(x, false) end, draw(shape))
      check_gradient("singular values", function(x) return (select(2, flow.svd(x))) end, draw(shape))
    end
    check_gradient("eigh", flow.eigh, a)
    check_gradient("pinv", function(x) return (flow.pinv(x)) end, b)
    check_gradient("the determinant of a singular matrix", flow.det, flow.tensor({ { 1, 2 }, { 2, 4 } }, { dtype = "float64" }))
  end)

  it("have derivatives", function()
    flow.set_random_seed(4)
    check_gradient("inv", function(x)
      local tape = flow.GradientTape()
      tape:watch(x)
      return tape:gradient(tape:record(function() return flow.inv(x):sum() end), x)
    end, draw { 3, 3 } + unit(3, "float64") * 2)
  end)

  it("that are not unique are refused", function()
    local v, tape = flow.Variable(flow.random.normal { 4, 2 }), flow.GradientTape { persistent = true }
    local q, u = tape:record(function()
      local factor, left = flow.qr(v:value(), "complete"), flow.svd(v:value())
      return factor:sum(), left:sum()
    end)
    assert.has_error(function() tape:gradient(q, v) end)
    assert.has_error(function() tape:gradient(u, v) end)
  end)
end)
