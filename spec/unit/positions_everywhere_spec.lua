-- Positions count from 1 in the same way eagerly, in traced functions, in models and in models from files.
local flow = require "flow"
local support = require "spec.support.init"

local x = flow.tensor { { 10, 20, 30 }, { 40, 50, 60 } }
local positions = flow.tensor({ { 1, 3 }, { 2, -1 } }, { dtype = "int32" })

-- By name: a function of a tensor {rows, 3} and int32 positions {rows, 2}, and its value of those above.
local CASES = {
  ["take, a tensor"] = { function(a) return flow.take(a, flow.tensor({ 1, 3 }, { dtype = "int32" }), 2) end, { { 10, 30 }, { 40, 60 } } },
  ["take, a list"] = { function(a) return flow.take(a, { 3, -3 }, 2) end, { { 30, 10 }, { 60, 40 } } },
  ["take, a number"] = { function(a) return flow.take(a, 2, 2) end, { 20, 50 } },
  ["take by the input"] = { function(_, i) return flow.take(flow.tensor { 5, 6, 7 }, i, 1) end, { { 5, 7 }, { 6, 7 } } },
  take_along_axis = { function(a, i) return flow.take_along_axis(a, i, 2) end, { { 10, 30 }, { 50, 60 } } },
  index = { function(a) return a[{ {}, { 2, 3 } }] end, { { 20, 30 }, { 50, 60 } } },
  ["index of one"] = { function(a) return a[{ {}, -1 }] end, { 30, 60 } },
  argmax = { function(a) return a:argmax(2) end, { 3, 3 } },
  ["one_hot, of ids"] = { function(_, i) return flow.one_hot(flow.maximum(i, 0), 3) end,
    { { { 0, 1, 0 }, { 0, 0, 0 } }, { { 0, 0, 1 }, { 1, 0, 0 } } } },
}

describe("positions", function()
  for name, case in pairs(CASES) do
    it("of " .. name .. " are the same ones everywhere", function()
      local f, expected = unpack(case)
      assert.same(expected, f(x, positions):totable())
      assert.same(expected, flow.fn(function(a, i) return f(a, i) end)(x, positions):totable())
      local a, i = flow.Input { 3 }, flow.Input({ 2 }, { dtype = "int32" })
      local model = flow.Model { inputs = { a, i }, outputs = f(a, i) }
      local path = support.folder() .. "/positions.keras"
      model:save(path)
      for _, made in ipairs { model, flow.load_model(path) } do
        assert.same(expected, made:predict({ x, positions }, { verbose = 0 }):totable())
        assert.same(expected, made({ x, positions }):totable())
      end
    end)
  end

  it("that are out of range are named as what counts from 1 eagerly, and in a plan with a note that they count from 0", function()
    for _, name in ipairs { "take", "take_along_axis" } do
      local function f(v, i) return flow[name](v, i, 1) end
      local values, wrong = flow.tensor { 5, 6, 7 }, flow.tensor({ 4 }, { dtype = "int32" })
      assert.is_truthy(support.message_of(function() f(values, wrong) end)
        :find("position 4 is out of range: the axis has 3 elements", 1, true))
      local traced = flow.fn(function(v, i) return f(v, i) end)
      assert.is_truthy(support.message_of(function() traced(values, wrong) end)
        :find("index 3 of row 1 is outside 0..2, counted from 0", 1, true))
    end
  end)
end)
