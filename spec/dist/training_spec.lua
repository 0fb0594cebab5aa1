-- training_spec.lua: a model is the same model on any number of replicas: the same training (training.lua) by one replica, by several in a
-- process and by several processes has the same losses, has used every sample once an epoch, and leaves the same weights everywhere.
local support = require "spec.support.init"
local runs = require "spec.support.replica_runs"

-- Why an engine cannot be tried, or nil.
local MISSING = { MPI = support.missing_engine("MPI", true) }

local alone, workers, train, check, one = runs.alone, runs.workers, runs.train, runs.check, runs.one

describe("training on several replicas", function()
  it("counts what one replica uses", function() check(one "", one "", 1) end)

  for _, devices in ipairs { 2, 4 } do
    it(("in a process is that of one: %d devices"):format(devices), function()
      for _, arguments in ipairs { "", "--data tensors --last 5" } do
        check(train(alone(("--devices %d %s"):format(devices, arguments))), one(arguments), 1)
      end
    end)
  end

  -- 5 samples are 2, 2, 1 and none for 4 workers.
  local cases = {
    { 2, "RING", "" }, { 3, "RING", "" }, { 4, "RING", "--last 5" }, { 2, "RING", "--data tensors", "FLOW_SHARED_MEMORY=0" },
    { 2, "RING", "--scaled" }, { 2, "MPI", "" }, { 3, "MPI", "--data tensors" }, { 4, "MPI", "--last 5" }, { 3, "MPI", "--scaled" },
    { 3, "MPI", "", "FLOW_SHARED_MEMORY=0" },
  }
  for _, case in ipairs(cases) do
    local count, engine, arguments, environment = unpack(case)
    it(("by %d workers is that of one: %s %s %s"):format(count, engine, arguments, environment or ""), function()
      if MISSING[engine] then return pending(MISSING[engine]) end
      local run = train(workers(count, engine, arguments, environment))
      check(run, one(arguments), count)
      -- The memory of the group, and that in which rows are put together; scaled gradients are summed whole, and looked at.
      local pieces = environment and 0 or arguments == "--scaled" and 1 or 2
      for _, shared in ipairs(run.shared) do assert.equal(pieces, shared, run.text) end
    end)
  end

  it("has the same bits however the rows of a large matrix, or the sums of its gradient, reach the other workers", function()
    local digests = {}
    for _, factors in ipairs { "", "true", "false" } do
      for _, environment in ipairs { "FLOW_SHARED_MEMORY=1", "FLOW_SHARED_MEMORY=0" } do
        local arguments = factors == "" and "" or "--factors " .. factors
        local run = train(workers(2, "RING", arguments, environment))
        check(run, one(""), 2)
        digests[factors .. environment] = run.weights[1]
      end
    end
    local rows, sums = digests["trueFLOW_SHARED_MEMORY=1"], digests["falseFLOW_SHARED_MEMORY=1"]
    assert.not_equal(rows, sums)
    assert.same({ ["FLOW_SHARED_MEMORY=1"] = rows, ["FLOW_SHARED_MEMORY=0"] = rows,
                  ["trueFLOW_SHARED_MEMORY=1"] = rows, ["trueFLOW_SHARED_MEMORY=0"] = rows,
                  ["falseFLOW_SHARED_MEMORY=1"] = sums, ["falseFLOW_SHARED_MEMORY=0"] = sums }, digests)
  end)

  -- In real life each group is on its own machine.
  for _, machines in ipairs { "aab", "abb", "aabb" } do
    it("has the same bits whoever shares memory with whom: " .. machines, function()
      local undivided = train(workers(#machines, "RING", "--factors false", "FLOW_SHARED_MEMORY=0"))
      local run = train(workers(#machines, "RING", "--factors false --machines " .. machines))
      check(run, one "", #machines)
      assert.equal(#machines, support.count(run.text, "communication = RING %(tcp, shared memory%)"), run.text)
      assert.same(undivided.weights, run.weights)
      assert.same(undivided.steps, run.steps)
    end)
  end

  it("has the same bits where what workers send is encrypted", function()
    local plain = train(workers(3, "RING", "", "FLOW_SHARED_MEMORY=0"))
    local run = train(workers(3, "RING", "", "FLOW_SHARED_MEMORY=0 FLOW_ENCRYPT=1"))
    check(run, one "", 3)
    assert.equal(3, support.count(run.text, "communication = RING %(tcp, encrypted%)"), run.text)
    assert.same(plain.weights, run.weights)
    run = train(workers(3, "RING", "--factors false --machines aab", "FLOW_ENCRYPT=1"))
    assert.equal(3, support.count(run.text, "%(tcp, shared memory, encrypted%)"), run.text)
  end)

  it("has the same bits whatever is added up at once", function()
    local function digest(arguments)
      return train(workers(3, "RING", "--factors false " .. arguments, "FLOW_SHARED_MEMORY=0")).weights[1]
    end
    assert.equal(digest "", digest "--pack 1000")
  end)

  it("has the bits of shards whoever shares memory with whom", function()
    local run = train(workers(3, "RING", "--shards 4 --machines aab"))
    assert.same(train(alone "--engine RING --shards 4").weights[1], run.weights[3], run.text)
  end)
end)
