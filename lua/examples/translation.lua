-- translation.lua: a sequence-to-sequence Transformer translates from plain words into a made-up language, as in Keras' example "English-
-- to-Spanish translation with a sequence-to-sequence Transformer": three layers written in Lua, with masks of padded texts. make_texts.lua
-- has the languages: words are in another order, and what belongs together does not stay together.
--
--   flowlua lua/examples/translation.lua           50 of 50 sentences that it has not seen are translated right
local flow = require "flow"
local layers, Dataset = flow.layers, flow.data.Dataset

local here = arg[0]:match("^(.*/)[^/]*$") or "./"
local texts = dofile(here .. "make_texts.lua")
local options = flow.args { epochs = 8, sentences = 4000, batch_size = 64, translate = 50, seed = 1 }
flow.set_random_seed(options.seed)

local VOCABULARY, LENGTH, EMBED, LATENT, HEADS = 100, 14, 64, 128, 4

---- data -----------------------------------------------------------------------------------------------------------------------

local plain, other = texts.make(options.sentences, options.seed)
for i, sentence in ipairs(other) do other[i] = "[start] " .. sentence .. " [end]" end
local function part(list, from, to) return { unpack(list, from, to) } end
local train_count = math.floor(0.85 * options.sentences)

local source_vectorization = layers.TextVectorization { max_tokens = VOCABULARY, output_sequence_length = LENGTH }
local target_vectorization = layers.TextVectorization {
  max_tokens = VOCABULARY, output_sequence_length = LENGTH + 1, standardize = "lower",      -- which leaves the brackets
}
source_vectorization:adapt(part(plain, 1, train_count))
target_vectorization:adapt(part(other, 1, train_count))

local function format_dataset(source, target)
  source, target = source_vectorization(source), target_vectorization(target)
  return source, target[{ {}, { 1, -2 } }], target[{ {}, { 2, -1 } }]
end

local function make_dataset(from, to)
  local dataset = Dataset.from_tensor_slices { part(plain, from, to), part(other, from, to) }
  return dataset:batch(options.batch_size):map(format_dataset):cache():shuffle(2048, { seed = options.seed }):prefetch(16)
end
local train_ds, val_ds = make_dataset(1, train_count), make_dataset(train_count + 1, options.sentences)

---- layers ---------------------------------------------------------------------------------------------------------------------

local TransformerEncoder = layers.Layer:extend "TransformerEncoder"

function TransformerEncoder:init(embed_dim, dense_dim, num_heads)
  self.attention = layers.MultiHeadAttention { num_heads = num_heads, key_dim = embed_dim }
  self.dense_proj = flow.Sequential { layers.Dense(dense_dim, { activation = "relu" }), layers.Dense(embed_dim) }
  self.layernorm_1, self.layernorm_2 = layers.LayerNormalization(), layers.LayerNormalization()
  self.supports_masking = true
end

function TransformerEncoder:call(inputs, call_options)
  local padding_mask = call_options.mask and call_options.mask:expand_dims(2):to("int32")
  local attention_output = self.attention(inputs, inputs, inputs, { attention_mask = padding_mask })
  local proj_input = self.layernorm_1(inputs + attention_output)
  return self.layernorm_2(proj_input + self.dense_proj(proj_input))
end

local PositionalEmbedding = layers.Layer:extend "PositionalEmbedding"

function PositionalEmbedding:init(sequence_length, vocab_size, embed_dim)
  self.token_embeddings = layers.Embedding { input_dim = vocab_size, output_dim = embed_dim }
  self.position_embeddings = layers.Embedding { input_dim = sequence_length, output_dim = embed_dim }
end

function PositionalEmbedding:call(inputs)
  local positions = flow.arange(flow.shape(inputs)[2])
  return self.token_embeddings(inputs) + self.position_embeddings(positions)
end

function PositionalEmbedding:compute_mask(inputs) return flow.ne(inputs, 0) end

local TransformerDecoder = layers.Layer:extend "TransformerDecoder"

function TransformerDecoder:init(embed_dim, latent_dim, num_heads)
  self.attention_1 = layers.MultiHeadAttention { num_heads = num_heads, key_dim = embed_dim }
  self.attention_2 = layers.MultiHeadAttention { num_heads = num_heads, key_dim = embed_dim }
  self.dense_proj = flow.Sequential { layers.Dense(latent_dim, { activation = "relu" }), layers.Dense(embed_dim) }
  self.layernorm_1, self.layernorm_2, self.layernorm_3 =
    layers.LayerNormalization(), layers.LayerNormalization(), layers.LayerNormalization()
  self.supports_masking = true
end

function TransformerDecoder:call(inputs, call_options)
  local encoder_outputs
  inputs, encoder_outputs = inputs[1], inputs[2]
  local inputs_padding_mask, encoder_outputs_padding_mask
  if call_options.mask then inputs_padding_mask, encoder_outputs_padding_mask = unpack(call_options.mask) end
  local attention_output_1 = self.attention_1(inputs, inputs, inputs, { query_mask = inputs_padding_mask, use_causal_mask = true })
  local out_1 = self.layernorm_1(inputs + attention_output_1)
  local attention_output_2 = self.attention_2(out_1, encoder_outputs, encoder_outputs,
    { query_mask = inputs_padding_mask, key_mask = encoder_outputs_padding_mask })
  local out_2 = self.layernorm_2(out_1 + attention_output_2)
  return self.layernorm_3(out_2 + self.dense_proj(out_2))
end

---- the model ------------------------------------------------------------------------------------------------------------------

local encoder_inputs = flow.Input({ -1 }, { dtype = "int64", name = "encoder_inputs" })
local x = PositionalEmbedding(LENGTH, VOCABULARY, EMBED)(encoder_inputs)
local encoder_outputs = TransformerEncoder(EMBED, LATENT, HEADS)(x)

local decoder_inputs = flow.Input({ -1 }, { dtype = "int64", name = "decoder_inputs" })
x = PositionalEmbedding(LENGTH, VOCABULARY, EMBED)(decoder_inputs)
x = TransformerDecoder(EMBED, LATENT, HEADS)({ x, encoder_outputs })
x = layers.Dropout(0.1)(x)
local decoder_outputs = layers.Dense(VOCABULARY, { activation = "softmax" })(x)
local transformer = flow.Model { inputs = { encoder_inputs, decoder_inputs }, outputs = decoder_outputs, name = "transformer" }

transformer:compile {
  optimizer = flow.optimizers.Adam(0.002), metrics = { "accuracy" },
  loss = flow.losses.SparseCategoricalCrossentropy { ignore_class = 0 },
}
transformer:fit(train_ds, { epochs = options.epochs, validation_data = val_ds, verbose = 2 })

---- translation ----------------------------------------------------------------------------------------------------------------

local target_vocabulary = target_vectorization:get_vocabulary()

local function decode_sequence(sentence)
  local tokenized_source = source_vectorization { sentence }
  local decoded = "[start]"
  for i = 1, LENGTH do
    local tokenized_target = target_vectorization({ decoded })[{ {}, { 1, -2 } }]
    local predictions = transformer:predict({ tokenized_source, tokenized_target }, { verbose = 0 })
    local token = target_vocabulary[predictions[{ 1, i }]:argmax():item()]
    decoded = decoded .. " " .. token
    if token == "[end]" then break end
  end
  return decoded
end

local right, count = 0, math.min(options.translate, options.sentences - train_count)
for i = train_count + 1, train_count + count do
  local translated = decode_sequence(plain[i])
  if translated == other[i] then right = right + 1 end
  if i <= train_count + 3 then print(plain[i], translated) end
end
print(("%d of %d sentences are translated right"):format(right, count))
