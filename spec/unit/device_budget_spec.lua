--- What a step of training takes on a GPU: launches and copies of its recording, which cost a microsecond each, turns that one launch takes
--- one after the other, bytes that they read and write (scripts/cuda-launches lists them), and bytes of its arena. All are bounds from
--- above: who gets below one lowers it. Counted on the emulated device, which has the same kernels and plans. Whole steps of fit are in
--- spec/cuda/estimates.txt.
local emulated = require "spec.support.emulated"
local flow = require "flow"

if emulated.missing() then
  pending("budgets of devices: " .. emulated.missing())
  return
end

local ffi = require "ffi"
local launches = require "spec.support.launches"
local steps = require "flow.train.steps"
local support = require "spec.support.init"

flow.config.set_precision("fast")      -- as users train

-- net of flow.cli.bench_nets, batch, policy, launches, turns, bytes that they move, bytes of the arena; size of the images, where the net
-- leaves it open. Of the arena some is 16-bit copies of weights, which last from step to step. Launches do not depend on the batch:
-- that of flowers is small because the emulation computes what it counts.
local budgets = {
  { "mnist", 64, "float32", 15, 4, 92675624, 17501696 },
  { "mnist", 64, "mixed_bfloat16", 16, 4, 64911528, 14823424 },
  { "flowers", 8, "float32", 28, 4, 326898572, 31288832 },
  { "flowers", 8, "mixed_bfloat16", 28, 4, 232799788, 26231808 },
  { "resnet20", 4, "float32", 163, 4, 66074520, 8774144 },
  { "resnet20", 4, "mixed_bfloat16", 164, 4, 37712856, 4959232 },
  { "resnet50", 2, "mixed_bfloat16", 389, 4, 966043756, 155022592, 32 },
  { "transformer", 8, "float32", 149, 3, 290343496, 28233984 },
  { "transformer", 8, "mixed_bfloat16", 151, 3, 219757376, 27463168 },
}

local function within(found, budget, what)
  assert.is_true(found > 0 and found <= budget, ("%d %s, there were %d"):format(found, what, budget))
end

describe("a step on a GPU stays within its budget:", function()
  for _, budget in ipairs(budgets) do
    local name, batch, policy, most_launches, most_turns, most_moved, most_bytes, size = unpack(budget)
    it(name .. " of " .. batch .. " in " .. policy, function()
      local model, shape, classes
      flow.mixed_precision.set_global_policy(policy)
      local list = support.file("launches", "")
      ffi.C.setenv("FLOW_EMULATED_LAUNCHES", list, 1)
      ffi.C.setenv("FLOW_EMULATED_IDLE", "1", 1)      -- numbers are other specs' business
      finally(function()
        ffi.C.setenv("FLOW_EMULATED_LAUNCHES", "", 1)
        ffi.C.setenv("FLOW_EMULATED_IDLE", "", 1)
        flow.mixed_precision.set_global_policy("float32")
      end)
      flow.device("gpu:0", function() model, shape, classes = require("flow.cli.bench_nets")[name](size) end)
      local x = flow.random.uniform({ batch, unpack(shape) }, { seed = 1 })
      local y = flow.random.uniform({ batch }, { maxval = classes, dtype = "int32", seed = 2 })
      for _ = 1, 2 do model:train_on_batch(x, y) end
      local text = steps.describe(model._steps[#model._steps])
      local bytes, step = tonumber(text:match("^arena (%d+) bytes")), launches.read(list)
      assert.is_true(launches.bytes(step) > bytes)
      assert.is_truthy(text:find("\nrecorded: %d+ launches"))
      within(launches.nodes(step), most_launches, "launches and copies")
      within(launches.turns(step), most_turns, "turns in one launch")
      within(launches.bytes(step), most_moved, "bytes are read and written")
      within(bytes, most_bytes, "bytes of memory")
    end)
  end
end)
