-- loop_spec.lua: strategy:run_with_recovery: workers of a loop of the user's are killed at random steps, before, after and between updates,
-- and come back; the loop ends with the bits that it has where nobody was killed. spec/dist/loop.lua is the loop.
local support = require "spec.support.init"

local STEPS = 20

-- The digest that all workers print, all that was said, and how many steps the processes that came to the end have made.
local function run(workers, arguments)
  local text, code = support.run(("FLOW_THREADS=1 FLOWLUA_PATH=%slua timeout -k 5 60 %s launch --workers %d --max-restarts 20 "
    .. "%sspec/dist/loop.lua -- --steps %d --folder %s %s"):format(support.root, support.program, workers, support.root, STEPS,
    support.folder(), arguments))
  assert.equal(0, code, text)
  local digest, steps = nil, {}
  for number, values, made in text:gmatch("digest (%d+) of (%d+) values, (%d+) steps") do
    assert.equal(digest or number .. values, number .. values, text)
    digest, steps[#steps + 1] = number .. values, tonumber(made)
  end
  assert.equal(workers, #steps, text)
  return digest, text, steps
end

local wanted = {}
local function whole(workers, arguments)
  local key = workers .. arguments
  wanted[key] = wanted[key] or run(workers, arguments)
  return wanted[key]
end

-- Three workers at random, the chief among them, each at its own step.
local function random_kills(workers, updates)
  local places, kills = updates == 2 and { "", "/", "+" } or { "", "+" }, {}
  for i = 1, 3 do
    local step, who = math.random((i - 1) * 6 + 2, i * 6), i == 1 and 0 or math.random(0, workers - 1)
    kills[i] = ("worker:%d@%d%s"):format(who, step, places[math.random(#places)])
  end
  return table.concat(kills, ",")
end

describe("a loop with recovery", function()
  math.randomseed(41)
  for _, case in ipairs {
    { 2, "shuffled", 1 }, { 2, "own", 1 }, { 2, "endless", 1 }, { 2, "none", 1 }, { 3, "shuffled", 1 }, { 3, "own", 2 },
    { 2, "shuffled", 2 },
  } do
    local workers, data, updates = unpack(case)
    local kills, arguments = random_kills(workers, updates), ("--data %s --updates %d"):format(data, updates)
    it(("goes on when workers were killed, and no bit differs: %d workers, %s, %s"):format(workers, arguments, kills), function()
      local digest, text = run(workers, arguments .. " --kill " .. kills)
      assert.equal(whole(workers, arguments), digest, text)
      assert.equal(3, select(2, text:gsub("it starts again", "")), text)
    end)
  end

  it("goes on when a worker was killed in the first step or after the last, and makes no step twice but the one under way", function()
    for _, kills in ipairs { "worker:1@1", "worker:0@end", "worker:1@20" } do
      local digest, text = run(2, "--kill " .. kills)
      assert.equal(whole(2, ""), digest, text)
    end
    local _, text, steps = run(2, "--kill worker:1@9")
    table.sort(steps)
    assert.same({ STEPS - 8, STEPS }, steps, text)
  end)

  it("begins again when a worker was killed in the first step, after its update, and says why", function()
    local digest, text = run(2, "--kill worker:1@1+")
    assert.equal(whole(2, ""), digest, text)
    assert.truthy(text:find("no worker has the state: a worker was lost in the first step, of which nobody knows yet how many "
      .. "updates it makes; start the job again", 1, true), text)
  end)

  it("goes on whatever the collectors of its workers take: the step after the loss is of fewer rows than the next one", function()
    local digest, text = run(2, "--kill worker:0@14 --collect 1")
    assert.equal(whole(2, ""), digest, text)
    assert.equal(1, select(2, text:gsub("it starts again", "")), text)
  end)

  it("waits for a worker that is preempted", function()
    local digest, text = run(2, "--preempt worker:1@5,worker:0@11")
    assert.equal(whole(2, ""), digest, text)
    assert.equal(2, select(2, text:gsub("was preempted; it starts again", "")), text)
  end)

  it("runs alone, too, and says what it takes", function()
    local script = support.file("alone.lua", [[
      local flow = require "flow"
      local strategy = flow.distribute.MirroredStrategy()
      local v = flow.Variable(0)
      local checkpoint = flow.train.Checkpoint { v = v }
      local data = strategy:experimental_distribute_dataset(flow.data.Dataset.range(3):batch(1))
      print("made", strategy:run_with_recovery(function(step, x) v:assign_add(x[1] * step) end,
        { steps = 5, checkpoint = checkpoint, dataset = data }), v:item())
      print(select(2, pcall(strategy.run_with_recovery, strategy, print, { steps = 5, checkpoint = v })))
      print(select(2, pcall(strategy.run_with_recovery, strategy, print, { steps = 5, checkpoint = checkpoint, dataset = { 1 } })))]])
    local text, code = support.run(("%s %s"):format(support.program, script))
    assert.equal(0, code, text)
    assert.truthy(text:find("made\t5\t13", 1, true), text)      -- 0 * 1 + 1 * 2 + 2 * 3 + 0 * 4 + 1 * 5
    assert.truthy(text:find("checkpoint is a flow.train.Checkpoint { ... } of all that the steps change, got", 1, true), text)
    assert.truthy(text:find("dataset is one of strategy:experimental_distribute_dataset, got", 1, true), text)
  end)
end)
