-- failed_teams_spec.lua: runs that fail while several threads work on them end, for all of the threads, and leave nothing half done. Each
-- case is a separate process, which is ended if it waits for ever.
local support = require "spec.support.init"

-- Two runs go by one thread and tell what they take; those after them go by the team until it has succeeded.
local START = [[
local flow = require "flow"
flow.config.set_threads(tonumber(arg[1]))
local x = flow.random.normal({ 4000, 8 }, { seed = 1 })
local good = flow.arange(1, 4001):to "int32"
local bad = good:copy()
bad[2500] = 99999
]]

local function check(script, what)
  local path = support.file("failed.lua", START .. script .. "\nprint 'ended'")
  for _, threads in ipairs { 1, 2, 3, 7, 64 } do
    local output, status = support.run(("timeout --signal=KILL 100 env %s %s %d"):format(support.command, path, threads))
    assert.equal("ended\n", output, ("%s, %d threads, status %d"):format(what, threads, status))
  end
end

describe("a run that fails", function()
  it("after an update ends, and takes the update back", function()
    check([[
local v, u = flow.Variable(flow.ones { 4000, 8 }), flow.Variable(flow.zeros { 4000, 8 })
local first, second = flow.optimizers.SGD(0.1), flow.optimizers.SGD(0.1)
local f = flow.fn(function(t, positions)
  local tape = flow.GradientTape()
  local loss = tape:record(function() return (v * t):sum() end)
  first:apply_gradients(tape:gradient(loss, { v }), { v })
  local after, taken = flow.GradientTape(), flow.take(v:value(), positions, 1)
  loss = after:record(function() return (u * flow.exp(taken)):sum() end)
  second:apply_gradients(after:gradient(loss, { u }), { u })
  return loss
end)
for _ = 1, 2 do f(x, good) end
local before = { v:value():copy(), u:value():copy() }
for _ = 1, 30 do
  local ok, why = pcall(f, x, bad)
  assert(not ok and tostring(why):find "is outside", why)
end
assert(v:value():eq(before[1]):all():item() and u:value():eq(before[2]):all():item(), "an update was not taken back")
f(x, good)
assert(not u:value():eq(before[2]):all():item())
]], "after an update")
  end)

  -- The condition stays true, as the round that would change it is not done.
  it("in a loop ends there, however many rounds there may be", function()
    check([[
local f = flow.fn(function(t, positions, limit)
  return flow.while_loop(function(k) return k:lt(limit) end, function(k, y)
    return k + 1, flow.tanh(flow.take(y, flow.where(k:ge(5), positions + 1e6, positions), 1))
  end, { flow.zeros {}, t }, { maximum_iterations = 1e9 })[2]
end)
for _ = 1, 2 do f(x, good, flow.tensor(3)) end
for _ = 1, 5 do
  local ok, why = pcall(f, x, good, flow.tensor(1e8))
  assert(not ok and tostring(why):find "is outside", why)
end
local expected = x
for _ = 1, 3 do expected = flow.tanh(expected) end
assert((f(x, good, flow.tensor(3)) - expected):abs():max():item() < 1e-6)
]], "in a loop")
  end)
end)

-- A stack of 1 GB has no room in 900 MB.
it("A process that may start no threads computes; pipelines that need some say what to do", function()
  if os.getenv "FLOW_SANITIZED" then return pending("a build with sanitizers takes terabytes of addresses") end
  local path = support.file("no_threads.lua", START .. [[
    print((x * 2):sum():item() == 2 * x:sum():item())
    local pipeline = flow.data.Dataset.range(100):map(function(i) return i * 2 end, { num_parallel_calls = 4 }):batch(10)
    print(pcall(function() for _ in pipeline:iter() do end end))
  ]])
  local output = support.run(("ulimit -s 1000000; ulimit -v 900000; timeout --signal=KILL 100 env %s %s 4"):format(support.command, path))
  if output:find "ulimit: " then return pending(output) end
  assert.truthy(output:find("^true\nfalse\t[^\n]*a thread of the input pipeline could not be started: the system allows no more; "
    .. "ask for fewer %(num_parallel_calls%), or raise the limit of threads %(ulimit %-u%) or of memory %(ulimit %-v%)\n$"), output)
end)
