-- speech.lua: a Transformer that hears tones and writes letters, as in Keras' example "Automatic Speech Recognition with Transformer":
-- ds:map reads WAVE files and makes spectrograms of them, two convolutions shorten these, the encoder reads them and the decoder writes
-- letter by letter, with its own step and schedule. A word is said by one tone for each letter, in noise, each of another length.
--
--   flowlua lua/examples/speech.lua               90 of 100 words that it has not heard are written right after 40 epochs
local flow = require "flow"
local layers = flow.layers

local options = flow.args { epochs = 40, words = 300, batch_size = 16, seed = 1 }
flow.set_random_seed(options.seed)
math.randomseed(options.seed)

---- sounds -----------------------------------------------------------------------------------------------------------------------

local RATE, SLICES, LENGTH = 8000, 60, 7
local LETTERS, TONES = { "-", "<", ">", "a", "b", "c", "d", "e" }, { a = 400, b = 640, c = 960, d = 1400, e = 2000 }
local number_of = {}
for i, letter in ipairs(LETTERS) do number_of[letter] = i - 1 end

local folder = os.tmpname()
os.remove(folder)
flow.io.makedirs(folder)

-- Says a word; returns the file.
local function say(word, number)
  local parts = {}
  for letter in word:gmatch "." do
    local length = math.random(500, 900)
    local t = flow.arange(length):to "float32" / RATE
    parts[#parts + 1] = (t * (2 * math.pi * TONES[letter])):sin() * 0.5
  end
  local sound = flow.concat(parts, 1)
  local path = flow.io.join(folder, ("%d.wav"):format(number))
  flow.io.save_wav(path, sound + flow.random.normal(sound.shape, { stddev = 0.05 }), RATE)
  return path
end

local function made(count, first)
  local list = {}
  for i = 1, count do
    local word = {}
    for k = 1, math.random(2, 5) do word[k] = ("abcde"):sub(math.random(5)):sub(1, 1) end
    word = table.concat(word)
    list[i] = { text = word, audio = say(word, first + i) }
  end
  return list
end

-- <, the numbers of the letters, >, and zeros.
local function numbers_of(text)
  text = "<" .. text .. ">"
  local list = {}
  for i = 1, LENGTH do list[i] = i <= #text and number_of[text:sub(i, i)] or 0 end
  return list
end

-- The spectrogram of a file, each slice of it normalized, {SLICES, 129}.
local function spectrogram_of(path)
  local sound = flow.squeeze(flow.audio.decode_wav(flow.io.read_file(path), 1), 2)
  local real, imaginary = flow.stft(sound, 200, 80, 256, "hann", false)
  local x = (real * real + imaginary * imaginary) ^ 0.25
  x = (x - flow.mean(x, 2, true)) / (flow.std(x, 2, true) + 1e-6)
  return flow.pad(x, { { 0, SLICES }, { 0, 0 } })[{ { 1, SLICES } }]
end

local function dataset_of(list)
  local paths, texts = {}, {}
  for i, entry in ipairs(list) do paths[i], texts[i] = entry.audio, numbers_of(entry.text) end
  local sounds = flow.data.Dataset.from_tensor_slices { paths }:map(spectrogram_of):cache()
  local written = flow.data.Dataset.from_tensor_slices { flow.tensor(texts, "int32") }
  return flow.data.Dataset.zip { sounds, written }:map(function(x, y) return { source = x, target = y } end):batch(options.batch_size)
end

---- layers -----------------------------------------------------------------------------------------------------------------------

local SIZE, HEADS, FEED_FORWARD = 48, 2, 96

local function feed_forward() return flow.Sequential { layers.Dense(FEED_FORWARD, { activation = "relu" }), layers.Dense(SIZE) } end
local function norm() return layers.LayerNormalization { epsilon = 1e-6 } end

local Letters = layers.Layer:extend "Letters"      -- what a letter is, and where

function Letters:init()
  self.letters, self.places = layers.Embedding(#LETTERS, SIZE), layers.Embedding(LENGTH, SIZE)
end

function Letters:call(x) return self.letters(x) + self.places(flow.arange(flow.shape(x)[2])) end

local Encoder = layers.Layer:extend "Encoder"

function Encoder:init()
  self.attention, self.feed_forward = layers.MultiHeadAttention(HEADS, SIZE), feed_forward()
  self.norm1, self.norm2, self.dropout = norm(), norm(), layers.Dropout(0.1)
end

function Encoder:call(x)
  x = self.norm1(x + self.dropout(self.attention(x, x)))
  return self.norm2(x + self.dropout(self.feed_forward(x)))
end

local Decoder = layers.Layer:extend "Decoder"

function Decoder:init()
  self.own, self.heard, self.feed_forward = layers.MultiHeadAttention(HEADS, SIZE), layers.MultiHeadAttention(HEADS, SIZE), feed_forward()
  self.norm1, self.norm2, self.norm3, self.dropout = norm(), norm(), norm(), layers.Dropout(0.1)
end

function Decoder:call(heard, written)
  local x = self.norm1(written + self.dropout(self.own(written, written, { use_causal_mask = true })))
  x = self.norm2(x + self.dropout(self.heard(x, heard)))
  return self.norm3(x + self.dropout(self.feed_forward(x)))
end

---- the model --------------------------------------------------------------------------------------------------------------------

local Listener = flow.Model:extend "Listener"

function Listener:init()
  local convolution = { strides = 2, padding = "same", activation = "relu" }
  self.encoder = flow.Sequential { layers.Conv1D(SIZE, 11, convolution), layers.Conv1D(SIZE, 11, convolution), Encoder(), Encoder() }
  self.letters, self.decoder, self.classifier = Letters(), Decoder(), layers.Dense(#LETTERS)
  self.loss_tracker = flow.metrics.Mean "loss"
end

function Listener:call(inputs) return self.classifier(self.decoder(self.encoder(inputs[1]), self.letters(inputs[2]))) end

function Listener.fields.metrics(self) return { self.loss_tracker } end

function Listener:train_step(batch)
  local before, after = batch.target[{ {}, { 1, -2 } }], batch.target[{ {}, { 2, -1 } }]
  local tape = flow.GradientTape()
  local loss = tape:record(function()
    local written = self { batch.source, before }
    return self:compute_loss(nil, flow.one_hot(after, #LETTERS), written, flow.not_equal(after, 0))
  end)
  self.optimizer:apply_gradients(tape:gradient(loss, self.trainable_variables), self.trainable_variables)
  self.loss_tracker:update_state(loss)
  return { loss = self.loss_tracker:result() }
end

-- The words of a batch of spectrograms: each time the likeliest letter.
function Listener:write(source)
  local heard = self.encoder(source)
  local numbers = flow.ones({ source.shape[1], 1 }, "int32")
  for _ = 1, LENGTH - 1 do
    local found = self.classifier(self.decoder(heard, self.letters(numbers)))
    numbers = flow.concat({ numbers, (found:argmax(-1) - 1):to("int32")[{ {}, { -1, -1 } }] }, 2)
  end
  local words = {}
  for i, row in ipairs(numbers:totable()) do
    local word = {}
    for k = 2, #row do
      if LETTERS[row[k] + 1] == ">" then break end
      word[#word + 1] = LETTERS[row[k] + 1]
    end
    words[i] = table.concat(word)
  end
  return words
end

-- The learning rate rises over the first epochs and falls after them.
local Warmed = flow.optimizers.schedules.LearningRateSchedule:extend "Warmed"
function Warmed:init(highest, steps) self.highest, self.steps = highest, steps end
function Warmed:call(step)
  return flow.minimum(step / self.steps, flow.maximum(0.1, 1.2 - step / (self.steps * 8))) * self.highest
end

---- training ---------------------------------------------------------------------------------------------------------------------

local train = dataset_of(made(options.words, 0))
local unheard = made(100, options.words)
local model = Listener()
model:compile {
  optimizer = flow.optimizers.Adam { learning_rate = Warmed(2e-3, 5 * math.ceil(options.words / options.batch_size)) },
  loss = flow.losses.CategoricalCrossentropy { from_logits = true, label_smoothing = 0.1 },
}
model:fit(train:shuffle(100), { epochs = options.epochs, verbose = 2 })

local right, n = 0, 0
for batch in dataset_of(unheard):iter() do
  for _, word in ipairs(model:write(batch.source)) do
    n = n + 1
    if word == unheard[n].text then right = right + 1 end
    if n <= 5 then print(("said %-6s written %s"):format(unheard[n].text, word)) end
  end
end
flow.io.rmtree(folder)
print(("%d of %d words are written right"):format(right, n))
