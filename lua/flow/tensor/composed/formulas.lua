-- formulas.lua: functions of numbers that are made of elementwise ops, f(ops, a, b): of tensors that nothing records, all steps in one pass
-- over memory (flow_apply_chain), which has the numbers of the ops one after the other.
--
-- `ops` of a formula is flow's ops, or a recorder of the same names, which notes steps in place of running them. A formula uses elementwise
-- ops, the operators of tensors, numbers, and what `composed` below has. A number stands for one of the tensors' dtype.

local native = require "flow.ffi"
local tensor = require "flow.tensor"
local define_op = require "flow.tensor.define_op"
local tools = require "flow.tensor.composed.tools"

local C = native.C
local MOST_STEPS, MOST_INPUTS = 32, 12

---- the recorder --------------------------------------------------------------------------------------------------------------

-- The formula that is recorded: its dtype, steps { op, a, b, c } and numbers. No formula is recorded inside of another. has_other: an
-- operand is neither of them, as a threshold that is a tensor.
local dtype, step_count, number_count, operand_count, has_other = nil, 0, 0, 0, false
local steps, numbers, number_at = {}, {}, {}
local Value = {}
local recorder = {}

-- Values: inputs are 1, 2, ...; numbers follow them; steps are negative until the number of inputs is known.
local function value(at) return setmetatable({ at = at, dtype = dtype }, Value) end

-- The place of an operand; a number is an input, once.
local function place(x)
  if getmetatable(x) == Value then return x.at end
  if type(x) ~= "number" then
    has_other = true
    return 1
  end
  local key = x ~= x and "nan" or x == 0 and (1 / x < 0 and "-0" or "0") or x
  local at = number_at[key]
  if not at then
    number_count = number_count + 1
    at = operand_count + number_count
    numbers[number_count], number_at[key] = x, at
  end
  return at
end

local function note(op, a, b, c)
  a, b, c = place(a), b ~= nil and place(b) or 1, c ~= nil and place(c) or 1
  step_count = step_count + 1
  local step = steps[step_count] or {}
  steps[step_count], step.op, step[1], step[2], step[3] = step, op, a, b, c
  return value(-step_count)
end

-- Formulas of several ops.
local composed = {}
function composed.isnan(x) return recorder.ne(x, x) end
function composed.isfinite(x) return recorder.is_finite(x) end
function composed.signbit(x) return recorder.lt(recorder.where(recorder.eq(x, 0), recorder.reciprocal(x), x), 0) end
function composed.stop_gradient(x) return x end
function composed.full_like(_, number) return number end
-- A condition as 0 and 1.
function composed.cast(x) return recorder.where(x, 1, 0) end

setmetatable(recorder, { __index = function(self, name)
  local op = composed[name]
  if not op then
    local id = C.flow_op_find(name)
    op = function(a, b, c) return note(id, a, b, c) end
  end
  rawset(self, name, op)
  return op
end })

for metamethod, name in pairs { __add = "add", __sub = "sub", __mul = "mul", __div = "div", __unm = "neg" } do
  Value[metamethod] = metamethod == "__unm" and function(a) return recorder[name](a) end or function(a, b) return recorder[name](a, b) end
end

---- running -------------------------------------------------------------------------------------------------------------------

local inputs, out = native.out("flow_tensor", MOST_INPUTS), native.out "flow_tensor"

-- The tensor of what was recorded; nil where it has too many steps or numbers for one pass, other operands, or fails: the ops one after the
-- other say why.
local function run(operands)
  local input_count = operand_count + number_count
  if has_other or step_count == 0 or step_count > MOST_STEPS or input_count > MOST_INPUTS then return nil end
  local scalars, dtype_number = {}, native.dtype(dtype)
  for i = 1, number_count do scalars[i] = tensor.scalar(dtype_number, numbers[i]) end
  local attributes = native.attributes()
  local fused = attributes.fused
  fused.count = step_count
  for s = 1, step_count do
    local step, to = steps[s], fused.steps[s - 1]
    to.op = step.op
    for i = 1, 3 do to.inputs[i - 1] = step[i] > 0 and step[i] - 1 or input_count - step[i] - 1 end
  end
  for i = 1, operand_count do inputs[i - 1] = native.pointer(operands[i]) end
  for i = 1, number_count do inputs[operand_count + i - 1] = native.pointer(scalars[i]) end
  native.keep(scalars)
  native.keep(operands)
  local status = C.flow_apply_chain(native.context, inputs, input_count, attributes, out)
  if status ~= C.FLOW_OK then return nil end
  native.check(status)
  return define_op.note(native.tensor(out[0]))
end

local formulas = {}

-- f(ops, a, b, ...) of tensors of one dtype; more: arguments of f after these, which are not tensors.
function formulas.apply(f, a, b, ...)
  local kind = a.dtype
  local fits = (kind == "float32" or kind == "float64") and tools.is_free(a) and (b == nil or b.dtype == kind and tools.is_free(b))
  if not fits then
    if b == nil then return f(tools.ops, a, ...) end
    return f(tools.ops, a, b, ...)
  end
  dtype, step_count, number_count, operand_count, number_at, has_other = kind, 0, 0, b == nil and 1 or 2, {}, false
  local result
  if b == nil then
    result = f(recorder, value(1), ...)
    return result.at == -step_count and run { a } or f(tools.ops, a, ...)
  end
  result = f(recorder, value(1), value(2), ...)
  return result.at == -step_count and run { a, b } or f(tools.ops, a, b, ...)
end

return formulas
