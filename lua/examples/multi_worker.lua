-- multi_worker.lua: one net trained by several processes: the job of TensorFlow's tutorial "Multi-worker training with Keras". Every worker
-- runs this same file; which task it is, TF_CONFIG or the launcher says.
--
--   flowlua lua/examples/multi_worker.lua                                    alone
--   flowlua launch --workers 2 lua/examples/multi_worker.lua -- --epochs 5   two processes of this machine
--   mpirun -n 2 flowlua lua/examples/multi_worker.lua                        started by Open MPI
--   export TF_CONFIG='{ "cluster": { "worker": ["a:2222", "b:2222"] }, "task": { "type": "worker", "index": 0 } }' FLOW_SECRET=...
--   flowlua lua/examples/multi_worker.lua --path mnist                       on machine a; on b with index 1 and the same secret
--
-- It learns the 1,500 digits beside it; --path names a folder with MNIST's four files instead. Killed, it goes on from its last backup as
-- soon as all workers are started again.
local flow = require "flow"
local layers, callbacks = flow.layers, flow.callbacks

local here = arg[0]:match("^(.*/)[^/]*$") or "./"
local options = flow.args { path = "", epochs = 3, steps_per_epoch = 70, batch_size = 64, job_dir = ".", seed = 1 }

local strategy = flow.distribute.MultiWorkerMirroredStrategy()
local cluster = strategy.cluster_resolver
flow.set_random_seed(options.seed)

-- The size of what all workers together take in a step.
local global_batch_size = options.batch_size * strategy.num_replicas_in_sync
local x_train, y_train, x_test, y_test = flow.datasets.mnist { path = options.path ~= "" and options.path or here .. "digits" }
local train = flow.data.Dataset.from_tensor_slices { x_train, y_train }:shuffle(60000):repeat_():batch(global_batch_size)
local test = flow.data.Dataset.from_tensor_slices { x_test, y_test }:batch(global_batch_size)

local model
strategy.scope(function()
  model = flow.Sequential {
    layers.Input { 28, 28 }, layers.Rescaling(1 / 255), layers.Reshape { 28, 28, 1 },
    layers.Conv2D(32, 3, { activation = "relu" }), layers.MaxPooling2D(), layers.Flatten(),
    layers.Dense(128, { activation = "relu" }), layers.Dense(10),
  }
  model:compile { optimizer = flow.optimizers.SGD(0.1), loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true },
                  metrics = { "accuracy" } }
end)

-- All workers pass the same callbacks and save to the same path: only the chief writes.
model:fit(train, { epochs = options.epochs, steps_per_epoch = options.steps_per_epoch, validation_data = test,
                   verbose = cluster.is_chief and 2 or 0,
                   callbacks = { callbacks.BackupAndRestore(options.job_dir .. "/backup", { save_freq = 20 }) } })
model:save(options.job_dir .. "/mnist.keras")

local result = model:evaluate(test, { verbose = 0 })
print(("%s %d of %d workers: test accuracy %.4f"):format(cluster.task_type or "worker", cluster.task_id or 0, cluster.num_workers,
  result.accuracy))
