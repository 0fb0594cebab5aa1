-- batches.lua: ids of several texts as tensors, and tensors of ids as lists.

local native = require "flow.ffi"
local errors = require "flow.errors"
local strings = require "flow.tensor.strings"
local tensor = require "flow.tensor"

local raise = errors.raise
local batches = {}
local NAMES = { "[PAD]", "<pad>", "<|pad|>" }      -- tokens that fill up rows, where the file does not say it

-- What a file says of lengths: { max_length =, truncation_side =, length =, padding_side =, pad_id =, multiple = }.
function batches.defaults(record, tokenizer)
  local made = { truncation_side = "right", padding_side = "right", pad_id = 0 }
  for i = #NAMES, 1, -1 do made.pad_id = tokenizer:token_to_id(NAMES[i]) or made.pad_id end
  local truncation, padding = record:object "truncation", record:object "padding"
  if truncation then
    made.max_length = truncation:whole "max_length"
    made.truncation_side = truncation:choice("direction", { "Right", "Left" }, "Right"):lower()
    truncation:choice("strategy", { "LongestFirst" }, "LongestFirst")
    if truncation:whole("stride", 0) > 0 then truncation:fail("%s: windows that overlap are not supported", truncation:path "stride") end
  end
  if padding then
    made.padding_side = padding:choice("direction", { "Right", "Left" }, "Right"):lower()
    made.pad_id = padding:whole("pad_id", 0)
    made.multiple = padding:get "pad_to_multiple_of" and padding:whole "pad_to_multiple_of"
    local strategy = padding:get "strategy"
    if type(strategy) == "table" then made.length = padding:object("strategy"):whole "Fixed"
    elseif strategy ~= nil then padding:choice("strategy", { "BatchLongest" }) end
  end
  return made
end

-- Rows of ids as an int32 tensor {rows, length}, their mask, and their lengths.
local function fill(tokenizer, rows, options)
  local what, defaults, longest = "tokenizer:encode_batch", tokenizer._defaults, 0
  for _, row in ipairs(rows) do longest = math.max(longest, #row) end
  local padding, length = options.padding, longest
  if padding == nil then
    length = math.max(length, defaults.length or 0)
    if defaults.multiple and defaults.multiple > 0 then length = math.ceil(length / defaults.multiple) * defaults.multiple end
  elseif padding == "max_length" then
    length = options.max_length or defaults.max_length or raise("%s: padding = \"max_length\" needs max_length", what)
  elseif padding == false then
    for i, row in ipairs(rows) do
      if #row ~= longest then
        raise("%s: row %d has %d ids, others have %d: rows of different lengths need padding = true", what, i, #row, longest)
      end
    end
  end
  local left = (options.padding_side or defaults.padding_side) == "left"
  local pad = options.pad_id or defaults.pad_id
  local ids, mask = tensor.zeros({ #rows, length }, { dtype = "int32" }), tensor.zeros({ #rows, length }, { dtype = "int32" })
  local lengths = tensor.zeros({ #rows }, { dtype = "int32" })
  if #rows == 0 then return ids, mask, lengths end
  local counts = native.cast("int32_t *", lengths:data())
  for i, row in ipairs(rows) do counts[i - 1] = #row end
  if length == 0 then return ids, mask, lengths end
  local to, ones = native.cast("int32_t *", ids:data()), native.cast("int32_t *", mask:data())
  for i, row in ipairs(rows) do
    local at, n = (i - 1) * length, #row
    local shift = left and length - n or 0
    for k = 0, length - 1 do to[at + k] = pad end
    for k = 1, n do to[at + shift + k - 1], ones[at + shift + k - 1] = row[k], 1 end
  end
  return ids, mask, lengths
end

-- The strings of a value in order, and their shape.
local function texts_of(what, texts)
  if type(texts) == "table" and not getmetatable(texts) and next(texts) == nil then return {}, { 0 } end
  if not strings.are(texts) then
    if tensor.is_symbolic(texts) then require("flow.scopes").own().needs_values = true end
    raise("%s takes texts: a string, a list or a tensor of strings, got %s", what, errors.describe(texts))
  end
  return strings.flat(what, texts)
end

local function rows_of(tokenizer, list, options)
  local rows = {}
  for i, text in ipairs(list) do rows[i] = tokenizer:_ids(text, options) end
  return rows
end

function batches.encode(tokenizer, texts, options)
  local list, shape = texts_of("tokenizer:encode_batch", texts)
  if #shape ~= 1 then
    raise("tokenizer:encode_batch takes a list of texts, got the shape %s", tensor.shape_text(shape))
  end
  local ids, mask, lengths = fill(tokenizer, rows_of(tokenizer, list, options), options)
  return { ids = ids, attention_mask = mask, lengths = lengths }
end

-- int32 ids of texts of any shape, with an axis more.
function batches.ids(tokenizer, texts, options)
  local list, shape = texts_of("tokenizer:tokenize", texts)
  local ids = fill(tokenizer, rows_of(tokenizer, list, options), options)
  local made = { unpack(shape) }
  made[#made + 1] = ids.shape[2]
  return #shape == 1 and ids or ids:reshape(made)
end

-- Ids of a list, a tensor or a batch of them, as lists of numbers; whether it is a batch.
function batches.rows(ids)
  local what = "tokenizer:decode"
  if native.is_tensor(ids) then
    if tensor.is_symbolic(ids) then
      require("flow.scopes").own().needs_values = true
      raise("%s: the tensor has no value while the function is traced", what)
    end
    if #ids.shape > 2 then raise("%s takes ids with one or two axes, got the shape %s", what, tensor.shape_text(ids.shape)) end
    ids = #ids.shape == 0 and { ids:item() } or ids:totable()
  end
  if type(ids) == "number" then ids = { ids } end
  if type(ids) ~= "table" or getmetatable(ids) then raise("%s takes a list or a tensor of ids, got %s", what, errors.describe(ids)) end
  local is_batch = type(ids[1]) == "table"
  local rows = {}
  for i, row in ipairs(is_batch and ids or { ids }) do
    local list = {}
    if type(row) ~= "table" then raise("%s: row %d is %s, expected a list of ids", what, i, errors.describe(row)) end
    for k = 1, errors.check_list(what, row) do
      list[k] = tonumber(row[k])
      if type(row[k]) == "string" or not list[k] then raise("%s: id %d is %s", what, k, errors.describe(row[k])) end
    end
    rows[i] = list
  end
  return rows, is_batch
end

return batches
