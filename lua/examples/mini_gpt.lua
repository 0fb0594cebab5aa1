-- mini_gpt.lua: a Transformer that sees only what is before learns to write, word by word, as in Keras' example "Text generation with
-- a miniature GPT": two layers written in Lua, and a callback that writes after an epoch. The text is of make_texts.lua; whether
-- a sentence that it writes is right can be said: the verb agrees with a subject that other words follow.
--
--   flowlua lua/examples/mini_gpt.lua             98 of 100 sentences that it writes are right after 8 epochs
local flow = require "flow"
local layers = flow.layers

local here = arg[0]:match("^(.*/)[^/]*$") or "./"
local texts = dofile(here .. "make_texts.lua")
local options = flow.args { epochs = 8, sentences = 3000, batch_size = 64, write = 100, seed = 1 }
flow.set_random_seed(options.seed)

local VOCABULARY, MAX_LENGTH, EMBED, HEADS, FEED_FORWARD = 100, 16, 64, 2, 64

---- the model ------------------------------------------------------------------------------------------------------------------

-- True where a step may look: at itself and what is before it.
local function causal_attention_mask(rows, n_dest, n_src)
  local i, j = flow.arange(n_dest):expand_dims(2), flow.arange(n_src)
  local mask = flow.ge(i, j - n_src + n_dest)
  return flow.broadcast_to(mask:reshape { 1, n_dest, n_src }, { rows, n_dest, n_src })
end

local TransformerBlock = layers.Layer:extend "TransformerBlock"

function TransformerBlock:init(embed_dim, num_heads, ff_dim, rate)
  self.att = layers.MultiHeadAttention(num_heads, embed_dim)
  self.ffn = flow.Sequential { layers.Dense(ff_dim, { activation = "relu" }), layers.Dense(embed_dim) }
  self.layernorm1 = layers.LayerNormalization { epsilon = 1e-6 }
  self.layernorm2 = layers.LayerNormalization { epsilon = 1e-6 }
  self.dropout1, self.dropout2 = layers.Dropout(rate or 0.1), layers.Dropout(rate or 0.1)
end

function TransformerBlock:call(inputs)
  local shape = flow.shape(inputs)
  local mask = causal_attention_mask(shape[1], shape[2], shape[2])
  local attention_output = self.dropout1(self.att(inputs, inputs, { attention_mask = mask }))
  local out1 = self.layernorm1(inputs + attention_output)
  return self.layernorm2(out1 + self.dropout2(self.ffn(out1)))
end

local TokenAndPositionEmbedding = layers.Layer:extend "TokenAndPositionEmbedding"

function TokenAndPositionEmbedding:init(maxlen, vocab_size, embed_dim)
  self.token_emb = layers.Embedding { input_dim = vocab_size, output_dim = embed_dim }
  self.pos_emb = layers.Embedding { input_dim = maxlen, output_dim = embed_dim }
end

function TokenAndPositionEmbedding:call(x)
  local positions = self.pos_emb(flow.arange(flow.shape(x)[2]))
  return self.token_emb(x) + positions
end

local function create_model()
  local inputs = flow.Input({ MAX_LENGTH }, { dtype = "int32" })
  local x = TokenAndPositionEmbedding(MAX_LENGTH, VOCABULARY, EMBED)(inputs)
  x = TransformerBlock(EMBED, HEADS, FEED_FORWARD)(x)
  local outputs = layers.Dense(VOCABULARY)(x)
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

-- A sentence: words from the start on until "end".
function TextGenerator:write()
  local tokens, words = {}, {}
  for word in self.start:gmatch "%S+" do tokens[#tokens + 1], words[#words + 1] = word_to_index[word], word end
  while #tokens < MAX_LENGTH do
    local padded = { unpack(tokens) }
    for i = #tokens + 1, MAX_LENGTH do padded[i] = 0 end
    local y = self.model:predict(flow.tensor({ padded }, { dtype = "int32" }), { verbose = 0 })[1]
    local token = self:sample_from(y[{ 1, #tokens }])
    if vocab[token + 1] == "end" then break end
    tokens[#tokens + 1], words[#words + 1] = token, vocab[token + 1]
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
