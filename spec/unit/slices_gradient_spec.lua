-- slices_gradient_spec.lua: gradients of tensors that are read in parts, against sums written out by hand: eager and traced, parts that
-- touch, overlap, leave gaps, go along several axes, in steps.
require "spec.support.init"
local flow = require "flow"

local FIRST, LAST = (require "spec.support.case_numbers")(150)

-- Random choices of one seed.
local function drawing(seed)
  local state = (seed * 2654435761 + 12345) % 4294967296
  return function(low, high)
    state = (state * 1664525 + 1013904223) % 4294967296
    return low + math.floor(state / 65536) % (high - low + 1)
  end
end

-- Index of a part of a shape: along one axis, or any, in stretches, single positions or steps.
local function index_of(draw, shape, only, traced)
  local index, chosen = {}, only or draw(traced and 2 or 1, #shape)
  for axis = 1, #shape do
    index[axis] = {}
    if axis == chosen or not only and axis > (traced and 1 or 0) and draw(1, 4) == 1 then
      local from = draw(1, shape[axis])
      local to = draw(from, shape[axis])
      index[axis] = draw(1, 3) == 1 and from or draw(1, 5) == 1 and { from, to, 2 } or { from, to }
    end
  end
  return index
end

local function covers(entry, position)
  if type(entry) == "number" then return entry == position end
  if #entry == 0 then return true end
  return position >= entry[1] and position <= entry[2] and (position - entry[1]) % (entry[3] or 1) == 0
end

-- d sum_i (weight_i * part_i^2) / dx, and of x's own square where `whole`.
local function expected(x, shape, parts, whole)
  local list = {}
  local function walk(at, position, value)
    if at > #shape then
      local factor = whole and 2 or 0
      for _, part in ipairs(parts) do
        local inside = true
        for axis = 1, #shape do inside = inside and covers(part.index[axis], position[axis]) end
        if inside then factor = factor + 2 * part.weight end
      end
      list[#list + 1] = factor * value
      return
    end
    for i = 1, shape[at] do
      position[at] = i
      walk(at + 1, position, value[i])
    end
  end
  walk(1, {}, x:totable())
  return list
end

describe("gradients of slices", function()
  it("are sums over the slices that hold an element", function()
    for seed = FIRST, LAST do
      local draw, shape, parts = drawing(seed), {}, {}
      for axis = 1, draw(1, 3) do shape[axis] = draw(1, 5) end
      local traced = seed % 2 == 0 and #shape > 1
      local only = draw(1, 2) == 1 and draw(traced and 2 or 1, #shape) or nil
      for i = 1, draw(1, 6) do parts[i] = { index = index_of(draw, shape, only, traced), weight = draw(1, 3) } end
      local whole = draw(1, 3) == 1
      local x = flow.random.normal(shape, { seed = seed })
      local function loss_of(value)
        local loss = whole and value:square():sum() or value:sum() * 0
        for _, part in ipairs(parts) do loss = loss + (value[part.index]):square():sum() * part.weight end
        return loss
      end
      local function gradient(value)
        local tape = flow.GradientTape()
        tape:watch(value)
        local loss = tape:record(loss_of, value)
        return tape:gradient(loss, value)
      end
      local found = (traced and flow.fn(gradient) or gradient)(x):reshape { -1 }:totable()
      for i, value in ipairs(expected(x, shape, parts, whole)) do
        assert.near(value, found[i], 1e-5 * (1 + math.abs(value)), "seed " .. seed)
      end
    end
  end)

  it("have their own gradients", function()
    local x = flow.tensor { 1, 2, 3, 4 }
    local outer = flow.GradientTape()
    outer:watch(x)
    local penalty = outer:record(function()
      local inner = flow.GradientTape()
      inner:watch(x)
      local loss = inner:record(function() return (x[{ { 1, 2 } }]:square() * x[{ { 3, 4 } }]):sum() end)      -- a^2 c + b^2 d
      return inner:gradient(loss, x):square():sum()                                 -- 4 a^2 c^2 + 4 b^2 d^2 + a^4 + b^4
    end)
    local a, b, c, d = 1, 2, 3, 4
    assert.same({ 8 * a * c * c + 4 * a ^ 3, 8 * b * d * d + 4 * b ^ 3, 8 * a * a * c, 8 * b * b * d },
      outer:gradient(penalty, x):totable())
  end)
end)
