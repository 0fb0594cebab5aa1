-- layer_config.lua: layers as tables of what they were made with: get_config(), from_config(config), dense.units, and dropout.rate = 0.2.

local native = require "flow.ffi"
local json = require "flow.json"
local errors = require "flow.errors"
local extended = require "flow.extended"
local option_fields = require "flow.classes.option_fields"
local log = require "flow.log"
local names = require "flow.names"
local signature = require "flow.signature"
local object = require "flow.object"
local variable = require "flow.tensor.variable"
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
  local init = rawget(layer, "_given_to_init")
  for key, value in pairs(init and init.given or layer._assignments) do
    local is_plain = init or type(value) == "number" or type(value) == "string" or type(value) == "boolean"
    if is_plain and key ~= "supports_masking" then config[key] = value end
  end
  return config
end

-- Warns of arguments of init that the config of a layer without a get_config of its own leaves out: those that are neither numbers nor
-- texts, nor made of these. It is no error, since the file has the weights.
function layer_config.warn_of_lost(layer)
  local init = rawget(layer, "_given_to_init")
  if not init or next(init.lost) == nil then return end
  local lost = {}
  for i, name in ipairs(names.sorted(init.lost)) do lost[i] = ("%s, %s"):format(name, errors.describe(init.lost[name])) end
  log.warning("%s: a file does not hold what its init was given as %s: for load_model its class needs a get_config() and a from_config(); "
    .. "load_weights reads the file's weights without", object.title(layer), table.concat(lost, "; "))
end

-- The variable of a built layer of the library with this suffix in Keras; nil: none.
local function variable_of(layer, suffix)
  if not rawget(layer, "_handle") or not layer._built then return nil end
  for _, v in ipairs(layer.weights) do
    if v.path:match "[^/]*$" == suffix then return v end
  end
end

-- Whether a layer of the library has an argument or a variable of that name, its value, nil where it is null, and, where it has not, all
-- arguments.
function layer_config.find(layer, key)
  if type(key) ~= "string" or key:find "^_" then return false end
  local base = extended.base(object.class_of(layer))
  if not rawget(layer, "_handle") and not (signature.namespaces[base] or ""):find "^flow%.layers%.." then return false end
  if rawget(layer, "_finding") then return false end      -- get_config() asks for a field that is not there
  rawset(layer, "_finding", true)
  local ok, config = pcall(base.get_config, layer)
  rawset(layer, "_finding", nil)
  if not ok then error(config, 0) end
  local parameters, value = option_fields.parameters(base), config[key]
  if value == json.null or value == nil and parameters[key] ~= nil then return true end
  if value == nil then value = variable_of(layer, key) end
  for name in pairs(parameters) do config[name] = true end
  return value ~= nil, value, config
end

local function has_argument(layer, name)
  local class = C.flow_layer_class_find(layer._record_name)
  for i = 0, C.flow_layer_class_argument_count(class) - 1 do
    if native.string(C.flow_layer_class_argument(class, i)) == name then return true end
  end
  return false
end

local function set_name(layer, name)
  if type(name) ~= "string" then errors.raise("%s: name is a string, got %s", object.title(layer), errors.describe(name)) end
  native.check(C.flow_layer_set_name(layer._handle, name))
  rawset(layer, "_title", name)
end

-- After a change of what calls read: plans that were made before it are not used any more.
function layer_config.changed(layer)
  rawset(layer, "_changes", (rawget(layer, "_changes") or 0) + 1)
  variable.trainable_version = variable.trainable_version + 1
end

-- Sets an argument of a built-in layer, or its name; returns whether it has such a thing.
function layer_config.set(layer, key, value)
  if not layer._handle or rawget(layer, "_making") then return false end
  if key == "name" then
    set_name(layer, value)
    return true
  end
  if not has_argument(layer, key) or object.has(layer, key) then return false end
  require("flow.layers.own_choices").change(layer, key, value)
  layer_config.changed(layer)
  return true
end

-- The options without which a built layer lacks a variable.
local ASKED_FOR_BY = { bias = "use_bias", beta = "center", gamma = "scale" }

-- The variable with this suffix in Keras: layer.kernel; nil where an option of the layer leaves it out, as use_bias = false does. Those of
-- a built-in layer keep the name that it was made with.
function layer_config.variable(layer, suffix)
  for _, v in ipairs(layer.weights) do
    local own = (layer._handle and "/" or "/" .. layer.name .. "/") .. suffix
    if ("/" .. v.path):sub(-#own) == own then return v end
  end
  if layer._handle and layer._built and ASKED_FOR_BY[suffix] and has_argument(layer, ASKED_FOR_BY[suffix]) then return nil end
  errors.raise("%s has no %s%s", object.title(layer), suffix, layer._built and "" or " yet: it is made when the layer is first called")
end

-- A layer of a class from a config.
function layer_config.make(class, config)
  object.check_config(class.name, config)
  return require("flow.layers.entries").of_class(class, config)
end

return layer_config
