-- byte_level.lua: the tokenizer.json of byte-level tokenizers that are made here: of a vocabulary and merges, or learnt from texts.

local errors = require "flow.errors"
local json = require "flow.json"
local object = require "flow.object"
local strings = require "flow.tensor.strings"
local buffer = require "flow.text.buffer"
local fields = require "flow.text.fields"
local normalizers = require "flow.text.normalizers"
local pre_tokenizers = require "flow.text.pre_tokenizers"

local raise = errors.raise
local byte_level = {}

-- A list of different texts, or an empty list.
local function check_tokens(what, list)
  local known = {}
  for i = 1, errors.check_list(what, list or {}) do
    local token = list[i]
    if type(token) ~= "string" or token == "" then
      raise("%s: special_tokens[%d] is %s, expected a text", what, i, errors.describe(token))
    end
    if known[token] then raise("%s: special_tokens[%d], %q, is given twice", what, i, token) end
    known[token] = true
  end
  return list or {}
end

local function stage(add_prefix_space, use_regex)
  return { type = "ByteLevel", add_prefix_space = add_prefix_space, trim_offsets = true, use_regex = use_regex }
end

-- How texts are normalized and cut.
local function shape_of(options)
  local cut = stage(options.add_prefix_space or false, options.pattern == nil)
  if options.pattern then
    cut = { type = "Sequence", pretokenizers = { { type = "Split", pattern = { Regex = options.pattern }, behavior = "Isolated",
      invert = false }, cut } }
  end
  return { version = "1.0", truncation = json.null, padding = json.null,
    normalizer = options.normalizer and { type = options.normalizer } or json.null, pre_tokenizer = cut,
    post_processor = stage(true, true), decoder = stage(true, true) }
end

-- The values of a file. tokens: special ones; those that the vocabulary lacks follow it.
local function file_of(ids, merges, tokens, options)
  local values, following = shape_of(options), 0
  for _, id in pairs(ids) do
    if type(id) == "number" then following = math.max(following, id + 1) end
  end
  values.added_tokens = json.list {}
  for i, token in ipairs(tokens) do
    local id = ids[token]
    if not id then id, following = following, following + 1 end
    values.added_tokens[i] = { id = id, content = token, single_word = false, lstrip = false, rstrip = false, normalized = false,
      special = true }
  end
  values.model = { type = "BPE", dropout = json.null, unk_token = json.null, continuing_subword_prefix = json.null,
    end_of_word_suffix = json.null, fuse_unk = false, byte_fallback = false, ignore_merges = false, vocab = ids,
    merges = json.list(merges) }
  return values
end

-- Of the arguments of flow.text.Tokenizer.
function byte_level.values(vocabulary, merges, options)
  local what = "flow.text.Tokenizer"
  local tokens = check_tokens(what, options.special_tokens)
  if type(vocabulary) == "string" then
    vocabulary = json.decode(require("flow.io").read_file(vocabulary), vocabulary)
  end
  local list = {}
  if type(merges) == "string" then
    for line in require("flow.io").read_file(merges):gmatch "[^\r\n]+" do
      if not (#list == 0 and line:find "^#version") then list[#list + 1] = line end
    end
  else
    for i = 1, errors.check_list(what .. ": merges", merges) do list[i] = merges[i] end
  end
  return file_of(vocabulary, list, tokens, options)
end

---- training ------------------------------------------------------------------------------------------------------------------------

-- Calls f for each text of a list, of nested ones, of a function, or of a data set.
local function each_text(texts, f)
  local what = "Tokenizer.train"
  local function take(value)
    if type(value) == "string" then return f(value) end
    if strings.are(value) then
      for _, text in ipairs((strings.flat(what, value))) do f(text) end
    else raise("%s takes texts, got %s", what, errors.describe(value)) end
  end
  if type(texts) == "function" then
    for text in texts do take(text) end
  elseif type(texts) == "table" and getmetatable(texts) and not strings.is(texts) and object.has(texts, "iter") then
    for text in texts:iter() do take(text) end
  elseif type(texts) == "table" and not getmetatable(texts) then
    for i = 1, errors.check_list(what, texts) do take(texts[i]) end
  else take(texts) end
end

-- Of the arguments of Tokenizer.train.
function byte_level.trained(texts, options)
  local what = "Tokenizer.train"
  local tokens = check_tokens(what, options.special_tokens)
  if options.vocabulary_size < 256 + #tokens then
    raise("%s: vocabulary_size is %d, the bytes and %d special tokens are %d already", what, options.vocabulary_size, #tokens,
      256 + #tokens)
  end
  local record = fields.record(shape_of(options), what, "the options")
  record.place = ""
  local normalize = normalizers.of(record:object "normalizer")
  local pieces_of, counts = pre_tokenizers.of(record:object "pre_tokenizer"), {}
  each_text(texts, function(text)
    local b = buffer.read(text, 0)
    if normalize then b = normalize(b) end
    local pieces = pieces_of(b)
    for i = 1, pieces.n do
      local piece = buffer.piece(pieces.b[i], pieces.first[i], pieces.stop[i])
      counts[piece] = (counts[piece] or 0) + 1
    end
  end)
  local ids, merges = require "flow.text.trainer" (counts, { vocabulary_size = options.vocabulary_size, special_tokens = tokens,
    min_frequency = options.min_frequency, max_token_length = options.max_token_length })
  return file_of(ids, merges, tokens, options)
end

return byte_level
