-- custom_step.lua: the training loop written out, for when fit does not do what is wanted. The step is an ordinary Lua
-- function; flow.fn traces it once into a plan, and from then on a step runs no Lua inside.
--
--   flowlua lua/examples/custom_step.lua --epochs 5
local flow = require "flow"
local layers = flow.layers

local here = arg[0]:match("^(.*/)[^/]*$") or "./"
local options = flow.args { epochs = 5, batch_size = 50, seed = 1 }
flow.set_random_seed(options.seed)

local x_train, y_train, x_test, y_test = flow.datasets.mnist { path = here .. "digits" }
local classes = 10

local model = flow.Sequential {
  layers.Input { 28, 28 }, layers.Rescaling(1 / 255), layers.Reshape { 28, 28, 1 },
  layers.Conv2D(16, 3, { activation = "relu" }), layers.MaxPooling2D(),
  layers.Conv2D(32, 3, { activation = "relu" }), layers.MaxPooling2D(),
  layers.Flatten(), layers.Dense(classes),
}
local optimizer = flow.optimizers.Adam(0.002)
local loss_fn = flow.losses.SparseCategoricalCrossentropy { from_logits = true }

local train_step = flow.fn(function(x, y)
  local tape = flow.GradientTape()
  local loss = tape:record(function() return loss_fn(y, model(x, { training = true })) end)
  optimizer:apply_gradients(tape:gradient(loss, model.trainable_variables), model.trainable_variables)
  return loss
end)

-- The batches in another order each epoch. {first, last} is inclusive and counts from 1.
local function batches()
  local firsts = {}
  for first = 1, #x_train, options.batch_size do table.insert(firsts, math.random(#firsts + 1), first) end
  local i = 0
  return function()
    i = i + 1
    if not firsts[i] then return end
    local range = { firsts[i], math.min(firsts[i] + options.batch_size - 1, #x_train) }
    return x_train[{ range }], y_train[{ range }]
  end
end

math.randomseed(options.seed)
for epoch = 1, options.epochs do
  local sum, count = 0, 0
  for x, y in batches() do
    sum = sum + train_step(x, y):item()
    count = count + 1
  end
  print(string.format("epoch %d: loss %.4f", epoch, sum / count))
end

local hits = model:predict(x_test, { verbose = 0 }):classes():to("int64"):eq(y_test:to("int64")):to("float32"):sum():item()
print(string.format("test accuracy %.4f", hits / #x_test))
