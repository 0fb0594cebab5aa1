-- edges_spec.lua: activations, layers, functions and losses where their branches meet, and at very small, very large and infinite numbers
-- and NaN: values and gradients are Keras' (edges.py, extremes.py), eagerly and traced.
require "spec.support.init"
local flow = require "flow"

local folder = debug.getinfo(1, "S").source:match("^@(.*)edges_spec%.lua$")
local cases = {}
for _, name in ipairs { "edges", "extremes" } do
  local list = dofile(folder .. name .. ".lua")
  for _, case in ipairs(list) do
    case.points, case.extreme = list.points, name == "extremes"
    cases[#cases + 1] = case
  end
end
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

-- Of extremes, by name, what differs: TensorFlow's formulas round there, and what a NaN has as its gradient says nothing.
local OTHERS = {
  elu = { [-1e-20] = true, [-1e-4] = true, nan = true }, ELU = { [-1e-20] = true, [-1e-4] = true, nan = true },
  selu = { [-1e-20] = true, [-1e-4] = true, nan = true }, erfinv = { [1e-20] = true, [-1e-20] = true, [1e-4] = true, [-1e-4] = true },
  ReLU = { nan = true }, sparse_plus = { nan = true }, sparse_sigmoid = { nan = true }, celu = { nan = true },
  i0 = "all",
}

-- Also of NaN: the same. Where an extreme number has NaN in Keras, from a product of 0 and infinity, there may be the limit here.
local function is_near(case, i, x, y)
  if x == y or x ~= x and y ~= y or math.abs(x - y) <= 3e-5 * math.max(case.extreme and 1e-32 or 1, math.abs(x)) then return true end
  if not case.extreme then return false end
  local point, others = case.points[i], OTHERS[case.name]
  if point == point and x ~= x then return true end
  return others == "all" or others and others[point == point and point or "nan"] or false
end

local function assert_near(case, expected, found, what)
  assert.equal(#expected, #found, what)
  for i, x in ipairs(expected) do
    local y = found[i]
    assert.is_true(is_near(case, i, x, y), ("%s of %g: %.7g, Keras has %.7g"):format(what, case.points[i], y, x))
  end
end

for _, case in ipairs(cases) do
  local title = ("%s %s"):format(case.kind, case.name)
  for name, value in pairs(case.options) do title = ("%s, %s = %s"):format(title, name, tostring(value)) end
  if case.labels then title = ("%s, labels %g %g"):format(title, case.labels[1], case.labels[2]) end
  it(title .. " has Keras' values and gradients " .. (case.extreme and "at extremes" or "where branches meet"), function()
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
      if how == "traced" then f(flow.tensor(case.points)) end      -- variables are made outside
      local y, gradient = run(flow.tensor(case.points))
      assert_near(case, case.values, y:totable(), how .. ": value")
      assert_near(case, case.gradients, gradient:totable(), how .. ": gradient")
    end
  end)
end
