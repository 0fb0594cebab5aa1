-- mnist.lua: a small convolutional net learns to read handwritten digits.
--
--   scripts/run                               on the 1,500 digits beside this script: seconds
--   flowlua lua/examples/mnist.lua --path DIR --epochs 3   on MNIST: DIR holds its four IDX files, gzipped or not
local flow = require "flow"
local layers = flow.layers

local here = arg[0]:match("^(.*/)[^/]*$") or "./"
local options = flow.args { epochs = 30, batch_size = 32, seed = 1, path = "", threads = 0 }

flow.set_random_seed(options.seed)
flow.config.set_threads(options.threads)                    -- 0: one for every core

local path = options.path ~= "" and options.path or here .. "digits"
local x_train, y_train, x_test, y_test = flow.datasets.mnist { path = path }
print(string.format("%d images to train, %d to test, %d threads", #x_train, #x_test, flow.config.get_threads()))

local net = { layers.Input { 28, 28 }, layers.Rescaling(1 / 255), layers.Reshape { 28, 28, 1 } }
for i, filters in ipairs { 16, 32, 64 } do
  if i > 1 then net[#net + 1] = layers.MaxPooling2D() end
  net[#net + 1] = layers.Conv2D(filters, 3, { use_bias = false })
  net[#net + 1] = layers.BatchNormalization { momentum = 0.9 }
  net[#net + 1] = layers.ReLU()
end
net[#net + 1] = layers.GlobalAveragePooling2D()            -- a digit counts wherever it is
net[#net + 1] = layers.Dropout(0.1)
net[#net + 1] = layers.Dense(10, { activation = "softmax" })

local model = flow.Sequential(net)
local optimizer = flow.optimizers.Adam(0.002)
model:compile { optimizer = optimizer, loss = flow.losses.SparseCategoricalCrossentropy(), metrics = { "accuracy" } }
model:summary()

-- Large steps first, small ones for the last quarter.
local coarse = math.ceil(0.75 * options.epochs)
local how = { batch_size = options.batch_size, epochs = coarse, validation_data = { x_test, y_test }, verbose = 2 }
model:fit(x_train, y_train, how)
optimizer.learning_rate = 0.0002
how.initial_epoch, how.epochs = coarse, options.epochs
model:fit(x_train, y_train, how)

local result = model:evaluate(x_test, y_test, { verbose = 0 })
print(string.format("test loss %.4f, test accuracy %.4f", result.loss, result.accuracy))
