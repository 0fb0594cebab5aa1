-- bitwise_spec.lua: what is computed of bits where nothing records is what ops give in a trace.
require "spec.support.init"
local flow = require "flow"

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
    for _, dtype in ipairs { "int8", "uint8", "int32", "int64" } do
      local function numbers(list) return flow.tensor(list, { dtype = "int64" }):to(dtype) end
      local a = numbers { 1, -1, 100, -100, 77, -128, 127 }:reshape { 7, 1 }
      local b = numbers { 0, 1, 3, 6, 7, 8, 31, 32, 62, 63, 64, 100, -1, -2 }
      for _, name in ipairs { "left_shift", "right_shift" } do
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
