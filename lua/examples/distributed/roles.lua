-- roles.lua: a cluster with all roles: a chief that says what is done, workers that compute, parameter servers that keep the variables,
-- and an evaluator that follows the checkpoints. All run this file.
--
--   flowlua launch --chief --workers 3 --parameter-servers 2 --evaluator --max-restarts 5 lua/examples/distributed/roles.lua
--   flowlua lua/examples/distributed/roles.lua                             alone: everything in one process
--
-- Workers may be killed meanwhile: the others do their batches, and the launcher starts them again.
local flow = require "flow"
local layers, callbacks = flow.layers, flow.callbacks

local here = arg[0]:match("^(.*/)[^/]*$") or "./"
local options = flow.args { path = here .. "../digits", job_dir = ".", epochs = 12, batch_size = 32 }

-- Without TF_CONFIG there is no cluster: then the default strategy does the same in one process.
local alone = not os.getenv "TF_CONFIG"
local strategy = alone and flow.distribute.get_strategy() or flow.distribute.ParameterServerStrategy {
  variable_partitioner = flow.distribute.MinSizePartitioner(64 * 1024, 2) }
local cluster = not alone and strategy.cluster_resolver
local role = cluster and cluster.task_type or "chief"
flow.set_random_seed(1)

local x_train, y_train, x_test, y_test = flow.datasets.mnist { path = options.path }
local model
strategy.scope(function()
  model = flow.Sequential {
    layers.Input { 28, 28 }, layers.Rescaling(1 / 255), layers.Flatten(),
    layers.Dense(64, { activation = "relu" }), layers.Dense(10),
  }
  model:compile { optimizer = "adam", loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true }, metrics = { "accuracy" } }
end)

local checkpoints = flow.io.join(options.job_dir, "checkpoints")
local function evaluate()
  return flow.train.SidecarEvaluator { model = model, data = { x_test, y_test }, checkpoint_dir = checkpoints,
                                       max_evaluations = options.epochs, callbacks = {
                                         callbacks.TensorBoard(flow.io.join(options.job_dir, "logs")) } }:start()
end

if role == "evaluator" then
  print(("evaluator: %d checkpoints were evaluated"):format(evaluate()))
  return
end
local history = model:fit(x_train, y_train, { batch_size = options.batch_size, epochs = options.epochs, verbose = 0, callbacks = {
  callbacks.BackupAndRestore(flow.io.join(options.job_dir, "backup")),
  callbacks.ModelCheckpoint(flow.io.join(checkpoints, "epoch-{epoch:02d}.weights.h5"), { save_weights_only = true }) } })
if alone or cluster.is_chief then
  model:save(flow.io.join(options.job_dir, "digits.keras"))
  print(("chief: accuracy %.4f after %d updates"):format(history.history.accuracy[options.epochs], model.optimizer.iterations))
end
if alone then print(("evaluator: %d checkpoints were evaluated"):format(evaluate())) end
