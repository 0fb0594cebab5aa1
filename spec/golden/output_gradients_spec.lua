--- tape:gradient(target, sources, output_gradients) against TensorFlow's, of one target and of lists, eagerly and traced.
local support = require "spec.support.init"
local flow = require "flow"
local expected = require "spec.golden.output_gradients"
local message_of = support.message_of

local function variable(value)
  return flow.Variable(value, { dtype = "float64" })
end

-- What a case asks for, as { gradient by x, w, u, y }. A single target is not in a list.
local function gradients_of(case)
  local x, w, u = variable(expected.x), variable(expected.w), variable(expected.u)
  local tape = flow.GradientTape()
  local recorded = tape:record(function()
    local y = (x:matmul(w) * 0.1):tanh()
    return { y = y, z = (x * x):sum(2) * u, s = y * y }
  end)
  local targets, given = {}, {}
  for name in case.targets:gmatch(".") do
    targets[#targets + 1] = recorded[name]
    if case.weighed:find(name) then given[#targets] = expected[name] end
  end
  local sources = { x = x, w = w, u = u, y = recorded.y }
  if #targets == 1 then return tape:gradient(targets[1], sources, given[1]) end
  if case.weighed == "" then return tape:gradient(targets, sources) end
  return tape:gradient(targets, sources, { output_gradients = given })
end

local function same(found, wanted, what)
  assert.equal(wanted ~= nil, found ~= nil, what)
  if wanted == nil then return end
  local difference = (found - flow.tensor(wanted, { dtype = "float64" })):abs():max():item()
  assert.is_true(difference < 1e-12, ("%s differs by %g"):format(what, difference))
end

describe("gradients with gradients of what follows", function()
  for _, case in ipairs(expected.cases) do
    local title = ("of %s, given for %s"):format(case.targets, case.weighed == "" and "none" or case.weighed)
    for how, call in pairs { eagerly = gradients_of, traced = flow.fn(gradients_of) } do
      it(("are TensorFlow's %s, %s"):format(title, how), function()
        local found = call(case)
        for _, name in ipairs { "x", "w", "u", "y" } do same(found[name], case.gradients[name], title .. " by " .. name) end
      end)
    end
  end

  it("are zeros for what no target depends on, where that is asked for", function()
    local v, other, tape = flow.Variable { 1, 2 }, flow.Variable { 3, 4, 5 }, flow.GradientTape()
    local y = tape:record(function() return v * v end)
    local gradients = tape:gradient(y, { v, other }, { output_gradients = { 10, 100 }, unconnected_gradients = "zero" })
    assert.same({ 20, 400 }, gradients[1]:totable())
    assert.same({ 0, 0, 0 }, gradients[2]:totable())
  end)

  it("have the structure and the shapes of the target", function()
    local v, tape = flow.Variable { { 1, 2, 3 }, { 4, 5, 6 } }, flow.GradientTape()
    local y = tape:record(function() return v * 2 end)
    local refused = {
      [function() tape:gradient(y, v, { 1, 2 }) end] = "gradient: the output gradient has the shape {2}, its target {2, 3}",
      [function() tape:gradient(y, v, 1) end] = "gradient: the output gradient has the shape {}, its target {2, 3}",
      [function() tape:gradient({ y }, v, 5) end]
        = "gradient(): output_gradients has the structure of the target, a list, got the number 5",
      [function() tape:gradient({ y }, v, { y, y }) end] = "gradient(): output_gradients has the entry 2, the target has not",
      [function() tape:gradient({ y, nil, y }, v) end] = "gradient(): the target: entry 2 of the list is nil: is a name misspelt?",
      [function() tape:gradient(y, v, y, "ones") end]
        = 'tape:gradient: unconnected_gradients is "none" or "zero", got the string "ones"',
      [function() tape:gradient(y, v, { output_gradient = y }) end]
        = 'tape:gradient: unknown option "output_gradient"; did you mean "output_gradients"?',
    }
    for f, message in pairs(refused) do assert.equal(message, message_of(f)) end
  end)
end)
