-- input_signature.lua: what the input_signature of flow.fn(f, { input_signature = { flow.TensorSpec({ -1, 3 }, "float32") } }) says of
-- arguments, as in tf.function: tensors have these dtypes and shapes, numbers and lists become such tensors, all else is refused. A list or
-- a table of specs stands for an argument of that form. Loaded when a function has one.

local native = require "flow.ffi"
local errors = require "flow.errors"
local names = require "flow.names"
local signature = require "flow.signature"
local tensor = require "flow.tensor"

local raise = errors.raise
local input_signature = {}

local function is_spec(value) return type(value) == "table" and type(value.dtype) == "string" and type(value.shape) == "table" end

-- Raises unless this is a spec, or a list or a table of such.
local function check(what, spec, depth)
  if type(spec) ~= "table" or getmetatable(spec) then
    raise("%s is flow.TensorSpec(shape, dtype), or a table of such, got %s", what, errors.describe(spec))
  end
  if is_spec(spec) then
    if spec.dtype ~= "string" then native.dtype(spec.dtype) end
    for axis, n in ipairs(spec.shape) do
      if type(n) ~= "number" or n % 1 ~= 0 or n < -1 then
        raise("%s: size %d is a whole number, or -1 where any will do, got %s", what, axis, errors.describe(n))
      end
    end
    return
  end
  depth = errors.deeper(what, depth)
  for _, key in ipairs(names.keys(spec)) do check(("%s[%s]"):format(what, tostring(key)), spec[key], depth) end
end

function input_signature.check(list)
  if type(list) == "table" and (is_spec(list) or signature.is_named(list)) then
    raise("flow.fn: input_signature is a list with an entry for each argument: { flow.TensorSpec({ -1, 3 }, \"float32\") }")
  end
  for i = 1, errors.check_list("flow.fn: input_signature", list) do check(("flow.fn: input_signature[%d]"):format(i), list[i]) end
  return list
end

local function text(spec) return ("%s %s"):format(spec.dtype, tensor.shape_text(spec.shape)) end

-- Whether a shape is one of those that the spec allows. Sizes below 0, of a trace, are not known.
local function fits(shape, wanted)
  if #shape ~= #wanted then return false end
  for axis, n in ipairs(shape) do
    if wanted[axis] >= 0 and n >= 0 and n ~= wanted[axis] then return false end
  end
  return true
end

-- An argument as the function gets it.
local function read(what, spec, value)
  if not is_spec(spec) then
    if type(value) ~= "table" or getmetatable(value) then
      raise("%s is a table, as input_signature says, got %s", what, errors.describe(value))
    end
    local found = {}
    for _, key in ipairs(names.keys(value)) do
      if spec[key] == nil then raise("%s: input_signature has no entry %q", what, tostring(key)) end
    end
    for _, key in ipairs(names.keys(spec)) do found[key] = read(("%s[%s]"):format(what, tostring(key)), spec[key], value[key]) end
    return found
  end
  if spec.dtype == "string" and type(value) == "string" and #spec.shape == 0 then return value end
  local is_tensor = native.is_tensor(value) or native.is_variable(value)
  if not is_tensor then
    local is_value = type(value) == "number" or type(value) == "boolean" or native.is_int64(value)
      or type(value) == "table" and not getmetatable(value)
    if not is_value or spec.dtype == "string" then raise("%s is %s, input_signature says %s", what, errors.describe(value), text(spec)) end
    value = tensor.tensor(value, { dtype = spec.dtype })
  end
  local shape = native.is_variable(value) and value.shape or tensor.raw_shape(value)
  if value.dtype ~= spec.dtype or not fits(shape, spec.shape) then
    raise("%s is %s %s, input_signature says %s", what, value.dtype, tensor.shape_text(shape), text(spec))
  end
  return value
end

-- The arguments, a list with its length n, as a function gets them. what: the function, for messages.
function input_signature.read(what, list, arguments)
  if arguments.n ~= #list then
    raise("%s takes %d arguments, as its input_signature says, got %d", what, #list, arguments.n)
  end
  local found = { n = #list }
  for i, spec in ipairs(list) do found[i] = read(("%s: argument %d"):format(what, i), spec, arguments[i]) end
  return found
end

return input_signature
