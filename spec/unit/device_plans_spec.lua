--- Libraries' plans on a GPU, which take up to seconds each, are made by all threads of the team at once (flow_choose_ahead). The emulated
--- library makes none here before two are being made.
local emulated = require "spec.support.emulated"
local flow = require "flow"

if emulated.missing() then
  pending("plans of devices: " .. emulated.missing())
  return
end

local ffi = require "ffi"
local support = require "spec.support.init"
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

local function build()
  local model
  flow.device("gpu:0", function()
    model = flow.Sequential {
      layers.Input { 8, 8, 8 }, layers.Conv2D(8, 3, { activation = "relu" }), layers.Conv2D(16, 3), layers.Flatten(), layers.Dense(2),
    }
  end)
  model:compile { optimizer = "sgd", loss = "mse" }
  return model
end

--- Calls f(0) with an empty file for the formulas that are planned; returns what is in it.
local function formulas_of(f)
  local path = support.file("formulas", "")
  ffi.C.setenv("FLOW_EMULATED_FORMULAS", path, 1)
  f()
  ffi.C.setenv("FLOW_EMULATED_FORMULAS", "", 1)
  return support.read(path)
end

describe("plans of libraries", function()
  before_each(function() flow.config.set_threads(2) end)
  after_each(function()
    ffi.C.setenv("FLOW_EMULATED_TOGETHER", "", 1)
    flow.config.set_threads(0)
  end)

  it("are made side by side, also for the fewer images of a last batch", function()
    local model = build()
    ffi.C.setenv("FLOW_EMULATED_TOGETHER", "2", 1)
    local first = formulas_of(function() model:train_on_batch(flow.ones { 4, 8, 8, 8 }, flow.ones { 4, 2 }) end)
    local found = variants_of(model)
    assert.is_true(#found >= 4, steps.describe(model._steps[#model._steps]))
    for _, variant in ipairs(found) do assert.matches(" cudnn$", variant) end
    local made = select(2, first:gsub("convolution", ""))
    assert.is_true(made >= 4, first)
    ffi.C.setenv("FLOW_EMULATED_TOGETHER", tostring(made + 2), 1)      -- those that are made already count as having met
    local second = formulas_of(function() model:train_on_batch(flow.ones { 3, 8, 8, 8 }, flow.ones { 3, 2 }) end)
    assert.equal(made, select(2, second:gsub("convolution", "")), second)
  end)

  it("are those that are likely best, and not the fastest, where operations are to be deterministic", function()
    ffi.C.setenv("FLOW_CUDA_TUNE", "1", 1)
    finally(function() ffi.C.setenv("FLOW_CUDA_TUNE", "", 1) end)
    local why = support.message_of(function() flow.config.enable_op_determinism(true) end)
    assert.matches("enable_op_determinism: with FLOW_CUDA_TUNE=1 GPUs take the algorithms that were fastest", why)
    flow.config.enable_op_determinism(false)
  end)
end)
