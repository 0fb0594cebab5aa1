-- chain_spec.lua: elementwise ops one after the other by flow_apply_chain, of which flow.clip is one: the numbers of the ops alone, whether
-- they run in one pass, are recorded or belong to a trace.
require "spec.support.init"
local flow = require "flow"
local native = require "flow.ffi"
local backend = require "spec.support.backend"
local C = native.C

local EDGES = { -math.huge, -300, -1.5, -1, -0.0, 0, 0.5, 1, 1.5, 2, 300, math.huge, 0 / 0 }

local function apart(x, low, high) return flow.minimum(flow.maximum(x, low), high) end

-- The ops that f runs, by their names, as a profile counts them.
local function ops_of(f)
  local names = {}
  for name in tostring(flow.profile(f)):gmatch "\n%s*([%a_]+)" do names[name] = true end
  return names
end

describe("a chain of elementwise ops", function()
  it("has the numbers of its ops one after the other", function()
    for _, dtype in ipairs { "float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8", "int8" } do
      local x = flow.tensor(dtype:find "float" and EDGES or { 0, 1, 2, 3, 100 }, { dtype = dtype })
      for _, limits in ipairs { { -1, 1.5 }, { 0, 2 }, { 2, 1 }, { -0.0, 0 }, { 0 / 0, 1 }, { flow.tensor { { 0.5 }, { -1 } }, 1 } } do
        local found, expected = flow.clip(x, limits[1], limits[2]), apart(x, limits[1], limits[2])
        assert.equal(expected.dtype, found.dtype)
        backend.identical(expected, found, dtype)
      end
    end
    for rows = 1, 70 do
      local x = backend.uniform({ rows, 37 }, rows, -2, 2):to "float32"
      backend.identical(apart(x, -0.5, 0.5), flow.clip(x, -0.5, 0.5), rows .. " rows")
      local column = backend.uniform({ rows, 1 }, rows + 100, -1, 0):to "float32"
      backend.identical(apart(x, column, x + 0.1), flow.clip(x, column, x + 0.1), rows .. " rows and a column")
    end
  end)

  it("runs in one pass where nothing records it", function()
    local x = flow.tensor(EDGES)
    local names = ops_of(function() flow.clip(x, -1, 1) end)
    assert.same({ true, nil, nil }, { names.fused, names.maximum, names.minimum })
  end)

  it("has the gradients of its ops", function()
    local x = flow.Variable(flow.tensor { -2, -1, 0, 1, 2 })
    local function gradient(f)
      local y
      local tape = flow.GradientTape()
    tape:record(function() y = f(x, -1, 1) end)
      return tape:gradient(y, x):totable()
    end
    assert.same(gradient(apart), gradient(flow.clip))
    assert.same({ 0, 1, 1, 1, 0 }, gradient(flow.clip))
    local traced = flow.fn(function(t) return flow.clip(t, -1, 1) end)
    assert.same({ -1, -1, 0, 1, 1 }, traced(x:value()):totable())
  end)

  it("refuses steps that are not elementwise ops of what is there", function()
    local x, out = flow.tensor { 1 }, native.out("flow_tensor", 1)
    local inputs = native.out("flow_tensor", 1)
    inputs[0] = native.pointer(x)
    local function status(count, op, first)
      local attributes = native.attributes()
      attributes.fused.count = count
      attributes.fused.steps[0].op, attributes.fused.steps[0].inputs[0] = C.flow_op_find(op), first
      return C.flow_apply_chain(native.context, inputs, 1, attributes, out)
    end
    for _, case in ipairs { { 0, "exp", 0 }, { 33, "exp", 0 }, { 1, "exp", 1 }, { 1, "sum", 0 }, { 1, "none", 0 }, { 1, "matmul", 0 } } do
      assert.equal(C.FLOW_INVALID_ARGUMENT, status(unpack(case)))
    end
    assert.equal(0, status(1, "exp", 0))
    assert.equal(2.7182817459106445, native.tensor(out[0]):totable()[1])
    assert.equal(0, status(1, "is_finite", 0))      -- a condition: step by step
    local finite = native.tensor(out[0])
    assert.same({ "bool", { true } }, { finite.dtype, finite:totable() })
  end)
end)
