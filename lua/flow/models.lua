-- models.lua: flow.models: the model classes with everything that the files which are loaded here add to them.
--
-- The room: flow.models: models with all that rooms add to them. May use: tensor, layers, model, plot, train, saving.

local models = require "flow.model"
require "flow.train.compile"
require "flow.train.fit"
require "flow.model.summary"
require "flow.saving.export"
require "flow.model.closing"
require "flow.plot.methods"
local saving = require "flow.saving"
local layers = require "flow.layers"
local symbolic = require "flow.layers.symbolic"
local signature = require "flow.signature"

symbolic.install_operators(require "flow.tensor.ops")

local all = signature.module("flow.models", { Model = models.Model, Functional = models.Functional, Sequential = models.Sequential,
  Input = layers.Input, load_model = saving.load_model, model_from_json = saving.model_from_json, clone_model = saving.clone_model,
  shared = saving.shared })
all.clear_session = require("flow.names").reset
return all
