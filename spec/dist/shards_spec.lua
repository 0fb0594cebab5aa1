-- shards_spec.lua: flow.config.enable_op_determinism { shards = 8 }: the same training (training.lua) has the same losses and leaves the
-- same weights, to the last bit, whatever devices, processes, threads and engine it runs on; and so has a loop that the user writes.
local support = require "spec.support.init"
local runs = require "spec.support.replica_runs"

local MISSING = { MPI = support.missing_engine("MPI", true) }

local alone, workers, train = runs.alone, runs.workers, runs.train

local function expect_same(run, one, count)
  assert.equal(20, #run.steps, run.text)
  assert.same(one.steps, run.steps)
  assert.equal(one.validation, run.validation)
  assert.equal(count, #run.weights, run.text)
  for _, weights in ipairs(run.weights) do assert.equal(one.weights[1], weights, run.text) end
end

local first = {}

-- The run in one process that asks for several workers and is alone.
local function one(arguments)
  first[arguments] = first[arguments] or train(alone("--engine RING --shards 8 " .. arguments))
  return first[arguments]
end

describe("shards", function()
  for _, devices in ipairs { 2, 8 } do
    it(("give the same bits to any number of devices: %d"):format(devices), function()
      expect_same(train(alone(("--devices %d --shards 8"):format(devices))), one "", 1)
    end)
  end

  local cases = {
    { 2, "RING", "" }, { 4, "RING", "--last 5", "FLOW_SHARED_MEMORY=0" }, { 8, "RING", "" }, { 2, "RING", "--data tensors --last 5" },
    { 3, "RING", "--last 5" }, { 5, "RING", "", "FLOW_SHARED_MEMORY=0" }, { 4, "MPI", "" }, { 8, "MPI", "", "FLOW_SHARED_MEMORY=0" },
  }
  for _, case in ipairs(cases) do
    local count, engine, arguments, environment = unpack(case)
    it(("give the same bits to any number of workers: %d %s %s %s"):format(count, engine, arguments, environment or ""), function()
      if MISSING[engine] then return pending(MISSING[engine]) end
      expect_same(train(workers(count, engine, "--shards 8 " .. arguments, environment)), one(arguments), count)
    end)
  end

  local LOOP = support.file("loop.lua", [[
    local flow = require "flow"
    flow.config.enable_op_determinism(true, { shards = 4 })
    local strategy = flow.distribute.MultiWorkerMirroredStrategy()
    local x = flow.random.normal({ 30, 3 }, { seed = 1 })
    local w = strategy.scope(function() return flow.Variable(flow.random.normal({ 3 }, { seed = 2 })) end)
    local optimizer = flow.optimizers.SGD(0.1)
    local step = flow.fn(function(rows)
      local tape = flow.GradientTape()
      local loss = tape:record(function() return (rows * w):exp():sum() / 12 end)
      optimizer:apply_gradients(tape:gradient(loss, { w }), { w })
      return loss
    end)
    local dist = strategy:experimental_distribute_dataset(flow.data.Dataset.from_tensor_slices(x):batch(12))
    for rows in dist:iter() do
      local losses = strategy:run(step, { rows })
      print("said", strategy.num_replicas_in_sync, ("%a"):format(strategy:reduce("sum", losses):item()),
        ("%a"):format(strategy:reduce("mean", rows, 1)[3]:item()))
    end
    print("said", table.concat(w:value():totable(), " "))
  ]])

  it("are the replicas of a loop that the user writes", function()
    local function said(command)
      local text, code = support.run("timeout -k 5 60 " .. command)
      assert.equal(0, code, text)
      local lines = {}
      for line in text:gmatch("[^\n]+") do
        local worker, what = line:match("^%[worker:(%d)%] said\t(.*)$")
        if worker == "0" or not worker then lines[#lines + 1] = what or line:match("^said\t(.*)$") end
      end
      return lines
    end
    local single = said(("%q %q"):format(support.program, LOOP))
    assert.equal(4, #single)
    assert.equal("4", single[1]:match("^%d"))
    for _, count in ipairs { 2, 3, 4 } do
      assert.same(single, said(("%q launch --workers %d --threads 1 %q"):format(support.program, count, LOOP)))
    end
  end)

  it("are gathered and reduced in their order where workers have different numbers of them", function()
    local path = support.file("task.lua", [[
      local flow = require "flow"
      flow.config.enable_op_determinism { shards = 4 }
      local strategy = flow.distribute.MultiWorkerMirroredStrategy { min_workers = 1 }
      local value = strategy:experimental_distribute_values_from_function(function(c)
        return flow.tensor { { c.replica_id_in_sync_group, 10 } }
      end)
      print("=", table.concat(strategy:gather(value, 1):reshape({ -1 }):totable(), " "), strategy:gather(value, 2).shape[2],
        strategy:reduce("sum", value):sum():item(), strategy:reduce("mean", value, 1):sum():item())]])
    local text, code = support.run(("env FLOWLUA_PATH=%slua FLOW_THREADS=1 timeout -k 5 60 %s launch --workers 3 %s"):format(support.root,
      support.program, path))
    assert.equal(0, code, text)
    assert.equal(3, support.count(text, "=\t0 10 1 10 2 10 3 10\t8\t46\t11.5\n"), text)
  end)

  it("say what they cannot be", function()
    local script = support.file("wrong.lua", [[
      local flow = require "flow"
      local function say(...) print("=", select(2, pcall(...))) end
      local determinism = flow.config.enable_op_determinism
      say(determinism, { shards = 6 })
      say(determinism, { shard = 8 })
      say(determinism, false, { shards = 8 })
      say(determinism, 8)
      flow.config.set_logical_devices("cpu", 4)
      determinism { shards = 2 }
      say(flow.distribute.MirroredStrategy)
      determinism(true)
      print("=", flow.distribute.MirroredStrategy().num_replicas_in_sync)
      say(determinism, { shards = 8 })
    ]])
    local text = support.run(("%q %q 2>&1"):format(support.program, script))
    for _, expected in ipairs {
      "wrong.lua:%d+: flow.config.enable_op_determinism: shards is a power of two from 1 to 256, got the number 6",
      'unknown option "shard"', "shards go with true, not with false", "enabled is true or false, got the number 8",
      "MirroredStrategy: 2 shards cannot be spread over 1 workers with 4 devices each", "=\t4",
      "enable_op_determinism: MirroredStrategy was made already: call it at the beginning of the program",
    } do
      assert.truthy(text:find(expected), expected .. "\n" .. text)
    end
  end)
end)
