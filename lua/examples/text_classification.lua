-- text_classification.lua: reviews in plain words as good or bad, as in Keras' example "Text classification from scratch":
-- TextVectorization learns a vocabulary, an Embedding and pooling do the rest, and the model that is saved takes raw strings. The reviews
-- are made here: an opinion is a word of praise or blame, turned round where "not" is before it, among words that say nothing.
--
--   flowlua lua/examples/text_classification.lua      the test accuracy is 1.0000 after 10 epochs
local flow = require "flow"
local layers, Dataset = flow.layers, flow.data.Dataset

local options = flow.args { epochs = 10, reviews = 4000, batch_size = 32, max_tokens = 500, length = 60, seed = 1, path = "reviews.keras" }
flow.set_random_seed(options.seed)

---- made reviews ---------------------------------------------------------------------------------------------------------------

local PRAISE = { "great", "lovely", "superb", "moving", "funny", "brilliant", "charming", "clever" }
local BLAME = { "dull", "awful", "boring", "clumsy", "tedious", "weak", "silly", "noisy" }
local THINGS = { "film", "plot", "cast", "music", "ending", "dialogue", "camera work", "story" }
local FILLER = { "The", "I think the", "Well, the", "In short: the", "My friend said that the" }

local random = { state = options.seed }
function random.upto(n)      -- a small generator, so that the reviews are the same everywhere
  random.state = (random.state * 1103515245 + 12345) % 2 ^ 31
  return math.floor(random.state / 2 ^ 31 * n) + 1
end
local function any(list) return list[random.upto(#list)] end

local function sentence(good)
  local negated = random.upto(4) == 1
  local word = any(good ~= negated and PRAISE or BLAME)
  return ("%s %s was %s%s%s"):format(any(FILLER), any(THINGS), negated and "not " or "", word, any { ".", "!", "...", "<br />" })
end

local function make(count)
  local texts, labels = {}, {}
  for i = 1, count do
    local good = random.upto(2) == 1
    local parts = {}
    for k = 1, random.upto(3) do parts[k] = sentence(good) end
    texts[i], labels[i] = table.concat(parts, " "), good and 1 or 0
  end
  return Dataset.from_tensor_slices { texts, flow.tensor(labels) }
end

---- the model ------------------------------------------------------------------------------------------------------------------

local train = make(options.reviews):shuffle(options.reviews, { seed = options.seed }):batch(options.batch_size)
local test = make(math.floor(options.reviews / 4)):batch(options.batch_size)

local vectorize = layers.TextVectorization { max_tokens = options.max_tokens, output_sequence_length = options.length, ngrams = 2 }
vectorize:adapt(train:map(function(text) return text end))
print(("%d tokens, such as %s"):format(vectorize:vocabulary_size(), table.concat(vectorize:get_vocabulary(), ", ", 3, 8)))

local model = flow.Sequential {
  layers.Input({ 1 }, { dtype = "string" }),
  vectorize,
  layers.Embedding(options.max_tokens, 16),
  layers.GlobalAveragePooling1D(),
  layers.Dropout(0.2),
  layers.Dense(16, { activation = "relu" }),
  layers.Dense(1, { activation = "sigmoid" }),
}
model:compile { optimizer = "adam", loss = "binary_crossentropy", metrics = { "accuracy" } }
model:fit(train:prefetch(flow.AUTOTUNE), { epochs = options.epochs, validation_data = test, verbose = 2 })
local results = model:evaluate(test, { verbose = 0 })

model:save(options.path)
local again = flow.load_model(options.path)
local opinions = { "The story was not dull!", "I think the cast was tedious..." }
local found = again:predict(opinions, { verbose = 0 }):totable()
for i, text in ipairs(opinions) do print(("%.2f  %s"):format(found[i][1], text)) end
print(("test accuracy %.4f"):format(results.accuracy))
