-- edges_spec.lua: activations, layers, functions and losses where their branches meet: values and gradients are Keras' (edges.py), eagerly
-- and traced.
require "spec.support.init"
local flow = require "flow"

local folder = debug.getinfo(1, "S").source:match("^@(.*)edges_spec%.lua$")
local cases = dofile(folder .. "edges.lua")
local ops = flow.keras.ops

local KINDS = {
  activation = function(case) return flow.layers.Activation(case.name) end,
  ["function"] = function(case)
    return function(x) return next(case.options) and ops[case.name](x, case.options) or ops[case.name](x) end
  end,
  layer = function(case)
    local layer = flow.layers[case.name](case.options)
    return function(x) return layer(x:expand_dims(2)):squeeze(2) end
  end,
  formula = function(case)
    local text = ("return function(ops) return function(x) return %s end end"):format(case.name)
    return assert(loadstring(text))()(ops)
  end,
  loss = function(case)
    local loss, labels = flow.losses[case.name](case.options), flow.tensor { case.labels }
    return function(x) return loss(labels, x:expand_dims(1)):reshape { 1 } end
  end,
}

local function assert_near(expected, found, what)
  assert.equal(#expected, #found, what)
  for i, x in ipairs(expected) do
    local y = found[i]
    local near = x == y or x ~= x and y ~= y or math.abs(x - y) <= 3e-5 * math.max(1, math.abs(x))
    assert.is_true(near, ("%s %d: %.7g, Keras has %.7g"):format(what, i, y, x))
  end
end

for _, case in ipairs(cases) do
  local title = ("%s %s"):format(case.kind, case.name)
  for name, value in pairs(case.options) do title = ("%s, %s = %s"):format(title, name, tostring(value)) end
  if case.labels then title = ("%s, labels %g %g"):format(title, case.labels[1], case.labels[2]) end
  it(title .. " has Keras' values and gradients where branches meet", function()
    local f = KINDS[case.kind](case)
    local function step(x)
      local tape, y = flow.GradientTape(), nil
      tape:watch(x)
      local sum = tape:record(function()
        y = f(x)
        return y:sum()
      end)
      return y, tape:gradient(sum, { x }, nil, "zero")[1]
    end
    for how, run in pairs { eager = step, traced = flow.fn(step) } do
      if how == "traced" then f(flow.tensor(cases.points)) end      -- variables are made outside
      local y, gradient = run(flow.tensor(cases.points))
      assert_near(case.values, y:totable(), how .. ": value")
      assert_near(case.gradients, gradient:totable(), how .. ": gradient")
    end
  end)
end
