-- New axes and "..." in indices, as x[..., None] in Python.

local support = require "spec.support.init"
local flow = require "flow"

local function sizes(x)
  local list = {}
  for i = 1, #x.shape do list[i] = x.shape[i] end
  return list
end

describe("An index with new axes and \"...\"", function()
  local x = flow.arange(6):to("float32"):reshape { 2, 3 }
  local cases = {
    { { false }, { 1, 2, 3 } }, { { {}, false }, { 2, 1, 3 } }, { { "...", flow.newaxis }, { 2, 3, 1 } }, { { "...", 1 }, { 2 } },
    { { 1, "..." }, { 3 } }, { { false, "...", 2, false }, { 1, 2, 1 } }, { { {}, false, {}, false }, { 2, 1, 3, 1 } },
    { { "...", {}, {} }, { 2, 3 } },
  }

  it("gives the shapes of NumPy, eagerly, in traces and under tapes", function()
    for _, case in ipairs(cases) do
      assert.same(case[2], sizes(x[case[1]]))
      assert.same(case[2], sizes(flow.fn(function(v) return v[case[1]] end)(x)))
      assert.equal(x[case[1]]:sum():item(), flow.fn(function(v) return v[case[1]] end)(x):sum():item())
      local tape = flow.GradientTape()
      local y = tape:record(function()
        tape:watch(x)
        return x[case[1]]:sum()
      end)
      assert.same({ 2, 3 }, sizes(tape:gradient(y, x)))
    end
    assert.same({ 2, 5 }, x[{ "...", 3 }]:totable())
    assert.error_matches(function() return x[{ "...", "..." }] end, "one \"...\"")
    assert.error_matches(function() return x[{ 1, false, 1, 1 }] end, "3 positions for a tensor of rank 2")
  end)

  it("is assigned to, and saved of symbolic tensors", function()
    local y = flow.zeros { 2, 3 }
    y[{ "...", 1 }] = 9
    assert.same({ { 9, 0, 0 }, { 9, 0, 0 } }, y:totable())
    local path = support.path(".keras")
    local input = flow.Input { 3, 4 }
    local model = flow.Model { inputs = input, outputs = { input[{ "...", false }], input[{ {}, {}, flow.newaxis, 2 }] } }
    model:save(path)
    local outputs = flow.load_model(path):predict(flow.ones { 2, 3, 4 }, { verbose = 0 })
    os.remove(path)
    assert.same({ 2, 3, 4, 1 }, sizes(outputs[1]))
    assert.same({ 2, 3, 1 }, sizes(outputs[2]))
  end)
end)
