-- layer_config.lua: layers as tables of what they were made with: get_config(), from_config(config), and dense.units.

local native = require "flow.ffi"
local json = require "flow.json"
local object = require "flow.object"
local penalties = require "flow.layers.added_losses"

local C = native.C
local layer_config = {}

-- A layer's config as a table.
function layer_config.of(layer)
  if layer._handle then
    local config = json.decode(native.text(C.flow_layer_config, layer._handle))
    return layer._own_choices and require("flow.layers.own_choices").write(layer, config) or config
  end
  local config = { name = layer.name, trainable = layer._trainable, activity_regularizer = penalties.describe(layer) }
  for key, value in pairs(layer._assignments) do
    local is_plain = type(value) == "number" or type(value) == "string" or type(value) == "boolean"
    if is_plain and key ~= "supports_masking" then config[key] = value end
  end
  return config
end

-- Whether a built-in layer has an argument of that name, its value, nil where it is null, and, where it has not, all of them.
function layer_config.find(layer, key)
  if not rawget(layer, "_handle") or type(key) ~= "string" or key:find "^_" then return false end
  local config = layer:get_config()
  if config[key] == json.null then return true end
  return config[key] ~= nil, config[key], config
end

-- A layer of a class from a config.
function layer_config.make(class, config)
  object.check_config(class.name, config)
  return require("flow.layers.entries").of_class(class, config)
end

return layer_config
