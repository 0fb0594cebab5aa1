--- Libraries' plans on a GPU, which take up to seconds each, are made by all threads of the team at once (flow_choose_ahead). The emulated
--- library makes none here before two are being made.
local emulated = require "spec.support.emulated"
local flow = require "flow"

if emulated.missing() then
  pending("plans of devices: " .. emulated.missing())
  return
end

local ffi = require "ffi"
local layers = flow.layers
local steps = require "flow.train.steps"

--- The variants of the convolutions of a model's step.
local function variants_of(model)
  local found = {}
  for op, variant in steps.describe(model._steps[#model._steps]):gmatch("whole (convolution%S*) +(%S+)") do
    found[#found + 1] = op .. " " .. variant
  end
  return found
end

describe("plans of libraries", function()
  it("are made side by side", function()
    ffi.C.setenv("FLOW_EMULATED_TOGETHER", "2", 1)
    flow.config.set_threads(2)
    finally(function()
      ffi.C.setenv("FLOW_EMULATED_TOGETHER", "", 1)
      flow.config.set_threads(0)
    end)
    local model
    flow.device("gpu:0", function()
      model = flow.Sequential {
        layers.Input { 8, 8, 8 }, layers.Conv2D(8, 3, { activation = "relu" }), layers.Conv2D(16, 3), layers.Flatten(), layers.Dense(2),
      }
    end)
    model:compile { optimizer = "sgd", loss = "mse" }
    model:train_on_batch(flow.ones { 4, 8, 8, 8 }, flow.ones { 4, 2 })
    local found = variants_of(model)
    assert.is_true(#found >= 4, steps.describe(model._steps[#model._steps]))
    for _, variant in ipairs(found) do assert.matches(" cudnn$", variant) end
  end)
end)
