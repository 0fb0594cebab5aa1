-- devices_spec.lua: a model is the same model on GPUs: training (training.lua) on several of a process, by processes with a GPU each, and
-- by processes with several, has the losses of one replica on the CPU, has used every sample once an epoch, and leaves the same weights
-- everywhere. On emulated GPUs (kernels/cuda/emulated.h).
local support = require "spec.support.init"
local emulated = require "spec.support.emulated"
local runs = require "spec.support.replica_runs"

if emulated.missing() then
  pending("devices: " .. emulated.missing())
  return
end

local MISSING = { RING = support.missing_engine("RING", true), MPI = support.missing_engine("MPI", true) }
MISSING.AUTO, MISSING.NCCL = MISSING.RING, MISSING.RING      -- which brings the processes together

describe("training on GPUs", function()
  for _, reduce in ipairs { "NcclAllReduce", "HierarchicalCopyAllReduce", "ReductionToOneDevice" } do
    it("of one process is that of one replica: " .. reduce, function()
      for _, arguments in ipairs { "", "--data tensors --last 5" } do
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
    { 3, "MPI", "--last 5", 1, "FLOW_SHARED_MEMORY=0" },
  }
  for _, case in ipairs(cases) do
    local count, engine, arguments, gpus, environment = unpack(case)
    it(("by %d workers with %d is that of one: %s %s %s"):format(count, gpus, engine, arguments, environment or ""), function()
      if MISSING[engine] then return pending(MISSING[engine]) end
      environment = ("FLOW_EMULATED_GPUS=%d FLOW_EMULATED_SEED=%d %s"):format(gpus, count, environment or "")
      runs.check(runs.train(runs.workers(count, engine, arguments, environment)), runs.one(arguments), count)
    end)
  end
end)
