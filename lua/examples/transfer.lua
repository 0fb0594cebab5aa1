-- transfer.lua: what a net has learnt of five digits helps with five others of which only a few are labelled: transfer learning and fine-
-- tuning as in Keras' guide of that name. A MobileNet learns the digits 0 to 4 and its weights are saved, unless their file is there;
-- then flow.applications opens the file, a new classifier learns on top of it, and at last all of it learns, slowly.
--
--   flowlua lua/examples/transfer.lua             0.58 with a frozen base, 0.72 fine-tuned, 0.21 from scratch
local flow = require "flow"
local layers = flow.layers

local here = arg[0]:match("^(.*/)[^/]*$") or "./"
local options = flow.args {
  pretrain_epochs = 12, epochs = 40, fine_epochs = 20, labelled = 100, batch_size = 16, seed = 1, path = here .. "digits",
  weights = "mobilenet_digits.weights.h5",
}
flow.set_random_seed(options.seed)

local SIZE = 32
local SHAPE = { SIZE, SIZE, 3 }

-- The digits from first to first + 4 as pictures in colour of the size that applications take, and labels from 0.
local function digits(x, y, first)
  local chosen = {}
  for i, label in ipairs(y:totable()) do
    if label >= first and label < first + 5 then chosen[#chosen + 1] = i end
  end
  local positions = flow.tensor(chosen, { dtype = "int64" })
  local pictures = flow.image.resize(flow.take(x, positions, 1):reshape { -1, 28, 28, 1 }:to("float32"), { SIZE, SIZE })
  return flow.repeat_(pictures, 3, -1), flow.take(y, positions, 1):to("int32") - first
end
local x_train, y_train, x_test, y_test = flow.datasets.mnist.load_data { path = options.path }
local preprocess_input = flow.applications.mobilenet.preprocess_input
local function new_base(given)
  given.input_shape, given.alpha, given.include_top, given.pooling = SHAPE, 0.5, false, "avg"
  return flow.applications.MobileNet(given)
end

---- the file of an application -----------------------------------------------------------------------------------------------------

if not flow.io.exists(options.weights) then
  local x, y = digits(x_train, y_train, 0)
  local base = new_base { weights = false }
  local model = flow.Sequential { layers.Input(SHAPE), base, layers.Dense(5, { activation = "softmax" }) }
  model:compile { optimizer = flow.optimizers.Adam(0.003), loss = "sparse_categorical_crossentropy", metrics = { "accuracy" } }
  model:fit(preprocess_input(x), y, { epochs = options.pretrain_epochs, batch_size = 8, verbose = 2 })
  base:save_weights(options.weights)
end

---- transfer learning --------------------------------------------------------------------------------------------------------------

local x, y = digits(x_train, y_train, 5)
x, y = x[{ { 1, options.labelled } }], y[{ { 1, options.labelled } }]
local x_new, y_new = digits(x_test, y_test, 5)

local function new_model(weights, trainable)
  local base = new_base { weights = weights }
  base.trainable = trainable
  local inputs = flow.Input(SHAPE)
  local h = layers.RandomRotation(0.03)(inputs)
  h = layers.Rescaling(1 / 127.5, -1)(h)
  h = base(h, { training = not weights and nil })      -- with weights, normalizations keep their statistics: also when the base learns
  h = layers.Dropout(0.2)(h)
  return flow.Model(inputs, layers.Dense(5)(h)), base
end

local function train(model, epochs, rate)
  model:compile {
    optimizer = flow.optimizers.Adam(rate), metrics = { flow.metrics.SparseCategoricalAccuracy() },
    loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true },
  }
  model:fit(x, y, { epochs = epochs, batch_size = options.batch_size, verbose = 0 })
  return model:evaluate(x_new, y_new, { verbose = 0 }).sparse_categorical_accuracy
end

local model, base = new_model(options.weights, false)
model:summary()
print(("frozen base: test accuracy %.4f"):format(train(model, options.epochs, 0.003)))
base.trainable = true
print(("fine-tuned: test accuracy %.4f"):format(train(model, options.fine_epochs, 1e-4)))
print(("from scratch: test accuracy %.4f"):format(train(new_model(false, true), options.epochs + options.fine_epochs, 0.003)))
