-- schedules.lua: flow.optimizers.schedules: learning rates that follow the number of updates. Built-in ones are C records; a
-- class written in Lua extends LearningRateSchedule and has call(self, step), which is traced into the training step: step is a
-- float32 scalar tensor, the result a number or a scalar tensor.
--
--   local Warmup = flow.optimizers.schedules.LearningRateSchedule:extend("Warmup")
--   function Warmup:call(step) return (step + 1):minimum(1000) * (self.target / 1000) end
--   flow.optimizers.Adam { learning_rate = Warmup { target = 0.001 } }

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local arguments = require "flow.arguments"
local signature = require "flow.signature"
local json = require "flow.json"
local tensor = require "flow.tensor"
local ops = require "flow.tensor.ops"
local extended = require "flow.extended"
local option_fields = require "flow.classes.option_fields"

local C, check, raise = native.C, native.check, errors.raise
local takes = signature.takes

local schedules = signature.module "flow.optimizers.schedules"
local internal = signature.internal(schedules)
local LearningRateSchedule = object.class("LearningRateSchedule")
local out, out_rate = native.out("flow_schedule"), native.out("flow_tensor")

-- schedule(step) is the rate before update step + 1, a number.
function LearningRateSchedule:_call(step)
  if native.is_tensor(step) and not tensor.is_symbolic(step) then step = step:item() end
  if type(step) ~= "number" then raise("%s: a step is a number, got %s", object.title(self), errors.describe(step)) end
  return self:_number(step)
end

-- Keras' config as JSON; classes written in Lua have none.
function LearningRateSchedule:to_json()
  raise("%s: a schedule written in Lua has no config; give the optimizer a built-in one, or its learning rate as a number",
    object.title(self))
end

-- The config alone, as a table without null values.
function LearningRateSchedule:get_config() return json.decode(self:to_json()).config end
object.static(LearningRateSchedule, "from_config", function(class, config) return class(config) end)

---- built-in -------------------------------------------------------------------------------------------------------------------

local Builtin = object.class("BuiltinSchedule", LearningRateSchedule)

-- Classes of scripts that extend one compute the rate in Lua.
function Builtin:_number(step)
  if not internal.is_builtin(self) then return LearningRateSchedule._number(self, step) end
  return C.flow_schedule_value(self.handle, step)
end
-- The rate at a whole step, a number or a scalar, as a float32 scalar: for classes that extend this one.
takes "step"
function Builtin:call(step)
  native.try(C.flow_schedule_rate, native.context, self.handle, native.pointer(ops.operand(step, nil, "step"):to("int64")), out_rate)
  return native.tensor(out_rate[0])
end

function Builtin:to_json()
  if not internal.is_builtin(self) then return LearningRateSchedule.to_json(self) end
  return native.text(C.flow_schedule_config, self.handle)
end

-- Of a class that extends it: the arguments of the library's.
function Builtin:get_config()
  local config = {}
  for name, value in pairs(json.decode(native.text(C.flow_schedule_config, self.handle)).config) do
    if value ~= json.null then config[name] = value end
  end
  return config
end

option_fields.install(Builtin, Builtin.get_config)

-- Defines the class of a record of the library: flow.optimizers.schedules.ExponentialDecay.
local function define(index)
  local class_name = native.string(C.flow_schedule_class_name(index))
  local class, parameters = object.class(class_name, Builtin), {}
  for i = 0, C.flow_schedule_class_argument_count(index) - 1 do
    parameters[i + 1] = native.string(C.flow_schedule_class_argument(index, i))
  end
  signature.of_record(class, "flow.optimizers.schedules." .. class_name, parameters, #parameters, function(...)
    local named = arguments.named(class_name, parameters, #parameters, ...)
    check(C.flow_schedule_new(class_name, arguments.native(class_name, named), out))
    return object.new(class, { handle = native.own(out, C.flow_schedule_release) })
  end)
  schedules[class_name] = class
end

for index = 0, C.flow_schedule_class_count() - 1 do define(index) end

-- The Lua object of a flow_schedule * that an optimizer owns.
function internal.wrap(pointer)
  out[0] = C.flow_schedule_retain(pointer)
  return object.new(schedules[native.string(C.flow_schedule_class(pointer))], { handle = native.own(out, C.flow_schedule_release) })
end

---- written in Lua -------------------------------------------------------------------------------------------------------------

-- The rate as a float32 scalar tensor, for a step that is one; updates use it.
function LearningRateSchedule:_rate(step)
  local rate = ops.operand(self:call(step), nil, object.title(self)):to("float32")
  if rate.size ~= 1 then raise("%s: call() gave a tensor of %d elements, expected one", object.title(self), rate.size) end
  return rate
end

function LearningRateSchedule:_number(step)
  return self:_rate(tensor.tensor(step)):item()
end

takes "step"
function LearningRateSchedule:call()
  raise("%s: the class has no call(self, step)", object.title(self))
end

-- A class written in Lua. Warmup(a, { b = 1 }) calls Warmup.init(self, a, { b = 1 }) if there is one; without init a table of
-- options becomes fields.
function LearningRateSchedule.extend(parent, class_name)
  if extended.base(parent) ~= LearningRateSchedule then
    return extended.class(parent, class_name, {}, function(class) return object.new(class) end)
  end
  return require "flow.user_class" (parent, class_name, function(class, _, options)
    return object.new(class, { name = options.name })
  end)
end

schedules.LearningRateSchedule = LearningRateSchedule

function internal.is(value) return object.is(value, LearningRateSchedule) end
function internal.is_builtin(value) return object.is(value, Builtin) and not rawget(object.class_of(value), "in_lua") end

return schedules
