-- random_order_spec.lua: flow.random.shuffle and permutation, eager and in traced functions: each run draws a new order of all rows, a seed
-- fixes it, gradients go back to their rows.
require "spec.support.init"
local flow = require "flow"
local random = flow.random

--- The rows of a matrix {n, 2} whose rows are {i, -i}, as a list of i; fails if a row was torn.
local function order_of(x)
  local order = {}
  for i, row in ipairs(x:totable()) do
    assert.equal(row[1], -row[2])
    order[i] = row[1]
  end
  return order
end

local function rows(n)
  local list = {}
  for i = 1, n do list[i] = { i, -i } end
  return flow.tensor(list)
end

local function assert_all(order, n)
  local sorted = { unpack(order) }
  table.sort(sorted)
  assert.equal(n, #sorted)
  for i = 1, n do assert.equal(i, sorted[i]) end
end

--- How many different orders `runs` calls give.
local function count(runs, f)
  local seen, different = {}, 0
  for _ = 1, runs do
    local key = table.concat(f(), " ")
    if not seen[key] then different = different + 1 end
    seen[key] = true
  end
  return different
end

describe("a random order", function()
  it("is drawn anew by each run of a traced function", function()
    local f = flow.fn(function(x) return random.shuffle(x), random.permutation(9) end)
    local of_rows, of_numbers = {}, {}
    assert.is_true(count(8, function()
      local shuffled, numbers = f(rows(9))
      of_rows, of_numbers = order_of(shuffled), numbers:totable()
      assert.equal("int64", numbers.dtype)
      assert_all(of_rows, 9)
      assert_all(of_numbers, 9)
      return of_rows
    end) > 5)
    assert.is_true(count(8, function() return (select(2, f(rows(9)))):totable() end) > 5)
  end)

  it("follows from a seed: eager, in a traced function, and of a batch whose rows are not known there", function()
    local f = flow.fn(function(x)
      return random.shuffle(x, { seed = 3 }), random.permutation(9, { seed = 4 }), random.shuffle(x[1], { seed = 5 })
    end)
    local of_batch = order_of((f(rows(9))))
    for _ = 1, 2 do
      local shuffled, numbers, fixed = f(rows(9))
      assert.same(of_batch, order_of(shuffled))
      assert.same(random.permutation(9, { seed = 4 }):totable(), numbers:totable())
      assert.same(random.shuffle(rows(9)[1], { seed = 5 }):totable(), fixed:totable())
    end
    assert.same(random.shuffle(rows(9), { seed = 3 }):totable(), random.shuffle(rows(9), { seed = 3 }):totable())
  end)

  it("is another one for each element of a dataset", function()
    local ds = flow.data.Dataset.range(8):map(function() return random.shuffle(rows(9)) end)
    local orders = {}
    for x in ds:iter() do
      assert_all(order_of(x), 9)
      orders[#orders + 1] = order_of(x)
    end
    assert.equal(8, #orders)
    assert.is_true(count(8, function() return table.remove(orders) end) > 5)
  end)

  it("is one of the rows of a batch, also of a last one that is smaller", function()
    local Mixed = flow.layers.Layer:extend "Mixed"
    function Mixed:call(x) return random.shuffle(x) end      -- luacheck: no unused args
    local model = flow.Sequential { flow.Input { 2 }, Mixed() }
    for _, n in ipairs { 1, 2, 4, 5, 7, 4 } do
      local order = order_of(model:predict(rows(n), { batch_size = 4 }))
      assert_all(order, n)
      for i, row in ipairs(order) do assert.equal(math.floor((i - 1) / 4), math.floor((row - 1) / 4)) end
    end
  end)

  it("lets gradients go back to the rows that they came from", function()
    local x, weights = flow.Variable(rows(5)), flow.tensor { { 1, 1 }, { 10, 10 }, { 100, 100 }, { 1000, 1000 }, { 10000, 10000 } }
    local tape, order = flow.GradientTape(), nil
    local loss = tape:record(function()
      local shuffled = random.shuffle(x)
      order = order_of(shuffled)
      return (shuffled * weights):sum()
    end)
    local gradient = tape:gradient(loss, x)
    for i, row in ipairs(order) do assert.equal(10 ^ (i - 1), gradient[row][1]:item()) end
  end)

  it("of nothing is nothing, and a scalar has no rows", function()
    assert.same({ 0, 3 }, random.shuffle(flow.zeros { 0, 3 }).shape)
    assert.equal(0, #random.permutation(0))
    assert.has_error(function() random.shuffle(flow.tensor(3)) end)
    local _, message = pcall(flow.fn(function(x) return random.shuffle(x:sum()) end), rows(2))
    assert.truthy(message:find("a scalar has no rows", 1, true), message)
  end)
end)
