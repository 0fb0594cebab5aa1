-- initial_value.lua: what a weight that a layer written in Lua adds begins as.

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local arguments = require "flow.arguments"
local signature = require "flow.signature"
local tensor = require "flow.tensor"

local C, check, raise = native.C, native.check, errors.raise

-- Raises for a number of the user's, in lists or alone, that the dtype does not hold.
local function check_range(what, value, dtype)
  if type(value) == "table" and not getmetatable(value) then
    for _, entry in ipairs(value) do check_range(what, entry, dtype) end
  elseif type(value) == "number" then
    require("flow.tensor.values.integer_range").check(native.dtype(dtype), value, what)
  end
end

-- A new tensor. what: for messages; given: the name of an initializer, one such as flow.initializers.Constant(1), or a function of the
-- shape and { dtype = } that returns a tensor.
return function(what, given, shape, dtype)
  if dtype ~= nil and type(dtype) ~= "string" then
    raise("%s: dtype is a name such as \"float32\", got %s", what, errors.describe(dtype))
  end
  if type(shape) ~= "table" then raise("%s: a shape is a list of numbers, got %s", what, errors.describe(shape)) end
  for i = 1, #shape do
    if type(shape[i]) ~= "number" or shape[i] < 0 then
      raise("%s: dimension %d of the shape is %s; the shape of a weight has no batch dimension", what, i, errors.describe(shape[i]))
    end
  end
  local in_lua = object.is(given, arguments.Choice) and rawget(given, "_in_lua")
  if in_lua or signature.is_callable(given) and not object.is(given, arguments.Choice) then
    local value = require "flow.tensor.outside_traces" (in_lua and given.call or function(_, ...) return given(...) end, given, shape,
      { dtype = dtype })
    local expected = table.concat(shape, ", ")
    if not native.is_tensor(value) or table.concat(value.shape, ", ") ~= expected then
      raise("%s: the initializer returned %s, expected a tensor of the shape {%s}", what, errors.describe(value), expected)
    end
    return dtype and value:to(dtype) or value
  end
  local as_float = dtype and not dtype:find "float" and "float32" or dtype      -- initializers make floats
  local initial, name, chosen = tensor.zeros(shape, { dtype = as_float }), given, nil
  if object.is(given, arguments.Choice) then name, chosen = given.class_name, arguments.native(what, given.options) end
  if chosen and as_float ~= dtype then check_range(what, given.options.value, dtype) end
  if type(name) ~= "string" then
    raise("%s: initializer is a name such as \"zeros\", one such as flow.initializers.Constant(1), or a function of the shape, got %s",
      what, errors.describe(given))
  end
  check(C.flow_initialize(native.context, name, chosen, C.flow_context_next_seed(native.context), native.pointer(initial)))
  return as_float == dtype and initial or initial:to(dtype)
end

