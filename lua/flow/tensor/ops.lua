-- ops.lua: the ops as functions flow.exp(x), methods x:exp() and operators a + b.
--
-- An operand is a tensor, a variable, a Lua number or boolean, or nested lists. Lua numbers are weakly typed: they take the
-- tensor's dtype if it can hold them, so that uint8 images / 255 are float32 and float16 weights * 2 stay float16.
-- Axes count from 1, negative ones from the end. A layer library takes part in two ways, both fields of a metatable:
--   __tensor(object)              the tensor that stands for the object (variables)
--   __apply(op, a, b, c)          called instead of the op when an operand has it (the nodes of functional models)

local native = require "flow.ffi"
local errors = require "flow.errors"
local tensor = require "flow.tensor"
local define_op = require "flow.tensor.define_op"
local takes = require("flow.signature").takes
local integers = require "flow.tensor.integers"

local C, raise = native.C, errors.raise
local context, hooks = native.context, native.hooks
local is_tensor, pointer = native.is_tensor, native.pointer
local floor, note = math.floor, define_op.note

local ops = {}

---- calling an op ---------------------------------------------------------------------------------------------------------

local ids = {}     -- op numbers by name
for id = 0, C.flow_op_count() - 1 do ids[native.string(C.flow_op_name(id))] = id end

local inputs, outputs = native.out("flow_tensor", 3), native.out("flow_tensor", 4)

-- Applies an op. Where memory is missing, tensors that the collector has not seen yet are released first, and it is tried once more.
local function run(op, list, count, attributes)
  local status = C.flow_apply(context, op, list, count, attributes, outputs)
  if status == C.FLOW_OUT_OF_MEMORY then
    native.collect_others()
    status = C.flow_apply(context, op, list, count, attributes, outputs)
  end
  native.check(status)
  return note(native.tensor(outputs[0]))
end

local function apply1(op, a, attributes)
  inputs[0] = pointer(a)
  return run(op, inputs, 1, attributes)
end

local function apply2(op, a, b, attributes)
  inputs[0], inputs[1] = pointer(a), pointer(b)
  return run(op, inputs, 2, attributes)
end

local function apply3(op, a, b, c, attributes)
  inputs[0], inputs[1], inputs[2] = pointer(a), pointer(b), pointer(c)
  return run(op, inputs, 3, attributes)
end

-- Elementwise ops one after the other (flow_apply_chain).
local function apply_chain(attributes, a, b, c)
  inputs[0], inputs[1], inputs[2] = pointer(a), pointer(b), pointer(c)
  native.try(C.flow_apply_chain, context, inputs, 3, attributes, outputs)
  return note(native.tensor(outputs[0]))
end

-- A step of such a chain: an op of two inputs, by their numbers.
local function set_step(step, op, first, second)
  step.op, step.inputs[0], step.inputs[1] = op, first, second
end

local function apply_list(op, list, attributes)
  local pointers, count = native.pointers(list)
  return run(op, pointers, count, attributes)
end

---- operands -----------------------------------------------------------------------------------------------------------------

-- A Lua number, boolean or 64-bit integer as a tensor, beside one of the dtype `like` (a number).
local function scalar(value, like, what)
  if type(value) == "boolean" then return tensor.scalar(C.FLOW_BOOL, value and 1 or 0) end
  if type(value) == "number" then return tensor.scalar(C.flow_dtype_of_number(like, value), value) end
  value = integers.of(value, what)
  return tensor.scalar(C.flow_dtype_of_integer(like, value), value)
end

-- The tensor of an operand; like: the dtype name of the tensor that it meets (nil: float32).
local function operand(value, like, what)
  local kind = type(value)
  if kind == "cdata" then
    if is_tensor(value) then return value end
    if integers.is(value) then return scalar(value, like and native.dtypes[like] or C.FLOW_INT64, what or "operand") end
  elseif kind == "number" or kind == "boolean" then
    return scalar(value, like and native.dtypes[like] or C.FLOW_FLOAT32)
  elseif kind == "table" then
    local metatable = getmetatable(value)
    if metatable then
      if metatable.__tensor then return metatable.__tensor(value) end
    else
      return tensor.tensor(value, { dtype = like and like:find("float") and like or nil })
    end
  end
  raise("%s: expected a tensor or a number, got %s", what or "operand", errors.describe(value))
end
ops.operand = operand

local function dtype_of(t)
  return native.dtype_names[C.flow_tensor_dtype(pointer(t))]
end

-- Both operands of a binary op as tensors.
local function operands(a, b, what)
  if is_tensor(a) then return a, operand(b, dtype_of(a), what) end
  if is_tensor(b) then return operand(a, dtype_of(b), what), b end
  if type(a) == "table" then
    a = operand(a, nil, what)
    return a, operand(b, dtype_of(a), what)
  end
  b = operand(b, nil, what)
  return operand(a, dtype_of(b), what), b
end
ops.operands = operands

-- result, which was made of a tensor that nobody else has: its memory, still in the processor's caches, is there for the next call.
local function instead_of(temporary, result)
  native.close_tensor(temporary)
  return result
end

define_op.find_later(ops)
local function define(f, ...) return define_op.op(ops, f, ...) end
local function define_variadic(f, name) return define_op.variadic(ops, f, name) end

local function number(what, name, value, default)
  if value == nil then return default end
  if type(value) ~= "number" then raise("%s: %s is a number, got %s", what, name, errors.describe(value)) end
  return value
end

---- elementwise -----------------------------------------------------------------------------------------------------------------

-- These take options: below.
local apart = { relu = true, round = true }
local compares_strings = { eq = true, ne = true }

local function define_unary(name)
  local id, what = ids[name], "flow." .. name
  define(function(x) return apply1(id, operand(x, nil, what)) end, name, define_op.aliases[name])
end

-- For a binary op without its second operand, as a method called with a dot is: x.add(y).
local function refuse_one(name)
  raise("flow.%s: expected a tensor or a number, got nil; it takes two: flow.%s(a, b), or a:%s(b) with a colon", name, name, name)
end

local function define_binary(name)
  local id, what = ids[name], "flow." .. name
  define(function(a, b)
    if b == nil then refuse_one(name) end
    a, b = operands(a, b, what)
    return apply2(id, a, b)
  end, name, define_op.aliases[name])
end

-- Of strings, too: those are compared byte by byte, on the host.
local function define_comparison(name)
  local id, what = ids[name], "flow." .. name
  define(function(a, b)
    if not is_tensor(a) and not is_tensor(b) then
      local strings = require "flow.tensor.strings"
      if strings.are(a) or strings.are(b) then return require "flow.tensor.text.comparison" (what, a, b, name == "eq") end
    end
    if b == nil then refuse_one(name) end
    a, b = operands(a, b, what)
    return apply2(id, a, b)
  end, name, define_op.aliases[name])
end

local reductions = {}
for name, id in pairs(ids) do
  local inputs_of = C.flow_op_elementwise(id)
  if inputs_of == 0 then
    if C.flow_op_reduction(id) ~= 0 then reductions[#reductions + 1] = name end
  elseif not apart[name] then
    if inputs_of == 1 then define_op.later(name, define_unary)
    elseif inputs_of == 2 then define_op.later(name, compares_strings[name] and define_comparison or define_binary) end
  end
end
define_unary "copy"
define_unary "stop_gradient"

for _, name in ipairs { "neg", "add", "sub", "mul", "div", "pow", "mod" } do hooks[name] = ops[name] end

-- Keras' activations.relu: below the threshold the slope, above max_value that; at the threshold 0.
takes "x, negative_slope = 0, max_value?, threshold = 0"
define(function(x, slope, most, threshold)
  x = operand(x, nil, "flow.relu")
  slope, threshold = number("flow.relu", "negative_slope", slope, 0), number("flow.relu", "threshold", threshold, 0)
  if slope == 0 and threshold == 0 and not most then return apply1(ids.relu, x) end
  return require("flow.tensor.composed.reductions").relu(x, slope, most and number("flow.relu", "max_value", most), threshold)
end, "relu")

-- To the nearest whole number, halves to the even one, or to this many decimals. Whole numbers keep their dtype.
takes "x, decimals = 0"
define(function(x, decimals)
  x = operand(x, nil, "flow.round")
  if decimals == nil or decimals == 0 then return apply1(ids.round, x) end
  if number("flow.round", "decimals", decimals) ~= floor(decimals) then
    raise("flow.round: decimals is a whole number, got %s", errors.describe(decimals))
  end
  local scale, dtype = 10 ^ decimals, x.dtype
  if dtype:find("float", 1, true) then return apply1(ids.round, x * scale) / scale end
  return ops.cast(ops.round(ops.cast(x, "float64"), decimals), dtype)
end, "round")

define(function(x)
  x = operand(x, nil, "flow.isnan")
  return apply2(ids.ne, x, x)
end, "isnan")

-- where(condition, a, b): a where the condition is non-zero, else b; where(condition): the positions at which it is, of nonzero.
define(function(condition, a, b)
  if a == nil and b == nil then return ops.nonzero(condition) end
  if a == nil or b == nil then raise("flow.where takes a condition and two values") end
  condition = operand(condition, nil, "flow.where")
  a, b = operands(a, b, "flow.where")
  return apply3(ids.where, condition, a, b)
end, "where")

define(function(x, low, high)
  if low == nil or high == nil then raise("flow.clip takes (x, low, high): %s is missing", low == nil and "low" or "high") end
  x, low = operands(x, low, "flow.clip")
  high = operand(high, dtype_of(x), "flow.clip")
  local attributes = native.attributes()
  local fused = attributes.fused
  fused.count = 2
  set_step(fused.steps[0], ids.maximum, 0, 1)
  set_step(fused.steps[1], ids.minimum, 3, 2)
  return apply_chain(attributes, x, low, high)
end, "clip")

---- casts and copies --------------------------------------------------------------------------------------------------------------

-- x itself where it has the dtype already.
local function cast(x, dtype)
  local wanted = native.dtype(dtype, "flow.cast")
  x = operand(x, nil, "flow.cast")
  if C.flow_tensor_dtype(pointer(x)) == wanted then return x end
  local attributes = native.attributes()
  attributes.cast.dtype = wanted
  return apply1(ids.cast, x, attributes)
end
define(cast, "cast", "astype")

-- to("float16") casts, to("cpu") moves, to("cpu", "float16") does both; what is there already comes back unchanged.
local function move_or_cast(x, wanted)
  if tensor.is_device(wanted) then return tensor.to_device(operand(x, nil, "to()"), tensor.device_number(wanted)) end
  return cast(x, wanted)
end
define(function(x, target, other)
  if other == nil then return move_or_cast(x, target) end
  if tensor.is_device(target) == tensor.is_device(other) then
    raise("to(): a device, a dtype or one of each, got %s and %s", errors.describe(target), errors.describe(other))
  end
  return move_or_cast(move_or_cast(x, target), other)
end, "to")

define_op.method("contiguous", function(t)
  if C.flow_tensor_is_contiguous(pointer(t)) ~= 0 or tensor.is_symbolic(t) then return t end
  return ops.copy(t)
end)

---- axes --------------------------------------------------------------------------------------------------------------------------

-- Axis from 0 of a user's axis; limit: how many axes there are to name.
local function axis_from(axis, limit, what)
  if type(axis) ~= "number" or axis ~= floor(axis) then raise("%s: an axis is a whole number, got %s", what, errors.describe(axis)) end
  local from = axis < 0 and axis + limit or axis - 1
  if from < 0 or from >= limit then
    raise("%s: axis %d is out of range: there are %d axes, counted from 1", what, axis, limit)
  end
  return from
end

ops.axis_from = axis_from

local function rank_of(t)
  return C.flow_tensor_rank(pointer(t))
end

-- axis: nil (all), a number or a list of them.
local function reduction(t, axis, keepdims, what)
  if keepdims ~= nil and type(keepdims) ~= "boolean" then
    raise("%s: keepdims is true or false, got %s", what, errors.describe(keepdims))
  end
  local attributes, rank = native.attributes(), rank_of(t)
  local reduce = attributes.reduce
  reduce.keepdims = keepdims and 1 or 0
  if type(axis) == "table" then
    reduce.count = errors.check_list(what .. ": axis", axis)
    if #axis == 0 or #axis > rank then raise("%s: %d axes named for a tensor of rank %d", what, #axis, rank) end
    for i = 1, #axis do reduce.axes[i - 1] = axis_from(axis[i], rank, what) end
  elseif axis ~= nil then
    reduce.count = 1
    reduce.axes[0] = axis_from(axis, rank, what)
  end
  return attributes
end

local REDUCTION = "x, axis?: number|list, keepdims: boolean = false"

-- What some reductions take besides: the dtype of the products, a number that is among the elements.
local WITH_DTYPE, WITH_INITIAL = REDUCTION .. ", dtype?: string", REDUCTION .. ", initial?: number"
local WITH_MORE = { prod = WITH_DTYPE, max = WITH_INITIAL, min = WITH_INITIAL }

-- Defines a reduction (x, axis, keepdims); what only some have (where, initial ...) is done by composed/reductions.lua.
local function define_reduction(name)
  local id, what = ids[name], "flow." .. name
  takes(WITH_MORE[name] or REDUCTION)
  define(function(x, axis, keepdims, more)
    x = operand(x, nil, what)
    if more ~= nil then return require("flow.tensor.composed.reductions")[name](x, axis, keepdims, more) end
    return apply1(id, x, reduction(x, axis, keepdims, what))
  end, name)
end

for _, name in ipairs(reductions) do define_op.later(name, define_reduction) end

-- argmax and argmin: positions from 1 along one axis, or in the flattened tensor.
local function define_extreme(name)
  local id, what = ids[name], "flow." .. name
  takes(REDUCTION)
  define(function(x, axis, keepdims)
    x = operand(x, nil, what)
    local attributes = reduction(x, axis, keepdims, what)
    attributes.reduce.base = 1
    return apply1(id, x, attributes)
  end, name)
end
define_op.later("argmax", define_extreme)
define_op.later("argmin", define_extreme)

-- Labels, from 0, of the largest entries along the last axis: what y holds for predictions x.
define(function(x)
  x = operand(x, nil, "classes()")
  return apply1(ids.argmax, x, reduction(x, -1, false, "classes()"))
end, "classes")

local one = native.out("flow_tensor")
takes(REDUCTION)
define(function(x, axis, keepdims)
  x = operand(x, nil, "flow.mean")
  native.try(C.flow_mean, context, pointer(x), reduction(x, axis, keepdims, "flow.mean"), one)
  return note(native.tensor(one[0]))
end, "mean")

-- Variance and standard deviation of the population, as NumPy and Keras define them.
takes(REDUCTION)
define(function(x, axis, keepdims)
  x = operand(x, nil, "flow.var")
  local centered = x - ops.mean(x, axis, true)
  local squares = instead_of(centered, ops.square(centered))
  return instead_of(squares, ops.mean(squares, axis, keepdims))
end, "var")
takes(REDUCTION)
define(function(x, axis, keepdims) return ops.sqrt(ops.var(x, axis, keepdims)) end, "std")

local function define_softmax(name)
  local id, what = ids[name], "flow." .. name
  takes "x, axis: number|list = -1"
  define(function(x, axis)
    x = operand(x, nil, what)
    if type(axis) == "table" then return require("flow.tensor.composed.reductions")[name](x, axis) end
    local attributes = native.attributes()
    attributes.axis.axis = axis_from(axis or -1, rank_of(x), what)
    return apply1(id, x, attributes)
  end, name)
end
define_op.later("softmax", define_softmax)
define_op.later("log_softmax", define_softmax)

local function activate(name, x)
  x = operand(x, nil, "flow." .. name)
  native.try(C.flow_activate, context, name, pointer(x), one)
  return note(native.tensor(one[0]))
end

local function define_activation(name) define(function(x) return activate(name, x) end, name) end
for _, name in ipairs { "selu", "silu", "swish", "relu6", "hard_sigmoid", "hard_silu", "hard_swish", "mish", "exponential" } do
  if C.flow_activation_known(name) ~= 0 then define_op.later(name, define_activation) end
end

takes "x, negative_slope = 0.2"
define(function(x, slope)
  if slope == nil then return activate("leaky_relu", x) end
  x = operand(x, nil, "flow.leaky_relu")
  slope = number("flow.leaky_relu", "negative_slope", slope)
  if slope == 0 then return apply1(ids.relu, x) end      -- as flow_express_leaky_relu of core/ops/expression.c
  return ops.where(x:gt(0), x, x * slope)
end, "leaky_relu")

takes "x, alpha = 1"
define(function(x, alpha)
  if alpha == nil then return activate("elu", x) end
  x = operand(x, nil, "flow.elu")
  return apply1(ids.relu, x) + ops.expm1(ops.minimum(x, 0)) * number("flow.elu", "alpha", alpha)
end, "elu")

-- As keras.ops.gelu: x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2 (Hendrycks and Gimpel, Gaussian Error Linear Units, 2016), or, with
-- false, the exact x (1 + erf(x / sqrt 2)) / 2, which the activation "gelu" of layers is.
takes "x, approximate = true"
define(function(x, approximate)
  if approximate == false then return activate("gelu", x) end
  if approximate ~= nil and approximate ~= true then
    raise("flow.gelu: approximate is true or false, got %s", errors.describe(approximate))
  end
  return apply1(ids.gelu_tanh, operand(x, nil, "flow.gelu"))
end, "gelu")

-- Shapes, axes and joining: shape_ops.lua. with_dims(op, x, dims): an op whose attribute is a shape.
local with_dims = require "flow.tensor.shape_ops" { ops = ops, define = define, define_variadic = define_variadic, ids = ids,
  axis_from = axis_from, rank_of = rank_of, apply1 = apply1, apply_list = apply_list }

---- linear algebra and the rest ----------------------------------------------------------------------------------------------------

-- transpose_a and transpose_b swap the last two axes of a factor first, as in TensorFlow.
takes "a, b, { transpose_a?: boolean, transpose_b?: boolean }"
define(function(a, b, options)
  if b == nil then refuse_one("matmul") end
  a, b = operands(a, b, "flow.matmul")
  if not options then return apply2(ids.matmul, a, b) end
  local attributes = native.attributes()
  for name, factor in pairs { transpose_a = a, transpose_b = b } do
    if options[name] and rank_of(factor) < 2 then
      raise("flow.matmul: %s needs a factor of two axes or more, got shape {%s}", name, table.concat(factor.shape, ", "))
    end
    attributes.matmul[name] = options[name] and 1 or 0
  end
  return apply2(ids.matmul, a, b, attributes)
end, "matmul")

-- A traced stand-in for a concrete tensor while a trace is open, so that ops on it may use the batch's rows.
local function constant(t)
  native.try(C.flow_trace_constant, context, pointer(t), one)
  return native.tensor(one[0])
end

-- A tensor of x's kind, traced or not, in a raw shape; without x traced. what: the caller, as messages name it.
function ops.full_raw(x, shape, value, dtype, what)
  if type(value) == "boolean" then value = value and 1 or 0 end
  tensor.check_holds(dtype, value, what)
  if x == nil or tensor.is_symbolic(x) then return with_dims(ids.broadcast_to, constant(tensor.scalar(dtype, value)), shape) end
  return tensor.full(shape, value, { dtype = native.dtype_names[dtype] })
end

-- The shape of x, also a symbolic one, filled; the dtype is x's unless options have another one.
local function full_like(x, value, options, what)
  x = operand(x, nil, what)
  local dtype = native.dtype(options and options.dtype or dtype_of(x))
  if type(value) == "boolean" then value = value and 1 or 0 end
  if type(value) ~= "number" and not native.is_int64(value) then
    raise("%s: the value is a number, got %s", what, errors.describe(value))
  end
  return ops.full_raw(x, tensor.raw_shape(x), value, dtype, what)
end
takes "x, { dtype?; }"
define(function(x, options) return full_like(x, 0, options, "flow.zeros_like") end, "zeros_like")
takes "x, { dtype?; }"
define(function(x, options) return full_like(x, 1, options, "flow.ones_like") end, "ones_like")
takes "x, value, { dtype?; }"
define(function(x, value, options) return full_like(x, value, options, "flow.full_like") end, "full_like")

-- one_hot(labels, n): labels from 0 to rows of n with a single 1, along the last or another axis; a label outside gives zeros. Of floats
-- the whole part counts, as in Keras.
takes "labels, num_classes, { axis?: integer, dtype = 'float32'; }"
define(function(labels, count, options)
  labels = operand(labels, "int32", "flow.one_hot")
  if type(count) ~= "number" or count < 0 or count % 1 ~= 0 then
    raise("flow.one_hot: num_classes is a whole number from 0, got %s", errors.describe(count))
  end
  if labels.dtype:find "float" then labels = cast(labels, "int32") end
  local hits = ops.eq(ops.expand_dims(labels, -1), tensor.arange(count))
  if options and options.axis and options.axis ~= -1 then hits = ops.moveaxis(hits, -1, options.axis) end
  return cast(hits, options and options.dtype or "float32")
end, "one_hot")

require "flow.tensor.array_ops" (ops, define, axis_from, function(rows, indices) return apply2(ids.gather, rows, indices) end)

local einsum      -- most programs have none
takes "equation, operands..."
define_op.of_any(ops, function(...)
  einsum = einsum or require "flow.tensor.einsum" (ops)
  return einsum(...)
end, "einsum")

return ops
