-- own_operations.lua: calls of ops on symbolic tensors that Keras has no operation for, or none that takes these arguments, in files. Their
-- entries are of the module flowlua.ops, which only flowlua reads: class_name is the op's name, config.operands are its arguments. Symbolic
-- tensors among them are what the call names, in their order.
--
-- Arguments are JSON of their kind, null for nil; tensors as Keras writes constants; tables with names in an object __options__.

local errors = require "flow.errors"
local json = require "flow.json"
local define_op = require "flow.tensor.define_op"
local ops = require "flow.tensor.ops"
local integers = require "flow.tensor.integers"
local symbolic = require "flow.layers.symbolic"
local variable = require "flow.tensor.variable"

local raise = errors.raise
local own = {}

local MODULE, INPUT, OPTIONS = "flowlua.ops", "__input__", "__options__"

---- writing -----------------------------------------------------------------------------------------------------------

-- The number of a whole one that a double holds, else nil.
local function small(value)
  local number = integers.is(value) and tonumber(value)
  return number and math.abs(number) <= 2 ^ 53 and number or nil
end

-- An argument as JSON. what: its place, for messages. constant(value, what): that of a tensor.
local function write(value, what, constant)
  local kind = type(value)
  if value == nil then return json.null end
  if kind == "boolean" or kind == "string" or kind == "number" then return value end
  if symbolic.is(value) then return { class_name = INPUT, config = {} } end
  if kind == "cdata" and small(value) then return small(value) end
  if kind == "cdata" or variable.is_variable(value) then return constant(value, what) end
  if kind ~= "table" or getmetatable(value) then raise("%s is %s, which has no form in a file", what, errors.describe(value)) end
  local list, named = json.list(), {}
  for name, inner in pairs(value) do
    if type(name) == "string" then named[name] = write(inner, what, constant) end
  end
  for i = 1, table.maxn(value) do list[i] = write(value[i], what, constant) end
  if next(named) == nil then return list end
  if #list > 0 then raise("%s has entries with and without names, which have no form in a file", what) end
  return { class_name = OPTIONS, config = named }
end

-- The entry of a layer that stands for the op of this name.
function own.entry(layer, name, constant)
  local operation, list = layer._operation, json.list()
  for i = 1, operation.count do
    list[i] = write(operation.operands[i], ("operand %d of flow.%s on symbolic tensors"):format(i, name), constant)
  end
  return { module = MODULE, class_name = name, registered_name = "flowlua>" .. name, config = { name = layer.name, operands = list } }
end

---- reading -----------------------------------------------------------------------------------------------------------

-- Whether an entry of a file is one of these, of an op that exists here. An unknown name calls nothing.
function own.knows(entry)
  return entry.module == MODULE and type(entry.class_name) == "string" and define_op.is_op(ops[entry.class_name])
end

-- The op of an entry, and its arguments with the tensors of `inputs` in their places. constant(table): the tensor that it is, or nil.
function own.call(entry, inputs, constant)
  local content, used = entry.config, 0
  local function read(value)
    if value == json.null then return nil end
    if type(value) ~= "table" then return value end
    if value.class_name == INPUT then
      used = used + 1
      return inputs[used]
    end
    if value.class_name == OPTIONS and type(value.config) == "table" then
      local named = {}
      for name, inner in pairs(value.config) do named[name] = read(inner) end
      return named
    end
    if value.class_name ~= nil then
      return constant(value) or raise("flow.%s in a file has an argument of the kind %s, which is not known", entry.class_name,
        tostring(value.class_name))
    end
    local list = {}
    for i = 1, #value do list[i] = read(value[i]) end
    return list
  end
  if type(content.operands) ~= "table" or content.operands == json.null then
    raise("flow.%s in a file has no operands", entry.class_name)
  end
  local operands, count = {}, #content.operands
  for i = 1, count do operands[i] = read(content.operands[i]) end
  if used == 0 or used ~= #inputs then
    raise("flow.%s in a file has %d tensors among its operands, its call names %d", entry.class_name, used, #inputs)
  end
  return ops[entry.class_name](unpack(operands, 1, count))
end

return own
