-- lookups.lua: get, serialize and deserialize of flow.layers, flow.losses and the other libraries of classes, as Keras has them.
--
--   flow.initializers.get("he_normal")                     an object; nil stays nil, an object itself
--   flow.losses.serialize(flow.losses.Huber(0.5))          { module =, class_name =, config =, registered_name = }
--   flow.losses.deserialize(entry, custom_objects)         the object again
--   flow.utils.serialize_keras_object(anything)            of any of them, or a list or table
--
-- flow's init.lua calls the function of this file with each library that it loads; the functions are added to that library's table then.
-- They do not work themselves: saving/objects.lua knows the form of the entries, and is loaded with the first call.

local signature = require "flow.signature"

-- Does the work: saving/objects.lua, which the room above passes here, loaded when a function is first called.
local objects

-- Adds them to a module. kind: its path below flow; what it has of its own stays. getter: with get.
local function add(module, kind, getter)
  if rawget(module, "serialize") then return end
  if getter then
    signature.takes "identifier?: data"
    function module.get(identifier) return objects().get(kind, identifier) end
  end
  signature.takes "object: data"
  function module.serialize(object) return objects().write("flow." .. kind .. ".serialize", object) end
  signature.takes "entry: data, custom_objects?: table"
  function module.deserialize(entry, custom)
    return objects().read("flow." .. kind .. ".deserialize", entry, kind, require("flow.custom_objects").all(custom))
  end
end

-- By the module that was loaded: adds them to what it has.
local LIBRARIES = {
  ["flow.layers"] = function(layers) add(layers, "layers") end,
  ["flow.layers.choices"] = function(choices)
    add(choices.initializers, "initializers", true)
    add(choices.regularizers, "regularizers", true)
  end,
  ["flow.layers.constraints"] = function(constraints) add(constraints, "constraints", true) end,
  ["flow.train.losses"] = function(losses) add(losses, "losses") end,
  ["flow.train.metrics"] = function(metrics) add(metrics, "metrics") end,
  ["flow.train.optimizers"] = function(optimizers)
    add(optimizers, "optimizers")
    add(optimizers.schedules, "optimizers.schedules")
  end,
  ["flow.keras"] = function(keras)
    keras._above.objects = objects
    add(keras.activations, "keras.activations", true)
  end,
  ["flow.utils"] = function(utils)
    signature.takes "object: data"
    function utils.serialize_keras_object(object) return objects().write("flow.utils.serialize_keras_object", object) end
    signature.takes "entry: data, custom_objects?: table"
    function utils.deserialize_keras_object(entry, custom)
      return objects().read("flow.utils.deserialize_keras_object", entry, nil, require("flow.custom_objects").all(custom))
    end
  end,
}

-- name: a module of lua/flow that has just been loaded for flow; find(): the module that does the work.
return function(name, module, find)
  objects = objects or find
  if LIBRARIES[name] then LIBRARIES[name](module) end
end
