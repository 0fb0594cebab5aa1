-- audio_words.lua: words of an alphabet of tones, in noise, are told apart by a one-dimensional convolutional net with residual blocks over
-- their spectra, as in Keras' example "Speaker Recognition". The words are made here: three syllables, each
-- a tone with overtones, by voices of different heights and speeds.
--
--   flowlua lua/examples/audio_words.lua           the validation accuracy is 1.0000 after 10 epochs
local flow = require "flow"
local layers = flow.layers

local options = flow.args { epochs = 10, words = 1200, batch_size = 32, noise = 0.5, seed = 1 }
flow.set_random_seed(options.seed)
math.randomseed(options.seed)

local SAMPLING_RATE, SAMPLES = 4000, 2400
local WORDS = { "dadidu", "didadu", "dudida", "dadudi", "didida", "dududa" }
local HEIGHT = { a = 1, i = 1.5, u = 0.75 }      -- of a vowel, relative to the voice

---- made words -----------------------------------------------------------------------------------------------------------------

local function between(low, high) return low + (high - low) * math.random() end

-- The samples of a word, {SAMPLES, 1}.
local function speak(word)
  local voice, pace, at = between(260, 340), between(400, 560), math.floor(between(0, 500))
  local parts = { flow.zeros { at } }
  for vowel in word:gmatch "[aiu]" do
    local length = math.floor(pace * between(0.9, 1.1))
    local t = flow.arange(length):to("float32") / SAMPLING_RATE
    local phase = 2 * math.pi * voice * HEIGHT[vowel] * t
    local tone = flow.sin(phase) + 0.5 * flow.sin(2 * phase) + 0.3 * flow.sin(3 * phase)
    parts[#parts + 1] = tone * flow.sin(math.pi * flow.arange(length):to("float32") / length)
    at = at + length
  end
  parts[#parts + 1] = flow.zeros { SAMPLES - at }
  return flow.concat(parts, 1):expand_dims(-1)
end

local audio, labels = {}, {}
for i = 1, options.words do
  labels[i] = math.random(#WORDS) - 1
  audio[i] = speak(WORDS[labels[i] + 1])
end
audio, labels = flow.stack(audio, 1), flow.tensor(labels, { dtype = "int32" })

---- data -----------------------------------------------------------------------------------------------------------------------

local function add_noise(sound) return sound + options.noise * flow.random.normal(flow.shape(sound)) end

-- Spectra of frames that overlap by half, {rows, frames, FRAME / 2}: the lengths of the discrete Fourier transform of each.
local FRAME = 128
local angles = 2 * math.pi / FRAME * flow.arange(FRAME):expand_dims(2) * flow.arange(FRAME / 2)
local window = 0.5 - 0.5 * flow.cos(2 * math.pi / FRAME * flow.arange(FRAME)):expand_dims(2)
local cosines, sines = window * flow.cos(angles), window * flow.sin(angles)
local positions = flow.arange(0, SAMPLES - FRAME + 1, FRAME / 2):expand_dims(2) + flow.arange(1, FRAME + 1)

local function audio_to_fft(sound)
  local frames = flow.take(sound:squeeze(-1), positions:to("int32"), 2)
  return (frames:matmul(cosines):square() + frames:matmul(sines):square() + 1e-6):sqrt()
end

local function dataset(from, to)
  local ds = flow.data.Dataset.from_tensor_slices { audio[{ { from, to } }], labels[{ { from, to } }] }:batch(options.batch_size)
  ds = ds:map(function(x, y) return add_noise(x), y end, { num_parallel_calls = flow.AUTOTUNE })
  return ds:map(function(x, y) return audio_to_fft(x), y end, { num_parallel_calls = flow.AUTOTUNE }):prefetch(flow.AUTOTUNE)
end
local split = math.floor(0.8 * options.words)
local train_ds, valid_ds = dataset(1, split), dataset(split + 1, options.words)

---- the model ------------------------------------------------------------------------------------------------------------------

local function residual_block(x, filters, conv_num, activation)
  local s = layers.Conv1D(filters, 1, { padding = "same" })(x)      -- shortcut
  for _ = 1, conv_num - 1 do
    x = layers.Conv1D(filters, 3, { padding = "same" })(x)
    x = layers.Activation(activation or "relu")(x)
  end
  x = layers.Conv1D(filters, 3, { padding = "same" })(x)
  x = layers.Add()({ x, s })
  x = layers.Activation(activation or "relu")(x)
  return layers.MaxPool1D { pool_size = 2, strides = 2 }(x)
end

local function build_model(input_shape, num_classes)
  local inputs = layers.Input { shape = input_shape, name = "input" }
  local x = residual_block(inputs, 16, 2)
  x = residual_block(x, 32, 2)
  x = residual_block(x, 64, 3)
  x = layers.AveragePooling1D { pool_size = 3, strides = 3 }(x)
  x = layers.Flatten()(x)
  x = layers.Dense(64, { activation = "relu" })(x)
  local outputs = layers.Dense(num_classes, { activation = "softmax", name = "output" })(x)
  return flow.models.Model { inputs = inputs, outputs = outputs }
end

local frames = train_ds.element_spec[1].shape
local model = build_model({ frames[2], frames[3] }, #WORDS)
model:summary()
model:compile { optimizer = "Adam", loss = "sparse_categorical_crossentropy", metrics = { "accuracy" } }
model:fit(train_ds, {
  epochs = options.epochs, validation_data = valid_ds, verbose = 2,
  callbacks = { flow.callbacks.EarlyStopping { patience = 10, restore_best_weights = true } },
})
print(("validation accuracy %.4f"):format(model:evaluate(valid_ds, { verbose = 0 }).accuracy))
