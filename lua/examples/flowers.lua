-- flowers.lua: a convolutional net learns to tell kinds of flowers, from photographs in folders named after them.
--
--   flowlua lua/examples/flowers.lua                         on drawn flowers (make_flowers.lua): a few minutes
--   flowlua lua/examples/flowers.lua --path flower_photos    on your own folder, a sub-folder for each kind
local flow = require "flow"
local layers = flow.layers

local here = arg[0]:match("^(.*/)[^/]*$") or "./"
local args = flow.args { path = "", epochs = 10, batch_size = 32, image_size = 180, images_per_class = 400, seed = 123, job_dir = "." }
flow.set_random_seed(args.seed)

local path = args.path
if path == "" then
  path = ("/tmp/flowlua_flowers_%d"):format(args.images_per_class)
  local known = io.open(path .. "/complete")
  if known then
    known:close()
  else
    print("drawing flowers into " .. path)
    dofile(here .. "make_flowers.lua")(path, args.images_per_class, 1)
    assert(io.open(path .. "/complete", "w")):close()
  end
end

local strategy = flow.distribute.MirroredStrategy()          -- all GPUs, else the CPU
print("replicas in sync: " .. strategy.num_replicas_in_sync)
local options = { validation_split = 0.2, seed = args.seed, image_size = args.image_size,
                  batch_size = args.batch_size * strategy.num_replicas_in_sync }
local train = flow.image_dataset_from_directory(path, options, { subset = "training" })
local val = flow.image_dataset_from_directory(path, options, { subset = "validation" })
print(table.concat(train.class_names, ", "))
local classes = #train.class_names

train = train:cache():shuffle(1000):prefetch(flow.AUTOTUNE)
val = val:cache():prefetch(flow.AUTOTUNE)

local model
strategy.scope(function()
  model = flow.Sequential {
    layers.Input { args.image_size, args.image_size, 3 },
    layers.Rescaling(1 / 255),
    layers.Conv2D(16, 3, { padding = "same", activation = "relu" }), layers.MaxPooling2D(),
    layers.Conv2D(32, 3, { padding = "same", activation = "relu" }), layers.MaxPooling2D(),
    layers.Conv2D(64, 3, { padding = "same", activation = "relu" }), layers.MaxPooling2D(),
    layers.Flatten(),
    layers.Dense(128, { activation = "relu" }),
    layers.Dense(classes, { activation = "softmax" }),
  }
  model:compile { optimizer = flow.optimizers.Adam(), loss = flow.losses.SparseCategoricalCrossentropy(), metrics = { "accuracy" } }
end)

model:summary()
local history = model:fit(train, { validation_data = val, epochs = args.epochs })
history:plot(args.job_dir .. "/history.svg")
model:save(args.job_dir .. "/flowers.keras")                  -- opens in Keras, too; try: flowlua predict flowers.keras rose.jpg
