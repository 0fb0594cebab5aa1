--- Comparisons, what is made of conditions, and choices by them join the chains of elementwise ops in plans: the values and gradients are
--- those of eager calls, to the bit. Programs are random; FLOW_CASES=10000 tries this many.
local flow = require "flow"
local arguments = require "spec.backend.random_ops.arguments"
local backend = require "spec.support.backend"

local FIRST, LAST = (require "spec.support.case_numbers")(60)

local NUMBERS = {
  function(a, b) return a + b end, function(a, b) return a * b end, function(a, b) return a - b end,
  function(a, b) return flow.maximum(a, b) end, function(a) return flow.abs(a) end, function(a) return flow.tanh(a) end,
  function(a) return flow.relu(a) end, function(a) return a * 0.5 end, function(a) return flow.minimum(a, 0.25) end,
}
local COMPARISONS = {
  function(a, b) return a:gt(b) end, function(a, b) return a:le(b) end, function(a) return a:lt(0.125) end, function(a) return a:ge(0) end,
  function(a, b) return flow.ne(a, b) end, function(a) return flow.is_finite(a) end,
}
local LOGICAL = {
  function(p, q) return flow.logical_and(p, q) end, function(p, q) return flow.logical_or(p, q) end,
  function(p) return flow.logical_not(p) end,
}

-- A function of two tensors and a condition that makes numbers and conditions of what it has so far and returns some of them.
local function random_program(number)
  local draw = arguments.source(number).draw
  local steps = {}
  for i = 1, draw(3, 14) do steps[i] = { draw(1, 6), draw(1, 1000), draw(1, 1000), draw(1, 1000), draw(1, 1000) } end
  local returned = draw(1, 3)
  return function(x, y, given)
    local numbers, conditions = { x, y }, { given }
    local function pick(list, at) return list[(at - 1) % #list + 1] end
    for _, s in ipairs(steps) do
      if s[1] <= 2 then
        numbers[#numbers + 1] = pick(NUMBERS, s[2])(pick(numbers, s[3]), pick(numbers, s[4]))
      elseif s[1] <= 3 then
        conditions[#conditions + 1] = pick(COMPARISONS, s[2])(pick(numbers, s[3]), pick(numbers, s[4]))
      elseif s[1] == 4 then
        conditions[#conditions + 1] = pick(LOGICAL, s[2])(pick(conditions, s[3]), pick(conditions, s[4]))
      else
        local other = s[5] % 3 == 0 and 1.5 or pick(numbers, s[4])
        numbers[#numbers + 1] = flow.where(pick(conditions, s[2]), pick(numbers, s[3]), other)
      end
    end
    local results = { numbers[#numbers] }
    if returned > 1 then results[2] = conditions[#conditions]:to "float32" end
    if returned > 2 then results[3] = pick(numbers, #numbers - 1) end
    return results
  end
end

local function same(expected, found, label)
  assert.same(expected.shape, found.shape, label)
  local a, b = flow.nan_to_num(expected, { nan = 12345 }), flow.nan_to_num(found, { nan = 12345 })
  assert.is_true(flow.all(a:eq(b)):item(), label)
end

local function ops_of(f, ...)
  f(...)
  local arguments_of = { ... }
  local names = {}
  local profile = tostring(flow.profile(function() f(unpack(arguments_of)) end))
  for name in profile:gmatch "\n(%a[%w_]*) +%a+ +[%d.]+ " do names[#names + 1] = name end
  return table.concat(names, " ")
end

describe("conditions in chains of elementwise ops", function()
  it("give the bits of eager calls, with their gradients", function()
    for number = FIRST, LAST do
      local draw = arguments.source(number + 1000000).draw
      local shape = ({ { 700 }, { 3, 5 }, { draw(1, 9), draw(1, 40) }, { 2, 1, 130 } })[draw(1, 4)]
      local x, y = backend.uniform(shape, number, -1, 1):to "float32", backend.uniform(shape, number + 1, -1, 1):to "float32"
      if draw(1, 4) == 1 then y = y[1] end                    -- which repeats along the first axis
      if draw(1, 6) == 1 then x = x / flow.cast(x:gt(-0.9), "float32") end      -- infinite and NaN
      local given, program, label = x:gt(y), random_program(number), "number " .. number
      local function f(a, b, c)
        local tape, results = flow.GradientTape(), nil
        tape:watch(a)
        tape:watch(b)
        tape:record(function() results = program(a, b, c) end)
        return results, tape:gradient(results[1], { a, b })
      end
      local expected, gradients = f(x, y, given)
      local found, found_gradients = flow.fn(f)(x, y, given)
      for i = 1, #expected do same(expected[i], found[i], label .. ", result " .. i) end
      for i = 1, 2 do
        if gradients[i] then same(gradients[i], found_gradients[i], label .. ", gradient " .. i) end
      end
    end
  end)

  it("take one pass where a condition chooses between what is made of the same tensor", function()
    local x = backend.uniform({ 64, 100 }, 1, -1, 1):to "float32"
    assert.equal("fused", ops_of(flow.fn(function(a) return flow.where(a:gt(0), a, a * 0.3) end), x))
    local both = flow.fn(function(a)
      local above = a:gt(0)
      return flow.where(above, a, a * 0.3), flow.where(above, flow.tanh(a), a)
    end)
    assert.equal("fused", ops_of(both, x))
    local mask = x:lt(0.5)
    assert.equal("fused", ops_of(flow.fn(function(a, m) return flow.where(flow.logical_and(m, a:gt(0)), a * a, 0) end), x, mask))
  end)
end)
