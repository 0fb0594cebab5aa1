-- devices_spec.lua: a model is the same model on GPUs: training (training.lua) on several of a process, by processes with a GPU each, and
-- by processes with several, has the losses of one replica on the CPU, has used every sample once an epoch, and leaves the same weights
-- everywhere. On emulated GPUs (spec/cuda/emulation/emulation.h).
local support = require "spec.support.init"
local emulated = require "spec.support.emulated"
local runs = require "spec.support.replica_runs"

if emulated.missing() then
  pending("devices: " .. emulated.missing())
  return
end

local MISSING = { MPI = support.missing_engine("MPI", true) }

describe("training on GPUs", function()
  for _, reduce in ipairs { "NcclAllReduce", "HierarchicalCopyAllReduce", "ReductionToOneDevice" } do
    it("of one process is that of one replica: " .. reduce, function()
      for _, arguments in ipairs { "", "--data tensors --last 5", "--scaled" } do
        runs.check(runs.train(runs.alone(("--gpus 2 --reduce %s %s"):format(reduce, arguments))), runs.one(arguments), 1)
      end
    end)
  end

  it("of one process is that of one replica: three, one of which is without rows at last", function()
    runs.check(runs.train(runs.alone("--gpus 3 --last 4", "FLOW_EMULATED_GPUS=3 FLOW_EMULATED_SEED=7")), runs.one "--last 4", 1)
  end)

  local cases = {
    { 2, "AUTO", "", 1 }, { 2, "NCCL", "--last 5", 2 }, { 3, "NCCL", "--data tensors", 1, "FLOW_SHARED_MEMORY=0" },
    { 2, "RING", "", 1 }, { 3, "RING", "--last 5", 1 }, { 2, "RING", "--data tensors", 2 }, { 2, "MPI", "", 1 },
    { 3, "MPI", "--last 5", 1, "FLOW_SHARED_MEMORY=0" }, { 2, "NCCL", "--scaled", 2 }, { 2, "RING", "--scaled", 1 },
  }
  -- What two workers say (gpu_workers.lua).
  local function run_workers(what, environment)
    return support.run(("FLOW_EMULATED_GPUS=1 %s timeout -k 5 60 %q launch --workers 2 --threads 1 --kill-after 5 %q -- --what %s 2>&1")
      :format(environment or "", support.program, support.root .. "spec/dist/gpu_workers.lua", what))
  end

  local count = support.count

  it("of a worker that refuses its data is refused by all, and goes on", function()
    local text, code = run_workers "refuse"
    assert.equal(0, code, text)
    assert.equal(2, count(text, "worker:1%] refused true: [^\n]*label 7 in row 3 is outside 0%.%.1, step 3"), text)
    assert.equal(2, count(text, "worker:0%] refused true: [^\n]*another replica refused its data"), text)
    assert.equal(4, count(text, "same true"), text)
    local first, second = text:match "worker:0%] trained ([^\n]*)", text:match "worker:1%] trained ([^\n]*)"
    assert.truthy(first and first == second, text)
  end)

  it("of a worker whose GPU waits for one that was killed ends with the name of that one", function()
    local text = run_workers "kill"
    assert.equal(2, count(text, "round 3: 2\n"), text)
    assert.equal(1, count(text, "worker:0%] ended false: [^\n]*worker:1"), text)
    assert.equal(1, count(text, "worker:0%] again false: [^\n]*worker:1"), text)
  end)

  it("of workers of which one gave up starts from the beginning in the same processes, once both have a new strategy", function()
    local text, code = run_workers "again"
    assert.equal(0, code, text)
    assert.equal(1, count(text, "worker:0%] lost true: [^\n]*worker:1[^\n]*gave up on purpose"), text)
    local first, second = text:match "worker:0%] first ([^\n]*)", text:match "worker:0%] second ([^\n]*)"
    assert.truthy(first and first == second and first == text:match "worker:1%] second ([^\n]*)", text)
    assert.equal(1, count(text, "worker:0%] refused true: [^\n]*another replica refused its data"), text)
    assert.equal(0, count(text, "no sums by NCCL"), text)
  end)

  it("of workers that have the same GPU goes through the host, which both say", function()
    local text, code = run_workers("share", "FLOW_EMULATED_SHARED=1")
    assert.equal(0, code, text)
    assert.equal(2, count(text, "no sums by NCCL, they go through the host: replica 0 of worker:0 [^\n]* and replica 0 of worker:1 [^\n]* "
      .. "are on the same GPU"), text)
    local first, second = text:match "worker:0%] trained ([^\n]*)", text:match "worker:1%] trained ([^\n]*)"
    assert.truthy(first and first == second, text)
  end)

  for _, case in ipairs(cases) do
    local workers, engine, arguments, gpus, environment = unpack(case)
    it(("by %d workers with %d is that of one: %s %s %s"):format(workers, gpus, engine, arguments, environment or ""), function()
      if MISSING[engine] then return pending(MISSING[engine]) end
      environment = ("FLOW_EMULATED_GPUS=%d FLOW_EMULATED_SEED=%d %s"):format(gpus, workers, environment or "")
      local run = runs.train(runs.workers(workers, engine, arguments, environment))
      runs.check(run, runs.one(arguments), workers)
      assert.is_nil(run.text:find("no sums by NCCL", 1, true), run.text)
    end)
  end
end)
