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
local names = require "flow.names"
local custom_objects = require "flow.custom_objects"
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

local Builtin = object.class("BuiltinSchedule", LearningRateSchedule)

-- Whether a script's class leaves its config to the library's class.
local function has_no_config(self)
  local get_config = object.class_of(self).get_config
  return get_config == LearningRateSchedule.get_config or get_config == Builtin.get_config
end

-- Of a class written in Lua: what its init was given, or its options.
local function given_to(self)
  local init, config = rawget(self, "_given_to_init"), {}
  if init and next(init.lost) ~= nil then
    raise("%s: a file does not hold what its init was given as %s: give its class a get_config(), or the optimizer a number or a "
      .. "built-in schedule", object.title(self), table.concat(names.sorted(init.lost), ", "))
  end
  for name, value in pairs(init and init.given or self) do
    local is_plain = init or type(name) == "string" and not name:find "^_" and type(value) ~= "table" and type(value) ~= "function"
    if is_plain then config[name] = value end
  end
  return config
end

-- Keras' description as JSON.
function LearningRateSchedule:to_json()
  local class = object.class_of(self)
  local is_given = has_no_config(self) and (rawget(self, "_given_to_init") or not object.is(self, Builtin))
  return json.encode { module = json.null, class_name = class.name, registered_name = custom_objects.registered_name(class) or class.name,
                       config = is_given and given_to(self) or self:get_config() }
end

-- The config alone, as a table without null values.
function LearningRateSchedule:get_config() return given_to(self) end
object.static(LearningRateSchedule, "from_config", function(class, config) return class(config) end)

---- built-in -------------------------------------------------------------------------------------------------------------------

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

local function is_entry(value) return type(value) == "table" and type(value.class_name) == "string" end

-- Of an entry that to_json() or Keras wrote: the object of a script's class; nil: it is the library's, or none. classes: by name; what is
-- registered is known, too.
function internal.read_own(entry, classes)
  if not is_entry(entry) or C.flow_schedule_class_find(entry.class_name) >= 0 then return nil end
  local known = custom_objects.all(classes)
  local class = known[entry.registered_name or ""] or known[entry.class_name]
  if not class then
    raise("the schedule %s is not known: give its class, custom_objects = { %s = class }", entry.class_name, entry.class_name)
  end
  local config = {}
  for name, value in pairs(type(entry.config) == "table" and entry.config or {}) do
    if value ~= json.null then config[name] = value end
  end
  arguments.configs[config] = true
  return class.from_config(config)
end

function internal.is(value) return object.is(value, LearningRateSchedule) end
function internal.is_builtin(value) return object.is(value, Builtin) and not rawget(object.class_of(value), "in_lua") end

return schedules
