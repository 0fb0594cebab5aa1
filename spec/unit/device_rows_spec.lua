-- device_rows_spec.lua: batches of fewer rows than an instance holds, on a GPU whose libraries want larger workspaces for those
-- (core/run/device/workspace.c). On an emulated GPU, whose libraries do, and overwrite them (spec/cuda/emulation/library.c).
local emulated = require "spec.support.emulated"
local flow = require "flow"
local layers = flow.layers

if emulated.missing() then
  pending("batches of few rows: " .. emulated.missing())
  return
end

-- Weights after steps of these numbers of rows.
local function trained(device, rows)
  return flow.device(device, function()
    flow.random.set_seed(3)
    local model = flow.Sequential { layers.Input { 7, 7, 3 }, layers.Conv2D(4, 3, { activation = "relu" }), layers.MaxPooling2D(),
                                    layers.Conv2D(8, 1), layers.Flatten(), layers.Dense(16, { activation = "relu" }), layers.Dense(4) }
    model:compile { optimizer = "sgd", loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
    for _, count in ipairs(rows) do
      model:train_on_batch(flow.random.normal({ count, 7, 7, 3 }, { seed = count }),
                           flow.random.uniform({ count }, { maxval = 4, dtype = "int32", seed = count }))
    end
    local list = {}
    for _, weight in ipairs(model:get_weights()) do
      for _, number in ipairs(weight:to("cpu"):flatten():totable()) do list[#list + 1] = number end
    end
    return list
  end)
end

describe("a step of fewer rows than others on a GPU", function()
  it("has room for what its libraries want, run, recorded and repeated, in turns with others", function()
    local rows = { 8, 8, 8, 1, 8, 1, 1, 8, 3, 1, 3, 3, 8, 1 }
    local cpu, gpu = trained("cpu", rows), trained("gpu:0", rows)
    assert.equal(#cpu, #gpu)
    for i = 1, #cpu do assert.near(cpu[i], gpu[i], 1e-5) end
  end)
end)
