-- text_vectorization.lua: TextVectorization: strings to the numbers of their tokens: standardized, split, joined to n-grams, looked up.
-- Names, defaults and results are Keras' (keras.src.layers.preprocessing.text_vectorization).
--
-- standardize and split may be functions of Lua, f(string) -> string and f(string) -> list of strings. Strings are then prepared by Lua,
-- in ds:map by the thread that reads, and files do not hold such a layer.

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local json = require "flow.json"
local signature = require "flow.signature"
local strings = require "flow.tensor.strings"
local lookup = require "flow.layers.lookup"

local C, raise = native.C, errors.raise
local IndexLookup, StringLookup = lookup.IndexLookup, lookup.StringLookup
local HostLayer = require "flow.layers.host_layer"
local passes = require "flow.tensor.passes"

local TextVectorization = object.class("TextVectorization", HostLayer)

local STANDARDIZE = { lower_and_strip_punctuation = 3, lower = 1, strip_punctuation = 2 }
local SPLIT = { whitespace = C.FLOW_SPLIT_WHITESPACE, character = C.FLOW_SPLIT_CHARACTER }

-- false stands for Keras' None, which is not the default.
local function choose(title, name, value, known)
  if value == false or signature.is_callable(value) or known[value] then return value end
  local names = {}
  for key in pairs(known) do names[#names + 1] = ("%q"):format(key) end
  table.sort(names)
  raise("%s: %s is %s, false or a function, got %s", title, name, table.concat(names, ", "), errors.describe(value))
end

-- The widths of n-grams as a list: 3 is { 1, 2, 3 }; nil: none. Raises for others than 1 to 8 whole numbers.
local function ngram_widths(title, ngrams)
  if ngrams == nil then return nil end
  local list = {}
  if type(ngrams) == "number" and ngrams % 1 == 0 then
    for width = 1, math.min(ngrams, 9) do list[width] = width end      -- 9 are too many already
  elseif type(ngrams) == "table" then
    list = { unpack(ngrams) }
  end
  for _, width in ipairs(list) do
    if type(width) ~= "number" or width < 1 or width % 1 ~= 0 then list = {} end
  end
  if #list == 0 or #list > 8 then
    raise("%s: ngrams is a whole number from 1 to 8, or a list of up to 8 of them, got %s", title, errors.describe(ngrams))
  end
  return list
end

signature.takes("max_tokens?: count, standardize = 'lower_and_strip_punctuation', split = 'whitespace', ngrams?, "
  .. "output_mode: string = 'int', output_sequence_length?: count, pad_to_max_tokens: boolean = false, vocabulary?: data, "
  .. "idf_weights?, sparse: boolean = false, "
  .. "ragged: boolean = false, encoding: string = 'utf-8', name?: string, { trainable: boolean = true, dtype?, vocabulary_size? }")
signature.constructor(TextVectorization, "flow.layers.TextVectorization", function(max_tokens, standardize, split, ngrams, output_mode,
    output_sequence_length, pad_to_max_tokens, vocabulary, idf_weights, sparse, ragged, encoding, name, options)
  local title = "TextVectorization"
  IndexLookup._refuse(title, "sparse", sparse)
  if ragged then
    raise "TextVectorization: ragged = true is not supported: rows are padded with zeros to the longest, or to output_sequence_length"
  end
  output_mode = IndexLookup._mode(title, output_mode, { "int", "multi_hot", "count", "tf_idf" })
  if output_mode ~= "int" and output_sequence_length then
    raise("TextVectorization: output_sequence_length goes with output_mode \"int\", got %q", output_mode)
  end
  local self = object.new(TextVectorization):_prepare(title, { name = name, trainable = options.trainable })
  rawset(self, "_given", {
    standardize = choose(title, "standardize", standardize, STANDARDIZE), split = choose(title, "split", split, SPLIT),
    ngrams = ngrams, output_mode = output_mode, output_sequence_length = output_sequence_length, encoding = encoding,
  })
  local widths = ngram_widths(title, ngrams)
  if max_tokens and max_tokens <= 1 then raise("%s: max_tokens is above 1, got %g", title, max_tokens) end
  local inner = StringLookup { max_tokens = max_tokens, vocabulary = vocabulary, idf_weights = idf_weights, mask_token = "",
    pad_to_max_tokens = pad_to_max_tokens, output_mode = output_mode, encoding = encoding, vocabulary_size = options.vocabulary_size }
  rawset(inner, "_holder", self)
  local in_c = not signature.is_callable(split) and STANDARDIZE[standardize] or 0      -- else prepared() does it, before the split
  rawset(inner, "_split", { standardize = in_c, split = SPLIT[split] or C.FLOW_SPLIT_NONE,
    length = output_mode == "int" and output_sequence_length or nil, ngrams = widths })
  rawset(self, "_assignments", { _lookup_layer = inner })      -- where Keras' files have it
  self._children[1] = inner
  return self
end)

local function in_lua(self) return signature.is_callable(self._given.standardize) or signature.is_callable(self._given.split) end

---- functions of Lua -------------------------------------------------------------------------------------------------------

-- The strings as the functions of Lua leave them: where they split them rows of tokens, filled up with "".
local function prepared(self, value)
  if not in_lua(self) then return value end
  local title, given = object.title(self), self._given
  local list, shape = strings.flat(title, value)
  local standardize, split = given.standardize, given.split
  for i, text in ipairs(list) do
    if signature.is_callable(standardize) then
      list[i] = standardize(text)
      if type(list[i]) ~= "string" then raise("%s: standardize gave %s, expected a string", title, errors.describe(list[i])) end
    end
  end
  if not signature.is_callable(split) then return strings.of(list, shape) end
  if #shape > 1 and shape[#shape] ~= 1 then raise("%s: strings to be split have one axis, or a last one of size 1", title) end
  if #shape > 1 then shape[#shape] = nil end
  local standard, rows, longest = STANDARDIZE[standardize] or 0, {}, 0
  for i, text in ipairs(list) do
    if standard % 2 == 1 then text = text:lower() end
    if standard >= 2 then text = text:gsub("%p", "") end
    rows[i] = split(text)
    if type(rows[i]) ~= "table" then raise("%s: split gave %s, expected a list of strings", title, errors.describe(rows[i])) end
    longest = math.max(longest, #rows[i])
  end
  local flat = {}
  for i = 1, #rows do
    for k = 1, longest do flat[#flat + 1] = rows[i][k] or "" end
  end
  shape[#shape + 1] = longest
  return strings.of(flat, shape)
end

---- calls ------------------------------------------------------------------------------------------------------------------

local function inner_of(self) return self._assignments._lookup_layer end

function TextVectorization:_takes(specs)
  local given, inner = self._given, inner_of(self)
  self:_need("strings", specs[1].dtype == "string", specs[1].dtype)
  if given.output_mode ~= "int" and not inner._frozen_size then
    raise("%s has no vocabulary yet: adapt() it to data, or give it one", object.title(self))
  end
  local shape, splits = { unpack(specs[1].shape) }, given.split ~= false
  if splits and #shape > 1 then
    if shape[#shape] ~= 1 then
      raise("%s: strings to be split have one axis, or a last one of size 1; found the shape %s", object.title(self),
        require("flow.layers.symbolic").shape_text(shape))
    end
    shape[#shape] = nil
  end
  if given.output_mode == "int" then
    if splits or inner._split.ngrams then
      if not splits then shape[#shape] = nil end
      shape[#shape + 1] = given.output_sequence_length or -1
    elseif given.output_sequence_length then
      shape[math.max(#shape, 1)] = given.output_sequence_length
    end
    return { shape = shape, dtype = "int64" }
  end
  if not splits then shape[#shape] = nil end
  shape[#shape + 1] = inner:_depth()
  return { shape = shape, dtype = given.output_mode == "tf_idf" and "float32" or "int64", model_dtype = "float32" }
end

-- A function of Lua pads rows that the lookup must not pad again.
function TextVectorization:_apply(values) return inner_of(self):_apply({ prepared(self, values[1]) }) end

function TextVectorization:_step(components, specs, result)
  if not in_lua(self) then return inner_of(self):_step(components, specs, result) end
  return { call = function(value) return self:_apply { value } end, component = components[1], spec = result }
end

---- vocabulary -------------------------------------------------------------------------------------------------------------

-- Without functions of Lua the library reads and counts. With one, all texts are read first, prepared here and given to the inner layer at
-- once.
signature.takes "data: data, batch_size?, steps?: count"
function TextVectorization:adapt(data, _, steps)
  if not in_lua(self) then return inner_of(self):adapt(data, { steps = steps }) end
  local inner, list = inner_of(self), data
  if passes.is_dataset(data) then
    list = {}
    local pass, done = passes.adapt(self, data, steps, true), 0
    while done < (steps or math.huge) do
      local value = pass()
      if value == nil then break end
      for _, text in ipairs(type(value) == "string" and { value } or strings.flat("adapt", value)) do list[#list + 1] = text end
      done = done + 1
    end
  end
  local value = prepared(self, strings.tensor("adapt", list))
  inner:adapt(self._given.split ~= false and signature.is_callable(self._given.split) and value or value:reshape { -1, 1 })
end

signature.takes "vocabulary: data, idf_weights?"
function TextVectorization:set_vocabulary(vocabulary, idf_weights) inner_of(self):set_vocabulary(vocabulary, idf_weights) end

signature.takes "include_special_tokens: boolean = true"
function TextVectorization:get_vocabulary(include_special) return inner_of(self):get_vocabulary(include_special) end

function TextVectorization:vocabulary_size() return inner_of(self):vocabulary_size() end

---- files ------------------------------------------------------------------------------------------------------------------

function TextVectorization:get_config()
  local given, inner, config = self._given, inner_of(self), self:_base_config()
  local null, list = IndexLookup._or_null, IndexLookup._list_or_null
  if in_lua(self) then
    raise("%s has a function of Lua as standardize or split, which a file cannot hold: give it strings that are prepared before",
      object.title(self))
  end
  config.max_tokens, config.standardize, config.split = null(inner._given.max_tokens), null(given.standardize), null(given.split)
  config.ngrams = type(given.ngrams) == "table" and list(given.ngrams) or null(given.ngrams)
  config.output_mode, config.output_sequence_length = given.output_mode, null(given.output_sequence_length)
  config.pad_to_max_tokens, config.sparse, config.ragged = inner._given.pad_to_max_tokens, false, false
  config.vocabulary, config.idf_weights = list(inner._input.vocabulary), list(inner._input.idf_weights)
  config.encoding, config.vocabulary_size = given.encoding, inner:vocabulary_size()
  return config
end

function TextVectorization._from_config(class, content)
  local options = require("flow.layers.entries").options(content)
  for _, name in ipairs { "standardize", "split" } do
    if content[name] == json.null then options[name] = false end
    if type(content[name]) == "table" and content[name] ~= json.null then
      raise("TextVectorization: its %s is a function of Python, which is not run: make the layer with a function of Lua", name)
    end
  end
  return class(options)
end

for _, name in ipairs { "_assets", "_read_assets", "_named_tensors", "_read_tensors" } do
  TextVectorization[name] = function(self, ...) return inner_of(self)[name](inner_of(self), ...) end
end

return { TextVectorization = TextVectorization }
