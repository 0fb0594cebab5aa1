-- fields.lua: the fields of a tokenizer's file, with checks: what is missing or of another type is an error that names its place, such as
-- model.merges[3].

local errors = require "flow.errors"
local json = require "flow.json"

local raise, describe = errors.raise, errors.describe
local fields = {}

local Record = {}
Record.__index = Record

-- values: a table of a file; place: how messages call it; what: the file.
function fields.record(values, what, place)
  if type(values) ~= "table" or #values > 0 or json.is_list(values) then
    raise("%s: %s is %s, expected an object", what, place, describe(values))
  end
  return setmetatable({ values = values, what = what, place = place }, Record)
end

function Record:fail(text, ...) raise("%s: " .. text, self.what, ...) end

function Record:path(name) return self.place == "" and name or self.place .. "." .. name end

-- A value, nil where it is null or missing.
function Record:get(name)
  local value = self.values[name]
  if value == json.null then return nil end
  return value
end

-- A value of a type; default: what it is where it is missing; without one it must be there.
local function reader(type_name, expected)
  return function(self, name, default)
    local value = self:get(name)
    if value == nil then
      if default == nil then self:fail("%s is missing, expected %s", self:path(name), expected) end
      return default
    end
    if type(value) ~= type_name then self:fail("%s is %s, expected %s", self:path(name), describe(value), expected) end
    return value
  end
end
Record.text = reader("string", "a string")
Record.boolean = reader("boolean", "true or false")
local number = reader("number", "a number")

-- A whole number from 0 that an id can be.
function Record:whole(name, default)
  local value = number(self, name, default)
  if value and (value < 0 or value % 1 ~= 0 or value > fields.MOST) then
    self:fail("%s is %s, expected a whole number from 0 to %d", self:path(name), describe(value), fields.MOST)
  end
  return value
end
fields.MOST = 2 ^ 24 - 1      -- ids: two of them, and ranks of merges, fit into one number

-- One of these texts.
function Record:choice(name, choices, default)
  local value = self:text(name, default)
  for _, choice in ipairs(choices) do
    if choice == value then return value end
  end
  return self:fail("%s is %s, expected one of %s", self:path(name), describe(value), table.concat(choices, ", "))
end

-- A list; each(value, place) is called for its entries.
function Record:list(name, each, default)
  local list = self:get(name)
  if list == nil and default then return default end
  if type(list) ~= "table" or #list == 0 and next(list) ~= nil then
    self:fail("%s is %s, expected a list", self:path(name), describe(list))
  end
  local made = {}
  for i = 1, #list do made[i] = each(list[i], ("%s[%d]"):format(self:path(name), i)) end
  return made
end

-- The records of a list of objects.
function Record:records(name, default)
  return self:list(name, function(value, place) return fields.record(value, self.what, place) end, default)
end

-- The record of an object, or nil where it is null or missing.
function Record:object(name)
  local value = self:get(name)
  if value == nil then return nil end
  return fields.record(value, self.what, self:path(name))
end

-- find(cp, n, from) of a pattern, { "String": text } or { "Regex": text }, or the text alone.
function Record:pattern(name)
  local value = self:get(name)
  local text, is_regular = value, false
  if type(value) == "table" then
    is_regular = type(value.Regex) == "string"
    text = value.Regex or value.String
  end
  if type(text) ~= "string" then
    self:fail("%s is %s, expected { \"Regex\": ... } or { \"String\": ... }", self:path(name), describe(value))
  end
  if not is_regular then
    if text == "" then self:fail("%s is an empty text", self:path(name)) end
    return require("flow.text.buffer").finder(text)
  end
  local ok, found = pcall(require("flow.text.pattern").compile, text)
  if not ok then self:fail("%s: %s", self:path(name), (tostring(found):gsub("^[^\n]-:%d+: ", ""))) end
  return found
end

-- What kinds[type](record) gives. what: names the part in messages.
function fields.kind(record, kinds, part)
  local name = record:text "type"
  if not kinds[name] then
    local names = {}
    for key in pairs(kinds) do names[#names + 1] = key end
    table.sort(names)
    record:fail("%s: the %s %q is not supported; those are: %s", record.place, part, name, table.concat(names, ", "))
  end
  return kinds[name](record)
end

return fields
