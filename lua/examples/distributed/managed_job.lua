-- managed_job.lua: a trainer as managed platforms start it: data and job folder come as arguments, the cluster as TF_CONFIG or
-- CLUSTER_SPEC, and a machine that goes away starts again where the last backup is.
--
--   flowlua lua/examples/distributed/managed_job.lua --job-dir run                                     alone
--   cd lua/examples/distributed
--   flowlua submit digits --config config.yaml --backend local --job-dir /tmp/run managed_job.lua      its cluster, here
--   flowlua submit digits --config config.yaml --dry-run managed_job.lua                               the request for AI Platform
--   flowlua submit digits --config worker_pools.yaml --region us-central1 --dry-run managed_job.lua    for Vertex AI
--   flowlua submit digits --config config.yaml --backend kubernetes --dry-run managed_job.lua          for Kubernetes; slurm, kubeflow, ...
--   flowlua submit digits --image gcr.io/project/trainer:1 --write-dockerfile managed_job.lua          an image with this trainer
local flow = require "flow"
local layers, callbacks = flow.layers, flow.callbacks

local here = arg[0]:match("^(.*/)[^/]*$") or "./"
local options = flow.args { path = here .. "../digits", job_dir = ".", epochs = 4, batch_size = 32 }
local model_dir = os.getenv "AIP_MODEL_DIR" or options.job_dir
flow.io.makedirs(options.job_dir)
flow.io.makedirs(model_dir)

local strategy = flow.distribute.MultiWorkerMirroredStrategy()
local cluster = strategy.cluster_resolver
flow.set_random_seed(1)

local x, y, x_test, y_test = flow.datasets.mnist { path = options.path }
local train = flow.data.Dataset.from_tensor_slices { x, y }:shuffle(1500):batch(options.batch_size * strategy.num_replicas_in_sync)
  :with_options { auto_shard_policy = "DATA" }
local model
strategy.scope(function()
  model = flow.Sequential { layers.Input { 28, 28 }, layers.Rescaling(1 / 255), layers.Flatten(), layers.Dense(64, { activation = "relu" }),
                            layers.Dense(10) }
  model:compile { optimizer = "adam", loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true }, metrics = { "accuracy" } }
end)

-- Both callbacks belong on all workers; the chief writes. Without a folder they take AIP_CHECKPOINT_DIR and AIP_TENSORBOARD_LOG_DIR.
model:fit(train, { epochs = options.epochs, verbose = 0, callbacks = {
  callbacks.BackupAndRestore(not os.getenv "AIP_CHECKPOINT_DIR" and flow.io.join(options.job_dir, "backup") or nil),
  callbacks.TensorBoard(os.getenv "AIP_TENSORBOARD_LOG_DIR" or flow.io.join(options.job_dir, "logs")) } })
model:save(flow.io.join(model_dir, "digits.keras"))
print(("%s %d of %d: test accuracy %.4f"):format(cluster.task_type or "worker", cluster.task_id or 0, cluster.num_workers,
  model:evaluate(x_test, y_test, { verbose = 0 }).accuracy))
