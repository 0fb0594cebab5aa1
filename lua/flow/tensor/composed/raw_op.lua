-- raw_op.lua: flow.raw_op: any op of the library by its name, as its record in core/ops/ops.def describes it, so that a new op can be used
-- from Lua that has no function.

local native = require "flow.ffi"
local errors = require "flow.errors"
local ops = require "flow.tensor.ops"
local signature = require "flow.signature"

local C, raise = native.C, errors.raise
local outputs = native.out("flow_tensor", 4)

-- Fields that count axes: from 1 in Lua, from 0 in C, negative ones from the end in both.
local COUNT_AXES = { axis = true, axes = true }

-- The member of flow_attributes that an op reads, by the first one that its description names: "along" of "along along.axis".
local function member_of(doc, attributes)
  for name in doc:gmatch "([%a_]+)%.[%a_]" do
    if pcall(function() return attributes[name] end) then return attributes[name], name end
  end
end

local function number_of(key, value)
  if type(value) == "boolean" then return value and 1 or 0 end
  if key == "dtype" then return native.dtype(value) end
  if type(value) ~= "number" then raise("flow.raw_op: %s is a number, got %s", key, errors.describe(value)) end
  return COUNT_AXES[key] and value > 0 and value - 1 or value
end

-- Sets a field; of a list also how long it is.
local function set(member, key, value)
  local field = member[key]
  local is_list, first = pcall(function() return field[0] end)
  if is_list ~= (type(value) == "table") then
    raise("flow.raw_op: %s is %s, got %s", key, is_list and "a list of numbers" or "a number", errors.describe(value))
  end
  if not is_list then
    member[key] = number_of(key, value)
    return
  end
  local count, most = errors.check_list("flow.raw_op: " .. key, value), native.sizeof(field) / (type(first) == "number" and 4 or 8)
  if count > most then raise("flow.raw_op: %s has %d entries, at most %d are possible", key, count, most) end
  for i, entry in ipairs(value) do field[i - 1] = number_of(key, entry) end
  for _, length in ipairs { "rank", "count" } do pcall(function() member[length] = #value end) end
end

local raw = signature.module("flow", {}, nil, true)

-- A tensor, or a list of them where the op has several results. The attributes are those that the op's description names, such as
-- { axis = 1, reverse = true } for "along.axis, along.reverse".
signature.takes "name: string, inputs: list, attributes?: table"
function raw.raw_op(name, inputs, attributes)
  local op, values = C.flow_op_find(name), native.attributes()
  if op < 0 then raise("flow.raw_op: flowlua has no op %q", name) end
  local doc, list = native.string(C.flow_op_doc(op)), {}
  for i = 1, errors.check_list("flow.raw_op: inputs", inputs) do list[i] = ops.operand(inputs[i], nil, "flow.raw_op") end
  local member, member_name = member_of(doc, values)
  for key, value in pairs(attributes or {}) do
    if not member or not pcall(function() return member[key] end) then
      raise("flow.raw_op: the op %s has no attribute %q%s: %s", name, tostring(key), member and " in " .. member_name or "", doc)
    end
    set(member, key, value)
  end
  local pointers, count = native.pointers(list)
  native.try(C.flow_apply, native.context, op, pointers, count, values, outputs)
  local made = {}
  for i = 1, C.flow_op_outputs(op) do made[i] = native.tensor(outputs[i - 1]) end
  return #made == 1 and made[1] or made
end

return raw
