-- The dtype of every op of two operands for every pair of dtypes, and of numbers, is Keras' (promotions.lua), in eager calls, traces and
-- functional models. There is no int16 here: int8 with uint8 gives int32, the next dtype that holds both.
local flow = require "flow"
local golden = require "spec.golden.promotions"

local NUMBERS = { ["a boolean"] = true, ["a whole number"] = 2, ["a fraction"] = 0.5 }

local dtypes = {}
for dtype in golden.dtypes:gmatch "%S+" do dtypes[#dtypes + 1] = dtype end

local CALLS = {
  where = function(a, b) return flow.where(flow.ones({ 2, 2 }, { dtype = "bool" }), a, b) end,
  concatenate = function(a, b) return flow.concatenate { a, b } end, stack = function(a, b) return flow.stack { a, b } end,
}
local function call(op, a, b) return (CALLS[op] or flow[op])(a, b) end

-- The dtypes of op between first, a number or a dtype, and each dtype, in both orders.
local function each_case(check)
  for _, group in ipairs(golden) do
    for op in group.ops:gmatch "%S+" do
      for first, row in pairs(group) do
        if first ~= "ops" then
          local i = 0
          for expected in row:gmatch "%S+" do
            i = i + 1
            -- Bools have no difference (result_dtypes_spec.lua): Keras' rule gives them one, but TensorFlow does not compute it.
            local none = op == "subtract" and dtypes[i] == "bool" and (first == "bool" or first == "a boolean")
            if not none then check(op, first, dtypes[i], expected == "int16" and "int32" or expected) end
          end
          assert.equals(#dtypes, i)
        end
      end
    end
  end
end

describe("promotion as in Keras:", function()
  local function operand(name, make)
    if NUMBERS[name] ~= nil then return NUMBERS[name] end
    return make(name)
  end

  it("eager calls", function()
    local cases = 0
    local function make(dtype) return flow.ones({ 2, 2 }, { dtype = dtype }) end
    each_case(function(op, first, second, expected)
      local a, b = operand(first, make), make(second)
      assert.equals(expected, call(op, a, b).dtype, op .. " of " .. first .. " and " .. second)
      assert.equals(expected, call(op, b, a).dtype, op .. " of " .. second .. " and " .. first)
      cases = cases + 1
    end)
    assert.is_true(cases > 1900, cases)
  end)

  it("traced calls", function()
    local inputs, at = {}, {}
    for i, dtype in ipairs(dtypes) do inputs[i], at[dtype] = flow.ones({ 2, 2 }, { dtype = dtype }), i end
    flow.fn(function(...)
      local traced = { ... }
      each_case(function(op, first, second, expected)
        local a, b = operand(first, function(dtype) return traced[at[dtype]] end), traced[at[second]]
        assert.equals(expected, call(op, a, b).dtype, op .. " of " .. first .. " and " .. second)
      end)
      return traced[1]
    end)(unpack(inputs))
  end)

  it("functional models", function()
    local inputs = {}
    for _, dtype in ipairs(dtypes) do inputs[dtype] = flow.Input({ 2, 2 }, { dtype = dtype }) end
    each_case(function(op, first, second, expected)
      if op == "where" then return end      -- its condition is not symbolic here
      local a = operand(first, function(dtype) return inputs[dtype] end)
      assert.equals(expected, call(op, a, inputs[second]).dtype, op .. " of " .. first .. " and " .. second)
    end)
  end)

  it("a number that the tensor's dtype does not hold takes the next one that does", function()
    for _, case in ipairs { { "uint8", 256, "int32" }, { "uint8", 255, "uint8" }, { "uint8", -1, "int32" }, { "int8", -128, "int8" },
                            { "int8", 128, "int32" }, { "int32", 2 ^ 31, "int64" }, { "int32", -2 ^ 31, "int32" }, { "bool", 1, "int32" },
                            { "int64", 2 ^ 62, "int64" }, { "int64", 2 ^ 63, "float32" }, { "int8", 0 / 0, "float32" },
                            { "int8", 1 / 0, "float32" }, { "float16", 1e9, "float16" } } do
      local dtype, number, expected = unpack(case)
      assert.equals(expected, (flow.ones({ 1 }, { dtype = dtype }) + number).dtype, dtype .. " + " .. number)
    end
  end)

  it("values are computed in that dtype", function()
    local halves = flow.full({ 1 }, 3, { dtype = "float16" })
    assert.equals(1.5, (halves / flow.tensor({ 2LL })):item())
    assert.equals(2 ^ 14, flow.full({ 1, 1 }, -128, { dtype = "int8" }):matmul(flow.full({ 1, 1 }, -128, { dtype = "int8" })):item())
    assert.equals(0, (flow.tensor { true } % flow.tensor { true }):item())
    assert.equals(44, (flow.full({ 1 }, 200, { dtype = "uint8" }) + flow.full({ 1 }, 100, { dtype = "uint8" })):item())
  end)
end)
