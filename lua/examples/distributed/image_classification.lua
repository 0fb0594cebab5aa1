-- image_classification.lua: pictures in folders, a convolutional net, and any number of devices and workers: the job of Vertex AI's
-- codelab. The strategy is the only line that differs between one device and many machines.
--
--   flowlua lua/examples/distributed/image_classification.lua                                        alone
--   flowlua lua/examples/distributed/image_classification.lua --devices 2                            two devices of this process
--   flowlua launch --workers 2 lua/examples/distributed/image_classification.lua -- --epochs 4       two processes
--
-- It draws its pictures (make_flowers.lua); --path names a folder with a sub-folder for each kind. The model goes to --job-dir, or
-- to Vertex AI's AIP_MODEL_DIR.
local flow = require "flow"
local layers = flow.layers

local here = arg[0]:match("^(.*/)[^/]*$") or "./"
local options = flow.args { path = "", job_dir = ".", devices = 0, epochs = 6, batch_size = 16, image_size = 40, images_per_class = 40,
                            seed = 123 }

local strategy
if options.devices > 0 then
  flow.config.set_logical_devices("cpu", options.devices)
  strategy = flow.distribute.MirroredStrategy()
else
  strategy = flow.distribute.MultiWorkerMirroredStrategy()      -- all GPUs of each worker, else its CPU
end
local cluster = strategy.cluster_resolver
local task = cluster and cluster.task_id and ("%s_%d"):format(cluster.task_type, cluster.task_id) or "alone"
flow.set_random_seed(options.seed)

-- All workers see the same pictures: on several machines the folder is a mounted one. Here each draws its own, which are equal.
local path = options.path
if path == "" then
  path = ("%s/flowers_%s"):format(options.job_dir, task)
  dofile(here .. "../make_flowers.lua")(path, options.images_per_class, 1)
end

local reading = { validation_split = 0.2, seed = options.seed, image_size = options.image_size,
                  batch_size = options.batch_size * strategy.num_replicas_in_sync }      -- of all replicas together
local train = flow.image_dataset_from_directory(path, reading, { subset = "training" })
local validation = flow.image_dataset_from_directory(path, reading, { subset = "validation" })
local classes = #train.class_names
local sharing = { auto_shard_policy = "DATA" }
train = train:cache():shuffle(1000):prefetch(flow.AUTOTUNE):with_options(sharing)
validation = validation:cache():prefetch(flow.AUTOTUNE):with_options(sharing)

local model
strategy.scope(function()
  model = flow.Sequential {
    layers.Input { options.image_size, options.image_size, 3 }, layers.Rescaling(1 / 255),
    layers.Conv2D(16, 3, { padding = "same", activation = "relu" }), layers.MaxPooling2D(),
    layers.Conv2D(32, 3, { padding = "same", activation = "relu" }), layers.MaxPooling2D(),
    layers.Flatten(), layers.Dense(64, { activation = "relu" }), layers.Dense(classes, { activation = "softmax" }),
  }
  model:compile { optimizer = flow.optimizers.Adam(), loss = flow.losses.SparseCategoricalCrossentropy(), metrics = { "accuracy" } }
end)
local history = model:fit(train, { validation_data = validation, epochs = options.epochs, verbose = 0 }).history

-- Every worker saves, since saving may need all of them; those that are not the chief into their own folders, which they delete.
local is_chief = not cluster or cluster.is_chief
local root = os.getenv "AIP_MODEL_DIR" or options.job_dir
local folder = is_chief and root or flow.io.join(root, "workertemp_" .. cluster.task_id)
flow.io.makedirs(folder)
model:save(flow.io.join(folder, "flowers.keras"))
if not is_chief then flow.io.rmtree(folder) end
if options.path == "" then flow.io.rmtree(path) end

print(("%s: %d replicas, loss %.3f in the first epoch, %.3f in the last, validation accuracy %.2f"):format(task,
  strategy.num_replicas_in_sync, history.loss[1], history.loss[options.epochs], history.val_accuracy[options.epochs]))
