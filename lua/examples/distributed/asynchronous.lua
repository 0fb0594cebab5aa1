-- asynchronous.lua: the same net, trained synchronously and asynchronously. Synchronous workers add up their gradients in every step and
-- have the same weights; asynchronous ones send theirs to parameter servers whenever they have them, and nobody waits.
--
--   flowlua launch --workers 2 lua/examples/distributed/asynchronous.lua                                                synchronous
--   flowlua launch --workers 2 --parameter-servers 1 lua/examples/distributed/asynchronous.lua -- --mode async          asynchronous
--   flowlua lua/examples/distributed/asynchronous.lua                                                                   alone
local flow = require "flow"
local layers = flow.layers

local here = arg[0]:match("^(.*/)[^/]*$") or "./"
local options = flow.args { path = here .. "../digits", job_dir = ".", epochs = 4, batch_size = 32, mode = "sync" }

local strategy
if options.mode == "async" then
  strategy = flow.distribute.experimental.ParameterServerStrategy()
else
  strategy = flow.distribute.MultiWorkerMirroredStrategy()
end
local cluster = strategy.cluster_resolver
flow.set_random_seed(1)

local x, y = flow.datasets.mnist { path = options.path }
local data = flow.data.Dataset.from_tensor_slices { x, y }:shuffle(1500):batch(options.batch_size)
  :with_options { auto_shard_policy = "DATA" }

local model
strategy.scope(function()
  model = flow.Sequential {
    layers.Input { 28, 28 }, layers.Rescaling(1 / 255), layers.Flatten(), layers.Dense(32, { activation = "relu" }), layers.Dense(10),
  }
  model:compile { optimizer = flow.optimizers.Adam(), loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true },
                  metrics = { "accuracy" } }
end)
local accuracy = model:fit(data, { epochs = options.epochs, verbose = 0 }).history.accuracy[options.epochs]
model:save(flow.io.join(options.job_dir, "digits.keras"))      -- the chief writes
print(("worker %d of %d: %d updates, accuracy %.4f"):format(cluster.task_id or 0, cluster.num_workers,
  model.optimizer.iterations, accuracy))
