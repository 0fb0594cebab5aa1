-- first_use_spec.lua: parts of flow are loaded when they are first named. Whatever a program begins with works, as each of these lines does
-- that is all of a program.
local support = require "spec.support.init"

local programs = {
  "print(flow.layers.Input { 4 } * 2)",
  "print(-flow.layers.Input { 4 })",
  "print(flow.layers.Input { 4, 3 }[{ {}, { 1, 2 } }])",
  "print(flow.layers.Input { 4, 3 }:sum(2))",
  "print(2 - flow.layers.Dense(3)(flow.layers.Input { 4 }))",
  "print(flow.layers.Dense(3)(flow.layers.Input { 4 }):relu())",
  "print(flow.keras.layers.Input { 4 } / flow.keras.layers.Input { 4 })",
  "print(flow.Input { 4 } + 1)",
  "print(flow.models.Input { 4 } ^ 2)",
  "print(flow.layers.Dense(3)(flow.ones { 2, 4 }) * 2)",
  "print(flow.losses.MeanSquaredError()(flow.ones { 2, 1 }, flow.zeros { 2, 1 }) + 1)",
  "local m = flow.metrics.Mean() m:update_state(flow.ones { 3 }) print(m:result() * 2)",
  "local v = flow.Variable(flow.ones { 2 }) flow.optimizers.SGD(0.1):apply_gradients({ flow.ones { 2 } }, { v }) print(v * 2)",
  "local v = flow.Variable(flow.ones { 2 }) v:assign_add(flow.ones { 2 }) print(v:mean())",
  "for x in flow.data.Dataset.range(3):map(function(x) return x * 2 end):iter() do print(x) end",
  "print(flow.random.normal({ 2 }, { seed = 1 }) * 2)",
  "print(flow.image.resize(flow.ones { 1, 2, 2, 1 }, { 4, 4 }):mean())",
  "print(flow.fn(function(x) return x * 2 end)(flow.ones { 2 }))",
  "print(flow.norm(flow.ones { 4 }) * 2)",
  "print(flow.Sequential { flow.layers.Input { 4 }, flow.layers.Dense(2) }(flow.ones { 1, 4 }):sum())",
  "local M = flow.Model:extend('M') function M:call(x) return x * 2 end print(M()(flow.ones { 1 }))",
  "local L = flow.layers.Layer:extend('L') function L:call(x) return x * 2 end print(L()(flow.layers.Input { 4 }) * 2)",
}

describe("a program may begin with", function()
  for _, program in ipairs(programs) do
    it(program, function()
      local output, code = support.run(("'%s' -e '%s'"):format(support.program, program:gsub("'", '"')))
      assert.equal(0, code, output)
      assert.is_true(#output > 0)
    end)
  end
end)
