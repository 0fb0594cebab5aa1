--- A quantized model on a GPU predicts in float32: the kernels that compute in bytes are the CPU's. By rows, weights are those that bytes
-- can say. On an emulated GPU
--- (spec/cuda/emulation/emulation.h).
local emulated = require "spec.support.emulated"
local flow = require "flow"
local layers = flow.layers

if emulated.missing() then
  pending("quantized models on a GPU: " .. emulated.missing())
  return
end

local x = flow.random.normal({ 6, 8, 8, 3 }, { seed = 2 })

local function model_of()
  flow.random.set_seed(3)
  return flow.Sequential { flow.Input { 8, 8, 3 }, layers.Conv2D(4, 3, { activation = "relu" }), layers.Flatten(), layers.Dense(5) }
end

local function predictions(model) return model:predict(x, { verbose = 0 }):to("cpu") end

describe("a quantized model on a GPU", function()
  for name, data in pairs { ["with calibration data"] = x, ["by rows"] = "int8" } do
    it("predicts as the float32 model does, " .. name, function()
      flow.device("gpu:0", function()
        local model, floats = model_of(), model_of()
        model:quantize(data)
        floats:set_weights(model:get_weights())
        local expected = predictions(floats)
        assert.is_true((predictions(model) - expected):abs():max():item() <= 1e-6)
      end)
    end)
  end
end)
