-- callbacks/options.lua: the arguments of a callback's constructor: positions in Keras' order, then names.

local errors = require "flow.errors"
local arguments = require "flow.arguments"

local raise = errors.raise
local options = {}

local function is_whole(value, least)
  return type(value) == "number" and value >= least and value == math.floor(value) and value < math.huge
end

-- What a value must be: a test and how messages name it.
local KINDS = {
  text = { function(value) return type(value) == "string" and value ~= "" end, "a text" },
  number = { function(value) return type(value) == "number" end, "a number" },
  whole = { function(value) return is_whole(value, 0) end, "a whole number from 0" },
  positive = { function(value) return is_whole(value, 1) end, "a whole number from 1" },
  boolean = { function(value) return type(value) == "boolean" end, "true or false" },
  verbosity = { function(value) return value == true or value == false or is_whole(value, 0) end, "0 or 1" },
  mode = { function(value) return value == "auto" or value == "min" or value == "max" end, '"auto", "min" or "max"' },
  frequency = { function(value) return value == "epoch" or is_whole(value, 1) end, '"epoch" or a number of batches' },
  updates = { function(value)
    return value == "epoch" or value == "batch" or is_whole(value, 1)
  end, '"epoch", "batch" or a number of batches' },
  callable = { function(value)
    return type(value) == "function" or type(value) == "table" and getmetatable(value) ~= nil
  end, "a function" },
}

-- Reads f(...) into fields of self. parameters: { { name, kind, default }, ... }; a default of nil asks for the argument, false stands
-- for an argument that may be left out.
function options.read(self, what, parameters, ...)
  local list, known = {}, {}
  for i, parameter in ipairs(parameters) do
    list[i], known[parameter[1]] = parameter[1], true
  end
  local given = errors.check_options(what, arguments.named(what, list, #list, ...), known)
  for _, parameter in ipairs(parameters) do
    local name, kind, default = parameter[1], KINDS[parameter[2]], parameter[3]
    local value = given[name]
    if value == nil then
      if default == nil then raise("%s: %s is missing: it is %s", what, name, kind[2]) end
      value = default
    elseif not kind[1](value) then
      raise("%s: %s is %s, got %s", what, name, kind[2], errors.describe(value))
    end
    if parameter[2] == "verbosity" then value = value == true and 1 or value or 0 end
    self[name] = value
  end
end

return options
