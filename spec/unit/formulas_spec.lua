-- Functions that are made of elementwise ops: of tensors that nothing records all ops run in one pass over memory, and the numbers are to
-- the bit those of one op after the other, which a tape makes run.
require "spec.support.init"
local flow = require "flow"

local SPECIAL = { 0, -0.0, 1, -1, 0.5, -0.5, 1e-30, -1e-30, 1e30, -1e30, math.huge, -math.huge, 0 / 0, 2, 3, -3, 5, 100, -100, 0.999, 1e-45,
  3.4e38 }
local ONE = { "exp2", "log2", "log10", "cbrt", "arcsin", "arccos", "sinh", "cosh", "arcsinh", "arccosh", "arctanh", "deg2rad", "rad2deg",
  "sinc", "erfinv", "i0", "trunc", "isinf", "signbit", "nan_to_num", "angle", "celu", "hard_shrink", "soft_shrink", "squareplus" }
local TWO = { "logaddexp", "logaddexp2", "hypot", "ldexp", "arctan2", "fmod", "fmax", "fmin", "heaviside", "isclose" }

-- The bits of all elements, of 64-bit integers as text.
local function bits(x)
  x = flow.flatten(x):contiguous()
  local list = (x.dtype == "bool" and x:to "int32" or flow.view(x, x.dtype == "float32" and "int32" or "int64")):totable()
  for i, number in ipairs(list) do list[i] = tostring(number) end
  return list
end

local function one_after_the_other(f, x, y)
  local tape = flow.GradientTape()
  return tape:record(function()
    tape:watch(x)
    return f(x, y)
  end)
end

-- The ops that f runs, by their names, as a profile counts them.
local function ops_of(f)
  local names = {}
  for name in tostring(flow.profile(f)):gmatch "\n%s*([%a_]+)" do names[name] = true end
  return names
end

describe("a function made of elementwise ops", function()
  for _, dtype in ipairs { "float32", "float64" } do
    local special = flow.tensor(SPECIAL, { dtype = dtype })
    local x = flow.concat({ special, (flow.random.normal({ 1500 }, { seed = 1 }) * 2):to(dtype) }, 1)
    local column, row = x[{ { 1, 60 } }]:reshape { 60, 1 }, x[{ { 1, 150 } }]
    it("has the bits of its ops, of " .. dtype, function()
      for _, name in ipairs(ONE) do
        assert.same(bits(one_after_the_other(flow[name], x)), bits(flow[name](x)), name)
        assert.same(bits(one_after_the_other(flow[name], column)), bits(flow[name](column)), name .. " of a column")
      end
      for _, name in ipairs(TWO) do
        assert.same(bits(one_after_the_other(flow[name], column, row)), bits(flow[name](column, row)), name .. " of column and row")
        assert.same(bits(one_after_the_other(flow[name], x, x * 1.5)), bits(flow[name](x, x * 1.5)), name)
        assert.same(bits(one_after_the_other(flow[name], x, 1.5)), bits(flow[name](x, 1.5)), name .. " of a number")
      end
    end)

    it("runs in one pass where nothing records it, of " .. dtype, function()
      for _, name in ipairs { "hypot", "arctan2", "logaddexp" } do
        local names = ops_of(function() flow[name](x, x) end)
        assert.is_true(names.fused)
        assert.is_nil(names.where)
      end
    end)
  end

  it("takes tensors for its numbers, also of several elements", function()
    local x = flow.tensor { -2, -0.3, 0, 0.3, 2 }
    local values, tensors = { 0.4, 0.4, 0.4, 2, 2 }, flow.tensor { 0.4, 0.4, 0.4, 2, 2 }
    for _, name in ipairs { "celu", "hard_shrink", "soft_shrink", "squareplus", "threshold" } do
      local f, other = flow[name], name == "threshold" and 7 or nil
      assert.same(f(x, 0.4, other):totable(), f(x, flow.tensor(0.4), other and flow.tensor(other)):totable(), name)
      local expected = {}
      for i, value in ipairs(values) do expected[i] = f(x[i], value, other):item() end
      assert.same(expected, f(x, tensors, other):totable(), name .. " of several")
    end
  end)
end)
