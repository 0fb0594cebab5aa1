-- init.lua: flow.keras: Keras' names at the same paths as in Keras: flow.keras.layers is flow.layers, flow.keras.ops has flow's own
-- operations, flow.keras.backend clears names and returns defaults.
--
-- Nothing is copied: a name is found when it is first asked for and is a field of the table from then on. What Keras lets be set and flow
-- keeps fixed (floatx, epsilon, the order of axes) can be read, and set to the value that it has.
--
-- The room: names of Keras. May use: nothing.

local errors = require "flow.errors"
local names = require "flow.names"
local signature = require "flow.signature"

local raise = errors.raise

-- The fields of flow that are fields of keras, too.
local SAME = { "layers", "Model", "Sequential", "Input", "models", "optimizers", "losses", "metrics", "callbacks", "initializers",
  "regularizers", "constraints", "datasets", "utils", "random", "mixed_precision", "applications",
  "Variable", "device", "version" }

-- Passed here when flow.keras is first named: flow, what require "flow" returns; ops; image(): the functions of keras.ops.image.
local keras = { _above = {} }
errors.namespaces[keras] = "flow.keras"
local function flow() return keras._above.flow end

-- keras.ops.scan returns the last state first, flow.scan the results.
local scan = signature.guard("flow.keras.ops.scan", function(f, init, xs, length, reverse)
  local results, state = flow().scan(f, init, xs, length, reverse)
  return state, results
end, "f: callable, init, xs?, length?: whole, reverse: boolean = false, unroll?")

-- All ops of flow, and the modules of keras.ops, which hold some of them (nn, numpy and linalg are this table itself). image has its own
-- functions. A name is looked up in flow, then among the ops that flow does not name; only functions are ops.
local ops
ops = signature.module("flow.keras.ops", nil, function(_, name)
  if name == "nn" or name == "numpy" or name == "linalg" then return ops end
  if name == "image" then return keras._above.image() end
  if name == "scan" then return scan end
  if name == "custom_gradient" or name == "shape" then return flow()[name] end
  local value = name == "log" and function(x) return flow().log(x) end or rawget(flow(), name)
  if value == nil and type(keras._above.ops[name]) == "function" then value = flow()[name] end
  return type(value) == "function" and value or nil
end)

-- What a message about another name may mean.
getmetatable(ops).near = function()
  local list = {}
  for name, value in pairs(flow()) do
    if type(value) == "function" then list[#list + 1] = name end
  end
  for _, name in ipairs(getmetatable(flow()).names()) do list[#list + 1] = name end
  return list
end

---- settings -------------------------------------------------------------------------------------------------------------------------

local backend, config = signature.module "flow.keras.backend", signature.module "flow.keras.config"

-- What Keras lets be set, and which only value it has here; what to write for another one.
local FIXED = {
  floatx = { "float32", "layers take dtype, and flow.mixed_precision.set_global_policy(\"float64\") is for all of them" },
  epsilon = { 1e-7, "layers and optimizers take epsilon" },
  image_data_format = { "channels_last", "pictures are {rows, height, width, channels}: flow.transpose(x, {1, 3, 4, 2}) makes them so" },
}
for name, fixed in pairs(FIXED) do
  local setter = "set_" .. name
  config[name] = function() return fixed[1] end
  signature.takes(name == "image_data_format" and "data_format: any" or "value: any")
  config[setter] = function(value)
    if value == fixed[1] then return end
    raise("flow.keras.config.%s: it is %s and stays so, got %s; %s", setter, tostring(fixed[1]), errors.describe(value), fixed[2])
  end
  backend[name], backend[setter] = config[name], config[setter]
end

function config.backend() return "flowlua" end
backend.backend = config.backend
function config.dtype_policy() return flow().mixed_precision.global_policy() end
signature.takes "policy: any"
function config.set_dtype_policy(policy) flow().mixed_precision.set_global_policy(policy) end

function backend.clear_session() flow().clear_session() end
signature.takes "dtype: string"
function backend.is_float_dtype(dtype) return dtype:find "float" ~= nil end
signature.takes "dtype: string"
function backend.is_int_dtype(dtype) return dtype:find "^u?int" ~= nil end

-- 1, 2, ... for each prefix: numbers for names, from the counters that layers are named by; clear_session begins again.
signature.takes "prefix: string = ''"
function backend.get_uid(prefix) return names.count(prefix) end

---- activations ----------------------------------------------------------------------------------------------------------------------

local activations = signature.module("flow.keras.activations", nil, function(_, name)
  if name == "linear" or name == "gelu" then return keras._above.objects().activations[name] end
  return ops[name]
end)

-- Names below keras that other fields of flow answer; each is found when it is asked for.
local FOUND = {
  ops = function() return ops end,
  backend = function() return backend end,
  activations = function() return activations end,
  config = function() return config end,
  tree = function() return require "flow.keras.tree" end,
  distribution = function() return require("flow.keras.distribution")._of(flow) end,
  dtype_policies = function() return flow().mixed_precision end,
  DTypePolicy = function() return flow().mixed_precision.DTypePolicy end,
  preprocessing = function()
    local found = { sequence = flow().utils, image = flow().utils }
    for _, name in ipairs { "image", "text" } do
      found[name .. "_dataset_from_directory"] = flow().utils[name .. "_dataset_from_directory"]
    end
    found.timeseries_dataset_from_array = flow().timeseries_dataset_from_array
    return require "flow.errors.closed" ("flow.keras.preprocessing", found)
  end,
  saving = function()
    local utils = flow().utils
    local found = { load_model = flow().load_model, save_model = flow().models.save_model, load_weights = flow().models.load_weights,
      save_weights = flow().models.save_weights, serialize_keras_object = utils.serialize_keras_object,
      deserialize_keras_object = utils.deserialize_keras_object }
    for _, name in ipairs { "register_keras_serializable", "custom_object_scope", "CustomObjectScope", "get_custom_objects",
        "get_registered_name", "get_registered_object" } do
      found[name] = flow().utils[name]
    end
    return require "flow.errors.closed" ("flow.keras.saving", found)
  end,
}
-- Classes that have another name here, by which the reference knows them.
local CLASSES = {
  Layer = function() return flow().layers.Layer end,
  InputSpec = function() return flow().layers.InputSpec end,
  Loss = function() return flow().losses.Loss end,
  Metric = function() return flow().metrics.Metric end,
  Optimizer = function() return flow().optimizers.Optimizer end,
  Initializer = function() return flow().initializers.Initializer end,
  Regularizer = function() return flow().regularizers.Regularizer end,
}
for _, name in ipairs(SAME) do FOUND[name] = function() return flow()[name] end end

return setmetatable(keras, { names = function() return names.sorted(FOUND) end, __index = function(_, name)
  local find = FOUND[name] or CLASSES[name]
  if not find then
    raise("flow.keras has no %q%s", tostring(name), errors.elsewhere("flow", name) or errors.suggestion(tostring(name), FOUND))
  end
  local value = find()
  rawset(keras, name, value)
  return value
end })
