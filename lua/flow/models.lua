-- models.lua: flow.models: the model classes with everything that training.lua, fit.lua, summary.lua and export.lua add to them.

local models = require "flow.model"
require "flow.training"
require "flow.fit"
require "flow.summary"
require "flow.saving.export"
require "flow.closing"
local saving = require "flow.saving"
local layers = require "flow.layers"
local symbolic = require "flow.symbolic"
local signature = require "flow.signature"

symbolic.install_operators(require "flow.ops")

local all = signature.module("flow.models", { Model = models.Model, Functional = models.Functional, Sequential = models.Sequential,
  Input = layers.Input, load_model = saving.load_model, model_from_json = saving.model_from_json, clone_model = saving.clone_model })
all.clear_session = require("flow.names").reset
return all
