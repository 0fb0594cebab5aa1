-- shard_by_file.lua: the data is in TFRecord files, and each worker reads its own files: no worker reads what others train on. With
-- auto_shard_policy AUTO that happens where there are as many files as workers; FILE insists on it.
--
--   flowlua launch --workers 2 lua/examples/distributed/shard_by_file.lua
--   flowlua lua/examples/distributed/shard_by_file.lua                    alone: all files
--
-- --policy DATA reads all files on all workers, of which each takes its part of every batch; that works with fewer files than workers, too.
local flow = require "flow"
local layers, data = flow.layers, flow.data

local here = arg[0]:match("^(.*/)[^/]*$") or "./"
local options = flow.args { path = here .. "../digits", job_dir = ".", files = 4, policy = "FILE", epochs = 6, batch_size = 32 }

local strategy = flow.distribute.MultiWorkerMirroredStrategy()
local cluster = strategy.cluster_resolver
flow.set_random_seed(1)

-- Files that all workers see. Here each writes its own copy, under another name first, so that no worker reads half a file.
local x, y, x_test, y_test = flow.datasets.mnist { path = options.path }
local rows, paths = x.shape[1], {}
for i = 1, options.files do
  local path = ("%s/digits-%02d-of-%02d.tfrecord"):format(options.job_dir, i, options.files)
  local own = ("%s.%d"):format(path, cluster.task_id or 0)
  local writer = data.TFRecordWriter(own)
  for row = i, rows, options.files do
    writer:write_example({ label = y[row]:item(), pixels = x[row]:reshape { 784 }:totable() }, { pixels = "int64" })
  end
  writer:close()
  flow.io.rename(own, path, true)
  paths[i] = path
end

local examples = 0
local train = data.TFRecordDataset(paths):map(data.parse_example { label = "int64", pixels = { "int64", { 784 } } })
  :map(function(label, pixels) return pixels:to("float32") / 255, label end)
  :batch(options.batch_size * cluster.num_workers):with_options { auto_shard_policy = data.AutoShardPolicy[options.policy] }

local model
strategy.scope(function()
  model = flow.Sequential { layers.Input { 784 }, layers.Dense(32, { activation = "relu" }), layers.Dense(10) }
  model:compile { optimizer = "adam", loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true }, metrics = { "accuracy" } }
end)
model:fit(train, { epochs = options.epochs, verbose = 0 })

-- What this worker has read of the files.
for _, label in strategy:experimental_distribute_dataset(train):iter() do examples = examples + label.shape[1] end
local result = model:evaluate(x_test:reshape { -1, 784 }:to("float32") / 255, y_test, { verbose = 0 })
print(("worker %d of %d: %d of %d examples are mine, test accuracy %.4f"):format(cluster.task_id or 0, cluster.num_workers, examples, rows,
  result.accuracy))
