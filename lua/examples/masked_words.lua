-- masked_words.lua: a Transformer learns words from the words around them, as in Keras' example "End-to-end Masked Language Modeling with
-- BERT": some words are hidden, and compute_loss counts what stands in their places; its encoder, opened from a file, then tells with few
-- examples what a sentence is about. The sentences are made here: a kind of place, and words that go with it.
--
--   flowlua lua/examples/masked_words.lua         accuracy 1.000 with 24 labelled sentences; 0.360 on an encoder that has not learnt
local flow = require "flow"
local layers, ops = flow.layers, flow.keras.ops

local options = flow.args { epochs = 12, fine_epochs = 15, sentences = 1200, labelled = 24, batch_size = 32, seed = 1 }
flow.set_random_seed(options.seed)
math.randomseed(options.seed)

local LENGTH, SIZE, HEADS = 9, 32, 4

---- sentences --------------------------------------------------------------------------------------------------------------------

local PLACES = {
  { "sea", "beach", "harbour", "island" }, { "forest", "wood", "hill", "valley" }, { "town", "street", "market", "station" },
}
local THINGS = { { "ships", "waves", "fish", "gulls" }, { "trees", "deer", "mushrooms", "owls" }, { "cars", "shops", "trains", "lamps" } }
local HOW = { "old", "quiet", "wide", "small" }

local function pick(list) return list[math.random(#list)] end

-- count sentences, and about which kind of place each is, from 0.
local function sentences(count)
  local texts, kinds = {}, {}
  for i = 1, count do
    local kind = math.random(3)
    texts[i] = ("at the %s %s we see %s and %s!"):format(pick(HOW), pick(PLACES[kind]), pick(THINGS[kind]), pick(THINGS[kind]))
    kinds[i] = kind - 1
  end
  return texts, flow.tensor(kinds, "int32")
end

local texts = sentences(options.sentences)
local vectorize = layers.TextVectorization { output_sequence_length = LENGTH }
vectorize:adapt(texts)
local words = { unpack(vectorize:get_vocabulary(), 3) }      -- without the empty word and the unknown one
words[#words + 1] = "[mask]"
vectorize:set_vocabulary(words)
local VOCABULARY = #vectorize:get_vocabulary()
local MASK = VOCABULARY - 1

-- The sentences with hidden words, what they were, and a weight for each word: 1 where it is hidden.
local function hidden(x)
  local is_hidden = ops.logical_and(flow.random.uniform(x.shape):lt(0.15), x:ge(2))
  return ops.where(is_hidden, MASK, x), x, is_hidden:to "float32"
end

---- the model --------------------------------------------------------------------------------------------------------------------

local Places = layers.Layer:extend "Places"      -- adds to each word where it stands

function Places:build(shape)
  self.places = self:add_weight { name = "places", shape = { LENGTH, shape[#shape] }, initializer = "glorot_uniform" }
end

function Places:call(x) return x + self.places end

local word_losses = flow.losses.SparseCategoricalCrossentropy { reduction = "none" }
local loss_tracker = flow.metrics.Mean "loss"
local Masked = flow.Model:extend "Masked"

function Masked:compute_loss(_, y, y_pred, sample_weight)
  local losses = word_losses(y, y_pred, sample_weight)
  loss_tracker:update_state(losses, { sample_weight = sample_weight })
  return ops.sum(losses)
end

function Masked:compute_metrics() return { loss = loss_tracker:result() } end

function Masked.fields.metrics() return { loss_tracker } end

local function encoder_block(x, name)
  local attended = layers.Dropout(0.1)(layers.MultiHeadAttention { num_heads = HEADS, key_dim = SIZE / HEADS }(x, x))
  x = layers.LayerNormalization { epsilon = 1e-6 }(x + attended)
  local fed = flow.Sequential { layers.Dense(2 * SIZE, { activation = "relu" }), layers.Dense(SIZE), layers.Dropout(0.1) }(x)
  return layers.LayerNormalization { epsilon = 1e-6, name = name }(x + fed)
end

local inputs = flow.Input({ LENGTH }, { dtype = "int64" })
local encoded = encoder_block(Places()(layers.Embedding(VOCABULARY, SIZE)(inputs)), "encoded")
local model = Masked { inputs = inputs, outputs = layers.Dense(VOCABULARY, { activation = "softmax" })(encoded) }
model:compile { optimizer = flow.optimizers.Adam(2e-3) }

-- Says after an epoch which words the model would put in.
local example = "at the old harbour we see [mask] and fish"
local Writer = flow.callbacks.Callback:extend "Writer"

function Writer:on_epoch_end(epoch)
  if (epoch + 1) % 4 ~= 0 then return end
  local x = vectorize { (example:gsub("%[mask%]", "maskmask")) }
  x = ops.where(x:eq(1), MASK, x)      -- TextVectorization strips the brackets
  local place = x:eq(MASK):argmax(2):item()
  local likely, numbers = flow.top_k(self.model:predict(x, { verbose = 0 })[{ 1, place }], 3)
  local vocabulary, parts = vectorize:get_vocabulary(), {}
  for i = 1, 3 do parts[i] = ("%s %.2f"):format(vocabulary[numbers[i]:item()], likely[i]:item()) end
  print(example .. ": " .. table.concat(parts, ", "))
end

local x = vectorize(texts)
local data = flow.data.Dataset.from_tensor_slices { hidden(x) }:shuffle(1000):batch(options.batch_size)
model:fit(data, { epochs = options.epochs, callbacks = { Writer() }, verbose = 2 })
local temporary = os.tmpname()      -- a file that is there already; the model comes beside it
local path = temporary .. ".keras"
model:save(path)

---- what a sentence is about -----------------------------------------------------------------------------------------------------

local few, few_kinds = sentences(options.labelled)
local test, test_kinds = sentences(500)

-- The accuracy of a classifier on an encoder, which stays unchanged.
local function accuracy_with(encoder)
  encoder.trainable = false
  local input = flow.Input({ LENGTH }, { dtype = "int64" })
  local pooled = layers.GlobalAveragePooling1D()(encoder(input))
  local classifier = flow.Model { inputs = input, outputs = layers.Dense(3, { activation = "softmax" })(pooled) }
  classifier:compile { optimizer = flow.optimizers.Adam(1e-2), loss = "sparse_categorical_crossentropy", metrics = { "accuracy" } }
  classifier:fit(vectorize(few), few_kinds, { epochs = options.fine_epochs, batch_size = 8, verbose = 0 })
  return classifier:evaluate(vectorize(test), test_kinds, { verbose = 0 }).accuracy
end

local function encoder_of(whole) return flow.Model { inputs = whole.inputs, outputs = whole:get_layer("encoded").output } end

local opened = flow.load_model(path, { custom_objects = { Masked = Masked, Places = Places } })
os.remove(path)
os.remove(temporary)
local trained = accuracy_with(encoder_of(opened))
local untrained = accuracy_with(encoder_of(flow.models.clone_model(model)))
print(("accuracy with %d labelled sentences: %.3f, without what it learnt before %.3f"):format(options.labelled, trained, untrained))
