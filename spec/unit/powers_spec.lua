--- powers_spec.lua: x ^ y for the exponents that people write, which need no logarithm, and others among them. An element's bits are the
--- same beside any neighbours, in any length, in a plan and eagerly; values beside doubles.
require "spec.support.init"
local flow = require "flow"

local EXPONENTS = { 2, 3, 0.5, 1, -1, 0, -0.5, 4, 1.5, -2, 0.3 }
local EDGES = { 0, -0, 1, -1, 0.5, -0.5, 3, 1e-30, 1e30, -1e30, 1 / 0, -1 / 0, 2.5, 1e-40 }

local function values(count, dtype)
  local list = {}
  for i = 1, count do list[i] = i % 3 == 0 and EDGES[i / 3 % #EDGES + 1] or (i * 0.37) % 5 - 1 end
  return flow.tensor(list, { dtype = dtype })
end

local function bits(x)
  local list = x:to("float64"):totable()
  for i, value in ipairs(list) do list[i] = value ~= value and "nan" or ("%.17g"):format(value) end
  return list
end

describe("x ^ y", function()
  for _, dtype in ipairs { "float32", "float64" } do
    it("has the same bits beside other exponents, and in a plan: " .. dtype, function()
      for count = 1, 70 do
        local x, mixed = values(count, dtype), {}
        for i = 1, count do mixed[i] = EXPONENTS[(i * 7 + count) % #EXPONENTS + 1] end
        local together, alone = bits(x ^ flow.tensor(mixed, { dtype = dtype })), {}
        for _, exponent in ipairs(EXPONENTS) do
          local result = bits(x ^ exponent)
          assert.same(result, bits(flow.fn(function(value) return value ^ exponent end)(x)))
          for i = 1, count do
            if mixed[i] == exponent then alone[i] = result[i] end
          end
        end
        assert.same(alone, together)
      end
    end)

    it("is as near to doubles as its dtype allows: " .. dtype, function()
      local x = values(70, dtype)
      local list = x:to("float64"):totable()
      for _, exponent in ipairs(EXPONENTS) do
        for i, value in ipairs((x ^ exponent):to("float64"):totable()) do
          local expected = list[i] ^ flow.tensor({ exponent }, { dtype = dtype }):to("float64"):item()
          if dtype == "float32" then expected = flow.tensor({ expected }, { dtype = "float64" }):to("float32"):to("float64"):item() end
          local is_near = value == expected or value ~= value and expected ~= expected
            or math.abs(value - expected) <= math.abs(expected) * (dtype == "float32" and 2 ^ -23 or 2 ^ -52)
          assert.is_true(is_near, ("%.9g ^ %g is %.9g, not %.9g"):format(list[i], exponent, value, expected))
          if expected == 0 then assert.equal(1 / expected, 1 / value) end      -- the sign of zero
        end
      end
    end)
  end

  it("has the gradients of powers", function()
    local v = flow.Variable { 0.5, -2, 3 }
    for exponent, expected in pairs { [2] = { 1, -4, 6 }, [3] = { 0.75, 12, 27 }, [1] = { 1, 1, 1 }, [-1] = { -4, -0.25, -1 / 9 } } do
      local tape = flow.GradientTape()
      local gradient = tape:gradient(tape:record(function() return (v ^ exponent):sum() end), { v })[1]:totable()
      for i = 1, 3 do assert.is_true(math.abs(gradient[i] - expected[i]) < 1e-6) end
    end
  end)
end)
