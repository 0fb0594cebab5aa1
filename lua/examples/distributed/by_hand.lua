-- by_hand.lua: TensorFlow's tutorial "Multi-worker training with Keras", with TF_CONFIG set by hand. In two shells:
--
--   export FLOW_SECRET=0123456789abcdef      the same words in both
--   export TF_CONFIG='{"cluster": {"worker": ["localhost:12345", "localhost:23456"]}, "task": {"type": "worker", "index": 0}}'
--   flowlua lua/examples/distributed/by_hand.lua
--
-- and the same with "index": 1 in the second one; whichever comes first waits for the other. Or, at once:
--
--   flowlua launch --workers 2 lua/examples/distributed/by_hand.lua
--
-- Without TF_CONFIG it is one process. Kill a worker: the other one ends with its name; start both again, and they go on in the middle of
-- the epoch. With FLOW_MAX_RESTARTS=3 the other one waits instead, until the worker is started again with the same TF_CONFIG.
local flow = require "flow"
local layers, callbacks = flow.layers, flow.callbacks

local here = arg[0]:match("^(.*/)[^/]*$") or "./"
local options = flow.args { path = here .. "../digits", job_dir = ".", epochs = 3, steps_per_epoch = 35, per_worker_batch_size = 64 }

local strategy = flow.distribute.MultiWorkerMirroredStrategy()
local cluster = strategy.cluster_resolver
flow.set_random_seed(1)

local function mnist_dataset(batch_size)
  local x_train, y_train = flow.datasets.mnist { path = options.path }
  return flow.data.Dataset.from_tensor_slices { x_train:to("float32") / 255, y_train:to("int64") }:shuffle(60000):repeat_()
    :batch(batch_size)
end

local function build_and_compile_cnn_model()
  local model = flow.Sequential {
    layers.InputLayer { input_shape = { 28, 28 } }, layers.Reshape { 28, 28, 1 },
    layers.Conv2D(32, 3, { activation = "relu" }), layers.Flatten(),
    layers.Dense(128, { activation = "relu" }), layers.Dense(10),
  }
  model:compile { loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true },
                  optimizer = flow.optimizers.SGD { learning_rate = 0.01 }, metrics = { "accuracy" } }
  return model
end

local data = mnist_dataset(options.per_worker_batch_size * cluster.num_workers)
local model
strategy.scope(function() model = build_and_compile_cnn_model() end)
local history = model:fit(data, { epochs = options.epochs, steps_per_epoch = options.steps_per_epoch, verbose = cluster.is_chief and 2 or 0,
                                  callbacks = { callbacks.BackupAndRestore(flow.io.join(options.job_dir, "backup"), { save_freq = 10 }) } })

-- Every worker saves, the others than the chief to a temporary folder.
local function write_filepath(path)
  if cluster.is_chief then return path end
  local folder = flow.io.join(flow.io.dirname(path), "workertemp_" .. cluster.task_id)
  flow.io.makedirs(folder)
  return flow.io.join(folder, flow.io.basename(path))
end
local model_path = flow.io.join(options.job_dir, "keras-model.keras")
local own_path = write_filepath(model_path)
model:save(own_path)
if not cluster.is_chief then flow.io.rmtree(flow.io.dirname(own_path)) end

-- Checkpoints, and what was saved, read back. All workers pass the same folder: the chief writes.
local manager = flow.train.CheckpointManager(flow.train.Checkpoint { model = model }, { directory = flow.io.join(options.job_dir, "ckpt"),
                                                                                       max_to_keep = 1 })
manager:save()
local latest = flow.train.latest_checkpoint(flow.io.join(options.job_dir, "ckpt"))
flow.train.Checkpoint { model = model }:restore(latest)

local x, y = flow.datasets.mnist { path = options.path }
local accuracy = flow.load_model(model_path):evaluate(x:to("float32") / 255, y, { verbose = 0 }).accuracy
print(("worker %d of %d: loss %.4f, the saved model's accuracy %.4f"):format(cluster.task_id or 0, cluster.num_workers,
  history.history.loss[options.epochs], accuracy))
