-- lookup.lua: StringLookup and IntegerLookup: tokens to numbers by a vocabulary, which is given or learnt by adapt(). What they have in
-- common with TextVectorization: the vocabulary. Names, defaults and results are Keras' (keras.src.layers.preprocessing.index_lookup).

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local json = require "flow.json"
local signature = require "flow.signature"
local tensor = require "flow.tensor"
local strings = require "flow.tensor.strings"
local HostLayer = require "flow.layers.host_layer"
local token_counts = require "flow.layers.token_counts"

local C, check, raise = native.C, native.check, errors.raise
local lookup_out, tensor_out, function_out = native.out("flow_lookup"), native.out("flow_tensor"), native.out("flow_function")

local IndexLookup = object.class("IndexLookup", HostLayer)
local StringLookup = object.class("StringLookup", IndexLookup)
local IntegerLookup = object.class("IntegerLookup", IndexLookup)

local MODES = { int = C.FLOW_ENCODE_INT, one_hot = C.FLOW_ENCODE_ONE_HOT, multi_hot = C.FLOW_ENCODE_MULTI_HOT,
                count = C.FLOW_ENCODE_COUNT, tf_idf = C.FLOW_ENCODE_TF_IDF }
local OLD_MODES = { binary = "multi_hot", ["tf-idf"] = "tf_idf" }

-- The name of an output mode, Keras' old ones included; among: those that the layer has.
function IndexLookup._mode(title, mode, among)
  mode = OLD_MODES[mode] or mode
  for _, name in ipairs(among) do
    if name == mode then return mode end
  end
  raise("%s: output_mode is %s, got %s", title, table.concat(among, ", "), errors.describe(mode))
end

-- The numbers of a salt, or nil.
function IndexLookup._salt(title, salt)
  if salt == nil then return nil end
  if type(salt) == "number" then salt = { salt, salt } end
  if type(salt) ~= "table" or #salt ~= 2 or type(salt[1]) ~= "number" or type(salt[2]) ~= "number" then
    raise("%s: salt is a whole number or a list of two, got %s", title, errors.describe(salt))
  end
  return { salt[1], salt[2] }
end

function IndexLookup._refuse(title, name, value)
  if value then raise("%s: %s = true is not supported: results are plain tensors", title, name) end
end

-- Whether a list has integer tokens that Lua numbers cannot hold, so that JSON would round them.
local function has_long(list)
  for _, token in ipairs(list) do
    if native.is_int64(token) then return true end
  end
  return false
end

-- The layer as users know it: around one of a TextVectorization that is what they made.
local function title_of(self) return object.title(rawget(self, "_holder") or self) end

---- making -----------------------------------------------------------------------------------------------------------------

-- kind: what tokens are: is_token(value), text(value), dtype.
local function prepare(class, kind, given)
  local title = class.name
  local self = object.new(class):_prepare(class.name, { name = given.name, trainable = given.trainable })
  local mode = IndexLookup._mode(title, given.output_mode, { "int", "one_hot", "multi_hot", "count", "tf_idf" })
  IndexLookup._refuse(title, "sparse", given.sparse)
  local salt = IndexLookup._salt(title, given.salt)
  if given.max_tokens and given.max_tokens <= 1 then raise("%s: max_tokens is above 1, got %g", title, given.max_tokens) end
  if given.pad_to_max_tokens and not given.max_tokens then raise("%s: pad_to_max_tokens needs max_tokens", title) end
  if given.invert and mode ~= "int" then raise("%s: invert needs output_mode \"int\", got %q", title, mode) end
  if given.idf_weights and mode ~= "tf_idf" then raise("%s: idf_weights go with output_mode \"tf_idf\", got %q", title, mode) end
  if given.vocabulary and mode == "tf_idf" and not given.idf_weights then
    raise("%s: output_mode \"tf_idf\" with a vocabulary needs idf_weights", title)
  end
  if salt and kind.dtype ~= "string" and given.oov_method ~= "farmhash" then raise("%s: salt needs oov_method \"farmhash\"", title) end
  for _, name in ipairs { "mask_token", "oov_token" } do
    if given[name] == false then given[name] = nil end      -- None
    if given[name] ~= nil and not kind.is_token(given[name]) then
      raise("%s: %s is %s, got %s", title, name, kind.what, errors.describe(given[name]))
    end
  end
  rawset(self, "_kind", kind)
  rawset(self, "_given", { max_tokens = given.max_tokens, num_oov_indices = given.num_oov_indices, mask_token = given.mask_token,
    oov_token = given.oov_token, invert = given.invert, output_mode = mode, pad_to_max_tokens = given.pad_to_max_tokens,
    oov_method = given.oov_method or "floormod", salt = salt, encoding = given.encoding })
  rawset(self, "_tokens", false)              -- without special ones; before there are any, _frozen_size says how many there will be
  rawset(self, "_weights", false)             -- of tf_idf: float32 for each number
  rawset(self, "_lookups", {})                -- by what they are for
  rawset(self, "_input", { vocabulary = false, idf_weights = false })      -- as the constructor got them
  rawset(self, "_is_static", given.vocabulary ~= nil)
  if given.vocabulary_size then rawset(self, "_frozen_size", given.vocabulary_size) end
  rawset(self, "_split", false)               -- of TextVectorization: how strings become tokens
  if given.vocabulary ~= nil then
    if type(given.vocabulary) ~= "string" then
      self._input.vocabulary = strings.is(given.vocabulary) and given.vocabulary:totable() or given.vocabulary
      self._input.idf_weights = given.idf_weights or false
    end
    self:set_vocabulary(given.vocabulary, given.idf_weights)
    if has_long(self._tokens) then      -- the vocabulary is a text beside the config
      self._input.vocabulary, self._input.idf_weights = false, false
    end
  end
  return self
end

local STRING = {
  dtype = "string", what = "a string", is_token = function(value) return type(value) == "string" end,
  text = function(value) return value end, value = function(text) return text end,
}
-- Tokens above 2^53 are int64_t, as elements of tensors are (integers.lua).
local INTEGER = {
  dtype = "int64", what = "a whole number",
  is_token = function(value)
    return type(value) == "number" and value == math.floor(value) and math.abs(value) <= 2 ^ 53 or native.is_int64(value)
  end,
  text = function(value) return type(value) == "number" and ("%.0f"):format(value) or tostring(value):match "^-?%d+" end,
  value = function(text) return json.whole(text) or tonumber(text) end,
}

signature.takes("max_tokens?: count, num_oov_indices: whole = 1, mask_token?, oov_token = '[UNK]', vocabulary?: data, idf_weights?, "
  .. "invert: boolean = false, output_mode: string = 'int', pad_to_max_tokens: boolean = false, sparse: boolean = false, "
  .. "encoding: 'utf-8'|string = 'utf-8', name?: string, salt?, { trainable: boolean = true, dtype?, vocabulary_size?, oov_method? }")
signature.constructor(StringLookup, "flow.layers.StringLookup", function(max_tokens, num_oov_indices, mask_token, oov_token, vocabulary,
    idf_weights, invert, output_mode, pad_to_max_tokens, sparse, encoding, name, salt, options)
  if encoding:lower():gsub("%-", "") ~= "utf8" then raise("StringLookup: encoding is \"utf-8\", got %q", encoding) end
  return prepare(StringLookup, STRING, { max_tokens = max_tokens, num_oov_indices = num_oov_indices, mask_token = mask_token,
    oov_token = oov_token, vocabulary = vocabulary, idf_weights = idf_weights, invert = invert, output_mode = output_mode,
    pad_to_max_tokens = pad_to_max_tokens, sparse = sparse, encoding = encoding, name = name, salt = salt, trainable = options.trainable,
    oov_method = options.oov_method, vocabulary_size = options.vocabulary_size })
end)

signature.takes("max_tokens?: count, num_oov_indices: whole = 1, mask_token?, oov_token = -1, vocabulary?: data, "
  .. "vocabulary_dtype: string = 'int64', idf_weights?, invert: boolean = false, output_mode: string = 'int', sparse: boolean = false, "
  .. "pad_to_max_tokens: boolean = false, oov_method: 'floormod'|'farmhash' = 'floormod', salt?, name?: string, "
  .. "{ trainable: boolean = true, dtype?, vocabulary_size? }")
signature.constructor(IntegerLookup, "flow.layers.IntegerLookup", function(max_tokens, num_oov_indices, mask_token, oov_token, vocabulary,
    vocabulary_dtype, idf_weights, invert, output_mode, sparse, pad_to_max_tokens, oov_method, salt, name, options)
  if vocabulary_dtype ~= "int64" and vocabulary_dtype ~= "int32" then
    raise("IntegerLookup: vocabulary_dtype is \"int64\" or \"int32\", got %q", vocabulary_dtype)
  end
  local self = prepare(IntegerLookup, INTEGER, { max_tokens = max_tokens, num_oov_indices = num_oov_indices, mask_token = mask_token,
    oov_token = oov_token, vocabulary = vocabulary, idf_weights = idf_weights, invert = invert, output_mode = output_mode,
    pad_to_max_tokens = pad_to_max_tokens, sparse = sparse, name = name, salt = salt, trainable = options.trainable,
    oov_method = oov_method, vocabulary_size = options.vocabulary_size })
  self._given.vocabulary_dtype = vocabulary_dtype
  return self
end)

---- vocabularies -----------------------------------------------------------------------------------------------------------

local function oov_start(self)
  return self._given.mask_token ~= nil and self._given.output_mode == "int" and 1 or 0
end

local function token_start(self) return oov_start(self) + self._given.num_oov_indices end

-- The tokens that are before the vocabulary's own.
local function special_tokens(self)
  local list = {}
  if oov_start(self) == 1 then list[1] = self._given.mask_token end
  for _ = 1, self._given.num_oov_indices do list[#list + 1] = self._given.oov_token end
  return list
end

-- The lines of a file, each a token. Raises for a line that is not a token: if it were left out, all tokens after it would get other
-- numbers.
local function read_lines(self, path)
  local io = require "flow.io"
  if not io.exists(path) then
    raise("%s: vocabulary is a list of tokens, or the path of a file with one on each line; there is no file %q", title_of(self), path)
  end
  local text, list = io.read_file(path), {}
  for line in (text:sub(-1) == "\n" and text or text .. "\n"):gmatch("(.-)\r?\n") do
    local token = self._kind.value(line)
    if token == nil or not self._kind.is_token(token) then
      raise("%s: line %d of %s is not %s: %q", title_of(self), #list + 1, path, self._kind.what, line)
    end
    list[#list + 1] = token
  end
  return list
end

-- A vocabulary as a plain list of tokens.
local function plain_list(self, vocabulary)
  if native.is_tensor(vocabulary) or strings.is(vocabulary) then vocabulary = vocabulary:totable() end
  if type(vocabulary) ~= "table" or getmetatable(vocabulary) then
    raise("%s: a vocabulary is a list of tokens or the path of a file, got %s", title_of(self), errors.describe(vocabulary))
  end
  for i = 1, errors.check_list(title_of(self) .. ": vocabulary", vocabulary) do
    if not self._kind.is_token(vocabulary[i]) then
      raise("%s: entry %d of the vocabulary is %s, expected %s", title_of(self), i, errors.describe(vocabulary[i]), self._kind.what)
    end
  end
  return vocabulary
end

-- How many tokens at the beginning of a list are the layer's own (mask and out-of-vocabulary ones); 0 unless all of them are there.
local function has_special(self, list)
  local special = special_tokens(self)
  for i, token in ipairs(special) do
    if list[i] ~= token then return 0 end
  end
  return #special
end

-- Weights for all numbers: of tokens that have none the mean of the others, and zeros up to max_tokens.
local function pad_weights(self, weights, count, has_own)
  local list, sum = {}, 0
  for i = 1, count do sum = sum + weights[i] end
  if not has_own then
    for i = 1, token_start(self) do list[i] = sum / count end
  end
  for i = 1, count do list[#list + 1] = weights[i] end
  if self._given.pad_to_max_tokens then
    for i = #list + 1, self._given.max_tokens do list[i] = 0 end
  end
  return tensor.tensor(list, { dtype = "float32", device = "cpu" })
end

-- The number of numbers that tokens have, special ones included.
function IndexLookup:vocabulary_size()
  return token_start(self) + #(self._tokens or {})
end

-- Sets the vocabulary, without special tokens, and drops what was made of the old one. Raises where outputs of a layer that was used would
-- get another size.
local function set_tokens(self, tokens)
  local before = self._frozen_size
  local given = self._given
  if given.output_mode ~= "int" and not given.pad_to_max_tokens and before and before ~= token_start(self) + #tokens then
    raise("%s: its vocabulary had %d tokens, which is the size of its output, a new one has %d: make a new layer, or give "
      .. "pad_to_max_tokens", title_of(self), before, token_start(self) + #tokens)
  end
  rawset(self, "_tokens", tokens)
  rawset(self, "_frozen_size", self:vocabulary_size())
  rawset(self, "_lookups", {})
end
function IndexLookup.fields._frozen_size() return false end

-- vocabulary: a list of tokens, special ones in front or none of them, or the path of a file with one in each line.
signature.takes "vocabulary: data, idf_weights?"
function IndexLookup:set_vocabulary(vocabulary, idf_weights)
  local title, given = title_of(self), self._given
  if given.output_mode == "tf_idf" then
    if idf_weights == nil then raise("%s: output_mode \"tf_idf\" needs idf_weights with a vocabulary", title) end
  elseif idf_weights ~= nil then
    raise("%s: idf_weights go with output_mode \"tf_idf\"", title)
  end
  if type(vocabulary) == "string" then vocabulary = read_lines(self, vocabulary) end
  local list = plain_list(self, vocabulary)
  if #list == 0 then raise("%s: the vocabulary is empty", title) end
  local first, tokens, seen = has_special(self, list), {}, {}
  for i = first + 1, #list do
    local token = list[i]
    local key = self._kind.text(token)
    if seen[key] then raise("%s: the vocabulary has %s twice: each token stands there once", title, errors.describe(token)) end
    if token == given.mask_token or given.invert and token == given.oov_token then
      raise("%s: the vocabulary has the %s %s as entry %d: leave special tokens out, or put them in front", title,
        token == given.mask_token and "mask_token" or "oov_token", errors.describe(token), i)
    end
    seen[key] = true
    tokens[#tokens + 1] = self._kind.value(key)
  end
  if given.max_tokens and token_start(self) + #tokens > given.max_tokens then
    raise("%s: a vocabulary of %d tokens is larger than max_tokens, %d", title, token_start(self) + #tokens, given.max_tokens)
  end
  if idf_weights ~= nil then
    if native.is_tensor(idf_weights) then idf_weights = idf_weights:totable() end
    if type(idf_weights) ~= "table" or #idf_weights ~= #list then
      raise("%s: idf_weights has %s, the vocabulary %d tokens", title,
        type(idf_weights) == "table" and #idf_weights .. " numbers" or errors.describe(idf_weights), #list)
    end
    for i = 1, #list do
      if type(idf_weights[i]) ~= "number" then
        raise("%s: idf_weights is a list of numbers, its entry %d is %s", title, i, errors.describe(idf_weights[i]))
      end
    end
    rawset(self, "_weights", pad_weights(self, idf_weights, #list, first > 0))
  end
  set_tokens(self, tokens)
end

-- The tokens in the order of their numbers.
signature.takes "include_special_tokens: boolean = true"
function IndexLookup:get_vocabulary(include_special)
  local list = include_special and special_tokens(self) or {}
  for _, token in ipairs(self._tokens or {}) do list[#list + 1] = token end
  return list
end

---- lookups in C -----------------------------------------------------------------------------------------------------------

local function uint64(number) return native.cast("uint64_t", native.cast("int64_t", number)) end

local function view_of(self, list)
  local texts = {}
  for i, token in ipairs(list) do texts[i] = self._kind.text(token) end
  return strings.view(title_of(self), texts)
end

local function need_vocabulary(self)
  if self._tokens then return end
  raise("%s has no vocabulary yet: adapt() it to data, or give it one", object.title(rawget(self, "_holder") or self))
end

-- The flow_lookup that gives this dtype. counts: what splits strings only.
function IndexLookup:_lookup(dtype, counts)
  local key = counts and "counts" or dtype
  if self._lookups[key] then return self._lookups[key] end
  if not counts then need_vocabulary(self) end
  local given, options, split = self._given, native.new("flow_lookup_options"), self._split or {}
  options.standardize, options.split, options.length = split.standardize or 0, split.split or 0, split.length or -1
  for i, width in ipairs(split.ngrams or {}) do options.ngrams[i - 1], options.ngram_count = width, i end
  options.encode, options.dtype = counts and 0 or MODES[given.output_mode], native.dtype(dtype)
  options.buckets, options.depth = given.num_oov_indices, self:_depth()
  if given.salt then
    options.hash, options.key[0], options.key[1] = C.FLOW_HASH_SIP, uint64(given.salt[1]), uint64(given.salt[2])
  elseif self._kind ~= STRING and given.oov_method == "floormod" then
    options.hash = C.FLOW_HASH_REMAINDER
  end
  local mask, mask_kept, words, words_kept
  if given.mask_token ~= nil and not counts then
    options.has_mask = 1
    mask, mask_kept = view_of(self, { given.mask_token })
  end
  if not counts then words, words_kept = view_of(self, self._tokens) end
  native.keep { mask_kept, words_kept, self._weights, options, mask, words }
  check(C.flow_lookup_new(options, mask, words, not counts and self._weights and native.pointer(self._weights) or nil, lookup_out))
  self._lookups[key] = native.own(lookup_out, C.flow_lookup_release)
  return self._lookups[key]
end

-- Numbers in a row of an encoding.
function IndexLookup:_depth()
  return self._given.pad_to_max_tokens and self._given.max_tokens or not self._tokens and self._frozen_size or self:vocabulary_size()
end

-- What the layer makes of strings, as Keras' compute_output_shape says; sizes that are not known are -1.
local function output_shape(self, shape)
  local result, mode = { unpack(shape) }, self._given.output_mode
  if mode == "int" then return result end
  if mode == "one_hot" then
    if #result > 1 and result[#result] == 1 then result[#result] = nil end
    result[1] = result[1] or 1
  else
    result[#result] = nil
  end
  result[#result + 1] = self:_depth()
  return result
end

-- Of host_layer.lua. model_dtype: what a model gets, where it differs from what adapt and data sets get.
function IndexLookup:_takes(specs)
  local spec, is_text = specs[1], specs[1].dtype == "string"
  if self._given.invert then
    self:_need("whole numbers", spec.dtype:find("int"), spec.dtype)
    return { shape = { unpack(spec.shape) }, dtype = self._kind.dtype }
  end
  self:_need(self._kind == STRING and "strings" or "whole numbers", is_text == (self._kind == STRING) and not spec.dtype:find("bool"),
    spec.dtype)
  local mode = self._given.output_mode
  if mode ~= "int" and not self._frozen_size then need_vocabulary(self) end
  return { shape = output_shape(self, spec.shape), dtype = mode == "tf_idf" and "float32" or "int64",
           model_dtype = mode == "int" and "int64" or "float32" }
end

-- Numbers, a tensor of any shape, to tokens of the same shape: oov_token for those outside of the vocabulary.
local function invert(self, value)
  need_vocabulary(self)
  local given, first, list = self._given, token_start(self), {}
  local numbers = value:reshape { -1 }:totable()
  for i, number in ipairs(numbers) do
    list[i] = self._tokens[number - first + 1] or number == 0 and given.mask_token or given.oov_token
    if list[i] == nil then
      raise("%s: the number %g at position %d is not one of its tokens, and it has no oov_token", title_of(self), number, i)
    end
  end
  local shape = { unpack(value.shape) }
  if self._kind == STRING then return strings.of(list, shape) end
  return tensor.tensor(list, { dtype = "int64", device = "cpu" }):reshape(shape)
end

function IndexLookup:_apply(values, dtype)
  if self._given.invert then return invert(self, values[1]) end
  local view, kept = strings.view(title_of(self), values[1])
  native.keep { kept, view }
  check(C.flow_lookup_apply(self:_lookup(dtype or (self._given.output_mode == "tf_idf" and "float32" or "int64")), view, tensor_out))
  return native.tensor(tensor_out[0])
end

function IndexLookup:_step(components, specs, result)
  if self._given.invert then
    return { call = function(value) return invert(self, value) end, component = components[1], spec = result }
  end
  local handle = self:_lookup(result.dtype)
  native.keep(self)
  check(C.flow_function_lookup(handle, components[1] - 1, HostLayer._form(specs[1]), function_out))
  return { handle = native.own(function_out, C.flow_function_release) }
end

---- adapt ------------------------------------------------------------------------------------------------------------------

-- Learns the vocabulary: the most frequent tokens first, among equally frequent ones the last in order. data: a Dataset, in batches or
-- not, a list, or a tensor. steps: batches of a Dataset, or nil for all.
signature.takes "data: data, batch_size?, steps?: count"
function IndexLookup:adapt(data, _, steps)
  if self._is_static then
    raise("%s was given a vocabulary, so it cannot adapt to data: make it without one", object.title(rawget(self, "_holder") or self))
  end
  local tokens, in_documents, documents = token_counts(self, data, steps, token_start(self))
  if #tokens == 0 and not self._tokens then raise("%s: adapt() found no tokens", title_of(self)) end
  if #tokens == 0 then return end
  if self._given.output_mode == "tf_idf" then
    local weights = {}
    for i, n in ipairs(in_documents) do weights[i] = math.log(1 + documents / (1 + n)) end
    rawset(self, "_weights", pad_weights(self, weights, #weights, false))
  end
  set_tokens(self, tokens)
end

---- files ------------------------------------------------------------------------------------------------------------------

local function or_null(value)
  if value == nil or value == false then return json.null end
  return value
end

local function list_or_null(value)
  if not value then return json.null end
  if native.is_tensor(value) then value = value:totable() end
  local list = json.list()
  for i, entry in ipairs(value) do list[i] = entry end
  return list
end
IndexLookup._or_null, IndexLookup._list_or_null = or_null, list_or_null

function IndexLookup:get_config()
  local given, config = self._given, self:_base_config()
  config.invert, config.sparse, config.output_mode = given.invert, false, given.output_mode
  config.pad_to_max_tokens = given.pad_to_max_tokens
  config.max_tokens, config.num_oov_indices = or_null(given.max_tokens), given.num_oov_indices
  config.oov_token, config.mask_token = or_null(given.oov_token), or_null(given.mask_token)
  config.idf_weights, config.vocabulary = list_or_null(self._input.idf_weights), list_or_null(self._input.vocabulary)
  config.vocabulary_size = or_null(self._frozen_size)
  config.oov_method, config.salt = given.oov_method, list_or_null(given.salt)
  config.encoding, config.vocabulary_dtype = given.encoding, given.vocabulary_dtype
  return config
end

-- The class's layer out of Keras' config.
function IndexLookup._from_config(class, content)
  local self = class(require("flow.layers.entries").options(content))
  if content.oov_token == json.null then self._given.oov_token = nil end
  return self
end

-- What a file keeps beside variables: texts by their names, and tensors by theirs.
function IndexLookup:_assets()
  if self._input.vocabulary or not self._tokens then return {} end
  local lines = {}
  for i, token in ipairs(self:get_vocabulary()) do lines[i] = self._kind.text(token) end
  return { ["vocabulary.txt"] = table.concat(lines, "\n") }
end

-- Takes the vocabulary of a file, a token a line. read(name): the text of a file, or nil. Empty lines at the end are dropped unless the
-- config says that there are as many tokens; a line that cannot be a token raises, since leaving it out would shift all later numbers.
function IndexLookup:_read_assets(read)
  if self._input.vocabulary then return end
  local text = read "vocabulary.txt"
  if not text then return end
  local list = {}
  for line in (text .. "\n"):gmatch("(.-)\r?\n") do list[#list + 1] = line end
  while list[#list] == "" and #list > (self._frozen_size or 0) do list[#list] = nil end
  for i, line in ipairs(list) do
    list[i] = self._kind.value(line)
    if list[i] == nil then raise("%s: line %d of its vocabulary.txt is not %s", title_of(self), i, self._kind.what) end
  end
  local tokens = {}
  for i = has_special(self, list) + 1, #list do tokens[#tokens + 1] = list[i] end
  set_tokens(self, tokens)
end

function IndexLookup:_named_tensors()
  return self._weights and { idf_weights = self._weights } or {}
end

function IndexLookup:_read_tensors(read)
  if self._given.output_mode == "tf_idf" then rawset(self, "_weights", read "idf_weights" or self._weights) end
end

return { IndexLookup = IndexLookup, StringLookup = StringLookup, IntegerLookup = IntegerLookup }
