-- variable.lua: a tensor that keeps its identity while its value changes: flow.Variable(value, { name =, trainable =, dtype = }).
-- Arithmetic and tensor methods on a variable read its current value.

local native = require "flow.ffi"
local errors = require "flow.errors"
local tensor = require "flow.tensor"
local devices = require "flow.devices"
local ops = require "flow.tensor.ops"
local signature = require "flow.signature"
local placement = require "flow.tensor.placement"
local scopes = require "flow.scopes"

local C, check, raise = native.C, native.check, errors.raise
local context = native.context
local variable = signature.module("flow", {}, nil, true)
local metatable = {}
local Variable = signature.methods("variable", metatable)
local out_tensor, out_variable = native.out("flow_tensor"), native.out("flow_variable")

-- One Lua object per flow_variable, found by its address, so that == says whether two are the same variable.
local known = setmetatable({}, { __mode = "v" })

local function address(handle)
  return tonumber(native.cast("intptr_t", handle))
end

local function adopt(handle)
  local object = setmetatable({ handle = native.gc(handle, C.flow_variable_release) }, metatable)
  known[address(handle)] = object
  return object
end

-- The Lua object of a flow_variable * that a layer or optimizer owns.
function variable.wrap(pointer)
  return known[address(pointer)] or adopt(C.flow_variable_retain(pointer))
end

-- Gives this reference back; using the object is an error from now on. Another variable may come to be at its address.
function variable.close(self)
  local handle = rawget(self, "handle")
  if not handle then return end
  known[address(handle)] = nil
  rawset(self, "handle", nil)
  native.close(handle, C.flow_variable_release)
end

function variable.is_variable(value)
  return type(value) == "table" and getmetatable(value) == metatable
end

native.is_variable = variable.is_variable

-- Grows when a variable or layer changes between trainable and not: a traced function made before is traced again.
variable.trainable_version = 0

-- Called when a layer or an optimizer has made its variables, before it computes with them, while a restore waits for these
-- (checkpoint/deferred.lua); else false.
variable.awaited = false

local SYNC = { MIRRORED = C.FLOW_MIRRORED, MEAN_ON_READ = C.FLOW_MEAN_ON_READ, SUM_ON_READ = C.FLOW_SUM_ON_READ }

local function is_callable(value)
  local of_value = type(value) == "table" and getmetatable(value)
  return type(value) == "function" or of_value and of_value.__call ~= nil
end

-- What is assigned to a variable of a dtype, as a tensor. Numbers that the dtype does not hold are errors; those of lists, and a number
-- that a new variable begins with, are not rounded to another dtype. add: the sum is converted, so fractions beside integers count until
-- then.
local function operand(value, dtype, what, add)
  if type(value) == "table" and not getmetatable(value) then
    return tensor.tensor(value, { dtype = add and not dtype:find "float" and "float64" or dtype })
  end
  if dtype and (type(value) == "number" or native.is_int64(value)) then tensor.check_holds(native.dtype(dtype), value, what) end
  return ops.operand(value, dtype, what)
end

-- value: also a function or an initializer, which makes the value of `shape`.
signature.takes "value?, { name: string = 'Variable', trainable: boolean = true, dtype?, shape?, sync = 'MIRRORED' }"
function variable.Variable(value, options)
  if value == nil then raise("flow.Variable needs an initial value") end
  if type(value) == "string" then
    raise("flow.Variable: its value is %s; an initializer is an object: flow.initializers.get(%q)", errors.describe(value), value)
  end
  if options.shape ~= nil and is_callable(value) then value = value(options.shape, { dtype = options.dtype or "float32" })
  elseif type(value) == "function" then value = errors.of_library("flow.Variable", value) end
  local sync = SYNC[options.sync]
  if not sync then raise("flow.Variable: sync is MIRRORED, MEAN_ON_READ or SUM_ON_READ, got %s", errors.describe(options.sync)) end
  local initial = operand(value, options.dtype, "flow.Variable")
  if options.dtype then initial = initial:to(options.dtype) end
  tensor.need_value(initial, "flow.Variable")
  if devices.current() >= 0 then initial = tensor.to_device(initial, devices.current()) end
  require("flow.names").checked("flow.Variable", options.name)
  native.try(C.flow_variable_new, native.pointer(initial), options.name, options.trainable, sync, out_variable)
  local made = adopt(out_variable[0])
  if sync == C.FLOW_MIRRORED then placement.share_new { made } else placement.register { made } end
  return made
end

---- deferred assignments ----------------------------------------------------------------------------------------------------

local deferring = 0      -- calls of variable.deferred that are open, in all coroutines

local function open_assignments() return deferring > 0 and scopes.own().assignments or nil end

-- Calls f(...). What it assigns to variables is what it reads of them from then on, but is written nowhere; what it assigned last is
-- returned: { { variable =, value = }, ... } in the order of first assignments, values in the variables' dtypes and shapes.
function variable.deferred(f, ...)
  local own, list = scopes.own(), { values = {} }
  local before, open = own.assignments, deferring
  native.between(function() own.assignments, deferring = list, open + 1 end,
    function() own.assignments, deferring = before, open end, f, ...)
  for _, entry in ipairs(list) do entry.value = list.values[entry.variable] end
  return list
end

-- What was assigned to a variable in the open call of variable.deferred; nil: nothing.
function variable.assigned(self)
  local list = open_assignments()
  return list and list.values[self]
end

-- Notes an assignment that is made at the end of what is under way, the last one of several to a variable. value: of the variable's shape,
-- or one that is broadcast to it.
local function defer(list, self, value)
  local fitting = value:to(self.dtype)
  local found, wanted = tensor.shape_text(tensor.raw_shape(fitting)), tensor.shape_text(self.shape)
  if found ~= wanted then
    local ok, spread = pcall(fitting.broadcast_to, fitting, self.shape)
    if not ok then raise("assign to variable \"%s\": value has shape %s, the variable %s", self.path, found, wanted) end
    fitting = spread
  end
  if list.values[self] == nil then list[#list + 1] = { variable = self } end
  list.values[self] = fitting
end

---- reading and writing -------------------------------------------------------------------------------------------------------

-- The current value for arithmetic: a view of the storage, or in a traced function the symbolic value at this point.
local function read(self)
  local deferred = variable.assigned(self)
  if deferred ~= nil then return deferred end
  native.try(C.flow_variable_read, context, self.handle, out_tensor)
  return native.tensor(out_tensor[0])
end
variable.read = read

-- A copy of the value, which later assignments do not change.
function Variable:value()
  return read(self):clone()
end

-- add: to what is there.
local function write(self, value, add)
  local list = open_assignments()
  if list then
    defer(list, self, add and read(self) + value or value)
    return self
  end
  check((add and C.flow_variable_assign_add or C.flow_variable_assign)(context, self.handle, native.pointer(value)))
  return self
end

function Variable:assign(value) return write(self, operand(value, self.dtype, "assign()")) end
function Variable:assign_add(value) return write(self, operand(value, self.dtype, "assign_add()", true), true) end
function Variable:assign_sub(value) return write(self, -operand(value, self.dtype, "assign_sub()", true), true) end

local fields = {}

-- To be read at once; get: C.flow_variable_tensor if the caller may write to it.
local function storage(self, get)
  check((get or C.flow_variable_peek)(self.handle, out_tensor))
  return native.tensor(out_tensor[0])
end

function fields.shape(self) return storage(self).shape end
function fields.dtype(self) return storage(self).dtype end
function fields.device(self) return storage(self).device end
function fields.rank(self) return storage(self).rank end
function fields.size(self) return storage(self).size end
fields.ndim = fields.rank

-- The name with that of the layer or optimizer that owns it, "dense/kernel".
function variable._owned_name(self) return native.string(C.flow_variable_name(self.handle)) end

-- As in Keras: the name in the layer or optimizer that owns it, "kernel", and the same with those around it, "model/dense/kernel".
function fields.path(self) return rawget(self, "_path") or variable._owned_name(self) end
function fields.name(self) return self.path:match "[^/]*$" end
function fields.trainable(self) return C.flow_variable_trainable(self.handle) ~= 0 end

function fields.regularizer() return nil end
function fields.overwrite_with_gradient() return false end

signature.receiver_fields.variable = fields

local forwarded = {}     -- tensor methods by name, as methods of variables
for _, name in ipairs { "item", "totable", "data" } do
  forwarded[name] = signature.guard_method("variable:" .. name, Variable, function(self)
    if C.flow_trace_depth(context) > 0 or deferring > 0 then return native.methods[name](read(self)) end
    return native.methods[name](storage(self, name == "data" and C.flow_variable_tensor))
  end)
end
-- A tensor's method as one of the variable's, which reads its value first; nil: tensors have none of this name.
local function forward(name)
  local method = require("flow.tensor").late_method(name)
  if not method or name == "close" then return nil end
  forwarded[name] = forwarded[name] or signature.forward("variable:" .. name, Variable, method, read)
  return forwarded[name]
end

function metatable.__index(self, key)
  if type(key) ~= "string" then return read(self)[key] end
  if key == "handle" then raise("this variable was closed with its model") end
  local method = Variable[key]
  if method then return method end
  local field = fields[key]
  if field then return field(self) end
  local known_method = forward(key)
  if known_method then return known_method end
  local names = {}
  for _, list in ipairs { Variable, fields, native.methods, native.late_methods } do
    for name in pairs(list) do names[name] = true end
  end
  raise("a variable has no field %q%s", key,
    errors.elsewhere("variable", key) or errors.elsewhere("tensor", key) or errors.suggestion(key, names))
end

function metatable.__newindex(self, key, value)
  if key == "trainable" then
    if type(value) ~= "boolean" then raise("a variable's trainable is true or false, got %s", errors.describe(value)) end
    C.flow_variable_set_trainable(self.handle, value and 1 or 0)
    variable.trainable_version = variable.trainable_version + 1
  elseif type(key) == "string" then
    local suggestion = errors.suggestion(key, { "trainable" })
    raise("a variable's field %q cannot be set%s", key, suggestion ~= "" and suggestion or "; change its value with :assign(x)")
  else
    raise("a variable's elements cannot be assigned one by one; change its value with :assign(x)")
  end
end

function metatable.__tostring(self)
  return ("Variable %q %s"):format(self.path, tostring(storage(self)):gsub("^Tensor ", ""))
end

metatable.describe_names = { { Variable, "method" }, { fields, "field" } }      -- for reference/names.lua
metatable.__tensor = read
for _, name in ipairs { "add", "sub", "mul", "div", "pow", "mod" } do metatable["__" .. name] = ops[name] end
metatable.__unm = function(a) return ops.neg(a) end      -- Lua gives the operand twice
metatable.__concat = function(a, b) return tostring(a) .. tostring(b) end
metatable.__lt = native.hooks.order
metatable.__le = native.hooks.order

return variable
