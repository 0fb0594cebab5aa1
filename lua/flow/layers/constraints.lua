-- constraints.lua: flow.constraints: what weights are projected onto after each update of an optimizer.
--
--   layers.Dense(8, { kernel_constraint = flow.constraints.MaxNorm(2, 1), bias_constraint = "non_neg" })
--   flow.constraints.UnitNorm { axis = { 1, 2, 3 } }(weights)      the weights as it lets them be; axes count from 1
--
--   local Small = flow.constraints.Constraint:extend "Small"      one written in Lua, for add_weight { constraint = Small() }
--   function Small:call(w) return w:clip(-1, 1) end

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local arguments = require "flow.arguments"
local ops = require "flow.tensor.ops"
local signature = require "flow.signature"
local choices = require "flow.layers.choices"

local C = native.C
local context, out = native.context, native.out("flow_tensor")

local Constraint = object.class("Constraint", arguments.Choice, "constraint")

-- The weights as the constraint lets them be: a tensor of their shape.
signature.takes "w: data"
function Constraint:call(w)
  if rawget(self, "_in_lua") and not rawget(self, "_kind") then return ops.operand(w) end
  self = choices.of_library(self)
  local class_name = self.class_name
  native.try(C.flow_constrain, context, class_name, arguments.native(class_name, self.options), native.pointer(ops.operand(w)), out)
  return native.tensor(out[0])
end
local constraints = choices.library(C.FLOW_CHOICE_CONSTRAINT, "constraints", Constraint)

-- Gives a weight a constraint: an object, a name, or a function of the weight. What is written in Lua runs in apply_gradients.
function constraints._attach(what, weight, value)
  local is_object = object.is(value, Constraint)
  if type(value) == "function" or is_object and rawget(value, "_in_lua") then
    rawset(weight, "_constraint", value)
    return
  end
  local name = is_object and value.class_name or value
  if type(name) ~= "string" or C.flow_choice_find(C.FLOW_CHOICE_CONSTRAINT, name) < 0 then
    errors.raise("%s: constraint is one such as flow.constraints.MaxNorm(2), \"non_neg\" or a function of the weight, got %s", what,
      errors.describe(value))
  end
  native.try(C.flow_variable_set_constraint, weight.handle, name, is_object and arguments.native(name, value.options) or nil)
end

return constraints
