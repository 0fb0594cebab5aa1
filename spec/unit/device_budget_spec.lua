--- What a step of training takes on a GPU: launches and copies of its recording, which cost a microsecond each, and bytes of its arena.
--- Both are bounds from above: who gets below one lowers it. Counted on the emulated device, which has the same kernels and plans.
local emulated = require "spec.support.emulated"
local flow = require "flow"

if emulated.missing() then
  pending("budgets of devices: " .. emulated.missing())
  return
end

local steps = require "flow.steps"

-- net of flow.bench.nets, batch, policy, launches, bytes
local budgets = {
  { "mnist", 64, "float32", 19, 17494656 },
  { "mnist", 64, "mixed_bfloat16", 22, 22276800 },
  { "flowers", 32, "float32", 39, 124352960 },
  { "flowers", 32, "mixed_bfloat16", 41, 92694144 },
  { "resnet20", 4, "float32", 296, 7755200 },
  { "resnet20", 4, "mixed_bfloat16", 298, 4994368 },
}

describe("a step on a GPU stays within its budget:", function()
  for _, budget in ipairs(budgets) do
    local name, batch, policy, most_launches, most_bytes = unpack(budget)
    it(name .. " of " .. batch .. " in " .. policy, function()
      local model, shape, classes
      flow.mixed_precision.set_global_policy(policy)
      finally(function() flow.mixed_precision.set_global_policy("float32") end)
      flow.device("gpu:0", function() model, shape, classes = require("flow.bench.nets")[name]() end)
      local x = flow.random.uniform({ batch, unpack(shape) }, { seed = 1 })
      local y = flow.random.uniform({ batch }, { maxval = classes, dtype = "int32", seed = 2 })
      for _ = 1, 2 do model:train_on_batch(x, y) end
      local text = steps.describe(model._steps[#model._steps])
      local bytes, launches = tonumber(text:match("^arena (%d+) bytes")), tonumber(text:match("\nrecorded: (%d+) launches"))
      assert.is_true(launches > 0)
      assert.is_true(launches <= most_launches, launches .. " launches and copies, there were " .. most_launches)
      assert.is_true(bytes <= most_bytes, bytes .. " bytes, there were " .. most_bytes)
    end)
  end
end)
