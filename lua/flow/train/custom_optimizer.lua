-- custom_optimizer.lua: classes of optimizers written in Lua, with Keras' names:
--
--   local Momentum = flow.optimizers.Optimizer:extend("Momentum")
--   function Momentum:init(options) self.momentum = options.momentum or 0.9 end
--   function Momentum:build(variables) self.velocities = self:add_optimizer_variables(variables, "velocity") end
--   function Momentum:update_step(gradient, variable, learning_rate)
--     local velocity = self.velocities[self:_get_variable_index(variable)]
--     velocity:assign(velocity * self.momentum - gradient * learning_rate)
--     variable:assign_add(velocity)
--   end
--   function Momentum:get_config() return { momentum = self.momentum } end
--
-- What every optimizer takes (learning_rate, a number or a schedule; clipnorm, weight_decay, name, ...) comes from the table of options.
-- The library does what comes before a step and after it: loss scales, clipping, sums over replicas, decay, schedules, iterations.
-- update_step sees what it has assigned; variables are written when all steps are done, so that an update is made whole or not at all.

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local arguments = require "flow.arguments"
local signature = require "flow.signature"
local json = require "flow.json"
local tensor = require "flow.tensor"
local ops = require "flow.tensor.ops"
local variable = require "flow.tensor.variable"
local user_class = require "flow.user_class"
local schedules = require "flow.train.schedules"

local C, check, raise = native.C, native.check, errors.raise
local context = native.context
local takes = signature.takes
local out, out_tensor, out_update = native.out("flow_optimizer"), native.out("flow_tensor"), native.out("flow_update")

local custom = {}
local EVERY = -1      -- for the library: what every optimizer takes

-- Names of the options that every optimizer has.
local function common_names()
  local list = {}
  for i = 0, C.flow_optimizer_class_argument_count(EVERY) - 1 do
    list[native.string(C.flow_optimizer_class_argument(EVERY, i))] = true
  end
  return list
end

---- the class -------------------------------------------------------------------------------------------------------------------------

-- Optimizer: the class of all optimizers, which Custom extends. Returns Custom, from which classes written in Lua descend.
local function define(Optimizer)
  local Custom = object.class("Optimizer", Optimizer)
  local common = common_names()

  local function build_once(self, variables)
    if rawget(self, "_index") then return end
    Optimizer.build(self, variables)
    local before, class = #self._own, object.class_of(self)
    local ok, problem = pcall(class.build, self, variables)
    if not ok then
      for i = #self._own, before + 1, -1 do self._own[i] = nil end
      error(problem, 0)
    end
    rawset(self, "_index", {})
    for i, v in ipairs(variables) do self._index[v] = i end
  end

  -- A new optimizer of a class; takes what every optimizer has out of the options.
  local function new(class, name, options)
    local given, schedule = {}, nil
    for option, value in pairs(options) do
      if common[option] then given[option] = value
      elseif type(option) == "string" and option ~= "name" then
        local near = errors.nearest(option, common, 2)
        if near then raise("%s: there is no option %q, did you mean %q?", class.name, option, near) end
      end
    end
    if schedules.is(given.learning_rate) then given.learning_rate, schedule = nil, given.learning_rate end
    check(C.flow_optimizer_new_custom(class.name, name, arguments.native(class.name, given), out))
    local self = object.new(class, { name = name, handle = native.own(out, C.flow_optimizer_release), _schedule = schedule or false,
                                     _loss_scale = given.loss_scale_factor or false, _own = {}, build = build_once })
    if schedule then
      check(C.flow_optimizer_set_schedule(self.handle, schedules.is_builtin(schedule) and schedule.handle or nil))
    end
    return self
  end

  function Optimizer.extend(parent, class_name)
    if parent == Optimizer then parent = Custom end
    local above = parent
    while above and above ~= Custom do above = above.parent end
    if not above then
      raise("%s: its update is part of the library: extend flow.optimizers.Optimizer, and write update_step()", parent.name)
    end
    return user_class(parent, class_name, new, common)
  end

  ---- variables -----------------------------------------------------------------------------------------------------------------------

  function Custom:build() end

  -- Where variable is in the list that the optimizer was built for, from 1.
  function Custom:_get_variable_index(v)
    return rawget(self, "_index") and self._index[v] or raise("%s: %s is not among the variables that it was built for", object.title(self),
      variable.is_variable(v) and ("variable %q"):format(v.name) or errors.describe(v))
  end

  local function add(self, shape, dtype, initializer, name, device)
    local initial = tensor.zeros(shape, { dtype = dtype })
    check(C.flow_initialize(context, initializer, nil, C.flow_context_next_seed(context), initial.p))
    local made = variable.Variable(initial, { name = self.name .. "/" .. name, trainable = false })
    if device then native.try(C.flow_variable_to_device, context, made.handle, device) end
    self._own[#self._own + 1] = made
    return made
  end

  takes "shape: list, initializer: string = 'zeros', { dtype?, name: string = 'variable' }"
  function Custom:add_variable(shape, initializer, options)
    return add(self, shape, options.dtype, initializer, options.name)
  end

  -- A variable with the shape and dtype of another one, on its device.
  takes "reference_variable, name: string = 'var', initializer: string = 'zeros'"
  function Custom:add_variable_from_reference(reference, name, initializer)
    if not variable.is_variable(reference) then
      raise("%s: add_variable_from_reference takes a variable, got %s", object.title(self), errors.describe(reference))
    end
    check(C.flow_variable_tensor(reference.handle, out_tensor))
    local device = C.flow_tensor_device(native.pointer(native.tensor(out_tensor[0])))
    return add(self, reference.shape, reference.dtype, initializer, reference.name .. "_" .. name, device)
  end

  -- A list of such variables, one for each of a list; with a list of names, a list for each name.
  takes "trainable_variables: list, name, initializer: string = 'zeros'"
  function Custom:add_optimizer_variables(variables, name, initializer)
    local list, result = type(name) == "table" and name or { name }, {}
    for k = 1, #list do result[k] = {} end
    for i, v in ipairs(variables) do
      for k, each in ipairs(list) do result[k][i] = self:add_variable_from_reference(v, each, initializer) end
    end
    return unpack(result)
  end

  takes "variable, value"
  function Custom:assign(v, value) v:assign(value) end
  takes "variable, value"
  function Custom:assign_add(v, value) v:assign_add(value) end
  takes "variable, value"
  function Custom:assign_sub(v, value) v:assign_sub(value) end

  function Custom.fields.variables(self)
    local list = Optimizer.fields.variables(self)
    for _, v in ipairs(self._own) do list[#list + 1] = v end
    return list
  end

  function Custom:_to_device(device)
    Optimizer._to_device(self, device)
    for _, v in ipairs(self._own) do native.try(C.flow_variable_to_device, context, v.handle, device) end
  end

  ---- updates -------------------------------------------------------------------------------------------------------------------------

  -- In update_step these are tensors, since in a traced function they have no value yet; elsewhere numbers.
  function Custom.fields.iterations(self)
    if rawget(self, "_rate") then
      local calls, steps = variable.wrap(C.flow_optimizer_iterations(self.handle)):value(), C.flow_optimizer_accumulation_steps(self.handle)
      return steps > 1 and ((calls - calls % steps):to("float64") / steps):to("int64") or calls
    end
    return Optimizer.fields.iterations(self)
  end

  function Custom.fields.learning_rate(self)
    return rawget(self, "_rate") or Optimizer.fields.learning_rate(self)
  end

  takes "gradient, variable, learning_rate"
  function Custom:update_step()
    raise("%s has no update_step(): define function %s:update_step(gradient, variable, learning_rate) ... end", object.title(self),
      object.class_of(self).name)
  end

  local function step(self, update, i, v, rate)
    check(C.flow_update_gradient(update, i - 1, out_tensor))
    if out_tensor[0] == nil then return end
    local gradient, decay = native.tensor(out_tensor[0]), C.flow_update_decay(update, i - 1)
    if decay ~= 0 then v:assign_sub(v * (rate * decay)) end
    local before = variable.assigned(v)
    self:update_step(gradient, v, rate)
    if variable.assigned(v) == before then
      raise("%s: update_step() assigned nothing to the variable %q: it ends with variable:assign_sub(...) or its kin", object.title(self),
        v.name)
    end
  end

  local function steps(self, update, variables, rate)
    rawset(self, "_rate", rate)
    for i, v in ipairs(variables) do step(self, update, i, v, rate) end
  end

  -- What becomes of the variables that were assigned: nothing where the loss scale's guard is 0.
  local function write(list, guard)
    for _, entry in ipairs(list) do
      entry.value = guard and ops.where(guard:ne(0), entry.value, entry.variable) or entry.value
    end
    for _, entry in ipairs(list) do
      native.try(C.flow_variable_assign, context, entry.variable.handle, native.pointer(entry.value))
    end
  end

  local function borrowed(pointer) return pointer ~= nil and native.tensor(C.flow_tensor_retain(pointer)) end

  function Custom:_apply(scale, rate, gradients, handles, variables)
    self:build(variables)
    for _, v in ipairs(variables) do self:_get_variable_index(v) end
    native.try(C.flow_update_begin, context, self.handle, scale, rate, gradients, handles, #variables, out_update)
    local update = native.own(out_update, C.flow_update_release)
    local ok, problem = pcall(variable.deferred, steps, self, update, variables, borrowed(C.flow_update_rate(update)))
    rawset(self, "_rate", nil)
    if not ok then
      native.close(update, C.flow_update_release)
      error(problem, 0)
    end
    write(problem, borrowed(C.flow_update_guard(update)))
    check(C.flow_update_end(native.gc(update, nil)))
  end

  ---- files ---------------------------------------------------------------------------------------------------------------------------

  -- As Keras writes a registered class; what the class' get_config() gives stands beside what every optimizer has.
  function Custom:to_json()
    local described = json.decode(Optimizer.to_json(self))
    local class_name = object.class_of(self).name
    described.module, described.registered_name = json.null, class_name
    for key, value in pairs(self:get_config()) do described.config[key] = value end
    return json.encode(described)
  end

  return Custom
end
custom.define = define

-- The options of an optimizer from its config.
local function options_of(config)
  local options = {}
  for name, value in pairs(config) do
    if type(value) == "table" and value.class_name then value = schedules[value.class_name](options_of(value.config)) end
    if value ~= json.null then options[name] = value end
  end
  return options
end

-- The optimizer of a described object, if its class is among the custom ones; else nil.
function custom.read(described, classes)
  local class = type(described) == "table" and classes and classes[described.class_name]
  return class and class(options_of(described.config or {}))
end

return custom
