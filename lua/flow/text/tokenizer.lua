-- tokenizer.lua: flow.text.Tokenizer: byte-pair tokenizers as Hugging Face's tokenizer.json describes them. Ids are numbers from 0, as
-- layers take them; positions in texts are bytes from 1.
--
--   local tok = flow.text.Tokenizer.from_file "tokenizer.json"
--   local encoded = tok:encode "Hello, world"      encoded.ids, encoded.tokens, encoded.offsets
--   tok:decode(encoded.ids)
--
-- Texts are UTF-8; what is not is read as U+FFFD, as Python's errors = "replace" does. On the way of a text: added_tokens.lua,
-- normalizers.lua, pre_tokenizers.lua, bpe.lua, post_processors.lua; decoders.lua leads back. Tensors of a batch are made in batches.lua.

local errors = require "flow.errors"
local json = require "flow.json"
local object = require "flow.object"
local signature = require "flow.signature"
local added_tokens = require "flow.text.added_tokens"
local bpe = require "flow.text.bpe"
local buffer = require "flow.text.buffer"
local decoders = require "flow.text.decoders"
local fields = require "flow.text.fields"
local normalizers = require "flow.text.normalizers"
local post_processors = require "flow.text.post_processors"
local pre_tokenizers = require "flow.text.pre_tokenizers"

local raise, takes = errors.raise, signature.takes
local append = post_processors.append
local Tokenizer = object.class "Tokenizer"

---- files ------------------------------------------------------------------------------------------------------------------------

-- The file's added tokens with their ids, which neither contradict the vocabulary nor each other.
local function added_of(record, model)
  local by_id, by_content = {}, {}
  return record:list("added_tokens", function(value, place)
    local own = fields.record(value, record.what, place)
    local token = { content = own:text "content", id = own:whole "id", special = own:boolean("special", false) }
    for _, name in ipairs { "single_word", "lstrip", "rstrip" } do token[name] = own:boolean(name, false) end
    token.normalized = own:boolean("normalized", not token.special)
    if token.content == "" then own:fail("%s is empty", own:path "content") end
    local known, other = model.ids[token.content], model.tokens[token.id]
    if known and known ~= token.id or not known and other then
      own:fail("%s: the token %q has the id %d, but in the vocabulary %s", place, token.content, token.id,
        known and ("it has %d"):format(known) or ("that is the one of %q"):format(other))
    elseif by_id[token.id] or by_content[token.content] then
      own:fail("%s: the token %q with the id %d: there is one with this %s before it", place, token.content, token.id,
        by_id[token.id] and "id" or "text")
    end
    by_id[token.id], by_content[token.content] = token, token
    return token
  end, {}), by_id, by_content
end

-- How many ids there are, up to the highest one.
local function count_of(model, by_id)
  local most = -1
  for id in pairs(model.tokens) do most = math.max(most, id) end
  for id in pairs(by_id) do most = math.max(most, id) end
  return most + 1
end

-- A tokenizer of the values of a file. what: names it in messages; text: the file, or nil: it is made of the values when it is saved.
local function make(values, what, text)
  if type(values) ~= "table" then raise("%s: expected an object, got %s", what, errors.describe(values)) end
  local record = fields.record(values, what, "the file")
  record.place = ""
  local pieces, by_bytes = pre_tokenizers.of(record:object "pre_tokenizer")
  local model_record = record:object "model" or record:fail("model is missing, expected the object of a byte-pair model")
  local model = bpe.new(model_record, by_bytes)
  local normalize = normalizers.of(record:object "normalizer")
  local list, by_id, by_content = added_of(record, model)
  local self = object.new(Tokenizer, { _values = values, _text = text or false, _what = what, _pieces = pieces, _model = model,
    _added = added_tokens.new(list, normalize), _by_id = by_id, _by_content = by_content, _size = count_of(model, by_id),
    _normalize = normalize or false, _process = post_processors.of(record:object "post_processor"),
    _decode = decoders.of(record:object "decoder") })
  rawset(self, "_defaults", require("flow.text.batches").defaults(record, self))
  return self
end

-- Reads a tokenizer.json, the file that Hugging Face's libraries save.
takes "path: path"
function Tokenizer.from_file(path)
  local text = require("flow.io").read_file(path)
  return make(json.decode(text, path), path, text)
end

-- Makes a tokenizer from the contents of a tokenizer.json.
takes "text: string"
function Tokenizer.from_string(text)
  local what = "Tokenizer.from_string"
  return make(json.decode(text, what), what, text)
end

-- Writes a tokenizer.json. A tokenizer that was read from a file is written byte for byte as it was read.
takes "path: path"
function Tokenizer:save(path) require("flow.io").write(path, self:to_string()) end

-- Returns the text that save() writes.
function Tokenizer:to_string()
  if not self._text then rawset(self, "_text", json.encode(self._values)) end
  return self._text
end

-- A tokenizer of GPT-2's kind: vocabulary: ids by token, or the path of a vocab.json; merges: a list of "a b", or the path of a merges.txt.
takes "vocabulary: path|table, merges: path|list, { special_tokens?: list, add_prefix_space: boolean = false }"
signature.constructor(Tokenizer, "flow.text.Tokenizer", function(vocabulary, merges, options)
  local values = require("flow.text.byte_level").values(vocabulary, merges, options)
  return make(values, "flow.text.Tokenizer", nil)
end)

-- A byte-level tokenizer learnt from texts: a list of them, a function that returns the next one, or a data set of strings. The ids are
-- those that the BpeTrainer of Hugging Face's library gives. normalizer: "NFC", "NFD", "NFKC" or "NFKD"; pattern: the regular expression
-- that cuts texts in place of GPT-2's.
takes("texts: data, { vocabulary_size: count = 30000, min_frequency: whole = 0, special_tokens?: list, add_prefix_space: boolean = false, "
  .. "max_token_length?: count, normalizer?: string, pattern?: string }")
function Tokenizer.train(texts, options)
  local values = require("flow.text.byte_level").trained(texts, options)
  return make(values, "Tokenizer.train", nil)
end

---- texts to ids ---------------------------------------------------------------------------------------------------------------------

-- Adds the tokens of a piece to an encoding; positions = false leaves out everything but ids.
local function add_piece(self, encoding, b, first, stop, positions)
  local found = self._model:encode(buffer.piece(b, first, stop))
  local ids = encoding.ids
  if not positions then
    local n = #ids
    for i = 1, #found do ids[n + i] = found[i] end
    return
  end
  local starts, base, at = b.starts, b.starts[first], first      -- at: the code point that the next token begins in
  for i = 1, #found do
    while base + found.starts[i] > starts[at + 1] do at = at + 1 end
    local last = at
    while base + found.stops[i] > starts[last + 1] do last = last + 1 end
    local from, to = buffer.span(b, at, last + 1)
    append(encoding, found[i], self._model.tokens[found[i]], from, to, encoding.type_id, 0)
  end
end

-- One text, without what the post-processor adds.
local function encode_text(self, text, type_id, options, positions)
  local encoding = post_processors.empty()
  encoding.text, encoding.type_id = text, type_id
  self._added:cut(text, options.split_special_tokens, function(b)
    local pieces = self._pieces(b)
    for i = 1, pieces.n do add_piece(self, encoding, pieces.b[i], pieces.first[i], pieces.stop[i], positions) end
  end, function(token, first, last, found)
    if positions then append(encoding, token.id, found, first, last, type_id, 0)
    else encoding.ids[#encoding.ids + 1] = token.id end
  end)
  return encoding
end

local NAMES = { "ids", "tokens", "first", "last", "type_ids", "special" }

-- Leaves `most` tokens of an encoding, cut off at a side.
local function shorten(encoding, most, side)
  local n = #encoding.ids
  if n <= most then return end
  for _, name in ipairs(NAMES) do
    local list, made = encoding[name], {}
    local before = side == "left" and n - most or 0
    for i = 1, most do made[i] = list[before + i] end
    encoding[name] = made
  end
end

-- Lengths for two encodings which together have at most `most` tokens: the longer one is cut first.
local function lengths_within(most, n1, n2)
  if n1 + n2 <= most then return n1, n2 end
  local is_swapped = n1 > n2
  n1 = math.min(n1, n2)
  n2 = math.max(n1, most - n1)      -- the longer one
  if n1 + n2 > most then
    n1 = math.floor(most / 2)
    n2 = n1 + most % 2
  end
  if is_swapped then return n2, n1 end
  return n1, n2
end

-- The encoding of a text, and of a second one, as post_processors.lua has it. positions: without them type ids and the like may be missing.
function Tokenizer:_encode(text, options, positions)
  local list = { encode_text(self, text, 0, options, positions or options.pair ~= nil) }
  if options.pair then list[2] = encode_text(self, options.pair, 1, options, true) end
  local most, adds = options.max_length or self._defaults.max_length, options.add_special_tokens
  if most then
    local side = options.truncation_side or self._defaults.truncation_side
    local left = most - (adds and self._process.added(#list) or 0)
    if left < 0 then raise("tokenizer:encode: max_length is %d, the special tokens alone are %d", most, most - left) end
    local first, second = left, nil
    if list[2] then first, second = lengths_within(left, #list[1].ids, #list[2].ids) end
    shorten(list[1], first, side)
    if second then shorten(list[2], second, side) end
  end
  return self._process.process(list, adds)
end

-- The ids of a text alone.
function Tokenizer:_ids(text, options) return self:_encode(text, options, false).ids end

-- Returns { ids =, tokens =, offsets =, type_ids =, special_tokens_mask = } for a text. offsets[i] is { first, last }: token i comes from
-- text:sub(first, last); { 0, 0 } if it comes from no text. pair: a second text. split_special_tokens: special tokens in texts are treated
-- as text. max_length: the largest number of ids; more are cut off at truncation_side.
takes("text: string, { pair?: string, add_special_tokens: boolean = true, max_length?: whole, truncation_side?: 'left'|'right', "
  .. "split_special_tokens: boolean = false }")
function Tokenizer:encode(text, options)
  local encoding, offsets = self:_encode(text, options, true), {}
  for i, first in ipairs(encoding.first) do offsets[i] = { first, encoding.last[i] } end
  return { ids = encoding.ids, tokens = encoding.tokens, offsets = offsets, type_ids = encoding.type_ids,
    special_tokens_mask = encoding.special }
end

local OF_BATCH = "{ add_special_tokens: boolean = true, max_length?: whole, truncation_side?: 'left'|'right', "
  .. "padding?: boolean|'longest'|'max_length', padding_side?: 'left'|'right', pad_id?: whole, split_special_tokens: boolean = false }"

-- Returns { ids =, attention_mask =, lengths = }, int32 tensors, for a list or a tensor of strings. padding: true fills rows up with pad_id
-- to the longest one, "max_length" to max_length; false: all rows must have the same length.
takes("texts: data, " .. OF_BATCH)
function Tokenizer:encode_batch(texts, options) return require("flow.text.batches").encode(self, texts, options) end

-- Returns only the ids, int32, with one more axis than the texts: {ids} for a string, {rows, ids} for a list. tok(texts) does the same, for
-- ds:map.
takes("texts: data, " .. OF_BATCH)
function Tokenizer:tokenize(texts, options) return require("flow.text.batches").ids(self, texts, options) end
function Tokenizer:_call(...) return self:tokenize(...) end

---- ids to texts -----------------------------------------------------------------------------------------------------------------------

-- The tokens of ids, as the decoder takes them.
function Tokenizer:_tokens(ids, skips)
  local list = {}
  for i, id in ipairs(ids) do
    local added, token = self._by_id[id], self._model.tokens[id]
    if not added and not token then
      raise("tokenizer:decode: id %s at position %d is not in the vocabulary, whose ids are below %d", tostring(id), i, self._size)
    end
    if not (skips and added and added.special) then list[#list + 1] = added and (added.decoded or added.content) or token end
  end
  return list
end

-- The text of ids: a list of numbers, or a tensor with one axis; of a batch of them a tensor of strings.
takes "ids: data, { skip_special_tokens: boolean = true }"
function Tokenizer:decode(ids, options)
  local rows, is_batch = require("flow.text.batches").rows(ids)
  for i, row in ipairs(rows) do rows[i] = self._decode(self:_tokens(row, options.skip_special_tokens)) end
  if is_batch then return require("flow.tensor.strings").of(rows, { #rows }) end
  return rows[1]
end

-- Decodes ids one after the other, as a model makes them: stream:step(id) returns the text that is finished by it, "" while a character is
-- unfinished; stream:finish() the rest.
takes "{ skip_special_tokens: boolean = true }"
function Tokenizer:decode_stream(options)
  return require("flow.text.stream").new(self, options.skip_special_tokens)
end

---- the vocabulary ---------------------------------------------------------------------------------------------------------------------

-- The id of a token, as it is in the file, or nil.
takes "token: string"
function Tokenizer:token_to_id(token)
  local added = self._by_content[token]
  return added and added.id or self._model.ids[token]
end

-- The token of an id, or nil.
takes "id: whole"
function Tokenizer:id_to_token(id)
  local added = self._by_id[id]
  return added and added.content or self._model.tokens[id]
end

-- The highest id plus 1, added tokens included: the input_dim of an embedding. Ids without a token count, too.
function Tokenizer:vocabulary_size() return self._size end

-- All tokens, added ones as well, with their ids.
function Tokenizer:get_vocabulary()
  local made = {}
  for token, id in pairs(self._model.ids) do made[token] = id end
  for content, token in pairs(self._by_content) do made[content] = token.id end
  return made
end

return Tokenizer
