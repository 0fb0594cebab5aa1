-- server_slots.lua: a script of server_slots_spec.lua: trains the digits, with parameter servers or, with --alone, by itself, and prints
-- what optimizer, weights and the saved model hold. With --stop it ends without a word when that epoch begins.
local flow = require "flow"
local options = flow.args { alone = false, optimizer = "adam", folder = ".", stop = 0, epochs = 2 }
flow.set_random_seed(3)

local strategy = options.alone and flow.distribute.get_strategy()
  or flow.distribute.ParameterServerStrategy { variable_partitioner = flow.distribute.FixedShardsPartitioner(2) }
local make = {
  scheduled = function() return flow.optimizers.Adam(flow.optimizers.schedules.ExponentialDecay(0.002, 20, 0.9)) end,
  nadam = function() return flow.optimizers.Nadam(0.002) end,
  sgd = function() return flow.optimizers.SGD(0.05) end,
  nesterov = function() return flow.optimizers.SGD(0.05, { momentum = 0.9, nesterov = true }) end,
  adamw = function() return flow.optimizers.AdamW(0.002) end,
  accumulating = function() return flow.optimizers.Adam { gradient_accumulation_steps = 3 } end,
  clipped = function() return flow.optimizers.Adam { gradient_accumulation_steps = 3, clipnorm = 1 } end,
}
local x, y = flow.datasets.mnist { path = "lua/examples/digits" }
local layers = flow.layers
local model
strategy.scope(function()
  model = flow.Sequential { layers.Input { 28, 28 }, layers.Flatten(), layers.Rescaling(1 / 255), layers.Dense(16, { activation = "relu" }),
                            layers.Dense(10) }
  model:compile { optimizer = make[options.optimizer](), loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
end)
local stopper = flow.callbacks.LambdaCallback { on_epoch_begin = function(epoch)
  if options.stop > 0 and epoch == options.stop then os.exit(9) end
end }
local path = options.folder .. "/model.keras"
model:fit(x, y, { batch_size = 32, epochs = options.epochs, verbose = 0,
                  callbacks = { stopper, flow.callbacks.BackupAndRestore(options.folder .. "/backup") } })
model:save(path)
if not options.alone and not strategy.cluster_resolver.is_chief then return end

local function show(word, list)
  local sums = {}
  for i, t in ipairs(list) do sums[i] = ("%.9g"):format(t:to("float32"):abs():sum():item()) end
  print(word .. " " .. table.concat(sums, " "))
end
local function values(variables)
  local list = {}
  for i, v in ipairs(variables) do list[i] = v:value() end
  return list
end
show("optimizer", values(model.optimizer.variables))
show("weights", model:get_weights())
local again = flow.load_model(path)
show("file", values(again.optimizer.variables))
