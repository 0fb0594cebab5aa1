-- models.lua: flow.models: the model classes with everything that training.lua, fit.lua and summary.lua add to them.

local models = require "flow.model"
require "flow.training"
require "flow.fit"
require "flow.summary"
local layers = require "flow.layers"
local symbolic = require "flow.symbolic"

symbolic.install_operators(require "flow.ops")

return { Model = models.Model, Functional = models.Functional, Sequential = models.Sequential, Input = layers.Input,
         clear_session = require("flow.names").reset }
