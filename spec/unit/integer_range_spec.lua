-- Numbers that an integer dtype does not hold: an error wherever a number of Lua's is written into a tensor of a dtype that was named.
local flow = require "flow"
local support = require "spec.support.init"

local RANGES = { int8 = { -128, 127 }, uint8 = { 0, 255 }, int32 = { -2 ^ 31, 2 ^ 31 - 1 }, int64 = { -2 ^ 63, 2 ^ 63 - 1024 } }
local BESIDE = { int8 = { -129, 128 }, uint8 = { -1, 256 }, int32 = { -2 ^ 31 - 1, 2 ^ 31 }, int64 = { -2 ^ 63 - 2048, 2 ^ 63 } }

-- Every way from a number to an element; each returns the tensor.
local WAYS = {
  ["flow.tensor"] = function(value, options) return flow.tensor(value, options) end,
  ["flow.tensor of a list"] = function(value, options) return flow.tensor({ { 1, value } }, options)[{ 1, { 2, 2 } }] end,
  ["flow.full"] = function(value, options) return flow.full({ 2 }, value, options) end,
  ["flow.full_like"] = function(value, options) return flow.full_like(flow.zeros({ 2 }, options), value) end,
  ["flow.full in a trace"] = function(value, options)
    return flow.fn(function(x) return flow.full({ x.shape[1] }, value, options) end)(flow.ones { 2 })
  end,
  ["flow.pad"] = function(value, options)
    return flow.pad(flow.zeros({ 1 }, options), { { 1, 0 } }, "constant", value)[{ { 1, 1 } }]
  end,
  ["flow.arange"] = function(value, options)
    return flow.arange(value, value + 4096 + math.abs(value), 8192 + 2 * math.abs(value), options)
  end,
  ["flow.linspace"] = function(value, options) return flow.linspace(value, value, 2, options) end,
  ["flow.Variable"] = function(value, options) return flow.Variable(value, options):value() end,
  ["assign()"] = function(value, options) return flow.Variable(1, options):assign(value):value() end,
  ["assign_add()"] = function(value, options) return flow.Variable(0, options):assign_add(value):value() end,
  ["assigning an element"] = function(value, options)
    local x = flow.zeros({ 2 }, options)
    x[1] = value
    return x[{ { 1, 1 } }]
  end,
}

describe("a number and an integer dtype", function()
  for way, make in pairs(WAYS) do
    it("of a number that it does not hold " .. way .. " makes nothing", function()
      for dtype, ends in pairs(BESIDE) do
        for _, value in ipairs { ends[1], ends[2], 1e30, -1e30 } do
          local message = support.message_of(function() make(value, { dtype = dtype }) end)
          assert.is_truthy(message:find(dtype .. " holds whole numbers from", 1, true), message)
        end
      end
    end)

    it("of the least and the largest " .. way .. " keeps the value", function()
      for dtype, ends in pairs(RANGES) do
        for _, value in ipairs(ends) do
          local made = make(value, { dtype = dtype })
          assert.equals(dtype, made.dtype)
          assert.equals(value, tonumber(made:reshape { -1 }[1]:item()), dtype)
        end
      end
    end)
  end

  it("of infinity and NaN is refused, but by floats and bool", function()
    for _, value in ipairs { math.huge, -math.huge, 0 / 0 } do
      for dtype in pairs(RANGES) do
        for _, way in ipairs { "flow.tensor", "flow.tensor of a list", "flow.full", "flow.full_like", "flow.Variable" } do
          local message = support.message_of(function() WAYS[way](value, { dtype = dtype }) end)
          assert.is_truthy(message:find(dtype .. " holds whole numbers from", 1, true), message)
        end
      end
      assert.equals(tostring(value), tostring(flow.full({ 1 }, value, { dtype = "float16" }):item()))
      assert.is_true(flow.tensor(value, { dtype = "bool" }):item())
    end
  end)

  it("cuts fractions off, also beside the ends", function()
    assert.same({ 1, -1, 127, -128 }, flow.tensor({ 1.5, -1.5, 127.9, -128.9 }, { dtype = "int8" }):totable())
    assert.equals(0, flow.full({}, -0.5, { dtype = "uint8" }):item())
  end)
end)

describe("a variable of a dtype", function()
  it("begins with the value and not with its float32", function()
    for _, given in ipairs { 16777217, { 16777217 }, { { 16777217 } } } do
      assert.equals(16777217, flow.Variable(given, { dtype = "int32" }):value():reshape({}):item())
    end
    assert.equals(0.1, flow.Variable(0.1, { dtype = "float64" }):value():item())
    assert.equals(0.1, flow.Variable({ 0.1 }, { dtype = "float64" }):value():item())
    assert.equals(16777217, flow.Variable({ 1 }, { dtype = "int32" }):assign({ 16777217 }):value():item())
  end)
end)

describe("arange of whole numbers", function()
  it("is int32 if that holds all of them, else int64", function()
    for _, case in ipairs {
      { 2147483646, 2147483648, 1, "int32" }, { 2147483646, 2147483649, 1, "int64" }, { 0, 2 ^ 33, 2 ^ 31, "int64" },
      { 0, 2 ^ 31, 2 ^ 30, "int32" }, { -2147483648, -2147483646, 1, "int32" }, { -2147483647, -2147483650, -1, "int64" },
      { 3e9, 3e9 + 2, 1, "int64" }, { 3e9, 3e9, 1, "int32" },
    } do
      local start, stop, step, dtype = unpack(case)
      local expected = {}
      for value = start, stop - (step > 0 and 1 or -1), step do expected[#expected + 1] = value end
      local x = flow.arange(start, stop, step)
      assert.equals(dtype, x.dtype)
      assert.same(expected, x:totable())
    end
  end)
end)
