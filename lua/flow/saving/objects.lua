-- objects.lua: layers, models, losses, metrics, optimizers, schedules, initializers, regularizers, constraints and activations as the
-- tables by which Keras' files describe them, { module =, class_name =, config =, registered_name = }, and back: what serialize,
-- deserialize and get of flow.layers, flow.losses and the others do.
--
-- Numbers, texts, lists and tables stand for themselves. Classes written in Lua come back by custom_objects = { Name = Class }, or when
-- they are registered (flow.utils.register_keras_serializable).

local native = require "flow.ffi"
local errors = require "flow.errors"
local json = require "flow.json"
local object = require "flow.object"
local arguments = require "flow.arguments"
local custom_objects = require "flow.custom_objects"
local choices = require "flow.layers.choices"
local constraints = require "flow.layers.constraints"
local layers = require "flow.layers"
local Layer = require "flow.layers.layer"
local mixed_precision = require "flow.layers.mixed_precision"
local own_choices = require "flow.layers.own_choices"
local signature = require "flow.signature"
local tensor = require "flow.tensor"
local ops = require "flow.tensor.ops"
local losses = require "flow.train.losses"
local metrics = require "flow.train.metrics"
local optimizers = require "flow.train.optimizers"
local compiled = require "flow.saving.compiled"
local config = require "flow.saving.config"

local raise = errors.raise
local objects = {}

-- Whether a value is a plain table: a list, or a table by names.
local function is_plain(value) return type(value) == "table" and (not getmetatable(value) or json.is_list(value)) end

-- An op of flow, or nil.
local function op(name)
  local ok, found = pcall(function() return ops[name] end)
  return ok and type(found) == "function" and found or nil
end

---- writing ---------------------------------------------------------------------------------------------------------------------------

-- The text in a file for a function: an activation by its name, others by that under which they are registered; nil: it has none. Also the
-- name of its kind, if it is not an activation's.
local function function_name(f)
  local registered, own = custom_objects.registered_name(f), losses.name_of_function(f)
  if registered then return registered, registered end
  if own then return own, "function" end
  local entry = signature.entries[f]
  local name = entry and entry.title and entry.title:match "([%w_]+)$"
  if name and (objects.activations[name] == f or op(name) == f) then return name end
end

-- The entry of a function; raises if it has no name.
local function of_function(what, f)
  local name, registered = function_name(f)
  if not name then
    raise("%s: a Lua function has no name that a file could hold; register it: " ..
      "flow.utils.register_keras_serializable(\"mine\", \"name\")(f)", what)
  end
  return registered and { module = "builtins", class_name = "function", config = name, registered_name = registered } or name
end

-- What a file says of an object. what: the caller, as messages name it.
function objects.write(what, value, depth)
  if type(value) == "function" then return of_function(what, value) end
  if type(value) ~= "table" then
    if type(value) == "cdata" and not native.is_tensor(value) then raise("%s takes an object, got %s", what, errors.describe(value)) end
    if native.is_tensor(value) then
      return { class_name = "__tensor__", config = { value = value:totable(), dtype = value.dtype } }
    end
    return value
  end
  if object.is(value, Layer) then return json.decode(json.encode(config.entry(value))) end
  if object.is(value, losses.Loss) then return compiled.describe("keras.losses", value, losses.Loss) end
  if object.is(value, metrics.Metric) then return compiled.describe("keras.metrics", value, metrics.Metric) end
  if object.is(value, optimizers.Optimizer) or object.is(value, optimizers.schedules.LearningRateSchedule) then
    return json.decode(value:to_json())
  end
  if object.is(value, arguments.Choice) then
    return rawget(value, "_in_lua") and own_choices.describe(value) or value:_entry()
  end
  if object.is(value, object.class_of(mixed_precision.global_policy())) then
    return { module = "keras", class_name = "DTypePolicy", config = { name = value.name }, registered_name = json.null }
  end
  if not is_plain(value) then raise("%s: %s is not an object that a file describes", what, errors.describe(value)) end
  local result = value[1] ~= nil and json.list() or {}
  depth = errors.deeper(what, depth)
  for key, entry in pairs(value) do result[key] = objects.write(what, entry, depth) end
  return result
end

---- reading ---------------------------------------------------------------------------------------------------------------------------

-- The libraries of classes, in the order in which a class without a module is looked for.
local LIBRARIES = { "initializers", "regularizers", "constraints", "losses", "metrics" }
local CHOICES = { initializers = true, regularizers = true, constraints = true }

-- The table of classes that flow has under this name.
local function library(name)
  if name == "losses" then return losses end
  if name == "metrics" then return metrics end
  if name == "constraints" then return constraints end
  return choices[name]
end

-- A class or function of a library, or nil.
local function member(name, class_name)
  local ok, found = pcall(function() return library(name)[class_name] end)
  return ok and found or nil
end

-- A config as options: without what is null.
local function given(content)
  local options = {}
  for key, value in pairs(type(content) == "table" and content ~= json.null and content or {}) do
    if value ~= json.null then options[key] = value end
  end
  return options
end

-- The object of an entry, of a library; nil if that has no such class.
local function make(name, entry)
  local found = member(name, entry.class_name)
  if not found then return nil end
  if name == "losses" or name == "metrics" then
    local options = type(entry.config) == "table" and entry.config ~= json.null and entry.config or {}
    return compiled.read(library(name), { class_name = entry.class_name, config = options })
  end
  return found.from_config(given(entry.config))
end

-- The function of an activation's name; raises if there is none.
local function activation(what, name, custom)
  if custom[name] then return custom[name] end
  local found = objects.activations[name] or op(name) or objects.linear
  if name ~= "linear" and found == objects.linear then raise("%s: there is no function %q", what, tostring(name)) end
  return found
end

-- The object of a script's class, or the function itself.
local function custom_made(class, entry)
  if type(class) == "function" then return class end
  local content = given(entry.config)
  return class.from_config and class.from_config(content) or class(content)
end

-- The object of what write() gave, or Keras wrote. kind: a library that is looked into first, or nil. custom: { name = class }.
function objects.read(what, value, kind, custom, depth)
  if value == json.null then return nil end
  if type(value) == "string" and kind == "keras.activations" then return activation(what, value, custom) end
  if not is_plain(value) then return value end
  if type(value.class_name) ~= "string" then
    local result = {}
    depth = errors.deeper(what, depth)
    for key, entry in pairs(value) do result[key] = objects.read(what, entry, kind, custom, depth) end
    return result
  end
  local name, module = value.class_name, type(value.module) == "string" and value.module or ""
  local registered = type(value.registered_name) == "string" and value.registered_name or name
  local content = type(value.config) == "table" and value.config or {}
  if name == "__tensor__" then return tensor.tensor(content.value, { dtype = content.dtype }) end
  if name == "function" then
    local own = value.config
    local elsewhere = kind ~= "keras.activations" and not custom[own] and not objects.activations[own]
    local known = elsewhere and (member("losses", own) or member("metrics", own))
    return known or activation(what, value.config, custom)
  end
  if name == "DTypePolicy" then return mixed_precision.Policy(content.name) end
  local own = custom[registered] or custom[name]
  if own and not (type(own) == "table" and object.descends(own, Layer)) then return custom_made(own, value) end
  local place = module:match "^keras%.(%l+)" or kind
  if place == "optimizers" then
    if module:find "schedules" then return optimizers.schedules[name](given(value.config)) end
    return optimizers.from_json(json.encode(value), custom)
  end
  local is_layer = own or name == "Sequential" or name == "Functional" or layers._knows(name)
  local made = CHOICES[place or ""] and make(place, value)
  if not made and place ~= "layers" and not is_layer or place == "losses" or place == "metrics" then
    made = place and member(place, name) and make(place, value)
    for _, one in ipairs(made and {} or LIBRARIES) do made = made or make(one, value) end
  end
  if made then return made end
  if not is_layer then
    raise("%s: %q is not known%s; give your own class as custom_objects = { %s = Class }", what, name,
      kind and " in flow." .. kind or "", name)
  end
  return config.read(value, { path = what, custom = custom, calls = 0 })
end

---- what scripts call -----------------------------------------------------------------------------------------------------------------

-- Activations that differ from the operations of their names: x as it is, and gelu, which is exact if nothing is said.
objects.linear = signature.guard("flow.keras.activations.linear", function(x) return ops.operand(x) end, "x: data")
objects.activations = {
  linear = objects.linear,
  gelu = signature.guard("flow.keras.activations.gelu", function(x, approximate) return ops.gelu(x, approximate) end,
    "x, approximate: boolean = false"),
}

-- What an identifier stands for: a name, an object, a function, or what write() gave; nil is nil, of activations "linear". kind: the field
-- of flow that has the classes, "initializers".
function objects.get(kind, value)
  local what = "flow." .. kind .. ".get"
  if value == nil or value == json.null then return kind == "keras.activations" and objects.linear or nil end
  if is_plain(value) then return objects.read(what, value, kind, custom_objects.all()) end
  if type(value) == "string" then
    local custom = custom_objects.all()
    if custom[value] then return type(custom[value]) == "function" and custom[value] or custom[value] {} end
    if kind == "keras.activations" then return activation(what, value, custom) end
    local found = member(kind, value)
    if not found then raise("%s: there is no %q", what, value) end
    return found()
  end
  if type(value) == "function" or object.is(value, arguments.Choice) then return value end
  raise("%s takes a name, an object, a function or what serialize gave, got %s", what, errors.describe(value))
end

return objects
