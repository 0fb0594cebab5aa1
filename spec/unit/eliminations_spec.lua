-- eliminations_spec.lua: what is computed of matrices and of bits where nothing records is what ops give under a tape or in a trace:
-- shapes, dtypes, values within rounding; and what is singular or not positive definite ends in the same infinities and NaN.
require "spec.support.init"
local flow = require "flow"

local SHAPES = { { 1, 1 }, { 3, 3 }, { 7, 7 }, { 20, 20 }, { 2, 3, 5, 5 } }

-- f(x, ...) eagerly and under a tape.
local function both_ways(what, f, x, ...)
  local more, variable, tape = { ... }, flow.Variable(x), flow.GradientTape()
  local eager = { f(x, ...) }
  local recorded = tape:record(function() return { f(variable:value(), unpack(more)) } end)
  assert.equal(#recorded, #eager, what)
  for i, found in ipairs(eager) do
    local expected = recorded[i]
    assert.same(expected.shape, found.shape, what)
    assert.equal(expected.dtype, found.dtype, what)
    local scale = math.max(expected:abs():max():item(), 1)
    local off = (found:to("float64") - expected:to("float64")):abs():max():item()
    local most = scale * (x.dtype == "float64" and 1e-11 or 2e-4)
    assert.is_true(off <= most, ("%s, result %d is off by %g of %g"):format(what, i, off, scale))
  end
end

describe("linear algebra of eager matrices", function()
  it("is that of recorded ones", function()
    flow.set_random_seed(7)
    for _, dtype in ipairs { "float32", "float64" } do
      for _, shape in ipairs(SHAPES) do
        local n = shape[#shape]
        local x = flow.random.normal(shape):to(dtype) + 2 * flow.eye(n, { dtype = dtype })
        local positive = flow.matmul(x, x:swapaxes(-1, -2)) + flow.eye(n, { dtype = dtype })
        local right = flow.random.normal({ n, 3 }):to(dtype)
        local what = (" of %s {%s}"):format(dtype, table.concat(shape, ", "))
        for _, name in ipairs { "inv", "det", "slogdet", "lu_factor", "qr" } do both_ways(name .. what, flow[name], x) end
        both_ways("all of qr" .. what, flow.qr, x, "complete")
        both_ways("cholesky" .. what, flow.cholesky, positive)
        both_ways("upper cholesky" .. what, flow.cholesky, positive, true)
        both_ways("cholesky_inverse" .. what, flow.cholesky_inverse, flow.cholesky(positive))
        both_ways("solve" .. what, flow.solve, x, right)
        both_ways("lower triangle" .. what, flow.solve_triangular, flow.tril(x) + 3 * flow.eye(n, { dtype = dtype }), right, true)
        both_ways("upper triangle" .. what, flow.solve_triangular, flow.triu(x) + 3 * flow.eye(n, { dtype = dtype }), right, false)
      end
    end
    for _, shape in ipairs { { 5, 3 }, { 3, 5 }, { 2, 4, 2 }, { 6, 1 }, { 1, 6 } } do
      both_ways("qr", flow.qr, flow.random.normal(shape))
      both_ways("all of qr", flow.qr, flow.random.normal(shape), "complete")
    end
  end)

  it("has no result where there is none, and takes no matrices", function()
    assert.equal(0, flow.det(flow.tensor { { 1, 2 }, { 2, 4 } }):item())
    assert.is_false(flow.all(flow.isfinite(flow.inv(flow.tensor { { 1, 2 }, { 2, 4 } }))):item())
    assert.is_true(flow.isnan(flow.cholesky(flow.tensor { { 1, 2 }, { 2, 1 } }))[{ 2, 2 }]:item())
    assert.same({ 0, 4, 4 }, flow.inv(flow.zeros { 0, 4, 4 }).shape)
    assert.same({ 0 }, flow.det(flow.zeros { 0, 4, 4 }).shape)
    assert.is_true(flow.all(flow.isnan(flow.inv(flow.tensor { { 0 / 0, 1 }, { 1, 1 } }))):item())
  end)
end)

describe("bits of eager tensors", function()
  it("are those of traced ones", function()
    flow.set_random_seed(8)
    for dtype, range in pairs { int8 = { -128, 128 }, uint8 = { 0, 256 }, int32 = { -2 ^ 31, 2 ^ 31 }, int64 = { -2 ^ 52, 2 ^ 52 } } do
      local function draw(shape)
        return flow.floor(flow.random.uniform(shape, { minval = range[1], maxval = range[2], dtype = "float64" })):to(dtype)
      end
      local a, b = draw { 50, 1 }, draw { 1, 40 }
      for _, name in ipairs { "bitwise_and", "bitwise_or", "bitwise_xor" } do
        local found, expected = flow[name](a, b), flow.fn(function(x, y) return flow[name](x, y) end)(a, b)
        assert.equal(expected.dtype, found.dtype)
        assert.same(expected:totable(), found:totable(), name .. " of " .. dtype)
      end
    end
    local most, least = flow.tensor { 9223372036854775807LL }, flow.tensor { -9223372036854775807LL - 1 }
    assert.is_true(flow.bitwise_or(most, least)[1]:item() == -1LL)
    assert.is_true(flow.bitwise_and(least, flow.tensor { -1LL })[1]:item() == -9223372036854775807LL - 1)
    assert.same({ 0, 3 }, flow.bitwise_and(flow.zeros({ 0, 3 }, { dtype = "int32" }), 1).shape)
  end)
end)
