-- description.lua: a whole model as Keras' config.json: what it is made of and how it was compiled; no weights.

local errors = require "flow.errors"
local object = require "flow.object"
local models = require "flow.model"
local config = require "flow.saving.config"
local custom_objects = require "flow.custom_objects"
local compiled = require "flow.saving.compiled"

local description = {}

function description.of(model)
  local entry = config.entry(model)
  entry.compile_config = compiled.entry(model)
  return entry
end

-- A model with fresh weights. path: names the file in messages; options: { custom_objects = { Name = class }, compile = true }.
function description.model(entry, path, options)
  local custom = custom_objects.all(options.custom_objects)
  local reader = { path = path, custom = custom, calls = 0 }
  config.check_classes(entry, reader)
  local model = config.read(entry, reader)
  if not object.is(model, models.Model) then errors.raise("%s: it holds no model but %s", path, tostring(model)) end
  if options.compile ~= false then compiled.apply(model, entry.compile_config, custom, path) end
  return model
end

return description
