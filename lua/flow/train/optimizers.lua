-- optimizers.lua: flow.optimizers: a class for each record of the library, such as SGD and Adam; LossScaleOptimizer, which wraps one; and
-- Optimizer, which classes written in Lua extend (custom_optimizer.lua).
--
-- An optimizer has a handle of the library, which owns its variables: iterations, learning rate, slots. Fields: name, handle, _schedule (an
-- object of schedules.lua, or false), _loss_scale (a number by which losses are multiplied, or false), _built_for (the list of variables
-- whose slots there are; nil: none yet), and, of those in Lua, _own. A LossScaleOptimizer shares the handle of its inner optimizer and has
-- _scale besides.

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local arguments = require "flow.arguments"
local signature = require "flow.signature"
local variable = require "flow.tensor.variable"
local placement = require "flow.tensor.placement"
local ownership = require "flow.distribute.ownership"
local schedules = require "flow.train.schedules"
local custom_optimizer = require "flow.train.custom_optimizer"
local json = require "flow.json"
local option_fields = require "flow.classes.option_fields"

local C, check, raise = native.C, native.check, errors.raise
local context = native.context

local takes = signature.takes
local in_lua
local optimizers = signature.module("flow.optimizers", { schedules = schedules }, function(_, name) return in_lua(name) end)
local kinds = {}          -- names of all classes, as compile() takes them

-- Optimizers of Keras that are written in Lua, each in a file of optimizers_in_lua, which is loaded when it is needed.
local IN_LUA = { Adafactor = "adafactor", Lamb = "lamb", Muon = "muon", ScheduleFreeAdamW = "schedule_free_adamw" }
signature.names_of(optimizers, function()
  local list = {}
  for name in pairs(IN_LUA) do list[#list + 1] = name end
  return list
end)
local Optimizer = object.class("Optimizer")
local LossScaleOptimizer = object.class("LossScaleOptimizer", Optimizer)
local out, out_scale = native.out("flow_optimizer"), native.out("flow_loss_scale")

-- Wraps the handle in `out` as an object of a class. schedule: an object of flow.schedules, or nil.
local function wrap(class, schedule, loss_scale)
  local handle = native.own(out, C.flow_optimizer_release)
  local name = native.string(C.flow_optimizer_name(handle))
  return object.new(class, { name = name, handle = handle, _schedule = schedule or false, _loss_scale = loss_scale or false })
end

-- Defines the class of a record of the library: flow.optimizers.Adam.
local function define(index)
  local class_name = native.string(C.flow_optimizer_class_name(index))
  local class = object.class(class_name, Optimizer)
  local parameters, count = {}, C.flow_optimizer_class_argument_count(index)
  for i = 0, count - 1 do
    parameters[i + 1] = native.string(C.flow_optimizer_class_argument(index, i))
  end
  parameters[count + 1], parameters.first_is_single = "name", true
  signature.of_record(class, "flow.optimizers." .. class_name, parameters, #parameters, function(...)
    local named = arguments.named(class_name, parameters, #parameters, ...)
    local name, schedule = named.name, nil
    if name ~= nil then custom_optimizer.check(class_name, "name", name, "text") end
    named.name = nil
    if schedules.is(named.learning_rate) then named.learning_rate, schedule = nil, named.learning_rate end
    check(C.flow_optimizer_new(class_name, name, arguments.native(class_name, named), out))
    local self = wrap(class, schedule, named.loss_scale_factor)
    if schedule then
      check(C.flow_optimizer_set_schedule(self.handle, schedules.is_builtin(schedule) and schedule.handle or nil))
    end
    return self
  end, function(i) return i < count and C.flow_optimizer_class_argument_type(index, i) or nil end,
    function(i) return i < count and C.flow_optimizer_class_argument_default(index, i) or nil end)
  signature.entries[class].named = function(...) return arguments.named(class_name, parameters, #parameters, ...) end
  optimizers[class_name] = class
  kinds[#kinds + 1] = class_name:lower()
end

local index = 0
while C.flow_optimizer_class_name(index) ~= nil do
  define(index)
  index = index + 1
end

-- Wraps the handle in `out`, which was read from this config.
local function wrap_read(config)
  local class_name = native.string(C.flow_optimizer_class_name(C.flow_optimizer_class_index(out[0])))
  local schedule = C.flow_optimizer_schedule(out[0])
  local scale = config.loss_scale_factor
  return wrap(optimizers[class_name], schedule ~= nil and schedules.wrap(schedule) or nil, scale ~= json.null and scale)
end

-- Takes the schedule of a script's class out of the config of an optimizer, from which the library reads the rest; nil: there is none.
local function take_schedule(config, custom)
  local schedule = type(config) == "table" and schedules.read_own(config.learning_rate, custom)
  if schedule then config.learning_rate = json.null end
  return schedule or nil
end

-- The optimizer whose learning rate is that of a schedule of a script's class, if there is one.
local function with_schedule(optimizer, schedule)
  if not schedule then return optimizer end
  check(C.flow_optimizer_set_schedule(optimizer.handle, nil))
  rawset(optimizer, "_schedule", schedule)
  return optimizer
end

-- Wraps the handle in `out_scale`.
local function wrap_scale(inner, initial_scale, growth_steps)
  local scale = native.own(out_scale, C.flow_loss_scale_release)
  return object.new(LossScaleOptimizer, {
    name = native.string(C.flow_loss_scale_name(scale)), handle = inner.handle, inner_optimizer = inner, _schedule = inner._schedule,
    _scale = scale, initial_scale = initial_scale, dynamic_growth_steps = growth_steps,
    step_counter = variable.wrap(C.flow_loss_scale_variable(scale, 2)), dynamic_scale = variable.wrap(C.flow_loss_scale_variable(scale, 3)),
  })
end

-- The optimizer of a config that to_json() or Keras wrote, schedule included. custom_objects: classes written in Lua, by their names.
takes "text, custom_objects?: table"
function optimizers.from_json(text, custom_objects)
  if type(text) ~= "string" then raise("optimizers.from_json takes a text, got %s", errors.describe(text)) end
  local described = json.decode(text)
  local config = type(described) == "table" and described.config
  if type(config) == "table" and described.class_name == "LossScaleOptimizer" then
    local inner = custom_optimizer.read(config.inner_optimizer, custom_objects, in_lua)
    if inner then
      local initial, growth = config.initial_scale, config.dynamic_growth_steps
      return LossScaleOptimizer(inner, { initial_scale = initial, dynamic_growth_steps = growth, name = config.name })
    end
    local schedule = take_schedule(type(config.inner_optimizer) == "table" and config.inner_optimizer.config, custom_objects)
    check(C.flow_loss_scale_from_config(schedule and json.encode(described) or text, out_scale, out))
    return wrap_scale(with_schedule(wrap_read(config.inner_optimizer.config), schedule), config.initial_scale or C.FLOW_INITIAL_LOSS_SCALE,
      config.dynamic_growth_steps or C.FLOW_LOSS_SCALE_GROWTH_STEPS)
  end
  local own = custom_optimizer.read(described, custom_objects, in_lua)
  if own then return own end
  local schedule = take_schedule(config, custom_objects)
  check(C.flow_optimizer_from_config(schedule and json.encode(described) or text, out))
  return with_schedule(wrap_read(described.config), schedule)
end

-- Keras' config: {"module": "keras.optimizers", "class_name": ..., "config": {...}, "registered_name": null}.
function Optimizer:to_json()
  local text, schedule = native.text(C.flow_optimizer_config, self.handle), self._schedule
  if not schedule or schedules.is_builtin(schedule) then return text end
  local described = json.decode(text)
  described.config.learning_rate = json.decode(schedule:to_json())
  return json.encode(described)
end

-- Its arguments as fields: adam.beta_1.
function Optimizer:_missing(key)
  local class = C.flow_optimizer_class_index(self.handle)
  local config = type(key) == "string" and not key:find "^_" and self:get_config() or {}
  for i = 0, class >= 0 and C.flow_optimizer_class_argument_count(class) - 1 or -1 do
    if native.string(C.flow_optimizer_class_argument(class, i)) == key then return true, config[key] end
  end
  local known = config[key] ~= nil or option_fields.parameters(object.class_of(self))[key] ~= nil      -- of those written in Lua
  return known, config[key], config
end

-- The same as a table, without what is not set.
function Optimizer:get_config()
  local config = {}
  for name, value in pairs(json.decode(Optimizer.to_json(self)).config) do
    if value ~= json.null then config[name] = value end
  end
  return config
end

-- Makes an optimizer of this class from the table that get_config() returned.
object.static(Optimizer, "from_config", function(class, config)
  object.check_config(class.name, config)
  local entry = { module = "keras.optimizers", class_name = class.name, config = config, registered_name = json.null }
  return optimizers.from_json(json.encode(entry), { [class.name] = rawget(class, "in_lua") and class or nil })
end)

-- The learning rate of the next update as a scalar tensor, if Lua computes it; nil: the library does.
local function rate_in_lua(self)
  local schedule = self._schedule
  if not schedule or schedules.is_builtin(schedule) then return nil end
  return schedule:_rate(variable.wrap(C.flow_optimizer_iterations(self.handle)):value():to("float32"))
end

-- Whether one of the variables that have gradients has a constraint that is written in Lua.
local function constrained(gradients, variables)
  for i, v in ipairs(variables) do
    if rawget(v, "_constraint") and gradients[i - 1] ~= nil then return true end
  end
  return false
end

-- optimizer:apply_gradients(gradients, variables): one update, which is part of the plan in a traced function. A gradient may be nil.
-- Returns the number of calls. Both lists may be one of pairs, { { gradient, variable }, ... }. When a check here fails nothing has
-- changed.
function Optimizer:apply_gradients(gradients, variables)
  if variables == nil and type(gradients) == "table" then      -- Keras' form: a list of {gradient, variable}
    local pairs_list = gradients
    gradients, variables = {}, {}
    for i = 1, errors.check_list("apply_gradients", pairs_list) do
      if type(pairs_list[i]) ~= "table" or getmetatable(pairs_list[i]) then
        raise("%s: apply_gradients takes a list of gradients and a list of variables; entry %d of the only list is %s",
          object.title(self), i, errors.describe(pairs_list[i]))
      end
      gradients[i], variables[i] = pairs_list[i][1], pairs_list[i][2]
    end
  end
  if type(variables) ~= "table" or type(gradients) ~= "table" then
    raise("%s: apply_gradients takes a list of gradients and a list of variables", object.title(self))
  end
  ownership.check_update(object.title(self) .. ": apply_gradients")
  local count = errors.check_list("apply_gradients: the variables", variables)
  if table.maxn(gradients) > count then
    raise("%s: apply_gradients: there are %d gradients for %d variables", object.title(self), table.maxn(gradients), count)
  end
  local handles, tensors = native.out("flow_variable", math.max(count, 1)), native.out("flow_tensor", math.max(count, 1))
  for i = 1, count do
    if not variable.is_variable(variables[i]) then
      raise("%s: entry %d of the variables is %s", object.title(self), i, errors.describe(variables[i]))
    end
    handles[i - 1] = variables[i].handle
    if gradients[i] ~= nil then
      if not native.is_tensor(gradients[i]) then
        raise("%s: apply_gradients: gradient %d is %s, expected a tensor", object.title(self), i, errors.describe(gradients[i]))
      end
      tensors[i - 1] = native.pointer(gradients[i])
    end
  end
  if variable.awaited and not rawget(self, "_built_for") then
    self:build(variables)
    if variable.awaited then variable.awaited() end      -- a class may have its own build()
  end
  local rate = rate_in_lua(self)
  local inner = rawget(self, "inner_optimizer") or self
  local servers = placement.servers()
  if servers then servers:collect(inner, rawget(self, "_scale"), rate and native.pointer(rate), tensors, handles, variables)
  else inner:_apply(rawget(self, "_scale"), rate and native.pointer(rate), tensors, handles, variables) end
  if constrained(tensors, variables) then require("flow.train.own_constraints")(self, tensors, variables, servers) end
  if not rawget(self, "_built_for") then rawset(self, "_built_for", { unpack(variables, 1, count) }) end
  native.keep { gradients, variables, rate }      -- until here, whatever an optimizer written in Lua calls
  return self:_calls()
end

-- One update. scale: a flow_loss_scale, or nil; gradients and handles: arrays of the library. Not tried twice where memory is out: what was
-- updated before would be updated again, in each step of a plan.
function Optimizer:_apply(scale, rate, gradients, handles, variables)
  native.check(C.flow_optimizer_apply_scaled(context, self.handle, scale, rate, gradients, handles, #variables))
end
Optimizer.apply = Optimizer.apply_gradients

-- The loss times the loss scale: take gradients of it; apply_gradients divides them by the scale.
function Optimizer:scale_loss(loss)
  return self._loss_scale and loss * self._loss_scale or loss
end

-- Moves everything that belongs to the optimizer to a device; -1: the CPU.
function Optimizer:_to_device(device)
  check(C.flow_optimizer_to_device(context, self.handle, device))
end

-- Makes the slots for these variables now instead of at the first update.
function Optimizer:build(variables)
  if type(variables) ~= "table" or getmetatable(variables) then
    raise("%s: build takes a list of variables, got %s", object.title(self), errors.describe(variables))
  end
  local count = errors.check_list("build: the variables", variables)
  local handles = native.out("flow_variable", math.max(count, 1))
  for i = 1, count do
    if not variable.is_variable(variables[i]) then
      raise("%s: build: entry %d of the variables is %s", object.title(self), i, errors.describe(variables[i]))
    end
    handles[i - 1] = variables[i].handle
  end
  native.keep(variables)
  native.try(C.flow_optimizer_build, self.handle, handles, count)
  rawset(self, "_built_for", { unpack(variables) })
  if variable.awaited then variable.awaited() end
end

-- With use_ema: sets variables to their moving averages, as fit does at its end; those without an average stay unchanged.
takes "var_list: list"
function Optimizer:finalize_variable_values(var_list)
  for i = 1, errors.check_list("finalize_variable_values", var_list) do
    local v = var_list[i]
    if not variable.is_variable(v) then
      raise("%s: finalize_variable_values: entry %d is %s, expected a variable", object.title(self), i, errors.describe(v))
    end
    local average = self:_average_of(v)
    if average then v:assign(average:value()) end
  end
end

-- The variable that is the moving average of another, or nil. Before the first update there is none: the slots hold zeros.
function Optimizer:_average_of(v)
  if tonumber(self.iterations) == 0 then return nil end
  local average = C.flow_optimizer_average(self.handle, v.handle)
  return average ~= nil and variable.wrap(average) or nil
end

-- Excludes variables from weight decay, before the first update: a list of them, and parts of names:
-- exclude_from_weight_decay { var_names = { "bias" } }
takes "var_list?: list, var_names?: list"
function Optimizer:exclude_from_weight_decay(var_list, var_names)
  for i, entry in ipairs(var_list or {}) do
    if not variable.is_variable(entry) then
      raise("%s: exclude_from_weight_decay: entry %d is %s, expected a variable", object.title(self), i, errors.describe(entry))
    end
    check(C.flow_optimizer_exclude_from_weight_decay(self.handle, entry.handle, nil))
  end
  for i, name in ipairs(var_names or {}) do
    if type(name) ~= "string" then
      raise("%s: exclude_from_weight_decay: name %d is %s", object.title(self), i, errors.describe(name))
    end
    check(C.flow_optimizer_exclude_from_weight_decay(self.handle, nil, name))
  end
end

-- The learning rate of the next update, a number. It cannot be assigned if there is a schedule.
function Optimizer.fields.learning_rate(self)
  if self._schedule then return self._schedule(self:_calls()) end
  return C.flow_variable_number(C.flow_optimizer_learning_rate(self.handle))
end

-- How often it was applied. A task that has computed no step asks the parameter servers.
function Optimizer:_calls()
  local calls = C.flow_variable_number(C.flow_optimizer_iterations(self.handle))
  return calls == 0 and placement.updates_of and placement.updates_of(self.name) or calls
end

-- The number of updates: with gradient_accumulation_steps = n one in n calls is one.
function Optimizer.fields.iterations(self) return math.floor(self:_calls() / C.flow_optimizer_accumulation_steps(self.handle)) end

-- Sets the rate of the next updates, also in plans that exist already: it is a variable of the library.
function Optimizer.setters.learning_rate(self, value)
  if self._schedule then
    raise("%s: this optimizer was created with the schedule %s as its learning_rate, so its learning rate cannot be set; make it with "
      .. "a number for that", object.title(self), object.title(self._schedule))
  end
  if type(value) ~= "number" or not (value >= 0) then
    raise("%s: learning_rate is a number of at least 0, got %s", object.title(self), errors.describe(value))
  end
  variable.wrap(C.flow_optimizer_learning_rate(self.handle)):assign(value)
end

-- Iterations, learning rate (unless there is a schedule), then the slots, in Keras' order.
function Optimizer.fields.variables(self)
  local list = { variable.wrap(C.flow_optimizer_iterations(self.handle)) }
  if not self._schedule then list[2] = variable.wrap(C.flow_optimizer_learning_rate(self.handle)) end
  for i = 0, C.flow_optimizer_slot_count(self.handle) - 1 do
    list[#list + 1] = variable.wrap(C.flow_optimizer_slot(self.handle, i))
  end
  return list
end

require("flow.train.as_in_keras").optimizer(Optimizer)

---- written in Lua ------------------------------------------------------------------------------------------------------------------

local Custom = custom_optimizer.define(Optimizer)
getmetatable(Optimizer).__call = function()
  raise("flow.optimizers.Optimizer is extended, not made: local MyOptimizer = flow.optimizers.Optimizer:extend(\"MyOptimizer\")")
end
optimizers.Optimizer = Optimizer

for class_name in pairs(IN_LUA) do kinds[#kinds + 1] = class_name:lower() end
table.sort(kinds)

-- The class of this name if it is one of them; else nil.
function in_lua(name)
  if not IN_LUA[name] then return nil end
  local class = rawget(optimizers, name) or require("flow.train.optimizers_in_lua." .. IN_LUA[name])(Custom)
  rawset(optimizers, name, class)
  return class
end

-- Classes of scripts that extend a record of the library: their parent is a class that has its update in Lua, which the record's class is
-- above of. What it says of build() and update_step() the record's class says of their objects, too.
for i = 0, index - 1 do
  local class, made = optimizers[native.string(C.flow_optimizer_class_name(i))], nil
  rawset(class, "in_formulas", function()
    if made then return made end
    made = require "flow.train.optimizers_in_lua.formulas" (class.name, function(name, own, last, defaults)
      return Custom._of_keras(name, own, last, defaults, object.under(Custom, class))
    end)
    local make, read, name = getmetatable(made).__call, signature.entries[class], class().name
    getmetatable(made).__call = function(_, ...)
      local given = read.named(...)
      given.name = given.name or name
      return make(made, given)
    end
    object.static(class, "init", function(_, self, ...) return made.init(self, ...) end)
    takes "variables"
    function class:build(variables)
      if rawget(self, "_own") then return made.build(self, variables) end
      return Optimizer.build(self, variables)
    end
    takes "gradient, variable, learning_rate"
    function class:update_step(gradient, v, rate)
      if rawget(self, "_own") then return made.update_step(self, gradient, v, rate) end
      raise("%s: update_step() is for classes that extend it, local Mine = flow.optimizers.%s:extend \"Mine\"", object.title(self),
        class.name)
    end
    return made
  end)
end

---- the loss scale --------------------------------------------------------------------------------------------------------------------

-- LossScaleOptimizer(inner, { initial_scale =, dynamic_growth_steps = }): take gradients of scale_loss(loss). apply_gradients divides them
-- by the scale; if one of them is not finite, it writes the scale only. The inner optimizer's own
-- loss_scale_factor is not used; learning_rate, iterations and all other fields are those of the inner optimizer.
takes "inner_optimizer, initial_scale?, dynamic_growth_steps?, name?"
signature.constructor(LossScaleOptimizer, "flow.optimizers.LossScaleOptimizer", function(inner, initial, growth, name)
  if not object.is(inner, Optimizer) or object.is(inner, LossScaleOptimizer) then
    raise("LossScaleOptimizer: inner_optimizer is an optimizer such as flow.optimizers.Adam(), got %s",
      object.is(inner, Optimizer) and "a LossScaleOptimizer" or errors.describe(inner))
  end
  initial, growth = initial or C.FLOW_INITIAL_LOSS_SCALE, growth or C.FLOW_LOSS_SCALE_GROWTH_STEPS
  for parameter, value in pairs { initial_scale = initial, dynamic_growth_steps = growth } do
    if type(value) ~= "number" then raise("LossScaleOptimizer: %s is %s, expected a number", parameter, errors.describe(value)) end
  end
  if name ~= nil and type(name) ~= "string" then raise("LossScaleOptimizer: name is %s, expected a text", errors.describe(name)) end
  check(C.flow_loss_scale_new(name, initial, growth, out_scale))
  return wrap_scale(inner, initial, growth)
end)
optimizers.LossScaleOptimizer = LossScaleOptimizer

local out_loss = native.out("flow_tensor")

-- The loss, a scalar tensor, times the present scale.
function LossScaleOptimizer:scale_loss(loss)
  if not native.is_tensor(loss) then raise("LossScaleOptimizer: scale_loss takes a tensor, got %s", errors.describe(loss)) end
  native.try(C.flow_loss_scale_loss, context, self._scale, native.pointer(loss), out_loss)
  return native.tensor(out_loss[0])
end

function LossScaleOptimizer:_to_device(device)
  self.inner_optimizer:_to_device(device)
  check(C.flow_loss_scale_to_device(context, self._scale, device))
end

function LossScaleOptimizer:build(variables)
  self.inner_optimizer:build(variables)
  rawset(self, "_built_for", { unpack(variables) })
end

-- The library writes the scale's own part; an inner optimizer that Lua has a part in describes itself.
function LossScaleOptimizer:to_json()
  local inner, schedule = self.inner_optimizer:to_json(), self.inner_optimizer._schedule
  local text = native.text(function(scale, into, size) return C.flow_loss_scale_config(scale, self.handle, into, size) end, self._scale)
  if not rawget(self.inner_optimizer, "_own") and (not schedule or schedules.is_builtin(schedule)) then return text end
  local described = json.decode(text)
  described.config.inner_optimizer = json.decode(inner)
  return json.encode(described)
end

function LossScaleOptimizer:_missing(key) return Optimizer._missing(self.inner_optimizer, key) end

function LossScaleOptimizer:get_config()
  return json.decode(self:to_json()).config
end

-- Its own four, then the inner optimizer's, in Keras' order.
function LossScaleOptimizer.fields.variables(self)
  local list = {}
  for i = 0, 3 do list[i + 1] = variable.wrap(C.flow_loss_scale_variable(self._scale, i)) end
  for _, v in ipairs(self.inner_optimizer.variables) do list[#list + 1] = v end
  return list
end

-- The optimizer that compile() was given: an object or a name.
function optimizers.get(value)
  if object.is(value, Optimizer) then return value end
  if type(value) == "table" and not getmetatable(value) and type(value.class_name) == "string" then return optimizers.deserialize(value) end
  if type(value) == "string" then
    local found = C.flow_optimizer_class_find(value)
    if found >= 0 then return optimizers[native.string(C.flow_optimizer_class_name(found))]() end
    for class_name in pairs(IN_LUA) do
      if class_name:lower() == value:lower() then return optimizers[class_name]() end
    end
    raise("there is no optimizer %q%s", value, errors.choices(value, kinds))
  end
  raise("an optimizer is an object such as flow.optimizers.Adam() or a name such as \"adam\", got %s", errors.describe(value))
end

return optimizers
