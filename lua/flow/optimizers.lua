-- optimizers.lua: flow.optimizers: SGD, Adam: an object for each record of the library.

local native = require "flow.ffi"
local errors = require "flow.errors"
local names = require "flow.names"
local object = require "flow.object"
local arguments = require "flow.arguments"
local variable = require "flow.variable"

local C, check, raise = native.C, native.check, errors.raise
local context, held = native.context, native.held

local optimizers = {}
local Optimizer = object.class("Optimizer")
local out = native.out("flow_optimizer")

local function define(index)
  local class_name = native.string(C.flow_optimizer_class_name(index))
  local class = object.class(class_name, Optimizer)
  local parameters = {}
  for i = 0, C.flow_optimizer_class_argument_count(index) - 1 do
    parameters[i + 1] = native.string(C.flow_optimizer_class_argument(index, i))
  end
  getmetatable(class).__call = function(_, ...)
    local named = arguments.named(class_name, parameters, #parameters, ...)
    local name = named.name or names.snake(class_name)
    named.name = nil
    check(C.flow_optimizer_new(class_name, name, arguments.native(class_name, named), out))
    return object.new(class, { name = name, handle = native.own(out, C.flow_optimizer_release) })
  end
  optimizers[class_name] = class
end

for _, name in ipairs { "SGD", "Adam" } do define(C.flow_optimizer_class_find(name)) end

-- optimizer:apply_gradients(gradients, variables): one update; in a traced function a part of its plan. A gradient may be nil.
function Optimizer:apply_gradients(gradients, variables)
  if variables == nil and type(gradients) == "table" then      -- Keras' form: a list of {gradient, variable}
    local pairs_list = gradients
    gradients, variables = {}, {}
    for i = 1, #pairs_list do gradients[i], variables[i] = pairs_list[i][1], pairs_list[i][2] end
  end
  if type(variables) ~= "table" or type(gradients) ~= "table" then
    raise("%s: apply_gradients takes a list of gradients and a list of variables", object.title(self))
  end
  local count = #variables
  local handles, tensors = native.out("flow_variable", math.max(count, 1)), native.out("flow_tensor", math.max(count, 1))
  for i = 1, count do
    if not variable.is_variable(variables[i]) then
      raise("%s: entry %d of the variables is %s", object.title(self), i, errors.describe(variables[i]))
    end
    handles[i - 1] = variables[i].handle
    if gradients[i] ~= nil then tensors[i - 1] = native.pointer(gradients[i]) end
  end
  native.try(C.flow_optimizer_apply, context, self.handle, tensors, handles, count)
  held[1], held[2] = gradients, variables
  return self.iterations
end
Optimizer.apply = Optimizer.apply_gradients

-- Makes the slots for these variables now instead of at the first update.
function Optimizer:build(variables)
  local count = #variables
  local handles = native.out("flow_variable", math.max(count, 1))
  for i = 1, count do handles[i - 1] = variables[i].handle end
  native.try(C.flow_optimizer_build, self.handle, handles, count)
  held[1] = variables
end

function Optimizer.fields.learning_rate(self) return C.flow_variable_number(C.flow_optimizer_learning_rate(self.handle)) end
function Optimizer.fields.iterations(self) return C.flow_variable_number(C.flow_optimizer_iterations(self.handle)) end

function Optimizer.setters.learning_rate(self, value)
  if type(value) ~= "number" or not (value >= 0) then
    raise("%s: learning_rate is a number of at least 0, got %s", object.title(self), errors.describe(value))
  end
  variable.wrap(C.flow_optimizer_learning_rate(self.handle)):assign(value)
end

-- Iterations, learning rate, then the slots, in Keras' order.
function Optimizer.fields.variables(self)
  local list = { variable.wrap(C.flow_optimizer_iterations(self.handle)), variable.wrap(C.flow_optimizer_learning_rate(self.handle)) }
  for i = 0, C.flow_optimizer_slot_count(self.handle) - 1 do
    list[#list + 1] = variable.wrap(C.flow_optimizer_slot(self.handle, i))
  end
  return list
end

-- The optimizer that compile() was given: an object or a name.
function optimizers.get(value)
  if object.is(value, Optimizer) then return value end
  if type(value) == "string" then
    local index = C.flow_optimizer_class_find(value)
    if index >= 0 then return optimizers[native.string(C.flow_optimizer_class_name(index))]() end
    raise("there is no optimizer %q%s", value, errors.suggestion(value, { "sgd", "adam" }))
  end
  raise("an optimizer is an object such as flow.optimizers.Adam() or a name such as \"adam\", got %s", errors.describe(value))
end

return setmetatable(optimizers, {
  __index = function(_, name) raise("flow.optimizers has no %q%s", tostring(name), errors.suggestion(tostring(name), optimizers)) end,
})
