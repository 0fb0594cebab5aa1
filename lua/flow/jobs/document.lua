-- document.lua: configurations as trees whose nodes know where they were written, so that a finding can name the line.
--
-- A node is { kind = "map", keys = { "a", "b" }, entries = { a = node }, ... }, { kind = "list", items = {} } or { kind = "scalar", text =,
-- plain = }, where a plain scalar was written without quotes and may mean a number, true or null. Each has a place: "config.yaml:7",
-- "--worker-count" or "CustomJob".

local json = require "flow.json"

local document = {}

function document.map(place) return { kind = "map", place = place, keys = {}, entries = {} } end
function document.list(place) return { kind = "list", place = place, items = {} } end

-- text: what was written; plain: without quotes.
function document.scalar(place, text, plain) return { kind = "scalar", place = place, text = text, plain = plain or false } end

-- The entry of that key becomes `node`, whether it was there or not.
function document.set(map, key, node)
  if not map.entries[key] then map.keys[#map.keys + 1] = key end
  map.entries[key] = node
end

local function is_list(value) return value[1] ~= nil or next(value) == nil end

-- A number as the shortest text that is read back as it, without an exponent where it is whole and a double counts on by one.
function document.number_text(value)
  if value % 1 == 0 and math.abs(value) < 2 ^ 53 then return ("%.0f"):format(value) end
  local text = ("%.14g"):format(value)
  return tonumber(text) == value and text or ("%.17g"):format(value)
end

-- A value of Lua, as json.decode or a script gives it, as a tree all of whose nodes have this place. as_map: an empty table is a map.
-- Keys of a map that are not texts become texts.
function document.from_value(value, place, as_map)
  if type(value) ~= "table" then
    local text = type(value) == "number" and document.number_text(value) or tostring(value)
    return document.scalar(place, text, type(value) ~= "string")
  end
  if getmetatable(value) and tostring(value) == "null" then return document.scalar(place, "null", true) end
  if is_list(value) and not (as_map and next(value) == nil) then
    local list = document.list(place)
    for i = 1, #value do list.items[i] = document.from_value(value[i], place, true) end
    return list
  end
  local map, keys = document.map(place), {}
  for key in pairs(value) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  for _, key in ipairs(keys) do document.set(map, tostring(key), document.from_value(value[key], place)) end
  return map
end

local WORDS = { ["true"] = true, yes = true, on = true, ["false"] = false, no = false, off = false }
local NULLS = { [""] = true, ["~"] = true, null = true }

-- Whether a node says nothing: an empty value, or null.
function document.is_null(node)
  return node.kind == "scalar" and node.plain and NULLS[node.text:lower()] == true
end

-- What a plain scalar means as true or false; nil: neither.
function document.boolean(node)
  if node.kind == "scalar" then return WORDS[node.text:lower()] end
end

-- The tree as values of Lua: plain scalars as numbers and booleans where they read so.
function document.to_value(node)
  if node.kind == "list" then
    local list = json.list()
    for i, item in ipairs(node.items) do list[i] = document.to_value(item) end
    return list
  elseif node.kind == "map" then
    local map = {}
    for _, key in ipairs(node.keys) do
      if not document.is_null(node.entries[key]) then map[key] = document.to_value(node.entries[key]) end
    end
    return map
  elseif not node.plain then
    return node.text
  end
  local word = WORDS[node.text:lower()]
  if word ~= nil then return word end
  return node.text:find("^%-?%d") and tonumber(node.text) or node.text
end

-- What a message calls the kind of a node.
function document.describe(node)
  if node.kind == "map" then return "a map" end
  if node.kind == "list" then return "a list" end
  return document.is_null(node) and "empty" or ("%q"):format(node.text)
end

return document
