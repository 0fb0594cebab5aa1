-- serialized.lua: options of layers that are entries of files, { class_name =, config = }, as get_config() gives them, in place of objects.

local choices = require "flow.layers.choices"
local constraints = require "flow.layers.constraints"
local custom_objects = require "flow.custom_objects"
local json = require "flow.json"
local option_fields = require "flow.classes.option_fields"

local LIBRARIES = { initializer = choices.initializers, regularizer = choices.regularizers, constraint = constraints }

-- The object of an entry, whose axes, numbers or lists of them, count from 0. Raises for a class that neither scripts nor the library have.
local function object_of(library, entry)
  local options = {}
  for name, value in pairs(type(entry.config) == "table" and entry.config or {}) do
    options[name] = option_fields.from_config(name, value)
  end
  local class = custom_objects.all()[entry.class_name] or library[entry.class_name]
  return class(options)
end

-- Replaces entries by the objects that they describe, and null by false.
return function(named)
  for name, value in pairs(named) do
    local library = type(name) == "string" and LIBRARIES[name:match "%a+$"]
    if library and type(value) == "table" and getmetatable(value) == nil and type(value.class_name) == "string" then
      named[name] = object_of(library, value)
    elseif value == json.null then
      named[name] = false      -- None
    end
  end
  return named
end
