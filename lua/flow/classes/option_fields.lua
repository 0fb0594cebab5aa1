-- option_fields.lua: the options with which an object was made as its fields: metric.thresholds, schedule.decay_steps,
-- initializer.stddev. What get_config() of the library's class says is there, with axes that count from 1 as in a constructor; an option
-- that is not set is nil, as None in Python.

local object = require "flow.object"
local signature = require "flow.signature"
local extended = require "flow.extended"
local json = require "flow.json"

local option_fields = {}

local AXES = { axis = true, axes = true, input_axes = true, output_axes = true }

local function from_one(axis)
  if type(axis) ~= "table" then return type(axis) == "number" and axis >= 0 and axis + 1 or axis end
  local list = {}
  for i, entry in ipairs(axis) do list[i] = from_one(entry) end
  return list
end

-- An option as a constructor takes it, of a config in which axes count from 0; null is nil.
function option_fields.from_config(name, value)
  if value == json.null then return nil end
  return AXES[name] and from_one(value) or value
end

local function value_of(text)
  if text == "true" or text == "false" then return text == "true" end
  if text:find "^{" then
    local list = {}
    for number in text:gmatch "[^{}, ]+" do list[#list + 1] = tonumber(number) end
    return list
  end
  return tonumber(text) or text:match "^'(.*)'$"
end

-- The parameters of the constructor of a class, or of the library's class that it extends: { name = default }, json.null where there is
-- none.
function option_fields.parameters(class)
  local record, found = signature.of(extended.base(class)), {}
  if not record then return found end
  for _, list in ipairs { record.positional, record.options or {} } do
    for _, parameter in ipairs(list) do
      local default, text = parameter.default, parameter.default_text
      if default == nil and text then default = value_of(text) end
      found[parameter.name] = default == nil and json.null or default
    end
  end
  return found
end

-- Fills a config with the defaults of the constructor's parameters. skipped: a set of names that configs of these classes do not have.
function option_fields.complete(self, config, skipped)
  for name, default in pairs(option_fields.parameters(object.class_of(self))) do
    if config[name] == nil and default ~= json.null and not skipped[name] then config[name] = default end
  end
  return config
end

-- Gives a class such fields. config_of(self): the config of an object as the library's class says it.
function option_fields.install(class, config_of)
  function class:_missing(key)
    if type(key) ~= "string" or key:find "^_" then return false end
    local parameters = option_fields.parameters(object.class_of(self))
    local config = config_of(self)
    local value = config[key]
    if value == nil and parameters[key] == nil then
      for name in pairs(parameters) do config[name] = true end
      return false, nil, config
    end
    return true, option_fields.from_config(key, value)
  end
end

return option_fields
