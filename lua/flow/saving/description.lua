-- description.lua: a whole model as Keras' config.json: what it is made of and how it was compiled; no weights.

local errors = require "flow.errors"
local object = require "flow.object"
local models = require "flow.model"
local config = require "flow.saving.config"
local custom_objects = require "flow.custom_objects"
local compiled = require "flow.saving.compiled"
local hooks = require "flow.layers.classes.saving_hooks"

local description = {}

-- What a script's get_compile_config() says, as an entry; nil: there is none, or the model is not compiled.
local function own_compile_config(model)
  if not model._compiled or not hooks.of(model, "get_compile_config") then return nil end
  local objects, result = require "flow.saving.objects", {}
  for name, value in pairs(model:get_compile_config()) do result[name] = objects.write("get_compile_config", value) end
  return result
end

-- The entry of a model, with compile_config; {} there if it was not compiled.
function description.of(model)
  local entry = config.entry(model)
  entry.compile_config = own_compile_config(model) or compiled.entry(model)
  return entry
end

-- Compiles a model as `given` says, a compile_config. path, options: as below.
function description.compile(model, given, path, options)
  local custom, own = custom_objects.all(options.custom_objects), hooks.of(model, "compile_from_config")
  if own and type(given) == "table" and next(given) ~= nil then
    custom_objects.custom_object_scope(custom, function() model:compile_from_config(given) end)
  else compiled.apply(model, given, custom, path) end
end

-- A model with fresh weights. path: names the file in messages; options: { custom_objects = { Name = class }, compile = true }.
function description.model(entry, path, options)
  local custom = custom_objects.all(options.custom_objects)
  local reader = { path = path, custom = custom, calls = 0 }
  config.check_classes(entry, reader)
  local model = config.read(entry, reader)
  if not object.is(model, models.Model) then errors.raise("%s: it holds no model but %s", path, tostring(model)) end
  if options.compile ~= false then description.compile(model, entry.compile_config, path, options) end
  return model
end

return description
