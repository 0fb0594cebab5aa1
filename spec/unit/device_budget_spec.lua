--- What a step of training takes on a GPU: launches and copies of its recording, which cost a microsecond each, bytes that they read and
--- write (scripts/cuda-launches lists them), and bytes of its arena. All are bounds from above: who gets below one lowers it. Counted on
--- the emulated device, which has the same kernels and plans; what a library adds up in a plan is a launch of its own there.
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

-- net of flow.cli.bench_nets, batch, policy, launches, bytes that they move, bytes of the arena; size of the images, where the net leaves
-- it open. Launches do not depend on the batch: that of flowers is small because the emulation computes what it counts.
local budgets = {
  { "mnist", 64, "float32", 19, 103783976, 17496832 },
  { "mnist", 64, "mixed_bfloat16", 21, 81563472, 11203584 },
  { "flowers", 8, "float32", 35, 326917648, 31283456 },
  { "flowers", 8, "mixed_bfloat16", 36, 250233860, 25692416 },
  { "resnet20", 4, "float32", 210, 66212056, 8760064 },
  { "resnet20", 4, "mixed_bfloat16", 214, 37882944, 4969216 },
  { "resnet50", 2, "mixed_bfloat16", 521, 974364428, 150866944, 32 },
}

describe("a step on a GPU stays within its budget:", function()
  for _, budget in ipairs(budgets) do
    local name, batch, policy, most_launches, most_moved, most_bytes, size = unpack(budget)
    it(name .. " of " .. batch .. " in " .. policy, function()
      local model, shape, classes
      flow.mixed_precision.set_global_policy(policy)
      local list = support.file("launches", "")
      ffi.C.setenv("FLOW_EMULATED_LAUNCHES", list, 1)
      finally(function()
        ffi.C.setenv("FLOW_EMULATED_LAUNCHES", "", 1)
        flow.mixed_precision.set_global_policy("float32")
      end)
      flow.device("gpu:0", function() model, shape, classes = require("flow.cli.bench_nets")[name](size) end)
      local x = flow.random.uniform({ batch, unpack(shape) }, { seed = 1 })
      local y = flow.random.uniform({ batch }, { maxval = classes, dtype = "int32", seed = 2 })
      for _ = 1, 2 do model:train_on_batch(x, y) end
      local text = steps.describe(model._steps[#model._steps])
      local bytes, recorded = tonumber(text:match("^arena (%d+) bytes")), tonumber(text:match("\nrecorded: (%d+) launches"))
      local moved = launches.bytes(launches.read(list))
      assert.is_true(recorded > 0 and moved > bytes)
      assert.is_true(recorded <= most_launches, recorded .. " launches and copies, there were " .. most_launches)
      assert.is_true(moved <= most_moved, moved .. " bytes are read and written, there were " .. most_moved)
      assert.is_true(bytes <= most_bytes, bytes .. " bytes, there were " .. most_bytes)
    end)
  end
end)
