-- siamese.lua: one net looks at two pictures and tells whether they show the same digit, as in Keras' example "Image similarity estimation
-- using a Siamese Network with a contrastive loss": a model called twice in another, and a loss written in Lua.
--
--   flowlua lua/examples/siamese.lua               the test accuracy is 0.9343 after 10 epochs
local flow = require "flow"
local layers = flow.layers

local here = arg[0]:match("^(.*/)[^/]*$") or "./"
local options = flow.args { epochs = 10, batch_size = 16, margin = 1, seed = 1, path = here .. "digits" }
flow.set_random_seed(options.seed)
math.randomseed(options.seed)

local x_train, y_train, x_test, y_test = flow.datasets.mnist.load_data { path = options.path }

-- For each picture another of the same digit, and one of another: two tensors of pictures, and 0 where they match, 1 where not.
local function make_pairs(x, y)
  local labels, digit_indices = y:totable(), {}
  for i, label in ipairs(labels) do
    digit_indices[label] = digit_indices[label] or {}
    table.insert(digit_indices[label], i)
  end
  local function any(list) return list[math.random(#list)] end
  local first, second, differ = {}, {}, {}
  for i, label in ipairs(labels) do
    local other = (label + math.random(9)) % 10
    for k, partner in ipairs { any(digit_indices[label]), any(digit_indices[other]) } do
      first[#first + 1], second[#second + 1], differ[#differ + 1] = i, partner, k - 1
    end
  end
  local function pictures(positions) return flow.take(x:to("float32"), flow.tensor(positions, { dtype = "int64" }), 1) end
  return pictures(first), pictures(second), flow.tensor(differ)
end
local x_train_1, x_train_2, labels_train = make_pairs(x_train, y_train)
local x_test_1, x_test_2, labels_test = make_pairs(x_test, y_test)

---- the model ------------------------------------------------------------------------------------------------------------------

local function euclidean_distance(vects)
  local x, y = unpack(vects)
  local sum_square = (x - y):square():sum(2, true)
  return flow.sqrt(flow.maximum(sum_square, flow.keras.backend.epsilon()))
end

local input = layers.Input { 28, 28, 1 }
local x = layers.BatchNormalization()(input)
x = layers.Conv2D(4, { 5, 5 }, { activation = "tanh" })(x)
x = layers.AveragePooling2D { pool_size = { 2, 2 } }(x)
x = layers.Conv2D(16, { 5, 5 }, { activation = "tanh" })(x)
x = layers.AveragePooling2D { pool_size = { 2, 2 } }(x)
x = layers.Flatten()(x)
x = layers.BatchNormalization()(x)
x = layers.Dense(10, { activation = "tanh" })(x)
local embedding_network = flow.Model(input, x)

local input_1, input_2 = layers.Input { 28, 28, 1 }, layers.Input { 28, 28, 1 }
local tower_1, tower_2 = embedding_network(input_1), embedding_network(input_2)
local merged = euclidean_distance { tower_1, tower_2 }
local normal_layer = layers.BatchNormalization()(merged)
local output_layer = layers.Dense(1, { activation = "sigmoid" })(normal_layer)
local siamese = flow.Model { inputs = { input_1, input_2 }, outputs = output_layer }

-- Contrastive loss: mean((1 - true) * predicted^2 + true * max(margin - predicted, 0)^2).
local function loss(margin)
  return function(y_true, y_pred)
    local square_pred = flow.square(y_pred)
    local margin_square = flow.square(flow.maximum(margin - y_pred, 0))
    return flow.mean((1 - y_true) * square_pred + y_true * margin_square)
  end
end

siamese:compile { loss = loss(options.margin), optimizer = "RMSprop", metrics = { "accuracy" } }
siamese:summary()
siamese:fit({ x_train_1, x_train_2 }, labels_train, {
  validation_data = { { x_test_1, x_test_2 }, labels_test }, batch_size = options.batch_size, epochs = options.epochs, verbose = 2,
})
local results = siamese:evaluate({ x_test_1, x_test_2 }, labels_test, { verbose = 0 })
print(("test loss %.4f, test accuracy %.4f"):format(results.loss, results.accuracy))
