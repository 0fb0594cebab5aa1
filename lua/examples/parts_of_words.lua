-- parts_of_words.lua: a byte-pair tokenizer is learnt from texts, and a small language model on its ids; the model's ids become text again
-- as they are made. The text is of make_texts.lua; whether a sentence that it writes is right can be said.
--
--   flowlua lua/examples/parts_of_words.lua             92 of 100 sentences are right after 14 epochs, 10 seconds
local flow = require "flow"
local layers = flow.layers

local here = arg[0]:match("^(.*/)[^/]*$") or "./"
local texts = dofile(here .. "make_texts.lua")
local options = flow.args { epochs = 14, sentences = 3000, batch_size = 64, write = 100, vocabulary = 300, seed = 1 }
flow.set_random_seed(options.seed)

---- data -----------------------------------------------------------------------------------------------------------------------

local END = "<|end|>"
local sentences = texts.make(options.sentences, options.seed)
local tok = flow.text.Tokenizer.train(sentences, { vocabulary_size = options.vocabulary, special_tokens = { END } })
local first = tok:token_to_id(END)

-- Each sentence between two ends; the model says for each id the one that follows. Rows are filled up with ends.
local lines = {}
for i, sentence in ipairs(sentences) do lines[i] = END .. sentence .. END end
local ids = tok:encode_batch(lines, { pad_id = first }).ids
local last = ids.shape[2]
local ds = flow.data.Dataset.from_tensor_slices { ids[{ {}, { 1, -2 } }], ids[{ {}, { 2, -1 } }] }
ds = ds:shuffle(options.sentences, { seed = options.seed }):batch(options.batch_size)

---- the model ------------------------------------------------------------------------------------------------------------------

local model = flow.Sequential {
  layers.Input({ -1 }, { dtype = "int32" }),
  layers.Embedding(tok:vocabulary_size(), 64),
  layers.GRU(128, { return_sequences = true }),
  layers.Dense(tok:vocabulary_size()),
}
model:compile { optimizer = flow.optimizers.Adam(0.003), loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
model:fit(ds, { verbose = 2, epochs = options.epochs })

---- writing --------------------------------------------------------------------------------------------------------------------

-- All sentences at once: ids of each, drawn one after the other.
local written, streams, done = {}, {}, {}
local rows = flow.full({ options.write, 1 }, first, { dtype = "int32" })
for i = 1, options.write do written[i], streams[i] = "", tok:decode_stream() end
for _ = 1, last do
  local logits = model:predict(rows, { verbose = 0 })[{ {}, -1 }]
  local drawn = flow.random.categorical(logits, 1, { dtype = "int32" })
  for i, row in ipairs(drawn:totable()) do
    done[i] = done[i] or row[1] == first
    if not done[i] then written[i] = written[i] .. streams[i]:step(row[1]) end
  end
  rows = flow.concat({ rows, drawn }, 2)
end

local right = 0
for i, sentence in ipairs(written) do
  if i <= 3 then print(sentence) end
  right = right + (texts.is_sentence(sentence) and 1 or 0)
end
print(("%d of %d written sentences are right"):format(right, options.write))
