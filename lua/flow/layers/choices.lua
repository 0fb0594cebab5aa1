-- choices.lua: flow.initializers and flow.regularizers: values for arguments of layers that have their own options.
--
--   layers.Dense(8, { kernel_initializer = flow.initializers.RandomNormal { stddev = 0.01 },
--                     kernel_regularizer = flow.regularizers.L2(1e-4) })
--   layers.Dense(8, { kernel_initializer = "he_normal", kernel_regularizer = "l2" })      by name: with Keras' default options
--   flow.initializers.HeNormal() { 3, 4 }            a tensor of this shape
--   flow.regularizers.L2(0.1)(weights)               what it adds to the loss
--
--   local Half = flow.initializers.Initializer:extend "Half"      one written in Lua
--   function Half:call(shape, options) return flow.full(shape, 0.5, { dtype = options.dtype }) end

local native = require "flow.ffi"
local errors = require "flow.errors"
local json = require "flow.json"
local signature = require "flow.signature"
local object = require "flow.object"
local arguments = require "flow.arguments"
local user_class = require "flow.user_class"
local extended = require "flow.extended"
local initial_value = require "flow.layers.initial_value"
local option_fields = require "flow.classes.option_fields"
local penalties = require "flow.layers.added_losses"

local C = native.C
local Choice = arguments.Choice
local Initializer = object.class("Initializer", Choice, "initializer")
local Regularizer = object.class("Regularizer", Choice, "regularizer")

---- what they compute ------------------------------------------------------------------------------------------------------------

-- What the library computes for it: itself, or, of a class that extends one of the library's, such an object. parameters: of the call()
-- that a class has to define which extends none.
local function of_library(self, parameters)
  if not rawget(self, "_in_lua") then return self end
  if not rawget(self, "_kind") then
    errors.raise("%s has no call(): define function %s:call(%s)", self.class_name, self.class_name, parameters)
  end
  local base = extended.base(object.class_of(self))
  return object.new(base, { class_name = base.name, options = self.options, _kind = self._kind })
end

-- A new tensor of this shape.
signature.takes "shape: list, dtype?"
function Initializer:call(shape, dtype)
  if type(dtype) == "table" then dtype = dtype.dtype end
  return initial_value(self.class_name, of_library(self, "shape, options"), shape, dtype)
end

-- What it adds to the loss for weights, a scalar.
signature.takes "x: data"
function Regularizer:call(x)
  return penalties.regularizer(self.class_name, of_library(self, "x"))(x)
end

function Choice:_call(...) return self:call(...) end
function Initializer:_call(shape, dtype)
  if rawget(self, "_in_lua") then return initial_value(self.class_name, self, shape, type(dtype) == "table" and dtype.dtype or dtype) end
  return self:call(shape, dtype)
end

---- configs ------------------------------------------------------------------------------------------------------------------------

-- As Keras serializes it: { module =, class_name =, config =, registered_name = }, axes from 0; what is null is left out.
function Choice:_entry()
  local kind, name = self._kind, self.class_name
  return json.decode(native.text(function(options, into, size)
    local length = C.flow_choice_config(kind, name, options, into, size)
    return length >= 0 and length or errors.raise("%s", native.string(C.flow_last_error()))
  end, arguments.native(name, self.options)))
end

-- Its options as Keras' config has them, axes from 0.
function Choice:get_config()
  if rawget(self, "_in_lua") and not rawget(self, "_kind") then return {} end
  self = of_library(self)
  local config = self:_entry().config
  for name, value in pairs(config) do
    if value == json.null then config[name] = nil end
  end
  return config
end

option_fields.install(Choice, Choice.get_config)

-- Keras' classes of variance scaling.
local SCALING = {
  GlorotUniform = { 1, "fan_avg", "uniform" }, GlorotNormal = { 1, "fan_avg", "truncated_normal" }, HeUniform = { 2, "fan_in", "uniform" },
  HeNormal = { 2, "fan_in", "truncated_normal" }, LecunUniform = { 1, "fan_in", "uniform" },
  LecunNormal = { 1, "fan_in", "truncated_normal" },
}
for i, name in ipairs { "scale", "mode", "distribution" } do
  Initializer.fields[name] = function(self)
    local scaling = SCALING[self.class_name]
    if scaling then return scaling[i] end
    return (select(2, self:_missing(name)))
  end
end

-- An equal one.
function Initializer:clone() return object.class_of(self).from_config(self:get_config()) end

---- constructors -------------------------------------------------------------------------------------------------------------------

local AXES = { "axis", "input_axes", "output_axes" }      -- which count from 1 in Lua

-- of: the class of what a constructor makes.
local function constructor(kind, index, class_name, title, of)
  local parameters = {}
  while C.flow_choice_parameter(kind, index, #parameters) ~= nil do
    parameters[#parameters + 1] = native.string(C.flow_choice_parameter(kind, index, #parameters))
  end
  local known = {}
  for _, name in ipairs(parameters) do known[name] = true end
  local class = object.class(class_name, of)
  local function new(options) return object.new(class, { class_name = class_name, options = options, _kind = kind }) end
  signature.of_record(class, title, parameters, #parameters, function(...)
    local options = errors.check_options(class_name, arguments.named(class_name, parameters, #parameters, ...), known)
    for _, name in ipairs(AXES) do options[name] = arguments.zero_based(class_name, name, options[name]) end
    local value = options.value      -- Constant's
    if native.is_tensor(value) then options.value = #value.shape == 0 and value:item() or value:totable() end
    return new(options)
  end)
  object.static(class, "from_config", function(_, config)
    object.check_config(class_name, config)
    local options = {}
    for name, value in pairs(config) do
      if value ~= json.null then options[name] = value end
    end
    return new(errors.check_options(class_name, options, known))
  end)
  return class
end

-- A class that extends one of the library's: HeNormal:extend "Mine".
local function extension(parent, class_name)
  local made = extended.class(parent, class_name, {}, function(own)
    return object.new(own, { class_name = own.name, options = {}, _in_lua = true })
  end, function(self, own)
    rawset(self, "class_name", own.name)
    rawset(self, "_in_lua", true)
  end)
  object.static(made, "from_config", function(own, config)
    object.check_config(class_name, config)
    local options = {}
    for name, value in pairs(config) do options[name] = option_fields.from_config(name, value) end
    return own(options)
  end)
  return made
end

-- Those written in Lua: Class:extend(name).
local function extensible(class)
  local function new(own, name) return object.new(own, { name = name, class_name = own.name, options = {}, _in_lua = true }) end
  getmetatable(class).__call = function(own) return new(own, own.name:lower()) end
  signature.takes "class_name: string"
  function class.extend(parent, class_name)
    if extended.base(parent) ~= class then return extension(parent, class_name) end
    local made = user_class(parent, class_name, new)
    object.static(made, "from_config", function(own, config) return own(config) end)
    return made
  end
  return class
end

-- The class of an initializer that is written in Lua, made when it is first named; nil: there is none of that name.
local function written_in_lua(kind, name)
  if kind ~= C.FLOW_CHOICE_INITIALIZER or name ~= "STFT" and name ~= "STFTInitializer" and name ~= "stft" then return nil end
  return require("flow.layers.kernels.stft_initializer").class(Initializer)
end

-- flow.WHAT: a class for each record of a kind, under its name and that in snake case, and `class`, which scripts extend.
local function library(kind, what, class)
  local list, index = {}, 0
  while C.flow_choice_name(kind, index) ~= nil do
    local class_name = native.string(C.flow_choice_name(kind, index))
    list[class_name] = constructor(kind, index, class_name, "flow." .. what .. "." .. class_name, class)
    index = index + 1
  end
  list[class.name] = extensible(class)
  local made = signature.module("flow." .. what, list, function(module, name)
    local in_lua = written_in_lua(kind, name)
    if in_lua then
      for _, one in ipairs { "STFT", "STFTInitializer", "stft" } do rawset(module, one, in_lua) end
      return in_lua
    end
    local found = type(name) == "string" and C.flow_choice_find(kind, (name:gsub("Initializer$", ""))) or -1
    return found >= 0 and rawget(module, native.string(C.flow_choice_name(kind, found))) or nil
  end)
  if kind == C.FLOW_CHOICE_INITIALIZER then signature.names_of(made, function() return { "STFT" } end) end
  return made
end

return { library = library, of_library = of_library,
         initializers = library(C.FLOW_CHOICE_INITIALIZER, "initializers", Initializer),
         regularizers = library(C.FLOW_CHOICE_REGULARIZER, "regularizers", Regularizer) }
