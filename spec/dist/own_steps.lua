-- own_steps.lua: three epochs of a model with its own train_step: two optimizers, noise of the batch's size, Dropout, a last batch
-- that is smaller. It prints what fit reports in each epoch, and at the end the sum of all weights.
--
--   flowlua spec/dist/own_steps.lua [--devices 2] [--engine RING | MPI]
local flow = require "flow"
local layers, distribute = flow.layers, flow.distribute

local options = flow.args { devices = 1, engine = "" }
flow.set_random_seed(5)

local strategy
if options.engine ~= "" then
  strategy = distribute.MultiWorkerMirroredStrategy { communication_options = { implementation = options.engine } }
else
  flow.config.set_logical_devices("cpu", options.devices)
  strategy = distribute.MirroredStrategy()
end

local Pair = flow.Model:extend "Pair"

function Pair:init()
  self.first = flow.Sequential { layers.Dense(8, { activation = "tanh" }), layers.Dropout(0.1), layers.Dense(4) }
  self.second = flow.Sequential { layers.Dense(6, { activation = "tanh" }), layers.Dense(1) }
  self.tracker = flow.metrics.Mean { name = "first" }
end

function Pair:metrics() return { self.tracker } end

function Pair:compile()
  flow.Model.compile(self)
  self.of_first, self.of_second = flow.optimizers.Adam(0.02), flow.optimizers.SGD(0.05)
end

function Pair:train_step(x)
  local rows = flow.shape(x)[1]
  local function update(optimizer, net, f)
    local tape = flow.GradientTape()
    local loss = tape:record(f)
    optimizer:apply_gradients(tape:gradient(loss, net.trainable_weights), net.trainable_weights)
    return loss
  end
  local made = self.first(flow.random.normal { rows, 3 }, { training = true })
  local second = update(self.of_second, self.second, function()
    local both = flow.concat({ self.second(made), self.second(x) }, 1)
    return (both - flow.concat({ flow.ones { rows, 1 }, flow.zeros { rows, 1 } }, 1)):square():mean()
  end)
  local first = update(self.of_first, self.first, function()
    local drawn = self.first(flow.random.normal { rows, 3 }, { training = true })
    return self.second(drawn):square():sum() / rows + (drawn - x):square():mean()
  end)
  self.tracker:update_state(first)
  return { first = self.tracker:result(), second = second }
end

local model
strategy.scope(function()
  model = Pair()
  model:compile()
end)
local x = flow.random.normal({ 50, 4 }, { seed = 1 })
local ds = flow.data.Dataset.from_tensor_slices(x):batch(16):with_options { auto_shard_policy = "DATA" }
local history = model:fit(ds, { epochs = 3, verbose = 0 }).history
for epoch = 1, 3 do print(("epoch %.7f %.7f"):format(history.first[epoch], history.second[epoch])) end
local sum = 0
for _, w in ipairs(model.weights) do sum = sum + w:value():abs():sum():item() end
print(("weights %.6f"):format(sum))
