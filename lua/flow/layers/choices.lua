-- choices.lua: flow.initializers and flow.regularizers: values for arguments of layers that have options of their own.
--
--   layers.Dense(8, { kernel_initializer = flow.initializers.RandomNormal { stddev = 0.01 },
--                     kernel_regularizer = flow.regularizers.L2(1e-4) })
--   layers.Dense(8, { kernel_initializer = "he_normal", kernel_regularizer = "l2" })      by name: with Keras' default options

local native = require "flow.ffi"
local errors = require "flow.errors"
local signature = require "flow.signature"
local object = require "flow.object"
local arguments = require "flow.arguments"

local C = native.C
local Choice = arguments.Choice

-- class: of what a constructor makes.
local function constructor(kind, index, class_name, title, class)
  local parameters = {}
  while C.flow_choice_parameter(kind, index, #parameters) ~= nil do
    parameters[#parameters + 1] = native.string(C.flow_choice_parameter(kind, index, #parameters))
  end
  local known = {}
  for _, name in ipairs(parameters) do known[name] = true end
  return signature.of_record(nil, title, parameters, #parameters, function(...)
    local options = errors.check_options(class_name, arguments.named(class_name, parameters, #parameters, ...), known)
    options.axis = arguments.zero_based(class_name, "axis", options.axis)
    return object.new(class, { class_name = class_name, options = options })
  end)
end

-- flow.WHAT: a constructor for each class of a kind, under its name and, with a class of ours, under its name in snake case, too.
local function library(kind, what, class)
  local list, index = {}, 0
  while C.flow_choice_name(kind, index) ~= nil do
    local class_name = native.string(C.flow_choice_name(kind, index))
    list[class_name] = constructor(kind, index, class_name, "flow." .. what .. "." .. class_name, class or Choice)
    index = index + 1
  end
  return signature.module("flow." .. what, list, class and function(module, name)
    local found = type(name) == "string" and C.flow_choice_find(kind, name) or -1
    return found >= 0 and rawget(module, native.string(C.flow_choice_name(kind, found))) or nil
  end)
end

return { library = library, initializers = library(C.FLOW_CHOICE_INITIALIZER, "initializers"),
         regularizers = library(C.FLOW_CHOICE_REGULARIZER, "regularizers") }
