-- tokenizers.lua: what flow.help says of tokenizers: see reference/texts.lua for the form.
return [==[
flow.text.Tokenizer: A byte-pair tokenizer of a vocabulary and merges, or the files vocab.json and merges.txt of GPT-2.
  local tok = flow.text.Tokenizer({ a = 0, b = 1, ab = 2 }, { "a b" })
  print(table.concat(tok:encode("abba").ids, " "))      --> 2 1 0
Tokenizer.from_file: The tokenizer of a tokenizer.json, as Hugging Face's libraries save it.
  flow.text.Tokenizer({ a = 0, b = 1 }, {}):save "tokenizer.json"
  print(flow.text.Tokenizer.from_file("tokenizer.json"):token_to_id "b")      --> 1
Tokenizer.from_string: The tokenizer of the contents of a tokenizer.json.
  local tok = flow.text.Tokenizer({ a = 0, b = 1 }, {})
  print(flow.text.Tokenizer.from_string(tok:to_string()):vocabulary_size())      --> 2
Tokenizer.train: A byte-level tokenizer learnt from texts: a list, a function that returns the next one, or a data set.
  local tok = flow.text.Tokenizer.train({ "the fox, the dog" }, { vocabulary_size = 258 })
  print(tok:id_to_token(256) .. " " .. tok:id_to_token(257))      --> he the
tokenizer:encode: The ids of a text, with the tokens and where in the text they are.
  local tok = flow.text.Tokenizer.train({ "the fox, the dog" }, { vocabulary_size = 260 })
  local text = "the dog"
  local encoded = tok:encode(text)
  for i, id in ipairs(encoded.ids) do print(id, encoded.tokens[i], text:sub(unpack(encoded.offsets[i]))) end
tokenizer:encode_batch: Ids of several texts as a tensor, with its mask and the lengths of its rows.
  local tok = flow.text.Tokenizer({ a = 0, b = 1 }, {})
  local batch = tok:encode_batch({ "ab", "b" }, { pad_id = 9 })
  print(batch.ids, batch.attention_mask, batch.lengths)
tokenizer:tokenize: Ids as an int32 tensor, with an axis more than the texts have; tok(texts) is the same.
  local tok = flow.text.Tokenizer({ a = 0, b = 1 }, {})
  local ds = flow.data.Dataset.from_tensor_slices { "ab", "b" }
  for ids in ds:map(function(text) return tok(text, { max_length = 3, padding = "max_length" }) end):iter() do print(ids) end
tokenizer:decode: The text of ids; of a batch of them a tensor of strings.
  local tok = flow.text.Tokenizer({ a = 0, b = 1 }, {})
  print(tok:decode { 0, 1, 1 })      --> abb
tokenizer:decode_stream: Decodes ids as a model makes them: step(id) returns the text that is finished, finish() the rest.
  local tok = flow.text.Tokenizer.train({ "é" }, { vocabulary_size = 256 })
  local stream = tok:decode_stream()
  for _, id in ipairs(tok:encode("né").ids) do print(("[%s]"):format(stream:step(id))) end
tokenizer:token_to_id: The id of a token, or nil.
  print(flow.text.Tokenizer({ a = 0, b = 1 }, {}):token_to_id "b")      --> 1
tokenizer:id_to_token: The token of an id, or nil.
  print(flow.text.Tokenizer({ a = 0, b = 1 }, {}):id_to_token(0))      --> a
tokenizer:vocabulary_size: How many ids there are, as an embedding needs it.
  local tok = flow.text.Tokenizer({ a = 0, b = 1 }, {}, { special_tokens = { "<pad>" } })
  print(tok:vocabulary_size())      --> 3
tokenizer:get_vocabulary: All tokens with their ids.
  print(flow.text.Tokenizer({ a = 0, b = 1 }, {}):get_vocabulary().b)      --> 1
tokenizer:save: Writes a tokenizer.json, which Hugging Face's libraries read.
  flow.text.Tokenizer({ a = 0, b = 1 }, {}):save "tokenizer.json"
tokenizer:to_string: The contents of a tokenizer.json.
  print(#flow.text.Tokenizer({ a = 0, b = 1 }, {}):to_string() > 100)      --> true
]==]
