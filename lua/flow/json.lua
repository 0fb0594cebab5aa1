-- json.lua: JSON texts to Lua values and back. The library parses and prints.
--
--   json.decode(text)     objects and lists as tables, null as json.null
--   json.encode(value)    objects with their keys sorted, so that equal values give equal texts
--
-- A table with a list part, or one that json.list() marked, is a list; every other one is an object.
--
-- Numbers are doubles, so whole numbers above 2^53 lose digits, except in tensors that are constants of Keras' files; json.printed writes
-- other text as it is. NaN and infinities are written as Python writes them. Members of an object that are nil do not exist; json.null is a
-- null.

local native = require "flow.ffi"
local errors = require "flow.errors"

local C, check, raise = native.C, native.check, errors.raise
local json = {}

json.null = setmetatable({}, { __tostring = function() return "null" end })
local List, Real, Printed = {}, {}, {}

-- An empty list is `[]`, not `{}`.
function json.list(t) return setmetatable(t or {}, List) end
function json.is_list(t) return getmetatable(t) == List end
-- A number that is written with a decimal point.
function json.real(number) return setmetatable({ number }, Real) end
-- Text that is JSON already.
function json.printed(text) return setmetatable({ text }, Printed) end

---- reading ------------------------------------------------------------------------------------------------------------------------

local read
local CONSTANT = { __tensor__ = true, __numpy__ = true }      -- classes of objects whose config has the values of a tensor
local in_constant = false

-- The whole number that a text of digits is: a number up to 2^53, above it an int64_t, and nil of other texts or if no int64 holds it.
function json.whole(text)
  local number = tonumber(text)
  if not number or not text:find "^%s*-?%d+%s*$" then return nil end
  if math.abs(number) < 2 ^ 53 then return number end
  local value = 0LL
  for digit in text:gmatch "%d" do value = value * 10 - tonumber(digit) end      -- below 0, where there is one more integer
  if not text:find "-" then value = -value end
  if tonumber(value) ~= number then return nil end
  return (value == 2LL ^ 53 or value == -2LL ^ 53) and number or value
end

-- A number of a constant keeps its digits.
local function read_number(node)
  local number = C.flow_json_number(node)
  if not in_constant or number < 2 ^ 53 and number > -2 ^ 53 then return number end
  return json.whole(native.text(C.flow_json_print, node)) or number
end

local readers = {
  [C.FLOW_JSON_NULL] = function() return json.null end,
  [C.FLOW_JSON_BOOLEAN] = function(node) return C.flow_json_number(node) ~= 0 end,
  [C.FLOW_JSON_NUMBER] = read_number,
  [C.FLOW_JSON_TEXT] = function(node) return native.string(C.flow_json_text(node)) end,
  [C.FLOW_JSON_LIST] = function(node)
    local list, child = {}, C.flow_json_child(node)
    while child ~= nil do
      list[#list + 1] = read(child)
      child = C.flow_json_next(child)
    end
    return list
  end,
  [C.FLOW_JSON_OBJECT] = function(node)
    local object, child = {}, C.flow_json_child(node)
    while child ~= nil do
      object[native.string(C.flow_json_key(child))] = read(child)
      child = C.flow_json_next(child)
    end
    if CONSTANT[object.class_name] and not in_constant then
      in_constant = true
      object = read(node)
      in_constant = false
    end
    return object
  end,
}

function read(node)
  return readers[C.flow_json_kind(node)](node)
end

local out = native.out("flow_json")

-- The value of a text. Raises with the position of what is wrong. what: names the text in messages, or nil.
function json.decode(text, what)
  local status = C.flow_json_parse(text, #text, out)
  if status == C.FLOW_OUT_OF_MEMORY then check(status) end
  if status ~= 0 then
    raise("%s%s", what and what .. ": " or "", native.string(C.flow_last_error()))
  end
  local root = native.own(out, C.flow_json_release)
  local value = read(root)
  native.close(root, C.flow_json_release)
  return value
end

-- The key of an entry of an object; nil: it is one of a list.
local function key_of(node)
  local key = C.flow_json_key(node)
  return key ~= nil and native.string(key) or nil
end

-- The keys of the object at a path of keys in a text, in their order there; an empty list if there is none.
function json.keys(text, ...)
  if C.flow_json_parse(text, #text, out) ~= 0 then raise("%s", native.string(C.flow_last_error())) end
  local root, keys, path = native.own(out, C.flow_json_release), {}, { ... }
  local node = C.flow_json_child(root)
  for depth = 1, #path do
    while node ~= nil and key_of(node) ~= path[depth] do node = C.flow_json_next(node) end
    node = node ~= nil and C.flow_json_child(node) or nil
  end
  while node ~= nil do
    keys[#keys + 1] = key_of(node)
    node = C.flow_json_next(node)
  end
  native.close(root, C.flow_json_release)
  return keys
end

---- writing -------------------------------------------------------------------------------------------------------------------------

local child_out = native.out("flow_json")
local add

-- Whether a table is printed as a list. An empty table without the mark of json.list is an object.
local function is_list(value)
  return getmetatable(value) == List or value[1] ~= nil
end

-- Adds what a table holds to `node`, the list or object that stands for it. depth: of `node`, from 0.
local function add_entries(node, value, depth)
  errors.deeper("json.encode", depth - 1)
  if is_list(value) then
    for key in pairs(value) do
      if type(key) ~= "number" then raise("json.encode: a list has the name %q, too; give a list or a table of names", tostring(key)) end
    end
    for i = 1, errors.check_list("json.encode: a list", value) do add(node, nil, value[i], depth) end
    return
  end
  local keys = {}
  for key in pairs(value) do
    if type(key) ~= "string" then raise("json.encode: a key is %s, expected a text", errors.describe(key)) end
    keys[#keys + 1] = key
  end
  table.sort(keys)
  for _, key in ipairs(keys) do add(node, key, value[key], depth) end
end

-- Adds one value to a list (key nil) or an object.
function add(parent, key, value, depth)
  local kind, number, text, nested = C.FLOW_JSON_NULL, 0, nil, nil
  if value == json.null then kind = C.FLOW_JSON_NULL
  elseif type(value) == "boolean" then kind, number = C.FLOW_JSON_BOOLEAN, value and 1 or 0
  elseif type(value) == "number" then kind, number = C.FLOW_JSON_NUMBER, value
  elseif type(value) == "string" then kind, text = C.FLOW_JSON_TEXT, value
  elseif type(value) ~= "table" then raise("json.encode: %s has no form in JSON", errors.describe(value))
  elseif getmetatable(value) == Real then kind, number = C.FLOW_JSON_REAL, value[1]
  elseif getmetatable(value) == Printed then kind, text = C.FLOW_JSON_PRINTED, value[1]
  elseif getmetatable(value) and getmetatable(value) ~= List then raise("json.encode: %s has no form in JSON", errors.describe(value))
  else kind, nested = is_list(value) and C.FLOW_JSON_LIST or C.FLOW_JSON_OBJECT, true end
  check(C.flow_json_add(parent, key, kind, number, text, child_out))
  if nested then add_entries(child_out[0], value, depth + 1) end
end

-- Compiled, deep recursions through pairs() lose entries in LuaJIT 2.1 of 2022: json_spec.lua shows it. Encoding is not hot.
require("jit").off(add_entries)
require("jit").off(add)

-- The text of an object or a list. Raises for what has no form in JSON: functions, tensors, objects, tables with both a list and names.
function json.encode(value)
  if type(value) ~= "table" then raise("json.encode: expected an object or a list, got %s", errors.describe(value)) end
  check(C.flow_json_new(is_list(value) and C.FLOW_JSON_LIST or C.FLOW_JSON_OBJECT, out))
  local root = native.own(out, C.flow_json_release)
  add_entries(root, value, 0)
  local text = native.text(C.flow_json_print, root)
  native.close(root, C.flow_json_release)
  return text
end

return json
