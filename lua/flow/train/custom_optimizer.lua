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
local extended = require "flow.extended"
local schedules = require "flow.train.schedules"

local C, check, raise = native.C, native.check, errors.raise
local context = native.context
local takes = signature.takes
local out, out_tensor, out_update = native.out("flow_optimizer"), native.out("flow_tensor"), native.out("flow_update")

local custom = {}
local EVERY = -1      -- asks the library for the options that every optimizer takes

-- Names of the options that every optimizer takes: a list in Keras' order, which also has them as keys.
local function common_names()
  local list = {}
  for i = 0, C.flow_optimizer_class_argument_count(EVERY) - 1 do
    list[i + 1] = native.string(C.flow_optimizer_class_argument(EVERY, i))
    list[list[i + 1]] = true
  end
  return list
end

---- the class -------------------------------------------------------------------------------------------------------------------------

-- What an optimizer in Lua has besides the variables of the library.
local function define_variables(Custom, Optimizer)
  function Custom:build() end

  -- The position of the variable in the list that the optimizer was built for, from 1.
  function Custom:_get_variable_index(v)
    return rawget(self, "_index") and self._index[v] or raise("%s: %s is not among the variables that it was built for", object.title(self),
      variable.is_variable(v) and ("variable %q"):format(v.path) or errors.describe(v))
  end

  -- Makes a variable of the optimizer, which `variables` lists after those of the library. initializer: a name, an object of
  -- flow.initializers or a function of the shape; device: a number, or nil for where the value is.
  local function add(self, shape, dtype, initializer, name, device)
    local initial
    if type(initializer) ~= "string" then
      initial = require "flow.layers.initial_value" (object.title(self) .. ": " .. name, initializer, shape, dtype)
    else
      initial = tensor.zeros(shape, { dtype = dtype })
      if initializer ~= "zeros" then      -- tensors of integers begin with zeros, too
        check(C.flow_initialize(context, initializer, nil, C.flow_context_next_seed(context), initial.p))
      end
    end
    local made = variable.Variable(initial, { name = self.name .. "/" .. name, trainable = false })
    if device then native.try(C.flow_variable_to_device, context, made.handle, device) end
    self._own[#self._own + 1] = made
    return made
  end

  takes "shape: list, initializer = 'zeros', { dtype?, name: string = 'variable' }"
  function Custom:add_variable(shape, initializer, options)
    return add(self, shape, options.dtype, initializer, options.name)
  end

  -- A variable that begins with the value of another one.
  function Custom:_add_copy(reference, name)
    check(C.flow_variable_peek(reference.handle, out_tensor))
    local made = variable.Variable(native.tensor(out_tensor[0]), { name = ("%s/%s_%s"):format(self.name, reference.path, name),
                                                                   trainable = false })
    self._own[#self._own + 1] = made
    return made
  end

  -- A variable with the shape and dtype of another one, on its device.
  takes "reference_variable, name: string = 'var', initializer = 'zeros'"
  function Custom:add_variable_from_reference(reference, name, initializer)
    if not variable.is_variable(reference) then
      raise("%s: add_variable_from_reference takes a variable, got %s", object.title(self), errors.describe(reference))
    end
    check(C.flow_variable_peek(reference.handle, out_tensor))
    local device = C.flow_tensor_device(native.pointer(native.tensor(out_tensor[0])))
    return add(self, reference.shape, reference.dtype, initializer, reference.path .. "_" .. name, device)
  end

  -- A list of such variables, one for each of a list; with a list of names, a list for each name.
  takes "trainable_variables: list, name: string|list, initializer = 'zeros'"
  function Custom:add_optimizer_variables(variables, name, initializer)
    local list, result = type(name) == "table" and name or { name }, {}
    for k = 1, #list do result[k] = {} end
    for i, v in ipairs(variables) do
      for k, each in ipairs(list) do result[k][i] = self:add_variable_from_reference(v, each, initializer) end
    end
    return unpack(result)
  end

  function Custom.fields.variables(self)
    local list = Optimizer.fields.variables(self)
    for _, v in ipairs(self._own) do list[#list + 1] = v end
    return list
  end

  function Custom:_to_device(device)
    Optimizer._to_device(self, device)
    for _, v in ipairs(self._own) do native.try(C.flow_variable_to_device, context, v.handle, device) end
  end
end

-- The update: update_step() for each variable, between what the library does before and after.
local function define_updates(Custom, Optimizer)
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

  -- The rate of weight decay for a variable. decay: what the library applies, 0 for a variable that is excluded.
  function Custom:_decay_of(_, decay) return decay end

  -- The update of variable i: decay, then update_step(), which must have assigned something to it. Does nothing if it has no gradient.
  -- update: a flow_update, which gives gradients that are clipped and summed over replicas.
  local function step(self, update, i, v, rate)
    check(C.flow_update_gradient(update, i - 1, out_tensor))
    if out_tensor[0] == nil then return end
    local gradient, decay = native.tensor(out_tensor[0]), self:_decay_of(v, C.flow_update_decay(update, i - 1))
    if decay ~= 0 then v:assign_sub(v * (rate * decay)) end
    local before = variable.assigned(v)
    self:update_step(gradient, v, rate)
    if variable.assigned(v) == before then
      raise("%s: update_step() assigned nothing to the variable %q: call variable:assign_sub(...) or another assignment at its end",
        object.title(self), v.path)
    end
  end

  local function steps(self, update, variables, rate)
    rawset(self, "_rate", rate)
    for i, v in ipairs(variables) do step(self, update, i, v, rate) end
  end

  -- Writes the variables that were assigned; leaves them unchanged if the loss scale's guard is 0.
  local function write(list, guard)
    for _, entry in ipairs(list) do
      entry.value = guard and ops.where(guard:ne(0), entry.value, entry.variable) or entry.value
    end
    for _, entry in ipairs(list) do
      native.try(C.flow_variable_assign, context, entry.variable.handle, native.pointer(entry.value))
    end
  end

  local function borrowed(pointer) return pointer ~= nil and native.tensor(C.flow_tensor_retain(pointer)) end

  -- Optimizer:apply_gradients, of an optimizer in Lua. Assignments are deferred (variable.deferred) until all steps are done; if one fails
  -- no variable has changed. flow_update_end counts the call.
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
end

-- What files say of its objects.
local function define_files(Custom, Optimizer)
  -- As Keras writes a registered class; what the class' get_config() gives is beside what every optimizer has.
  function Custom:to_json()
    local described = json.decode(Optimizer.to_json(self))
    local class = object.class_of(self)
    if not rawget(class, "of_keras") then described.module, described.registered_name = json.null, class.name end
    described.class_name = class.name
    for key, value in pairs(self:_own_config()) do described.config[key] = value end
    return json.encode(described)
  end

  function Custom:_own_config() return self:get_config() end
end

-- Optimizer: the class of all optimizers, which Custom extends. Returns Custom, from which classes written in Lua descend.
local function define(Optimizer)
  local Custom = object.class("Optimizer", Optimizer)
  local common = common_names()

  -- build() of every object: makes the slots of the library, calls the class's build() once, and numbers the variables. If the class's
  -- build() fails, what it has made is forgotten, and the next call tries again.
  local function build_once(self, variables, ...)
    if ... ~= nil or not object.is(self, Optimizer) then return Optimizer.build(self, variables, ...) end  -- which says how it is called
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

  -- parent: Optimizer, a class of the library, or one that extends such a class.
  function Optimizer.extend(parent, class_name)
    if parent == Optimizer then parent = Custom
    elseif rawget(parent, "in_formulas") then parent = parent.in_formulas()
    elseif not object.descends(parent, Custom) and not rawget(parent, "in_lua") then
      raise("%s wraps an optimizer: extend that one's class, or flow.optimizers.Optimizer, and write update_step()", parent.name)
    end
    if extended.base(parent) ~= Custom then
      return extended.class(parent, class_name, common, function(class) return object.new(class) end)
    end
    return user_class(parent, class_name, new, common)
  end

  define_variables(Custom, Optimizer)
  define_updates(Custom, Optimizer)
  define_files(Custom, Optimizer)

  -- Makes one of Keras' optimizers that is written in Lua: optimizers_in_lua/of_keras.lua.
  function Custom._of_keras(...) return require "flow.train.optimizers_in_lua.of_keras" (Custom, new, common, ...) end

  return Custom
end
custom.define = define

local KINDS = {
  number = { "a number", function(value) return type(value) == "number" end },
  ["number?"] = { "a number or false", function(value) return value == false or type(value) == "number" end },
  integer = { "a whole number from 0", function(value) return type(value) == "number" and value >= 0 and value == math.floor(value) end },
  boolean = { "true or false", function(value) return type(value) == "boolean" end },
  text = { "a text", function(value) return type(value) == "string" end },
  list = { "a list", function(value) return type(value) == "table" and not getmetatable(value) end },
}

-- The value of an option if it is of this kind, else an error.
function custom.check(class_name, option, value, kind)
  if not KINDS[kind][2](value) then raise("%s: %s is %s, expected %s", class_name, option, errors.describe(value), KINDS[kind][1]) end
  return value
end

-- 1 - beta^step, computed without cancellation.
function custom.correction(beta, step) return -ops.expm1(step * math.log(beta)) end

-- The options of an optimizer from its config; null is false where none_is_false. classes: of scripts, by their names.
local function options_of(config, classes, none_is_false)
  local options = {}
  for name, value in pairs(config) do
    if type(value) == "table" and value.class_name then
      value = schedules.read_own(value, classes)
        or schedules[value.class_name](type(value.config) == "table" and options_of(value.config, classes) or {})
    end
    if value ~= json.null then options[name] = value
    elseif none_is_false then options[name] = false end
  end
  return options
end

-- The optimizer of a described object, if its class is among the custom ones, or Keras' that find(name) gives; else nil.
function custom.read(described, classes, find)
  if type(described) ~= "table" then return nil end
  local class = classes and classes[described.class_name]
  if type(described.config or {}) ~= "table" then
    raise("%s: the config of an optimizer is a table, got %s", tostring(described.class_name), errors.describe(described.config))
  end
  if class then return class(options_of(described.config or {}, classes)) end
  class = find(described.class_name)
  return class and class(options_of(described.config or {}, classes, true))
end

return custom
