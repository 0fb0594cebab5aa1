-- char_lstm.lua: an LSTM learns to write, letter by letter, as in Keras' example "Character-level text generation with LSTM". The text is
-- of make_texts.lua, so that what it writes can be looked up: are these words, are these sentences?
--
--   flowlua lua/examples/char_lstm.lua   at a diversity of 0.5, 38 of 39 words that it writes are words, and 2 of 2 sentences are right
local flow = require "flow"
local layers = flow.layers

local here = arg[0]:match("^(.*/)[^/]*$") or "./"
local texts = dofile(here .. "make_texts.lua")
local options = flow.args { epochs = 10, sentences = 800, units = 64, batch_size = 128, letters = 200, seed = 1 }
flow.set_random_seed(options.seed)

local text = table.concat(texts.make(options.sentences, options.seed), ". ") .. ". "
local chars, indices = {}, {}
for char in text:gmatch "." do
  if not indices[char] then chars[#chars + 1], indices[char] = char, true end
end
table.sort(chars)
for i, char in ipairs(chars) do indices[char] = i - 1 end
print(("%d letters, %d different ones"):format(#text, #chars))

-- Pieces of the text that overlap, and the letter after each.
local MAX_LENGTH, STEP = 40, 3
local ids = {}
for i = 1, #text do ids[i] = indices[text:sub(i, i)] end
local function piece(first)
  local list = {}
  for i = 1, MAX_LENGTH do list[i] = ids[first + i - 1] end
  return list
end
local pieces, next_chars = {}, {}
for first = 1, #text - MAX_LENGTH, STEP do
  pieces[#pieces + 1], next_chars[#next_chars + 1] = piece(first), ids[first + MAX_LENGTH]
end
local x = flow.one_hot(flow.tensor(pieces, { dtype = "int32" }), #chars)
local y = flow.one_hot(flow.tensor(next_chars, { dtype = "int32" }), #chars)

local model = flow.Sequential {
  layers.Input { MAX_LENGTH, #chars },
  layers.LSTM(options.units),
  layers.Dense(#chars, { activation = "softmax" }),
}
model:compile { loss = "categorical_crossentropy", optimizer = flow.optimizers.RMSprop { learning_rate = 0.01 } }

-- A letter from what the model says of all letters: a low temperature takes the likely ones.
local function sample(predictions, temperature)
  return flow.random.categorical(flow.log(predictions + 1e-7):expand_dims(1) / temperature, 1):item()
end

local function write(temperature)
  local first = math.random(#text - MAX_LENGTH)
  local seen, written = piece(first), {}
  for i = 1, options.letters do
    local x_pred = flow.one_hot(flow.tensor({ seen }, { dtype = "int32" }), #chars)
    local next_index = sample(model:predict(x_pred, { verbose = 0 })[1], temperature)
    table.remove(seen, 1)
    seen[MAX_LENGTH], written[i] = next_index, chars[next_index + 1]
  end
  return table.concat(written)
end

model:fit(x, y, { batch_size = options.batch_size, epochs = options.epochs, verbose = 2 })
for _, diversity in ipairs { 0.2, 0.5, 1.0 } do
  local written = write(diversity)
  local count, words, whole, sentences = 0, 0, 0, 0
  for word in written:gmatch "%f[%a]%a+%f[%A]" do
    count, words = count + 1, words + (texts.is_word(word) and 1 or 0)
  end
  for sentence in written:gmatch "%. ([^.]*)%f[.]" do
    sentences, whole = sentences + 1, whole + (texts.is_sentence(sentence) and 1 or 0)
  end
  print(("diversity %.1f: %s"):format(diversity, written))
  print(("diversity %.1f: %d of %d are words, %d of %d sentences are right"):format(diversity, words, count, whole, sentences))
end
