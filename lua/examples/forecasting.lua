-- forecasting.lua: an LSTM tells the temperature half a day ahead from the last five days, as in Keras' example "Timeseries forecasting for
-- weather prediction". The weather is made here: days, seasons, and fronts that the pressure announces.
--
--   flowlua lua/examples/forecasting.lua           off by 2.96 degrees; 5.01 without a model
local flow = require "flow"
local layers = flow.layers

local options = flow.args {
  epochs = 10, hours = 12000, batch_size = 64, learning_rate = 0.003, seed = 1, path = "forecasting.weights.h5",
}
flow.set_random_seed(options.seed)
math.randomseed(options.seed)

-- Hourly rows of temperature, pressure and wind. A front changes the pressure, and the temperature half a day later.
local function weather(hours)
  local rows, fronts, front, remaining = {}, {}, 0, 0
  for hour = 1, hours do
    if remaining <= 0 then front, remaining = 2 * math.random() - 1, 24 + 96 * math.random() end
    remaining = remaining - 1
    fronts[hour] = 0.95 * (fronts[hour - 1] or 0) + 0.05 * front
    local season, day = math.sin(2 * math.pi * hour / 8766), math.sin(2 * math.pi * (hour - 9) / 24)
    local delayed = fronts[hour - 12] or 0
    rows[hour] = { 10 + 9 * season + 4 * day + 8 * delayed + 0.3 * (math.random() - 0.5),
                   1013 + 12 * fronts[hour] + math.random() - 0.5, 3 + 4 * math.abs(fronts[hour] - delayed) + math.random() }
  end
  return flow.tensor(rows)
end

local data = weather(options.hours)
local split_fraction, step, past, future = 0.7, 2, 120, 12
local train_split = math.floor(split_fraction * options.hours)

local function normalize(rows)
  local train = rows[{ { 1, train_split } }]
  return (rows - train:mean(1)) / train:std(1)
end
local features = normalize(data)
local sequence_length = past / step

-- Windows of the rows from first to last, and the temperature `future` hours after the last row of each.
local function windows(first, last)
  local x = features[{ { first, last - past - future } }]
  local y = features[{ { first + past + future, last }, 1 }]
  return flow.utils.timeseries_dataset_from_array(x, y, {
    sequence_length = sequence_length, sampling_rate = step, batch_size = options.batch_size,
  })
end
local dataset_train, dataset_val = windows(1, train_split), windows(train_split + 1, options.hours)
for inputs, targets in dataset_train:take(1):iter() do print("Input shape:", inputs.shape, "Target shape:", targets.shape) end

local inputs = layers.Input { sequence_length, 3 }
local lstm_out = layers.LSTM(32)(inputs)
local outputs = layers.Dense(1)(lstm_out)
local model = flow.Model { inputs = inputs, outputs = outputs }
model:compile { optimizer = flow.optimizers.Adam { learning_rate = options.learning_rate }, loss = "mse" }
model:summary()

model:fit(dataset_train, {
  epochs = options.epochs, validation_data = dataset_val, verbose = 2,
  callbacks = {
    flow.callbacks.EarlyStopping { monitor = "val_loss", min_delta = 0, patience = 5 },
    flow.callbacks.ModelCheckpoint {
      monitor = "val_loss", filepath = options.path, verbose = 1, save_weights_only = true, save_best_only = true,
    },
  },
})
model:load_weights(options.path)

-- The mean distance in degrees, and that of saying that it stays unchanged.
local degrees = data[{ { 1, train_split }, 1 }]:std():item()
local lost, stays, count = 0, 0, 0
for x, y in dataset_val:iter() do
  lost = lost + (model:predict_on_batch(x):squeeze(-1) - y):abs():sum():item()
  stays = stays + (x[{ {}, -1, 1 }] - y):abs():sum():item()
  count = count + #y
end
print(("half a day ahead: off by %.2f degrees, %.2f without a model"):format(degrees * lost / count, degrees * stays / count))
