-- string_ops.lua: flow.strings: what tf.strings does with strings: one string of Lua, a tensor of strings, or lists of them. Strings are
-- on the host: in ds:map a function that uses them is called for each element (data/lua_map.lua), and so is the standardize function of
-- TextVectorization; in a model layers take strings. Positions count from 1, -1 is the last.
--
--   flow.strings.lower("Ann")                                 "ann"
--   flow.strings.split({ "a b", "c" })                        strings {2, 2}: rows are filled up with ""
--   flow.strings.regex_replace(texts, "[[:punct:]]", "")      regular expressions are RE2's (regex.lua)

local native = require "flow.ffi"
local errors = require "flow.errors"
local signature = require "flow.signature"
local regex = require "flow.tensor.text.regex"
local strings = require "flow.tensor.strings"
local tensor = require "flow.tensor"

local raise, takes = errors.raise, signature.takes
local text = signature.module "flow.strings"

---- helpers ----------------------------------------------------------------------------------------------------------------

-- The strings of a value one after the other, and their shape.
local function flat(what, value)
  if not strings.are(value) then raise("flow.strings.%s takes strings, got %s", what, errors.describe(value)) end
  return strings.flat("flow.strings." .. what, value)
end

-- Strings out of f(string).
local function each(what, value, f)
  local list, shape = flat(what, value)
  for i, one in ipairs(list) do list[i] = f(one) end
  return strings.of(list, shape)
end

-- A tensor of numbers or booleans in this shape.
local function numbers(list, shape, dtype)
  if #list == 0 then return tensor.zeros(shape, { dtype = dtype }) end
  return tensor.tensor(list, { dtype = dtype }):reshape(shape)
end

-- Characters of a string as tf.strings counts them: each begins with a byte that goes on with no other one, valid UTF-8 or not.
local function characters(one)
  local list = {}
  for character in one:gmatch "[^\128-\191][\128-\191]*" do list[#list + 1] = character end
  return list
end

-- By first byte: how many bytes go on after it, and the range of the next one (Unicode 15, table 3-7).
local function following_bytes(first)
  if first < 0x80 then return 0 end
  if first < 0xc2 or first > 0xf4 then return nil end
  if first < 0xe0 then return 1, 0x80, 0xbf end
  if first < 0xf0 then return 2, first == 0xe0 and 0xa0 or 0x80, first == 0xed and 0x9f or 0xbf end
  return 3, first == 0xf0 and 0x90 or 0x80, first == 0xf4 and 0x8f or 0xbf
end

-- Characters of a string; each sequence of bytes that is not UTF-8 is one U+FFFD, as long as it could go on.
local function valid_characters(one)
  local list, at = {}, 1
  while at <= #one do
    local more, low, high = following_bytes(one:byte(at))
    local stop = at
    for _ = 1, more or 0 do
      local byte = one:byte(stop + 1)
      if not byte or byte < low or byte > high then more = nil break end
      stop, low, high = stop + 1, 0x80, 0xbf
    end
    list[#list + 1], at = more and one:sub(at, stop) or "\239\191\189", stop + 1
  end
  return list
end

local function check_unit(what, unit)
  if unit ~= "BYTE" and unit ~= "UTF8_CHAR" then
    raise("flow.strings.%s: unit is \"BYTE\" or \"UTF8_CHAR\", got %s", what, errors.describe(unit))
  end
  return unit == "BYTE"
end

-- Rows of different lengths as one tensor, filled up with ""; their lengths are kept for to_tensor.
local function padded(rows, shape)
  local longest, list, counts = 0, {}, {}
  for i, row in ipairs(rows) do
    counts[i] = #row
    longest = math.max(longest, #row)
  end
  for _, row in ipairs(rows) do
    for i = 1, longest do list[#list + 1] = row[i] or "" end
  end
  local made = { unpack(shape) }
  made[#made + 1] = longest
  local result = strings.of(list, made)
  rawset(result, "_counts", counts)
  return result
end

---- letters ----------------------------------------------------------------------------------------------------------------

-- Without an encoding letters are those of ASCII, as in TensorFlow; "utf-8" is refused.
local function change_case(what, change)
  return function(value, encoding)
    if encoding ~= "" then raise("flow.strings.%s: only letters of ASCII are changed: encoding = %q is not supported", what, encoding) end
    return each(what, value, function(one) return (one:gsub("%a", change)) end)
  end
end

takes "input: data, encoding: string = ''"
text.lower = change_case("lower", string.lower)
takes "input: data, encoding: string = ''"
text.upper = change_case("upper", string.upper)

-- Without white space at both ends.
takes "input: data"
function text.strip(value)
  return each("strip", value, function(one) return (one:gsub("^%s+", ""):gsub("%s+$", "")) end)
end

---- sizes and parts --------------------------------------------------------------------------------------------------------

-- int32: bytes or characters of each string.
takes "input: data, unit: string = 'BYTE'"
function text.length(value, unit)
  local bytes = check_unit("length", unit)
  local list, shape = flat("length", value)
  for i, one in ipairs(list) do list[i] = bytes and #one or #characters(one) end
  return numbers(list, shape, "int32")
end

-- len bytes or characters of each string from position pos on, which counts from 1 (-1 is the last); fewer at its end.
takes "input: data, pos: integer, len: whole, unit: string = 'BYTE'"
function text.substr(value, pos, len, unit)
  local bytes = check_unit("substr", unit)
  return each("substr", value, function(one)
    local list = not bytes and characters(one)
    local size = list and #list or #one
    local first = pos < 0 and size + 1 + pos or pos
    if first < 1 or first > size + 1 then
      raise("flow.strings.substr: position %d is not in %q: positions count from 1, and -1 is the last", pos, one)
    end
    if not list then return one:sub(first, first + len - 1) end
    return table.concat(list, "", first, math.min(size, first + len - 1))
  end)
end

-- Parts of one string: white space parts them where sep is "".
local function parts_of(one, sep, most)
  local list, at = {}, 1
  if sep == "" then
    at = one:find("%S") or #one + 1
    while at <= #one do
      if most >= 0 and #list == most then
        list[#list + 1] = one:sub(at)
        return list
      end
      local stop = one:find("%s", at) or #one + 1
      list[#list + 1] = one:sub(at, stop - 1)
      at = one:find("%S", stop) or #one + 1
    end
    return list
  end
  while true do
    local first, last = one:find(sep, at, true)
    if not first or most >= 0 and #list == most then break end
    list[#list + 1] = one:sub(at, first - 1)
    at = last + 1
  end
  list[#list + 1] = one:sub(at)
  return list
end

-- Each string in parts, one more axis; rows of different lengths are filled up with "".
takes "input: data, sep: string = '', maxsplit: integer = -1"
function text.split(value, sep, maxsplit)
  local list, shape = flat("split", value)
  for i, one in ipairs(list) do list[i] = parts_of(one, sep, maxsplit) end
  return padded(list, shape)
end

takes "input: data"
function text.bytes_split(value)
  local list, shape = flat("bytes_split", value)
  for i, one in ipairs(list) do
    local row = {}
    for k = 1, #one do row[k] = one:sub(k, k) end
    list[i] = row
  end
  return padded(list, shape)
end

takes "input: data, input_encoding: string = 'UTF-8'"
function text.unicode_split(value, encoding)
  if encoding:upper() ~= "UTF-8" then raise("flow.strings.unicode_split: strings are in \"UTF-8\", got %q", encoding) end
  local list, shape = flat("unicode_split", value)
  for i, one in ipairs(list) do list[i] = valid_characters(one) end
  return padded(list, shape)
end

---- joining ----------------------------------------------------------------------------------------------------------------

-- Strings side by side, of one shape or single ones: { a, "-", b } gives a .. "-" .. b for each entry.
takes "inputs: list, separator: string = ''"
function text.join(inputs, separator)
  local lists, shape = {}, {}
  for i = 1, errors.check_list("flow.strings.join: inputs", inputs) do
    local own
    lists[i], own = flat("join", inputs[i])
    if #own > 0 then
      if #shape > 0 and table.concat(shape, ",") ~= table.concat(own, ",") then
        raise("flow.strings.join: inputs have the shapes %s and %s", tensor.shape_text(shape), tensor.shape_text(own))
      end
      shape = own
    end
  end
  local count = 1
  for _, n in ipairs(shape) do count = count * n end
  local made = {}
  for k = 1, count do
    local row = {}
    for i, list in ipairs(lists) do row[i] = #list == 1 and list[1] or list[k] end
    made[k] = table.concat(row, separator)
  end
  return strings.of(made, shape)
end

-- The strings along an axis as one, of all without it; axes count from 1.
takes "inputs: data, axis?: integer, keepdims: boolean = false, separator: string = ''"
function text.reduce_join(value, axis, keepdims, separator)
  local list, shape = flat("reduce_join", value)
  if axis == nil then
    local kept = {}
    for i = 1, keepdims and #shape or 0 do kept[i] = 1 end
    return strings.of({ table.concat(list, separator) }, kept)
  end
  local at = axis < 0 and #shape + 1 + axis or axis
  if at < 1 or at > #shape then raise("flow.strings.reduce_join: axis %d is not one of the shape %s", axis, tensor.shape_text(shape)) end
  local inner, made = 1, {}
  for i = at + 1, #shape do inner = inner * shape[i] end
  local outer = 1
  for i = 1, at - 1 do outer = outer * shape[i] end
  for block = 0, outer - 1 do
    for column = 1, inner do
      local row = {}
      for k = 0, shape[at] - 1 do row[k + 1] = list[(block * shape[at] + k) * inner + column] end
      made[#made + 1] = table.concat(row, separator)
    end
  end
  local result = { unpack(shape) }
  if keepdims then result[at] = 1 else table.remove(result, at) end
  return strings.of(made, result)
end

---- regular expressions ----------------------------------------------------------------------------------------------------

-- Each string with what matches a pattern replaced: all of it, or the first match. \1 to \9 in rewrite are groups, \0 is the match.
takes "input: data, pattern: string, rewrite: string, replace_global: boolean = true"
function text.regex_replace(value, pattern, rewrite, replace_global)
  return each("regex_replace", value, function(one) return regex.replace(one, pattern, rewrite, replace_global) end)
end

-- bool: whether all of a string matches.
takes "input: data, pattern: string"
function text.regex_full_match(value, pattern)
  local find = regex.compile(pattern, true)
  local list, shape = flat("regex_full_match", value)
  for i, one in ipairs(list) do list[i] = find(one, 1) ~= nil end
  return numbers(list, shape, "bool")
end

---- numbers ----------------------------------------------------------------------------------------------------------------

-- The numbers that strings spell, in decimal digits; for a dtype of whole numbers one with a fraction is refused, as in TensorFlow.
takes "input: data, out_type: string = 'float32'"
function text.to_number(value, out_type)
  local list, shape = flat("to_number", value)
  local is_whole = out_type:find "int" ~= nil
  for i, one in ipairs(list) do
    local number = not one:find("^%s*[+-]?0[xX]") and tonumber(one)
    if not number or is_whole and number % 1 ~= 0 then
      raise("flow.strings.to_number: %q is not a %snumber", one, is_whole and "whole " or "")
    end
    list[i] = number
  end
  return numbers(list, shape, out_type)
end

-- Numbers as strings: whole ones and booleans as such, others with `precision` digits after the point, six without it (-1).
takes "input: data, precision: integer = -1"
function text.as_string(value, precision)
  if precision > 99 then raise("flow.strings.as_string: precision is at most 99, got %d", precision) end
  local t = native.is_tensor(value) and value or tensor.tensor(value)
  if tensor.is_symbolic(t) then
    require("flow.scopes").own().needs_values = true
    raise "flow.strings.as_string: the tensor has no value while the function is traced"
  end
  local whole, list = t.dtype:find("int") ~= nil, {}
  local plain = t:reshape({ t.size }):totable()
  for i, number in ipairs(plain) do
    if t.dtype == "bool" then list[i] = tostring(number)
    elseif whole then list[i] = (tostring(number):gsub("U?LL$", ""))
    else list[i] = (precision >= 0 and "%." .. precision .. "f" or "%f"):format(number) end
  end
  return strings.of(list, t.shape)
end

return text
