-- raw_op_spec.lua: flow.raw_op: ops by their records alone.
require "spec.support.init"
local flow = require "flow"

local function message_of(f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  return message
end

describe("flow.raw_op", function()
  local x = flow.tensor { { 1, 2, 3 }, { 4, 5, 6 } }

  it("sets attributes by their names: axes from 1, booleans, lists, dtypes", function()
    assert.same({ { 6, 5, 3 }, { 15, 11, 6 } }, flow.raw_op("cumsum", { x }, { axis = 2, reverse = true }):totable())
    assert.same({ { 1, 3, 6 }, { 4, 9, 15 } }, flow.raw_op("cumsum", { x }, { axis = -1 }):totable())
    assert.same({ 3, 2 }, flow.raw_op("transpose", { x }, { axes = { 2, 1 } }).shape)
    assert.same({ 6 }, flow.raw_op("reshape", { x }, { dims = { 6 } }).shape)
    assert.equal("int32", flow.raw_op("cast", { x }, { dtype = "int32" }).dtype)
  end)

  it("takes ops without attributes, several inputs, and gives several results as a list", function()
    assert.same({ 3, 5 }, flow.raw_op("add", { flow.tensor { 1, 2 }, flow.tensor { 2, 3 } }):totable())
    local quantized = flow.raw_op("quantize_weights", { x })
    assert.same({ "int8", { 3 } }, { quantized[1].dtype, quantized[2].shape })
  end)

  it("is differentiated, and traced, as every op", function()
    local tape = flow.GradientTape()
    local v = flow.Variable { 1, 2, 3 }
    local y = tape:record(function() return flow.raw_op("cumsum", { v }, { axis = 1 }):sum() end)
    assert.same({ 3, 2, 1 }, tape:gradient(y, v):totable())
    assert.same({ 1, 3 }, flow.fn(function(t) return flow.raw_op("cumsum", { t }, { axis = 1 }) end)(flow.tensor { 1, 2 }):totable())
  end)

  it("refuses names that it does not know, with the op's description", function()
    assert.truthy(message_of(flow.raw_op, "no_such_op", { x }):find('flowlua has no op "no_such_op"', 1, true))
    local message = message_of(flow.raw_op, "cumsum", { x }, { axes = { 1 } })
    assert.truthy(message:find('the op cumsum has no attribute "axes" in along: sums of', 1, true), message)
    assert.truthy(message_of(flow.raw_op, "neg", { x }, { axis = 1 }):find('the op neg has no attribute "axis": -x', 1, true))
    assert.truthy(message_of(flow.raw_op, "cumsum", { x }, { axis = "last" }):find("axis is a number, got", 1, true))
    assert.truthy(message_of(flow.raw_op, "add", { x }):find("add", 1, true))
    assert.truthy(message_of(flow.raw_op, "transpose", { x }, { axes = 2 }):find("axes is a list of numbers, got", 1, true))
    assert.truthy(message_of(flow.raw_op, "cumsum", { x }, { axis = { 1 } }):find("axis is a number, got", 1, true))
    assert.truthy(message_of(flow.raw_op, "transpose", { x }, { axes = { 1, 2, 1, 2, 1, 2, 1, 2, 1 } }):find("at most 8", 1, true))
    assert.truthy(message_of(flow.raw_op, "add", { x, nil, x }):find("entry 2 of the list is nil", 1, true))
  end)
end)
