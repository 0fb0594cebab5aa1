-- keras.lua: flow.keras: what scripts for Keras name below keras, found at the same path: flow.keras.layers is flow.layers, flow.keras.ops
-- the operations that flow has itself, flow.keras.backend what clears names and tells defaults.

local errors = require "flow.errors"
local signature = require "flow.signature"

local raise = errors.raise

-- The fields of flow that are fields of keras, too.
local SAME = { "layers", "Model", "Sequential", "Input", "models", "optimizers", "losses", "metrics", "callbacks", "initializers",
  "regularizers", "constraints", "datasets", "utils", "random", "mixed_precision", "applications" }

-- Passed here when flow.keras is first named: flow, what require "flow" returns; is_op(name): whether flow has that op, loaded or not;
-- image(): the functions of keras.ops.image.
local keras = { above = {} }
errors.namespaces[keras] = "flow.keras"
local function flow() return keras.above.flow end

-- keras.ops.scan returns the last state first, flow.scan the results.
local scan = signature.guard("flow.keras.ops.scan", function(f, init, xs, length, reverse)
  local results, state = flow().scan(f, init, xs, length, reverse)
  return state, results
end, "f: callable, init, xs?, length?: whole, reverse: boolean = false, unroll?")

-- All ops of flow, and the modules of keras.ops, which hold some of them. image has functions of its own.
local ops
ops = signature.module("flow.keras.ops", nil, function(_, name)
  if name == "nn" or name == "numpy" or name == "linalg" then return ops end
  if name == "image" then return keras.above.image() end
  if name == "scan" then return scan end
  local value = name == "log" and function(x) return flow().log(x) end or rawget(flow(), name)
  if value == nil and keras.above.is_op(name) then value = flow()[name] end
  return type(value) == "function" and value or nil
end)

-- What a message about another name may mean.
getmetatable(ops).near = function()
  local names = {}
  for name, value in pairs(flow()) do
    if type(value) == "function" then names[#names + 1] = name end
  end
  return names
end

local backend = signature.module "flow.keras.backend"
function backend.clear_session() flow().clear_session() end
function backend.floatx() return "float32" end
function backend.epsilon() return 1e-7 end
function backend.image_data_format() return "channels_last" end

-- Names below keras that other fields of flow answer; each is found when it is asked for.
local FOUND = {
  ops = function() return ops end,
  backend = function() return backend end,
  activations = function() return ops end,
  preprocessing = function()
    local found = { sequence = flow().utils, image = flow().utils }
    for _, name in ipairs { "image", "text" } do
      found[name .. "_dataset_from_directory"] = flow().utils[name .. "_dataset_from_directory"]
    end
    found.timeseries_dataset_from_array = flow().timeseries_dataset_from_array
    return found
  end,
  saving = function()
    local found = { load_model = flow().load_model }
    for _, name in ipairs { "register_keras_serializable", "custom_object_scope", "CustomObjectScope", "get_custom_objects",
        "get_registered_name", "get_registered_object" } do
      found[name] = flow().utils[name]
    end
    return found
  end,
}
for _, name in ipairs(SAME) do FOUND[name] = function() return flow()[name] end end

return setmetatable(keras, { names = function()
  local names = {}
  for name in pairs(FOUND) do names[#names + 1] = name end
  return names
end, __index = function(_, name)
  local find = FOUND[name]
  if not find then
    raise("flow.keras has no %q%s", tostring(name), errors.elsewhere("flow", name) or errors.suggestion(tostring(name), FOUND))
  end
  local value = find()
  rawset(keras, name, value)
  return value
end })
