-- random_variates_spec.lua: the moments of what random_variates.lua draws, its seeds, and rows of a batch in a trace.
require "spec.support.init"
local flow = require "flow"
local random = flow.random

local MANY = 20000

-- Mean and variance of MANY draws are these within 5 standard errors of normal ones, and a bit for skewed ones.
local function assert_moments(x, mean, variance, what)
  local spread = math.sqrt(variance / MANY)
  assert.is_true(math.abs(x:mean():item() - mean) < 6 * spread, ("%s: mean %g, expected %g"):format(what, x:mean():item(), mean))
  assert.is_true(math.abs(x:var():item() / variance - 1) < 0.1, ("%s: variance %g, expected %g"):format(what, x:var():item(), variance))
end

describe("random variates", function()
  it("have the moments of their distributions", function()
    for _, alpha in ipairs { 0.4, 1, 2.5, 30 } do
      assert_moments(random.gamma({ MANY }, alpha, { seed = 1 }), alpha, alpha, "gamma " .. alpha)
    end
    for _, p in ipairs { { 2, 3 }, { 0.5, 0.5 } } do
      local a, b = p[1], p[2]
      assert_moments(random.beta({ MANY }, a, b, { seed = 2 }), a / (a + b), a * b / (a + b) ^ 2 / (a + b + 1), "beta")
    end
    for _, n in ipairs { 1, 10, 500 } do
      local x = random.binomial({ MANY }, n, 0.3, { seed = 3 })
      assert_moments(x, 0.3 * n, 0.21 * n, "binomial " .. n)
      assert.is_true(x:min():item() >= 0 and x:max():item() <= n)
      assert.equal(0, (x - x:round()):abs():max():item())
    end
  end)

  it("choose classes, from 0, as often as their logits say", function()
    local x = random.categorical({ { 0, 1, 2 }, { 50, 0, 0 } }, MANY, { seed = 4 })
    assert.same({ 2, MANY }, x.shape)
    assert.equal("int32", x.dtype)
    local total = 1 + math.exp(1) + math.exp(2)
    for class = 0, 2 do
      local share = x[1]:eq(class):to("float32"):mean():item()
      assert.is_true(math.abs(share - math.exp(class) / total) < 0.02, ("class %d: %g"):format(class, share))
    end
    assert.equal(0, x[2]:max():item())
  end)

  it("are the same for the same seed, and others for each run of a traced function", function()
    assert.same(random.gamma({ 5 }, 2, { seed = 7 }):totable(), random.gamma({ 5 }, 2, { seed = 7 }):totable())
    local draw = flow.fn(function(x) return random.gamma({ flow.shape(x)[1], 2 }, 2) end)
    local first, second = draw(flow.zeros { 4, 1 }), draw(flow.zeros { 4, 1 })
    assert.same({ 4, 2 }, first.shape)
    assert.are_not.same(first:totable(), second:totable())
    local seeds, others = random.SeedGenerator(3), random.SeedGenerator(3)
    local one, two = seeds:next(), seeds:next()
    assert.are_not.equal(one, two)
    assert.same({ one, two }, { others:next(), others:next() })
  end)

  it("drop elements and scale the others", function()
    local x = random.dropout(flow.ones { MANY }, 0.25, { seed = 5 })
    assert.is_true(math.abs(x:eq(0):to("float32"):mean():item() - 0.25) < 0.02)
    assert.is_near(1 / 0.75, x:max():item(), 1e-6)
    assert.has_error(function() random.dropout(flow.ones { 2 }, 1) end)
  end)
end)
