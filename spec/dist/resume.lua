-- resume.lua: three epochs of 211 rows in batches of 48, the last of which has 19, with statistics of batches and dropout, that are backed
-- up after every batch. It prints a digest of the bits of weights and optimizer.
--
--   flowlua spec/dist/resume.lua FOLDER [--stop 9] [--kill 4,9] [--engine RING | MPI]
--
-- --stop: fails in this batch, and prints nothing; --kill: in these batches worker 1 kills its process, in each once (FOLDER.killed-4 ...)
local flow = require "flow"
local layers, distribute = flow.layers, flow.distribute

local options = flow.args { stop = 0, kill = "", engine = "" }
flow.set_random_seed(3)
local strategy = distribute.get_strategy()
if options.engine ~= "" then
  strategy = distribute.MultiWorkerMirroredStrategy { communication_options = { implementation = options.engine } }
end

local x, y = flow.random.normal({ 211, 8, 8, 2 }, { seed = 1 }), flow.random.normal({ 211, 3 }, { seed = 2 })
local model
strategy.scope(function()
  model = flow.Sequential {
    layers.Input { 8, 8, 2 }, layers.Conv2D(8, 3), layers.BatchNormalization(), layers.ReLU(), layers.Flatten(),
    layers.Dense(32, { activation = "relu" }), layers.Dropout(0.2), layers.Dense(3),
  }
  model:compile { optimizer = "adam", loss = "mse" }
end)
local data = flow.data.Dataset.from_tensor_slices({ x, y }):shuffle(211, { seed = 4 }):batch(48):with_options { auto_shard_policy = "DATA" }
local batches = 0
local function count()
  batches = batches + 1
  if batches == options.stop then error("stopped") end
  local path = ("%s.killed-%d"):format(arg[1], batches)
  if not ("," .. options.kill .. ","):find("," .. batches .. ",", 1, true) or strategy.cluster_resolver.task_id ~= 1 then return end
  if io.open(path) then return end
  io.open(path, "w"):close()
  os.execute "kill -9 $PPID"
end
local ok, message = pcall(model.fit, model, data, { epochs = 3, verbose = 0, callbacks = {
  flow.callbacks.BackupAndRestore(arg[1], { save_freq = 1, delete_checkpoint = false }),
  flow.callbacks.LambdaCallback { on_train_batch_begin = count },
} })
if not ok then
  if options.stop > 0 and tostring(message):find("stopped", 1, true) then os.exit(0, true) end
  error(message, 0)
end

local numbers = {}
for _, list in ipairs { model.weights, model.optimizer.variables } do
  for _, v in ipairs(list) do numbers[#numbers + 1] = v:value():reshape({ -1 }):to("float32") end
end
local bits = 0
for i, number in ipairs(flow.concat(numbers, 1):totable()) do bits = (bits * 31 + i * (number * 2 ^ 30 % 2 ^ 30)) % 2 ^ 45 end
print(("digest %.17g after %d batches"):format(bits, batches))
