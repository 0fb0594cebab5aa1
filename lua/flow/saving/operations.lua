-- operations.lua: arithmetic on symbolic tensors, x * 2 + 1, as Keras writes it: an operation of keras.ops in the list of layers.

local errors = require "flow.errors"
local json = require "flow.json"
local ops = require "flow.ops"
local symbolic = require "flow.symbolic"

local raise = errors.raise
local operations = {}

local NUMPY, NN = "keras.src.ops.numpy", "keras.src.ops.nn"

-- Our name, Keras' class, its module and the number of operands, which are tensors and numbers by position.
local KNOWN = {
  add = { "Add", NUMPY, 2 }, sub = { "Subtract", NUMPY, 2 }, mul = { "Multiply", NUMPY, 2 }, div = { "TrueDivide", NUMPY, 2 },
  pow = { "Power", NUMPY, 2 }, maximum = { "Maximum", NUMPY, 2 }, minimum = { "Minimum", NUMPY, 2 }, matmul = { "Matmul", NUMPY, 2 },
  neg = { "Negative", NUMPY, 1 }, abs = { "Absolute", NUMPY, 1 }, exp = { "Exp", NUMPY, 1 }, log = { "Log", NUMPY, 1 },
  sqrt = { "Sqrt", NUMPY, 1 }, square = { "Square", NUMPY, 1 }, sin = { "Sin", NUMPY, 1 }, cos = { "Cos", NUMPY, 1 },
  tanh = { "Tanh", NUMPY, 1 }, relu = { "Relu", NN, 1 }, sigmoid = { "Sigmoid", NN, 1 },
}

local by_class = {}
for name, known in pairs(KNOWN) do by_class[known[1]] = rawget(ops, name) and name or nil end
by_class.Divide = by_class.TrueDivide

function operations.is(layer)
  return type(layer) == "table" and rawget(layer, "_operation") ~= nil
end

local function known_of(layer)
  for name, known in pairs(KNOWN) do
    if rawget(ops, name) == layer._operation.op then return known end
  end
  raise("this operation on symbolic tensors has no form in a file: use a layer in its place, such as one made by layers.Layer:extend")
end

function operations.entry(layer)
  local known = known_of(layer)
  return { module = known[2], class_name = known[1], config = { name = layer.name }, registered_name = known[1] }
end

-- The args of the call: reference(t) of tensors, numbers as they are.
function operations.arguments(layer, node, reference)
  local operation, args, next_input = layer._operation, json.list(), 1
  for i = 1, known_of(layer)[3] do      -- Lua gives the operand of a minus twice
    local operand = operation.operands[i]
    if symbolic.is(operand) then
      args[i] = reference(node.inputs[next_input])
      next_input = next_input + 1
    elseif type(operand) == "number" then args[i] = json.real(operand)
    else raise("an operation on symbolic tensors has %s as operand %d, which has no form in a file", errors.describe(operand), i) end
  end
  return args
end

function operations.knows(entry)
  return type(entry.module) == "string" and entry.module:find("^keras%.src%.ops%.") ~= nil and by_class[entry.class_name] ~= nil
end

-- A function of the args of a call. The first one gets the name that the file has for it.
function operations.read(entry)
  local op = ops[by_class[entry.class_name]]
  local name = type(entry.config) == "table" and entry.config.name or entry.name
  return function(args)
    local count = #args
    for i = #args, 1, -1 do
      if args[i] == json.null then count = i - 1 end
    end
    local result = op(unpack(args, 1, count))
    if symbolic.is(result) and type(name) == "string" then rawset(result.layer, "name", name) end
    name = nil
    return result
  end
end

return operations
