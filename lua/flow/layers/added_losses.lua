-- added_losses.lua: what layers written in Lua add to the loss besides it: regularizers of their weights, and layer:add_loss(value).

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local arguments = require "flow.arguments"
local choices = require "flow.layers.choices"
local tensor = require "flow.tensor"

local C, raise = native.C, errors.raise
local penalties = {}

-- Keras' regularizers as functions of a weight; options that were not given have Keras' defaults.
local FORMULAS = {
  L1 = function(w, o) return w:abs():sum() * (o.l1 or 0.01) end,
  L2 = function(w, o) return w:square():sum() * (o.l2 or 0.01) end,
  L1L2 = function(w, o) return w:abs():sum() * (o.l1 or 0) + w:square():sum() * (o.l2 or 0) end,
}
local BY_NAME = { l1 = "L1", l2 = "L2", l1_l2 = "L1L2", L1 = "L1", L2 = "L2", L1L2 = "L1L2" }

-- A function weight -> scalar, of flow.regularizers.L2(1e-4), "l2" or a function.
function penalties.regularizer(what, value)
  if type(value) == "function" then return value end
  if type(value) == "string" and BY_NAME[value] then value = choices.regularizers[BY_NAME[value]]() end
  local formula = object.is(value, arguments.Choice) and FORMULAS[value.class_name]
  if not formula then
    raise("%s: regularizer is one such as flow.regularizers.L2(1e-4), \"l2\" or a function of the weight, got %s", what,
      errors.describe(value))
  end
  return function(weight) return formula(weight, value.options) end
end

local used = false      -- whether any layer ever added a loss

-- Takes a scalar of the call that is running.
function penalties.add(layer, value)
  if not (native.is_tensor(value) and value.rank == 0) then
    raise("%s: add_loss takes a tensor with one number, got %s", object.title(layer), errors.describe(value))
  end
  local list = rawget(layer, "_added") or {}
  list[#list + 1] = value
  rawset(layer, "_added", list)
  used = true
end

-- Forgets what a layer and those inside of it added, before they are called again.
function penalties.clear(layer)
  if not used then return end
  rawset(layer, "_added", nil)
  for _, child in ipairs(layer._children) do penalties.clear(child) end
end

-- Appends what the layer itself has: added losses, but those of a trace that has ended, and regularizers of weights that are trained.
function penalties.collect(layer, list)
  for _, value in ipairs(rawget(layer, "_added") or {}) do
    if C.flow_trace_depth(native.context) > 0 or not tensor.is_symbolic(value) then list[#list + 1] = value end
  end
  for _, entry in ipairs(rawget(layer, "_regularizers") or {}) do
    local weight, regularize = entry[1], entry[2]
    if weight.trainable and layer._trainable then list[#list + 1] = regularize(weight) end
  end
end

return penalties
