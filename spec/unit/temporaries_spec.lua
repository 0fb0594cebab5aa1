-- Ops that are made of others release the tensors that they make on their way when they return, not when a collection comes; what they
-- return stays, alone and in lists, and so does what they were given.
require "spec.support.init"
local flow = require "flow"
local native = require "flow.ffi"

local function live() return native.C.flow_live_bytes() end

-- Calls f without a collection; returns how many bytes more are alive afterwards, and its result.
local function grown(f)
  f()
  collectgarbage()
  collectgarbage("stop")
  local before = live()
  local result = f()
  local after = live()
  collectgarbage("restart")
  return after - before, result
end

local n = 100000
local x = flow.random.uniform({ n }, { seed = 1 })
local rows = x:reshape { 1000, 100 }
local places = (x * (n - 1)):to("int32"):reshape { n, 1 } + 1
local labels = (x * 10):to "int32"

-- A call, and the bytes of its result.
local CALLS = {
  roll = { function() return flow.roll(x, 3) end, 4 * n },
  diff = { function() return flow.diff(x) end, 4 * n },
  scatter = { function() return flow.scatter(places, x, { n }) end, 4 * n },
  scatter_update = { function() return flow.scatter_update(x, places, x, "add") end, 4 * n },
  segment_sum = { function() return flow.segment_sum(x, labels, 10) end, 40 },
  layer_normalization = { function() return flow.layer_normalization(rows) end, 4 * n },
  normalize = { function() return flow.normalize(rows, -1) end, 4 * n },
  tril = { function() return flow.tril(rows) end, 4 * n },
  clip_by_norm = { function() return flow.clip_by_norm(x, 1) end, 4 * n },
  histogram = { function() return flow.histogram(x, 10)[1] end, 40 },
}

describe("temporaries of", function()
  for name, call in pairs(CALLS) do
    it(name .. " are released when it returns", function()
      local more, result = grown(call[1])
      if more > call[2] + 60000 then error(("%d bytes more, expected %d"):format(more, call[2])) end
      assert.is_true(result ~= nil and result.size > 0)
    end)
  end
end)

describe("what an op made of others", function()
  it("was given stays, also where it is the result", function()
    local a = flow.tensor { 1, 2, 3 }
    assert.same({ 1, 2, 3 }, flow.roll(a, 0):totable())
    assert.same({ 3, 1, 2 }, flow.roll(a, 1):totable())
    assert.same({ 1, 2, 3 }, a:totable())
  end)

  it("returns in lists stays", function()
    for _, part in ipairs(flow.array_split(flow.arange(6), 3)) do assert.equal(2, part.size) end
    local values, counts = unpack(flow.unique({ 3, 1, 3 }, { return_counts = true }))
    assert.same({ 1, 3 }, values:totable())
    assert.same({ 1, 2 }, counts:totable())
    for _, one in ipairs { flow.moments(rows, { 1, 2 }) } do assert.is_true(one:item() > 0) end
  end)

  it("makes is there for a tape and in a trace", function()
    local a = flow.Variable { 1, 2, 3, 4 }
    local tape = flow.GradientTape()
    local y = tape:record(function() return flow.sum(flow.diff(a) * flow.roll(a, 1)[{ { 2, 4 } }]) end)
    assert.equal(6, y:item())
    assert.same({ 0, 0, 0, 3 }, tape:gradient(y, a):totable())
    assert.same({ 1, 1, 1 }, flow.fn(function(t) return flow.diff(t) end)(flow.tensor { 1, 2, 3, 4 }):totable())
  end)

  it("made before it fails hinders no later call", function()
    for _ = 1, 3 do assert.is_false(pcall(flow.scatter, flow.tensor { { 9 } }, flow.tensor { 1 }, { 3 })) end
    local kept = flow.ones { 4 } * 2
    assert.same({ 2, 0, 0 }, flow.scatter({ { 1 } }, { 2 }, { 3 }):totable())
    assert.same({ 2, 2, 2, 2 }, kept:totable())
  end)
end)
