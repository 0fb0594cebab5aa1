-- compiled.lua: what compile() was given, as Keras' compile_config, and back.
--
-- Losses and metrics are written as they were given to compile: names stay names, objects become { module =, class_name =, config = },
-- functions their registered names.

local errors = require "flow.errors"
local object = require "flow.object"
local json = require "flow.json"
local names = require "flow.names"
local custom_objects = require "flow.custom_objects"
local log = require "flow.log"
local losses = require "flow.train.losses"
local metrics = require "flow.train.metrics"
local optimizers = require "flow.train.optimizers"

local raise = errors.raise
local compiled = {}

---- writing ---------------------------------------------------------------------------------------------------------------------------

-- The optimizer describes itself, as text.
local function optimizer_entry(optimizer)
  return json.printed(optimizer:to_json())
end

-- Of a class written in Lua: its name, and what its get_config() gives besides.
local function own_entry(value)
  local config = { name = value.name }
  for key, entry in pairs(object.has(value, "get_config") and value:get_config() or {}) do config[key] = entry end
  local class_name = object.class_of(value).name
  return { module = json.null, class_name = class_name, config = config, registered_name = class_name }
end

-- The entry of a loss or a metric. Raises for one that is a function of Lua in an object, which has no config. module: "keras.losses" or
-- "keras.metrics".
local function object_entry(module, value)
  local given = rawget(value, "config")
  if rawget(object.class_of(value), "in_lua") then return own_entry(value) end
  if not given then
    raise("the %s %q is a function of Lua, which a file cannot hold; compile with an object of flow.%s, or save the weights only",
      module == "keras.losses" and "loss" or "metric", tostring(value.name), module:match("%.(.*)"))
  end
  return { module = module, class_name = given.class_name, config = given.config, registered_name = json.null }
end

-- A function of Lua, as Keras writes one: by the name under which it is registered, or defined in its script.
local function function_entry(module, f)
  local name = custom_objects.get_registered_name(f) or losses.name_of_function(f) or names.of_function(f)
  if not name then
    raise("compile was given a function of Lua that has no name, by which a file holds it: write local function my_%s(y_true, y_pred)",
      module == "keras.losses" and "loss" or "metric")
  end
  return { module = "builtins", class_name = "function", config = name, registered_name = "function" }
end

-- A loss, a metric, or lists and tables of them by output, as they were given.
local function described(module, value, class)
  if not value then return json.null end
  if type(value) == "string" or type(value) == "number" then return value end
  if type(value) == "function" then return function_entry(module, value) end
  if object.is(value, class) then return object_entry(module, value) end
  if type(value.class_name) == "string" then return value end      -- a description already
  if value[1] == nil and next(value) == nil then return json.null end
  local result = value[1] ~= nil and json.list() or {}
  for key, entry in pairs(value) do result[key] = described(module, entry, class) end
  return result
end

compiled.describe = described

-- The compile_config of a model; {} when it was not compiled.
function compiled.entry(model)
  local state = rawget(model, "_compiled")
  if not state then return {} end
  local given = state.given
  return {
    optimizer = optimizer_entry(state.optimizer),
    loss = described("keras.losses", given.loss, losses.Loss),
    loss_weights = described("keras.losses", given.loss_weights, losses.Loss),
    metrics = described("keras.metrics", given.metrics, metrics.Metric),
    weighted_metrics = described("keras.metrics", given.weighted_metrics, metrics.Metric),
    run_eagerly = false, steps_per_execution = state.steps_per_execution, jit_compile = false,
  }
end

---- reading ----------------------------------------------------------------------------------------------------------------------------

-- Files count axes from 0.
local function from_one(axis)
  if type(axis) == "number" then return axis >= 0 and axis + 1 or axis end
  if type(axis) ~= "table" then return axis end
  local list = {}
  for i, entry in ipairs(axis) do list[i] = type(entry) == "number" and entry >= 0 and entry + 1 or entry end
  return list
end

-- Members of which null is a value, which is false here, and not that the default holds.
local NULL_COUNTS = { class_aggregation = true, reduction = true }

-- The options of a constructor here, of a config: without what is null, axes from 1, an object inside by its name. with_dtype: a name of a
-- dtype is an option, too.
local function options_of(config, with_dtype)
  local options = {}
  for key, value in pairs(config) do
    if key == "dtype" then options.dtype = with_dtype and type(value) == "string" and value or nil
    elseif (value ~= json.null or NULL_COUNTS[key]) and key ~= "fn" then
      if type(value) == "table" and value.class_name then
        value = type(value.config) == "table" and value.config.name or value.class_name
      end
      if key == "axis" then value = from_one(value) end
      options[key] = value ~= json.null and value
    end
  end
  return options
end

-- The loss or metric of an entry; raises for a class that is not known. library: flow.losses or flow.metrics.
local function read_object(library, value, custom)
  local name = value.class_name
  if custom[name] then return type(custom[name]) == "function" and custom[name] or custom[name](options_of(value.config or {})) end
  if value.class_name == "function" and type(value.config) == "string" then return custom[value.config] or value.config end
  local ok, class = pcall(function() return library[name] end)
  if not ok then raise("%q is not known", tostring(name)) end
  return class(options_of(value.config or {}, library == metrics))
end

-- A loss or metric of its entry.
function compiled.read(library, value) return read_object(library, value, {}) end

-- The same of what compile may be given: one, a list or a table of them by output.
local function read_part(library, value, custom)
  if value == nil or value == json.null then return nil end
  if type(value) ~= "table" then return value end
  if value.class_name then return read_object(library, value, custom) end
  local result = {}
  for key, entry in pairs(value) do result[key] = read_part(library, entry, custom) or false end      -- none of this output
  return result
end

-- The optimizer of an entry, or its name.
local function read_optimizer(value, custom)
  if type(value) == "string" then return value end
  if type(value) ~= "table" or value == json.null then raise("the optimizer is missing") end
  return optimizers.from_json(json.encode(value), custom)
end

-- Compiles the model as the file says. What is not known becomes one warning, and the model stays uncompiled, as in Keras.
function compiled.apply(model, entry, custom, path)
  if type(entry) ~= "table" or entry == json.null or next(entry) == nil then return end
  local ok, problem = errors.attempt(function()
    model:compile {
      optimizer = read_optimizer(entry.optimizer, custom), loss = read_part(losses, entry.loss, custom),
      loss_weights = read_part(losses, entry.loss_weights, custom), metrics = read_part(metrics, entry.metrics, custom),
      weighted_metrics = read_part(metrics, entry.weighted_metrics, custom),
      steps_per_execution = read_part(nil, entry.steps_per_execution, custom),
    }
  end)
  if not ok then
    log.warning("%s: the model is not compiled: %s; compile() it yourself", path, (tostring(problem):gsub("^[^\n]-:%d+: ", "")))
  end
end

-- What compile was given as metrics, with new objects in place of those that keep a state.
local function new_metrics(value, custom)
  if type(value) ~= "table" then return value end
  if object.is(value, metrics.Metric) then
    local class = object.class_of(value)
    local entry = json.decode(json.encode(object_entry("keras.metrics", value)))
    return read_object(metrics, entry, rawget(class, "in_lua") and { [class.name] = class } or custom)
  end
  local result = {}
  for key, entry in pairs(value) do result[key] = new_metrics(entry, custom) end
  return result
end

-- Compiles a clone as the model was compiled, if it was: the same losses, a new optimizer and new metrics. custom: classes of scripts by
-- their names. What cannot be made again from its config leaves the clone uncompiled, with one warning.
function compiled.copy(model, clone, custom)
  local state = rawget(model, "_compiled")
  if not state then return end
  local given, class, known = state.given, object.class_of(state.optimizer), setmetatable({}, { __index = custom })
  if rawget(class, "in_lua") then known[class.name] = class end
  local schedule = rawget(state.optimizer, "_schedule")
  if schedule then known[object.class_of(schedule).name] = object.class_of(schedule) end
  local ok, problem = pcall(function()
    clone:compile {
      optimizer = optimizers.from_json(state.optimizer:to_json(), known), loss = given.loss, loss_weights = given.loss_weights,
      metrics = new_metrics(given.metrics, custom), weighted_metrics = new_metrics(given.weighted_metrics, custom),
      run_eagerly = state.run_eagerly, steps_per_execution = state.steps_per_execution, jit_compile = state.jit_compile,
    }
  end)
  if not ok then
    log.warning("clone_model: the clone is not compiled: %s; compile() it yourself", (tostring(problem):gsub("^[^\n]-:%d+: ", "")))
  end
end

return compiled
