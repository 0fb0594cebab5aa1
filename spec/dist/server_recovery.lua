-- server_recovery.lua: a script of server_recovery_spec.lua: trains the digits with parameter servers. Each task leaves the number of its
-- process in --folder. The chief sends --signal to --victim when epoch --at begins, once; --within: worker:0 does it when it has read 60
-- batches; --twice: there is a fit before that one.
local flow = require "flow"
local options = flow.args { folder = ".", victim = "", at = 2, signal = "KILL", within = false, twice = false, epochs = 6,
                            backup = false, reassign = 60, checkpoints = false }
flow.set_random_seed(3)

local config = os.getenv "TF_CONFIG"
local me = ("%s:%s"):format(config:match('"type":"(%a+)"'), config:match('"index":(%d+)'))
local function write(name, text)
  local file = assert(io.open(("%s/%s"):format(options.folder, name), "w"))
  file:write(text)
  file:close()
end
write(me, io.open("/proc/self/stat"):read "*n" .. "\n")

local strategy = flow.distribute.ParameterServerStrategy { reassign_after = options.reassign }
local x, y = flow.datasets.mnist { path = "lua/examples/digits" }
local layers, callbacks = flow.layers, flow.callbacks
local model
strategy.scope(function()
  model = flow.Sequential { layers.Input { 28, 28 }, layers.Flatten(), layers.Rescaling(1 / 255), layers.Dense(32, { activation = "relu" }),
                            layers.Dense(10) }
  model:compile { optimizer = "adam", loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true }, metrics = { "accuracy" } }
end)

local checkpoints = options.folder .. "/checkpoints"
if me == "evaluator:0" then
  local evaluator = flow.train.SidecarEvaluator { model = model, data = { x, y }, checkpoint_dir = checkpoints,
                                                  max_evaluations = options.epochs }
  print("evaluations " .. evaluator:start())
  return
end

local function strike()
  if options.victim == "" or io.open(options.folder .. "/struck") then return end
  write("struck", "")
  os.execute(("kill -%s $(cat %s/%s)"):format(options.signal, options.folder, options.victim))
end
local rows, read = flow.data.Dataset.from_tensor_slices { x, y }:batch(32), 0
local data = flow.data.Dataset.from_generator(function()
  local pass = rows:iter()
  return function()
    read = read + 1
    if options.within and me == "worker:0" and read == 60 then strike() end
    return pass()
  end
end, { output_signature = rows.element_spec })
local fit = { epochs = options.epochs, verbose = 0, callbacks = {
  callbacks.LambdaCallback { on_epoch_begin = function(epoch)
    if epoch == options.at and not options.within then strike() end
  end },
  options.backup and callbacks.BackupAndRestore(options.folder .. "/backup") or nil } }
if options.checkpoints then
  table.insert(fit.callbacks, callbacks.ModelCheckpoint(checkpoints .. "/m-{epoch:02d}.weights.h5", { save_weights_only = true }))
end
if options.twice then model:fit(x, y, { batch_size = 32, epochs = 1, verbose = 0 }) end
local history = model:fit(data, fit).history
if options.signal == "STOP" and strategy.cluster_resolver.is_chief then
  os.execute(("kill -CONT $(cat %s/%s)"):format(options.folder, options.victim))
end
print(("accuracy %.4f"):format(history.accuracy[#history.accuracy]))
print(("iterations %d"):format(model.optimizer.iterations))
