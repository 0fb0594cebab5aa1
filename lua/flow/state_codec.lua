-- state_codec.lua: the state of callbacks and other objects as text: nested tables of numbers, texts, booleans and tensors. Numbers keep
-- every bit, infinities and NaN too; a tensor goes into the file beside the text.
--
--   local text = state.encode(value, add)     add(tensor) keeps a tensor and returns the name by which read finds it
--   local value = state.decode(text, read)    read(name) returns it
--
-- Equal values give equal texts, in every process. Lists are JSON lists, tables with plain names objects; what JSON lacks is an object with
-- one of the keys below.

local native = require "flow.ffi"
local errors = require "flow.errors"
local json = require "flow.json"
local is_sequence = require("flow.names").is_sequence

local raise = errors.raise
local state = {}

-- An object with one of these keys stands for what JSON does not have.
local NUMBER, TENSOR, PAIRS, BYTES = "$number", "$tensor", "$pairs", "$bytes"

---- writing ---------------------------------------------------------------------------------------------------------------------

local pack

local function pack_number(value)
  if value == value and math.abs(value) < math.huge then return json.printed(("%.17g"):format(value)) end
  return { [NUMBER] = value ~= value and "nan" or value > 0 and "inf" or "-inf" }
end

-- JSON's texts are UTF-8 without zero bytes; Lua's may be anything.
local function pack_text(value)
  if not value:find("[%z\128-\255]") then return value end
  return { [BYTES] = (value:gsub(".", function(c) return ("%02x"):format(c:byte()) end)) }
end

local function unpack_text(digits)
  return (digits:gsub("%x%x", function(pair) return string.char(tonumber(pair, 16)) end))
end

-- Whether the keys of a table can be names of a JSON object: texts of ASCII that do not begin with $, which marks what JSON lacks.
local function has_plain_names(value)
  for key in pairs(value) do
    if type(key) ~= "string" or key:find("^%$") or key:find("[%z\128-\255]") then return false end
  end
  return true
end

-- Entries in their own order, so that equal tables give equal texts.
local function pack_pairs(value, where, add)
  local keys, entries = {}, {}
  for key in pairs(value) do
    if type(key) ~= "string" and type(key) ~= "number" then
      raise("the state at %s has %s as a key; a key is a text or a number", where, errors.describe(key))
    end
    keys[#keys + 1] = key
  end
  table.sort(keys, function(a, b)
    if type(a) ~= type(b) then return type(a) == "number" end
    return a < b
  end)
  for i, key in ipairs(keys) do
    entries[i] = { pack(key, where, add), pack(value[key], where .. "." .. tostring(key), add) }
  end
  return { [PAIRS] = json.list(entries) }
end

-- A value in a form that json.encode takes. where: its place, for messages; add: see the head of the file.
function pack(value, where, add)
  local kind = type(value)
  if kind == "number" then return pack_number(value) end
  if kind == "boolean" then return value end
  if kind == "string" then return pack_text(value) end
  if native.is_tensor(value) then return { [TENSOR] = add(value) } end
  if kind ~= "table" or getmetatable(value) then
    raise("the state at %s is %s; numbers, texts, booleans, tensors and tables of them can be kept", where, errors.describe(value))
  end
  local packed = {}
  if is_sequence(value) then
    for i, entry in ipairs(value) do packed[i] = pack(entry, where .. "[" .. i .. "]", add) end
    return json.list(packed)
  end
  if not has_plain_names(value) then return pack_pairs(value, where, add) end
  for key, entry in pairs(value) do packed[key] = pack(entry, where .. "." .. key, add) end
  return packed
end

-- The text of a value. Raises for functions, objects and other values that cannot be kept, with their place in the table. what: names the
-- object in messages, or nil.
function state.encode(value, add, what)
  return json.encode { value = pack(value, what or "state", add) }
end

---- reading ---------------------------------------------------------------------------------------------------------------------

local NUMBERS = { nan = 0 / 0, inf = math.huge, ["-inf"] = -math.huge }

-- The other way. A null is nil, so it may be the value of a name but not an entry of a list.
local function unpack_value(value, read)
  if type(value) ~= "table" then return value end
  if value == json.null then return nil end
  if value[BYTES] then return unpack_text(value[BYTES]) end
  if value[NUMBER] then return NUMBERS[value[NUMBER]] end
  if value[TENSOR] then return read(value[TENSOR]) end
  local result = {}
  if value[PAIRS] then
    for _, entry in ipairs(value[PAIRS]) do result[unpack_value(entry[1], read)] = unpack_value(entry[2], read) end
    return result
  end
  for key, entry in pairs(value) do result[key] = unpack_value(entry, read) end
  return result
end

-- The value of such a text; raises if it is not JSON. read may be nil if it holds no tensors.
function state.decode(text, read, what)
  return unpack_value(json.decode(text, what).value, read)
end

return state
