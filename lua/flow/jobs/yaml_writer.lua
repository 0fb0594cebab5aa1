-- yaml_writer.lua: values of Lua as YAML that every reader takes for the same: what could be read as something else than this text is
-- quoted, as JSON quotes it.

local document = require "flow.jobs.document"
local errors = require "flow.errors"
local json = require "flow.json"

local writer = {}

-- Keys that come first, in this order; the others follow by their names, so that equal values give equal texts.
local FIRST = { "apiVersion", "kind", "jobId", "displayName", "metadata", "name", "image", "type", "spec" }
local rank = {}
for i, key in ipairs(FIRST) do rank[key] = i end

local LIST = getmetatable(json.list())      -- an empty list is `[]`, not `{}`, if json.list marked it

-- Words that YAML 1.1 or 1.2 reads as something else.
local WORDS = {}
for word in ("y n yes no true false on off null nan inf"):gmatch "%a+" do WORDS[word] = true end

local ESCAPES = { ["\n"] = "\\n", ["\t"] = "\\t", ["\r"] = "\\r", ['"'] = '\\"', ["\\"] = "\\\\" }

local function quote(text)
  return '"' .. text:gsub('[%c"\\\127]', function(byte) return ESCAPES[byte] or ("\\x%02x"):format(byte:byte()) end) .. '"'
end

-- Plain: begins with a letter, / or _, has nothing that ends a plain scalar, and is not a word with a meaning.
function writer.scalar(value)
  if type(value) == "boolean" then return tostring(value) end
  if type(value) == "number" then return document.number_text(value) end
  if type(value) ~= "string" then errors.raise("yaml: %s has no form in YAML", errors.describe(value)) end
  if value:find "^[%a/_][%w/_.+@-]*$" and not WORDS[value:lower()] then return value end
  return quote(value)
end

-- The keys of a map in the order in which they are written. Raises for keys that are not texts.
local function keys_of(value)
  local keys = {}
  for key in pairs(value) do
    if type(key) ~= "string" then errors.raise("yaml: a key is %s, expected a text", errors.describe(key)) end
    keys[#keys + 1] = key
  end
  table.sort(keys, function(a, b)
    local first, second = rank[a] or math.huge, rank[b] or math.huge
    if first ~= second then return first < second end
    return a < b
  end)
  return keys
end

local function is_list(value) return getmetatable(value) == LIST or value[1] ~= nil end

local add

-- Adds a value after `lead`, the text before it on its line ("name: ", "- "). indent: of the lines after it.
local function add_value(lines, lead, value, indent)
  if type(value) ~= "table" then
    lines[#lines + 1] = lead .. writer.scalar(value)
  elseif next(value) == nil then
    lines[#lines + 1] = lead .. (is_list(value) and "[]" or "{}")
  else
    add(lines, lead, value, indent)
  end
end

-- Adds a map or list that has entries. Lists in maps stand below their key without a further indent, as kubectl writes them.
function add(lines, lead, value, indent)
  local space = (" "):rep(indent)
  local inline = lead:find "%- $"      -- the first entry of a map in a list stands on the line of its dash
  if not inline and lead ~= "" then lines[#lines + 1] = (lead:gsub(" $", "")) end
  if is_list(value) then
    for _, item in ipairs(value) do
      add_value(lines, (inline and lead or space) .. "- ", item, indent + 2)
      inline = false
    end
  else
    for _, key in ipairs(keys_of(value)) do
      local begins = inline and lead or space
      inline = false
      local nested = value[key]
      add_value(lines, begins .. writer.scalar(key) .. ": ", nested, type(nested) == "table" and is_list(nested) and indent or indent + 2)
    end
  end
end

-- One document; a map, or a list that json.list marked or that has entries.
function writer.encode(value)
  local lines = {}
  if next(value) == nil then return is_list(value) and "[]\n" or "{}\n" end
  add(lines, "", value, 0)
  return table.concat(lines, "\n") .. "\n"
end

return writer
