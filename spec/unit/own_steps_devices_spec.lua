-- own_steps_devices_spec.lua: random tensors of a batch's rows and steps of a model's own on GPUs: on emulated ones
-- (spec/cuda/emulation/emulation.h).
require "spec.support.init"
local emulated = require "spec.support.emulated"
local flow = require "flow"
local layers = flow.layers

flow.log.sink = function() end

if emulated.missing() then
  pending("own steps on devices: " .. emulated.missing())
  return
end

local Drawn = flow.Model:extend "Drawn"
function Drawn:init() self.net = flow.Sequential { layers.Input { 3 }, layers.Dense(4, { activation = "tanh" }), layers.Dense(3) } end
function Drawn:call(x) return self.net(x) end
function Drawn:train_step(x)
  local rows = flow.shape(x)[1]
  local noise = flow.random.normal { rows, 3 } + flow.random.uniform({ rows, 3 }) + flow.random.truncated_normal({ rows, 3 })
    + flow.random.randint({ rows, 3 }, 0, 4):to("float32")
  local tape = flow.GradientTape()
  local loss = tape:record(function() return (self.net(noise) - x):square():mean() end)
  self.optimizer:apply_gradients(tape:gradient(loss, self.trainable_weights), self.trainable_weights)
  return { loss = loss, noise = noise:mean() }
end

describe("a step of a model's own on a GPU", function()
  it("draws the numbers of the CPU and learns the same, also where rows begin in the middle of a block of bits", function()
    local x = flow.random.normal({ 17, 3 }, { seed = 1 })
    local function train(device)
      flow.set_random_seed(4)
      local seen = {}
      flow.device(device, function()
        local model = Drawn()
        model:compile { optimizer = "sgd" }
        model:fit(flow.data.Dataset.from_tensor_slices(x):batch(5), { epochs = 2, verbose = 0, callbacks = {
          flow.callbacks.LambdaCallback { on_train_batch_end = function(_, logs) seen[#seen + 1] = { logs.loss, logs.noise } end } } })
      end)
      return seen
    end
    local expected, found = train("cpu:0"), train("gpu:0")
    assert.equal(8, #found)
    for i = 1, 8 do
      for k = 1, 2 do assert.near(expected[i][k], found[i][k], 1e-5) end
    end
  end)
end)
