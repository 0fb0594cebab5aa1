-- named_data.lua: data by name: { image = x, age = a } for the inputs of a functional model, { kind = y1, price = y2 } for its outputs.

local errors = require "flow.errors"
local object = require "flow.object"
local arguments = require "flow.arguments"

local raise = errors.raise
local named = {}

-- Whether value is data by name.
function named.is(value)
  return arguments.is_options(value) and next(value) ~= nil
end

-- The names of a model's inputs or outputs (kind) in their order: the keys of the table that it was made of, or the names of the layers.
-- nil: the model is not a graph of layers.
function named.names(model, kind)
  local given = rawget(model, "_names_of_" .. kind)
  if given then return given end
  local ends, names = rawget(model, kind), {}
  for i, tensor in ipairs(ends or {}) do names[i] = tensor.layer.name end
  return ends and names
end

-- Converts a list of results to the form that the model returns: a tensor, a list, or, if it was made of a table, a table by name.
function named.results(model, list)
  local names = rawget(model, "_names_of_outputs")
  if not names then return #list == 1 and list[1] or list end
  local by_name = {}
  for i, name in ipairs(names) do by_name[name] = list[i] end
  return by_name
end

-- Whether value, which may also be options, is targets: data by name with the name of an output.
function named.has_outputs(model, value)
  if not named.is(value) then return false end
  for _, name in ipairs(named.names(model, "outputs") or {}) do
    if value[name] ~= nil then return true end
  end
  return false
end

-- Its entries in the order of the model's inputs or outputs (kind), nil for missing ones, and the names in that order. Returns other values
-- unchanged.
function named.order(model, what, kind, value)
  if not named.is(value) then return value end
  local names, positions = named.names(model, kind), {}
  if not names then raise("%s: %s is given by name, which needs a functional model; give a list", object.title(model), what) end
  for i, name in ipairs(names) do positions[name] = i end
  local list = {}
  for name, entry in pairs(value) do
    local position = positions[name]
    if not position then
      raise("%s: %s has %q, which is none of the %s %s%s", object.title(model), what, tostring(name), kind, table.concat(names, ", "),
        errors.suggestion(tostring(name), names))
    end
    list[position] = entry
  end
  return list, names
end

-- The same; no entry may be missing.
function named.complete(model, what, kind, value)
  local list, names = named.order(model, what, kind, value)
  for i, name in ipairs(names or {}) do
    if list[i] == nil then raise("%s: %s lacks %q", object.title(model), what, name) end
  end
  return list
end

return named
