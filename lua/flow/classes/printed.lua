-- printed.lua: tables that scripts get as results, and that print as what they hold: { accuracy = 0.97, loss = 0.09 }. What asks for their
-- metatable finds none, as of any table, so that they are taken wherever a table is.

local debug = require("flow.host").debug
local names = require "flow.names"

local Printed = { __metatable = false }

local DEEPEST = 8      -- a table that reaches itself ends somewhere

local function text_of(value, depth)
  if type(value) == "string" then return ("%q"):format(value) end
  local metatable = type(value) == "table" and debug.getmetatable(value)
  if type(value) ~= "table" or metatable and metatable ~= Printed then return tostring(value) end
  if depth > DEEPEST then return "{...}" end
  local parts, count = {}, #value
  for i = 1, count do parts[i] = text_of(value[i], depth + 1) end
  for _, key in ipairs(names.keys(value)) do
    local in_list = type(key) == "number" and key >= 1 and key <= count and key % 1 == 0
    if not in_list then
      local name = type(key) == "string" and (key:match "^[%a_][%w_]*$" or ("[%q]"):format(key)) or "[" .. tostring(key) .. "]"
      parts[#parts + 1] = name .. " = " .. text_of(value[key], depth + 1)
    end
  end
  return #parts == 0 and "{}" or "{ " .. table.concat(parts, ", ") .. " }"
end

function Printed.__tostring(self) return text_of(self, 1) end
Printed.__index = require "flow.classes.from_end"
function Printed.__concat(a, b) return tostring(a) .. tostring(b) end

-- Marks a table, which is returned; tables in it print inside of it. One that has a metatable stays unchanged.
local function printed(value)
  if type(value) == "table" and debug.getmetatable(value) == nil then setmetatable(value, Printed) end
  return value
end

return printed
