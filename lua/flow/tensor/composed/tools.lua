-- tools.lua: what the files of this folder share: how they define ops and read arguments.

local native = require "flow.ffi"
local errors = require "flow.errors"
local tensor = require "flow.tensor"
local ops = require "flow.tensor.ops"
local define_op = require "flow.tensor.define_op"
local signature = require "flow.signature"
local number_of = require "flow.classes.number_of"

local C, raise = native.C, errors.raise
local tools = { ops = ops }

-- Makes f an op of these names and a method of tensors; signature.takes is above the call, as everywhere.
function tools.define(f, ...) return define_op.checked(ops, f, ...) end
function tools.define_variadic(f, name) return define_op.variadic(ops, f, name) end

-- Makes f a function of flow alone, of which text says what it takes; reads_itself: f reads what it is given.
function tools.create(name, text, f, reads_itself)
  ops[name] = signature.guard("flow." .. name, f, text, reads_itself)
end

-- Another name of an op.
function tools.alias(name, of)
  ops[name], native.methods[name] = ops[of], native.methods[of]
end

-- The same as define of a function with more parameters, all of which its text names.
function tools.define_long(f, name)
  local entry = signature.entry("flow." .. name, f, signature.pop())
  f = define_op.framed(f)
  local function op(...)
    if signature.namespaces[(...)] then signature.refuse(entry, nil, (...)) end
    for i = 1, select("#", ...) do
      local value = (select(i, ...))
      local metatable = type(value) == "table" and getmetatable(value)
      if metatable and metatable.__apply then return metatable.__apply(op, ...) end
    end
    return f(signature.read(entry, ...))
  end
  ops[name] = define_op.register(op, entry, f)
end

-- An operand as a tensor; `like` is the dtype of numbers (nil: float32).
function tools.operand(x, what, like) return ops.operand(x, like, "flow." .. what) end

-- Two operands as tensors of the dtype that their sum would have, or, with in_floats, their quotient. A number takes the other's dtype.
function tools.pair(a, b, what, in_floats)
  a, b = ops.operands(a, b, "flow." .. what)
  local dtype = native.dtype_names[C.flow_dtype_promote(native.dtype(a.dtype), native.dtype(b.dtype))]
  if in_floats and not dtype:find("float", 1, true) then dtype = "float32" end
  return a:to(dtype), b:to(dtype)
end

function tools.is_float(x) return x.dtype:find("float", 1, true) ~= nil end

-- The operand in floats: integers and bools as float32.
function tools.floats(x, what)
  x = tools.operand(x, what)
  return tools.is_float(x) and x or x:to("float32")
end

-- Bools as int32, as sums and differences count them.
function tools.numbers(x, what)
  x = tools.operand(x, what)
  return x.dtype == "bool" and x:to("int32") or x
end

-- The dimensions as the library has them: negative ones count rows of a batch.
function tools.dims(x) return tensor.raw_shape(x) end

-- An axis as a number from 1.
function tools.axis(x, axis, what, more)
  return ops.axis_from(axis, #tensor.raw_shape(x) + (more or 0), "flow." .. what) + 1
end

-- dims with an axis of size 1 at each of these places in the result.
function tools.with_axes(dims, axes, what)
  local rank, new, result, old = #dims + errors.check_list(what .. ": axis", axes), {}, {}, 0
  for _, axis in ipairs(axes) do
    local place = ops.axis_from(axis, rank, what) + 1
    if new[place] then raise("%s: axis %d is named twice", what, place) end
    new[place] = true
  end
  for i = 1, rank do
    if not new[i] then old = old + 1 end
    result[i] = new[i] and 1 or dims[old]
  end
  return result
end

-- The length of an axis, which must be known.
function tools.length(x, axis, what)
  local n = tensor.raw_shape(x)[axis]
  if not n then raise("flow.%s: there is no axis %d, the tensor has the shape %s", what, axis, tensor.shape_text(tensor.raw_shape(x))) end
  if n < 0 then raise("flow.%s: axis %d is that of the batch, whose size is not known in a trace", what, axis) end
  return n
end

-- Returns a whole number from `least`, below 2^53, of a number or a tensor of one; raises for anything else. what: the function, name:
-- the argument.
function tools.whole(value, least, what, name)
  if native.is_tensor(value) then value = number_of(value) end
  if type(value) ~= "number" or value ~= math.floor(value) or value < least or value >= 2 ^ 53 then
    raise("flow.%s: %s is a whole number from %d, got %s", what, name, least, errors.describe(value))
  end
  return value
end

-- Whether x has values on the host and nothing records what is made of it: then a loop may compute what takes many ops.
function tools.is_free(x)
  return not tensor.is_symbolic(x) and native.C.flow_tape_depth(native.context) == 0 and native.C.flow_tensor_device(native.pointer(x)) < 0
end

-- Elements first to last of an axis, counted from 1; none where last is less than first.
function tools.part(x, axis, first, last, step)
  local begins, ends, steps = {}, {}, {}
  for i, n in ipairs(tensor.raw_shape(x)) do
    begins[i], ends[i], steps[i] = 0, n < 0 and 2 ^ 62 or n, 1
  end
  begins[axis], ends[axis], steps[axis] = first - 1, math.max(last, first - 1), step or 1
  return ops.slice_from_zero(x, begins, ends, steps)
end

-- x with `axis` as its last one; the second result moves it back.
function tools.axis_last(x, axis)
  local rank = #tensor.raw_shape(x)
  if axis == rank then return x, function(y) return y end end
  local order, back = {}, {}
  for i = 1, rank do order[#order + 1] = i ~= axis and i or nil end
  order[rank] = axis
  for i, from in ipairs(order) do back[from] = i end
  return ops.transpose(x, order), function(y) return ops.transpose(y, back) end
end

-- The axes of an argument, a number, a list or nil (all), from 1 in their order.
function tools.axes(x, axis, what)
  local list, rank = {}, #tensor.raw_shape(x)
  if axis == nil then
    for i = 1, rank do list[i] = i end
    return list
  end
  for i, a in ipairs(type(axis) == "table" and axis or { axis }) do list[i] = tools.axis(x, a, what) end
  table.sort(list)
  return list
end

-- x with the axes of a reduction flattened into one, the last; keep(y) gives y, of x's shape without that axis, the axes of keepdims.
function tools.flattened(x, axis, keepdims, what)
  local axes, rank = tools.axes(x, axis, what), #tensor.raw_shape(x)
  local reduced, order, dims, kept, shape = {}, {}, {}, {}, tensor.raw_shape(x)
  for _, a in ipairs(axes) do reduced[a] = true end
  local count = 1
  for i = 1, rank do
    if not reduced[i] then order[#order + 1], dims[#dims + 1] = i, shape[i] end
    kept[i] = reduced[i] and 1 or shape[i]
  end
  for _, a in ipairs(axes) do
    order[#order + 1] = a
    count = count * tools.length(x, a, what)
  end
  dims[#dims + 1] = count
  local y = ops.reshape_raw(rank > 1 and ops.transpose(x, order) or x, dims)
  return y, function(result) return keepdims and ops.reshape_raw(result, kept) or result end
end

-- A tensor beside x, traced where x is: x's dtype unless dtype is given.
function tools.filled(x, dims, value, dtype)
  return ops.full_raw(x, dims, value, native.dtype(dtype or x.dtype))
end

-- A constant of Lua numbers.
function tools.constant(values, dtype, shape)
  local t = tensor.tensor(values, { dtype = dtype })
  return shape and t:reshape(shape) or t
end

-- The numbers from 0 to below n.
function tools.count(n)
  local list = {}
  for i = 1, n do list[i] = i - 1 end
  return list
end

local MOST_RESULTS = 4
local inputs, outputs = native.out("flow_tensor", 6), native.out("flow_tensor", MOST_RESULTS)
-- Applies an op of the library by its name. set(attributes): fills in the op's attributes, which are zeros before. results: how many there
-- are, which come as a list then; nil: one tensor. The arrays for inputs and outputs are shared by all calls, so set() must not call this
-- function.
function tools.apply(name, list, set, results)
  for i = 0, MOST_RESULTS - 1 do outputs[i] = nil end      -- those of the op before have their owners
  local attributes = native.attributes()
  if set then set(attributes) end
  for i, x in ipairs(list) do inputs[i - 1] = native.pointer(x) end
  native.keep(list)
  native.try(C.flow_apply, native.context, C.flow_op_find(name), inputs, #list, attributes, outputs)
  if not results then return define_op.note(native.tensor(outputs[0])) end
  local made = {}
  for i = 1, results do
    if outputs[i - 1] == nil then raise("flow.%s: %d results were expected, the op has %d", name, results, i - 1) end
    made[i] = define_op.note(native.tensor(outputs[i - 1]))
  end
  return made
end

-- The elements of x at positions (a tensor) along an axis: tensors of one shape but there. gradient flows to x.
function tools.take_along(x, positions, axis)
  return tools.apply("take_along", { x, positions }, function(a) a.along.axis = axis - 1 end)
end

-- Rows of a table by numbers from 0.
function tools.gather(rows, numbers)
  return tools.apply("gather", { rows, numbers })
end

-- The rows of x in the order of numbers {rows} from 0, int32 where the rows are those of the batch.
function tools.rows_in_order(x, numbers)
  local dims = tensor.raw_shape(x)
  if dims[1] >= 0 then return tools.gather(x, numbers) end
  local ones = {}
  for i = 2, #dims do ones[i - 1] = 1 end
  return tools.take_along(x, ops.reshape_raw(numbers, { dims[1], unpack(ones) }) + ops.zeros_like(x):to("int32"), 1)
end

-- A table of these dimensions with values, floats, added to its rows of these numbers from 0.
function tools.scatter_rows(values, numbers, dims)
  return tools.apply("gather_gradient", { values, numbers }, function(a)
    a.shape.rank = #dims
    for i = 1, #dims do a.shape.dims[i - 1] = dims[i] end
  end)
end

-- The positions, from 1 or from base, of the elements along an axis in their order; count: of the first ones only.
function tools.argsort(x, axis, descending, base, count)
  return tools.apply("argsort", { x }, function(a)
    a.along.axis, a.along.base, a.along.reverse, a.along.size = axis - 1, base or 1, descending and 1 or 0, count or 0
  end)
end

return tools
