-- own_choices.lua: initializers, regularizers, constraints and activations that are written in Lua, of layers that are records of the
-- library:
--
--   layers.Dense(8, { kernel_initializer = function(shape, options) return flow.ones(shape) end, kernel_regularizer = MyPenalty() })
--   layers.Dense(8, { activation = function(x) return x * x end })      or activation = layers.LeakyReLU(0.1), flow.relu
--
-- The record gets the default. When the layer is built the weights that the option is for are filled, get the constraint, or are added to
-- those of which the regularizer makes a part of the loss. An activation is called on what the layer gives.

local native = require "flow.ffi"
local errors = require "flow.errors"
local log = require "flow.log"
local object = require "flow.object"
local arguments = require "flow.arguments"
local custom_objects = require "flow.custom_objects"
local json = require "flow.json"
local names = require "flow.names"
local ops = require "flow.tensor.ops"
local signature = require "flow.signature"

local C, raise = native.C, errors.raise
local own_choices = {}
local out = native.out("flow_layer")

local KINDS = { initializer = C.FLOW_CHOICE_INITIALIZER, regularizer = C.FLOW_CHOICE_REGULARIZER, constraint = C.FLOW_CHOICE_CONSTRAINT }

-- The name of the library's activation that this function is, such as flow.relu; nil for any other function.
local function activation_name(f)
  local entry = signature.entries[f]
  local name = entry and entry.title and entry.title:match "([%w_]+)$"
  if name and entry.title == "flow.keras.activations." .. name and (name == "linear" or name == "gelu") then return name end
  local ok, op = pcall(function() return name and ops[name] end)
  if not ok or op ~= f then return nil end
  local status = C.flow_layer_new("Activation", "activation", arguments.native("Activation", { activation = name }), out)
  if status ~= 0 then return nil end
  native.own(out, C.flow_layer_release)
  return name
end

-- The operation that is an activation which the library's layers do not have, or nil.
local function in_lua(name) return arguments.ACTIVATIONS_IN_LUA[name] and ops[name] or nil end

-- Functions and layers in the place of names of activations. Layers with steps in time have theirs within the steps.
local function take_activations(class_name, named, found)
  for _, option in ipairs { "activation", "recurrent_activation" } do
    local value = named[option]
    local own = type(value) == "string" and (custom_objects.function_of(value) or in_lua(value))
    if own then value, named[option] = own, own end
    local name = type(value) == "function" and activation_name(value)
    if name then named[option] = name
    elseif signature.is_callable(value) and not object.is(value, arguments.Choice) then
      if option ~= "activation" or class_name:find "LSTM" or class_name:find "GRU" or class_name:find "RNN" then
        raise("%s: %s is %s; it is computed in each step and so is a name such as \"tanh\", or a function such as flow.tanh; a cell " ..
          "written in Lua takes any (layers.RNN)", class_name, option, errors.describe(value))
      end
      found = found or {}
      found.activation, named.activation = value, "linear"
    end
  end
  return found
end

-- Takes them out of the arguments of a layer; nil: there are none of these names. { name = value }, such as kernel_initializer.
function own_choices.take(class_name, named)
  local found = take_activations(class_name, named)
  for name, value in pairs(named) do
    local kind = type(name) == "string" and name:match "_(%l+)$"
    if KINDS[kind] and arguments.is_own_choice(value) then
      found = found or {}
      found[name] = value
    end
  end
  for name in pairs(found or {}) do
    if name ~= "activation" then named[name] = nil end
  end
  return found
end

-- The weights that an option is for: "recurrent" of recurrent_initializer is recurrent_kernel, "kernel" of attention several kernels;
-- "depthwise" is the kernel of layers that have no other.
local function weights_of(layer, prefix)
  local found = {}
  for _, weight in ipairs(layer.weights) do
    local last = weight.name
    if last == prefix or last == prefix .. "_kernel" or prefix == "depthwise" and last == "kernel" then found[#found + 1] = weight end
  end
  return found
end

-- Of a layer that was just built. The options come in the order of their names: initializers may draw random numbers, and pairs() has
-- another order in each process.
function own_choices.apply(layer, chosen)
  for _, option in ipairs(names.sorted(chosen)) do
    local value, prefix, kind = chosen[option], option:match "^(.*)_(%l+)$"
    local what = ("%s: %s"):format(object.title(layer), option)
    for _, weight in ipairs(prefix and weights_of(layer, prefix) or {}) do
      if kind == "initializer" then
        local initial = require "flow.layers.initial_value" (what, value, weight.shape, weight.dtype)
        require "flow.tensor.outside_traces" (weight.assign, weight, initial)
      elseif kind == "constraint" then
        require("flow.layers.constraints")._attach(what, weight, value)
      else
        rawset(layer, "_regularizers", rawget(layer, "_regularizers") or {})
        local regularize = require("flow.layers.added_losses").regularizer(what, value)
        table.insert(layer._regularizers, { weight, regularize, option })
      end
    end
  end
end

-- Of a layer that is not built yet.
function own_choices.give(layer, chosen)
  rawset(layer, "_own_choices", chosen)
  if chosen.activity_regularizer then rawset(layer, "_activity", chosen.activity_regularizer) end
end

-- Sets an argument of a layer: a value of the library, one of these in the place of another, or nil or false for none.
function own_choices.change(layer, option, value)
  local named, chosen = { [option] = value }, {}
  for name, choice in pairs(layer._own_choices or {}) do
    if name ~= option then chosen[name] = choice end
  end
  if value == nil or value == false then named[option] = option:find "activation$" and "linear" or nil end
  local found = own_choices.take(layer.class_name, named)
  local handle = arguments.native(layer.class_name, named)
  if named[option] == nil then native.check(C.flow_arguments_set_null(handle, option)) end
  native.check(C.flow_layer_set_arguments(layer._handle, handle))
  chosen[option] = found and found[option]
  rawset(layer, "_own_choices", next(chosen) and chosen or false)
  rawset(layer, "_activity", chosen.activity_regularizer or C.flow_layer_regularizes_activity(layer._handle) ~= 0)
  local kept = {}
  for _, entry in ipairs(rawget(layer, "_regularizers") or {}) do
    if entry[3] ~= option then kept[#kept + 1] = entry end
  end
  rawset(layer, "_regularizers", kept)
  if layer._built and found then own_choices.apply(layer, found) end
end

---- files -----------------------------------------------------------------------------------------------------------------------------

-- The library's initializer of that name that is written in Lua, or nil.
local function choice_in_lua(name)
  return name == "STFT" and require("flow.layers.choices").initializers.STFT or nil
end

-- How a file describes one; nil: it has no name.
function own_choices.describe(value)
  for name in pairs(arguments.ACTIVATIONS_IN_LUA) do
    if value == in_lua(name) then return name end
  end
  if object.is(value, require "flow.layers.layer") then return require("flow.layers.entries").inner(value) end
  if type(value) == "function" then
    local name = custom_objects.registered_name(value)
    return name and { module = "builtins", class_name = "function", config = name, registered_name = name }
  end
  local class = object.class_of(value)
  if choice_in_lua(class.name) == class then
    return { module = "keras.initializers", class_name = class.name, config = value:get_config(), registered_name = json.null }
  end
  return { module = json.null, class_name = class.name, config = value:get_config(),
           registered_name = custom_objects.registered_name(class) or class.name }
end

-- Puts them into the layer's config. A function without a registered name leaves the default there, and a warning: what was trained is
-- not lost for that.
function own_choices.write(layer, config)
  for option, value in pairs(rawget(layer, "_own_choices") or {}) do
    local described = own_choices.describe(value)
    if described then config[option] = described
    else
      log.warning("%s: %s is a Lua function without a name, which a file cannot hold: it has the default in its place; " ..
        "flow.utils.register_keras_serializable(\"mine\", \"name\")(f) gives it one", object.title(layer), option)
    end
  end
  return config
end

local function copy(config)
  local result = {}
  for key, value in pairs(config) do result[key] = value end
  return result
end

-- The activation that a file describes if it is a function or a layer; nil: the library reads it.
local function own_activation(class_name, entry, reader)
  if type(entry) == "string" then return in_lua(entry) end
  if type(entry) ~= "table" or entry == json.null then return nil end
  if entry.class_name ~= "function" then
    return entry.config and require("flow.layers.entries").read_inner(entry, reader, "the activation of " .. class_name)
  end
  local name = entry.config
  local own = type(name) == "string" and (reader.custom[name] or reader.custom[name:match ">(.*)$" or ""])
  if not own and type(name) == "string" and name:find ">" then
    raise("%s: %s: the activation is %s, which flowlua does not know; give your own as custom_objects = { [%q] = f }", reader.path,
      class_name, name, name)
  end
  return own
end

-- Takes those that a file describes out of a config, made by their classes; what is not here is an error. reader: as of entries.lua.
-- Returns the rest of the config, and { option = value } or nil.
function own_choices.read(class_name, config, reader)
  local custom, path = reader.custom, reader.path
  local rest, found = config, nil
  for option, entry in pairs(config) do
    local prefix, kind = tostring(option):match "^(.*)_(%l+)$"
    if option == "activation" then
      local own = own_activation(class_name, entry, reader)
      if own then
        if rest == config then rest, found = copy(config), {} end
        rest.activation, found.activation = "linear", own
      end
    elseif KINDS[kind] and type(entry) == "table" and entry ~= json.null and type(entry.class_name) == "string" then
      local is_function = entry.class_name == "function"
      local name = is_function and entry.config or entry.registered_name
      local own = custom[name] or custom[entry.class_name] or custom[tostring(name):match ">(.*)$" or ""]
        or kind == "initializer" and choice_in_lua(entry.class_name)
      local known = not is_function and C.flow_choice_find(KINDS[kind], entry.class_name) >= 0
      if own or not known then
        if not own then
          raise("%s: %s: the %s of %s is %s, which flowlua does not know; give your own as custom_objects = { %s = ... }", path, class_name,
            kind, prefix, tostring(name), tostring(is_function and entry.config or entry.class_name))
        end
        if rest == config then rest, found = copy(config), {} end
        rest[option] = nil
        found[option] = type(own) == "function" and own or own.from_config(entry.config or {})
      end
    end
  end
  return rest, found
end

return own_choices
