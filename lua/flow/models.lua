-- models.lua: flow.models: the model classes, with the methods that the rooms loaded here add to them.
--
-- The room: flow.models: models with all that rooms add to them. May use: tensor, layers, model, plot, train, saving.

local errors = require "flow.errors"
local object = require "flow.object"
local models = require "flow.model"
require "flow.train.compile"
require "flow.train.fit"
local function class_of(op) return require("flow.saving.operations").class_name(op) end
require("flow.model.summary").class_of = function(layer) return class_of(layer._operation.op) or layer.class_name end
require("flow.layers.symbolic").class_of = class_of
require "flow.saving.export"
require "flow.model.closing"
require "flow.plot.methods"
local saving = require "flow.saving"
local layers = require "flow.layers"
local signature = require "flow.signature"

local all = signature.module("flow.models", { Model = models.Model, Functional = models.Functional, Sequential = models.Sequential,
  Input = layers.Input, load_model = saving.load_model, model_from_json = saving.model_from_json, clone_model = saving.clone_model,
  shared = saving.shared })

-- Keras' functions beside the methods: each takes the model first and calls the method of its name.
-- Raises unless `model` is one; what: the function, without flow.models.
local function check_model(what, model)
  if not object.is(model, models.Model) then errors.raise("flow.models.%s takes a model, got %s", what, errors.describe(model)) end
end
signature.takes "model, filepath, overwrite: boolean = true, { include_optimizer: boolean = true }"
function all.save_model(model, filepath, overwrite, options)
  check_model("save_model", model)
  model:save(filepath, overwrite, options)
end
signature.takes "model, filepath, overwrite: boolean = true"
function all.save_weights(model, filepath, overwrite)
  check_model("save_weights", model)
  model:save_weights(filepath, overwrite)
end
signature.takes "model, filepath, { skip_mismatch: boolean = false, by_name: boolean = false }"
function all.load_weights(model, filepath, options)
  check_model("load_weights", model)
  model:load_weights(filepath, options)
end
all.clear_session = require("flow.names").reset
return all
