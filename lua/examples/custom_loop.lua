-- custom_loop.lua: a training loop written out that runs on any number of replicas: TensorFlow's tutorial "Custom training with
-- tf.distribute.Strategy". A step is a function that every replica runs on its part of the batch.
--
--   flowlua lua/examples/custom_loop.lua                                     alone
--   flowlua lua/examples/custom_loop.lua --devices 2                         two replicas in this process, a thread each
--   flowlua launch --workers 2 lua/examples/custom_loop.lua                  two processes; also mpirun -n 2 flowlua ...
local flow = require "flow"
local layers = flow.layers

local here = arg[0]:match("^(.*/)[^/]*$") or "./"
local options = flow.args { path = "", epochs = 5, batch_size = 64, devices = 0, seed = 1 }

local strategy
if options.devices > 0 then
  flow.config.set_logical_devices("cpu", options.devices)
  strategy = flow.distribute.MirroredStrategy()
else
  strategy = flow.distribute.MultiWorkerMirroredStrategy()
end
flow.set_random_seed(options.seed)

local global_batch_size = options.batch_size                 -- of all replicas together
local x_train, y_train, x_test, y_test = flow.datasets.mnist { path = options.path ~= "" and options.path or here .. "digits" }
local train = flow.data.Dataset.from_tensor_slices { x_train, y_train }:shuffle(60000):batch(global_batch_size)
local test = flow.data.Dataset.from_tensor_slices { x_test, y_test }:batch(global_batch_size)
train, test = strategy:experimental_distribute_dataset(train), strategy:experimental_distribute_dataset(test)

local model, optimizer
strategy.scope(function()
  model = flow.Sequential {
    layers.Input { 28, 28 }, layers.Rescaling(1 / 255), layers.Reshape { 28, 28, 1 },
    layers.Conv2D(16, 3, { activation = "relu" }), layers.MaxPooling2D(),
    layers.Conv2D(32, 3, { activation = "relu" }), layers.MaxPooling2D(),
    layers.Flatten(), layers.Dense(10),
  }
  optimizer = flow.optimizers.Adam(0.002)
end)
local loss_fn = flow.losses.SparseCategoricalCrossentropy { from_logits = true, reduction = "none" }

-- Gradients are summed over the replicas; so every replica divides the sum of its losses by the size of the whole batch.
local train_step = flow.fn(function(x, y)
  local tape = flow.GradientTape()
  local loss = tape:record(function()
    return flow.nn.compute_average_loss(loss_fn(y, model(x, { training = true })), { global_batch_size = global_batch_size })
  end)
  optimizer:apply_gradients(tape:gradient(loss, model.trainable_variables), model.trainable_variables)
  return loss
end)

-- How many labels were found, and how many there were.
local test_step = flow.fn(function(x, y)
  local hits = model(x, { training = false }):argmax(-1):eq(y:to("int64") + 1):to("float32")      -- argmax counts from 1
  return hits:sum(), flow.ones_like(hits):sum()
end)

local chief = strategy.extended.should_checkpoint             -- one process prints
for epoch = 1, options.epochs do
  local sum, count, hits, rows = 0, 0, 0, 0
  for x, y in train:iter() do
    sum = sum + strategy:reduce("sum", strategy:run(train_step, { x, y })):item()
    count = count + 1
  end
  for x, y in test:iter() do
    local found, of = strategy:run(test_step, { x, y })
    hits = hits + strategy:reduce("sum", found):item()
    rows = rows + strategy:reduce("sum", of):item()
  end
  if chief then print(("epoch %d: loss %.4f, test accuracy %.4f of %d"):format(epoch, sum / count, hits / rows, rows)) end
end
