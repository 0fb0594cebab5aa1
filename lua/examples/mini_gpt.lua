-- mini_gpt.lua: a Transformer that sees only what is before learns to write, word by word, as in Keras' example "Text generation with
-- a miniature GPT": two layers written in Lua, and a callback that writes after an epoch. The text is of make_texts.lua; whether
-- a sentence that it writes is right can be said: the verb agrees with a subject that other words follow. A word that it writes costs one
-- step: what the attention computed of the words before it is in a cache.
--
--   flowlua lua/examples/mini_gpt.lua             100 of 100 sentences that it writes are right after 8 epochs
local flow = require "flow"
local layers = flow.layers

local here = arg[0]:match("^(.*/)[^/]*$") or "./"
local texts = dofile(here .. "make_texts.lua")
local options = flow.args { epochs = 8, sentences = 3000, batch_size = 64, write = 100, seed = 1 }
flow.set_random_seed(options.seed)

local VOCABULARY, MAX_LENGTH, EMBED, HEADS, FEED_FORWARD = 100, 16, 64, 2, 64

---- the model ------------------------------------------------------------------------------------------------------------------

local TransformerBlock = layers.Layer:extend "TransformerBlock"

function TransformerBlock:init(embed_dim, num_heads, ff_dim, rate)
  self.att = layers.CachedMultiHeadAttention(num_heads, embed_dim)
  self.ffn = flow.Sequential { layers.Dense(ff_dim, { activation = "relu" }), layers.Dense(embed_dim) }
  self.layernorm1 = layers.LayerNormalization { epsilon = 1e-6 }
  self.layernorm2 = layers.LayerNormalization { epsilon = 1e-6 }
  self.dropout1, self.dropout2 = layers.Dropout(rate or 0.1), layers.Dropout(rate or 0.1)
end

-- A word sees itself and what is before it. When the model writes, what is before it is in a cache, which begins with `index` words.
function TransformerBlock:call(inputs, given)
  local cache = given.cache
  local attention_output = self.att(inputs, inputs, { use_causal_mask = true, cache = cache, cache_update_index = given.index })
  if cache ~= nil then attention_output, cache = unpack(attention_output) end
  local out1 = self.layernorm1(inputs + self.dropout1(attention_output))
  local out2 = self.layernorm2(out1 + self.dropout2(self.ffn(out1)))
  if cache == nil then return out2 end
  return out2, cache
end

local TokenAndPositionEmbedding = layers.Layer:extend "TokenAndPositionEmbedding"

function TokenAndPositionEmbedding:init(maxlen, vocab_size, embed_dim)
  self.token_emb = layers.Embedding { input_dim = vocab_size, output_dim = embed_dim }
  self.pos_emb = layers.Embedding { input_dim = maxlen, output_dim = embed_dim }
end

function TokenAndPositionEmbedding:call(x, given)
  local positions = self.pos_emb(flow.arange(flow.shape(x)[2]) + (given.index or 0))
  return self.token_emb(x) + positions
end

local embed, block, decode
local function create_model()
  embed, block, decode = TokenAndPositionEmbedding(MAX_LENGTH, VOCABULARY, EMBED), TransformerBlock(EMBED, HEADS, FEED_FORWARD),
    layers.Dense(VOCABULARY)
  local inputs = flow.Input({ MAX_LENGTH }, { dtype = "int32" })
  local x = block(embed(inputs))
  local outputs = decode(x)
  local model = flow.Model { inputs = inputs, outputs = { outputs, x } }
  local loss_fn = flow.losses.SparseCategoricalCrossentropy { from_logits = true }
  model:compile { optimizer = flow.optimizers.Adam(0.003), loss = { loss_fn, false } }      -- no loss on the features of the block
  return model
end

---- data -----------------------------------------------------------------------------------------------------------------------

local plain = texts.make(options.sentences, options.seed)
local lines = {}
for i, sentence in ipairs(plain) do lines[i] = sentence .. " end " .. plain[i % #plain + 1] end
local text_ds = flow.data.Dataset.from_tensor_slices(lines):shuffle(256, { seed = options.seed }):batch(options.batch_size)

local vectorize = layers.TextVectorization { max_tokens = VOCABULARY - 1, output_mode = "int", output_sequence_length = MAX_LENGTH + 1 }
vectorize:adapt(text_ds)
local vocab = vectorize:get_vocabulary()      -- to get words back from token indices
local word_to_index = {}
for i, word in ipairs(vocab) do word_to_index[word] = i - 1 end

local function prepare_lm_inputs_labels(text)
  local tokenized = vectorize(text)
  return tokenized[{ {}, { 1, -2 } }], tokenized[{ {}, { 2, -1 } }]
end
text_ds = text_ds:map(prepare_lm_inputs_labels, { num_parallel_calls = flow.AUTOTUNE }):prefetch(flow.AUTOTUNE)

---- generation -----------------------------------------------------------------------------------------------------------------

local TextGenerator = flow.callbacks.Callback:extend "TextGenerator"

function TextGenerator:init(start, k) self.start, self.k = start, k end

-- One of the k likeliest tokens, as likely as they are.
function TextGenerator:sample_from(logits)
  local values, positions = flow.top_k(logits, self.k)
  local choice = flow.random.categorical(values:expand_dims(1), 1):item()
  return positions[choice + 1]:item() - 1
end

-- The next word's logits after words of which `index` are in the cache, and the cache with these, too.
local step = flow.fn(function(tokens, index, cache)
  local x
  x, cache = block(embed(tokens, { index = index }), { index = index, cache = cache })
  return decode(x[{ {}, -1 }]), cache
end)

-- A sentence: words from the start on until "end". The first step takes all words of the start, each other one the word before it.
function TextGenerator:write()
  local tokens, words = {}, {}
  for word in self.start:gmatch "%S+" do tokens[#tokens + 1], words[#words + 1] = word_to_index[word], word end
  local cache = flow.zeros { 1, 2, MAX_LENGTH, HEADS, EMBED }
  while #words < MAX_LENGTH do
    local logits
    logits, cache = step(flow.tensor({ tokens }, { dtype = "int32" }), flow.tensor(#words - #tokens, { dtype = "int32" }), cache)
    local token = self:sample_from(logits[1])
    if vocab[token + 1] == "end" then break end
    tokens, words[#words + 1] = { token }, vocab[token + 1]
  end
  return table.concat(words, " ")
end

function TextGenerator:on_epoch_end(epoch)
  print(("after epoch %d: %s"):format(epoch + 1, self:write()))
end

local model = create_model()
local generator = TextGenerator("the", 10)
model:fit(text_ds, { verbose = 2, epochs = options.epochs, callbacks = { generator } })

local right = 0
for _ = 1, options.write do right = right + (texts.is_sentence(generator:write()) and 1 or 0) end
print(("%d of %d written sentences are right"):format(right, options.write))
