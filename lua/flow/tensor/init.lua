-- init.lua: what a tensor is in Lua: how it is made, its fields, its values as Lua values, its text. Arithmetic is in
-- ops.lua, a[i] in indexing.lua; both add to native.methods, where a tensor's methods are looked up.
--
-- The room: tensors, ops, variables, tapes, traced functions. May use: nothing.

local native = require "flow.ffi"
local errors = require "flow.errors"
local devices = require "flow.devices"
local scopes = require "flow.scopes"
local signature = require "flow.signature"
local define_op = require "flow.tensor.define_op"
local integers = require "flow.tensor.integers"

local C, check, raise = native.C, native.check, errors.raise
local methods, hooks = native.methods, native.hooks
local is_tensor, pointer = native.is_tensor, native.pointer

-- Its functions with a text are those of flow. Some are in files that are loaded when the first of them is asked for:
-- positions in brackets, memory of others, files.
local ELSEWHERE = { select = "flow.tensor.indexing", assign = "flow.tensor.indexing", frombuffer = "flow.tensor.memory",
                    save_npy = "flow.tensor.memory", load_npy = "flow.tensor.memory", load_npz = "flow.tensor.memory",
                    save_npz = "flow.tensor.memory" }
local tensor = signature.module("flow", {}, function(module, name)
  if not ELSEWHERE[name] then return nil end
  require(ELSEWHERE[name])
  return rawget(module, name)
end, true)
local takes = signature.takes
local one = native.out("flow_tensor")

---- devices -----------------------------------------------------------------------------------------------------------

tensor.is_device = devices.is_name

-- Number of the device that an option names, or where tensors are made now (nil); raises unless it exists.
function tensor.device_number(name)
  if name == nil then return devices.current() end
  return devices.number(name)
end

---- traced tensors --------------------------------------------------------------------------------------------------------

-- The functions that the running coroutine is tracing, innermost last, as "file:line".
local function tracing()
  local own = scopes.own()
  own.tracing = own.tracing or {}
  return own.tracing
end

-- native.while_tracing, of a function that is there.
function tensor.while_tracing(where, begin, f, ...)
  local list = tracing()
  local depth = #list
  return native.between(function() list[depth + 1] = where end, function()
    for i = #list, depth + 1, -1 do list[i] = nil end
  end, native.while_tracing, begin, f, ...)
end

-- Whether the running coroutine traces a function.
function tensor.is_tracing() return #tracing() > 0 end

function tensor.is_symbolic(t)
  return C.flow_tensor_is_symbolic(pointer(t)) ~= 0
end

-- Raises if t stands for a value that exists only when a plan runs; what names the attempt: "item()".
local function need_value(t, what)
  local p = pointer(t)
  if C.flow_tensor_is_symbolic(p) ~= 0 then require "flow.tensor.values.missing" (what, tracing()) end
  return p
end
tensor.need_value = need_value

---- new tensors -----------------------------------------------------------------------------------------------------------

local function is_list(value)
  return type(value) == "table" and (value[1] ~= nil or next(value) == nil)
end

local function is_whole(n) return type(n) == "number" and n >= 0 and n == math.floor(n) and n < 2 ^ 53 end

-- The dimensions of a shape that a user gave, as the library has them: negative where they count rows of a batch in a trace (shapes.lua).
local function check_dims(what, shape)
  if type(shape) == "number" then shape = { shape } end
  local plain = type(shape) == "table" and not getmetatable(shape)
  for i = 1, plain and errors.check_list(what .. ": the shape", shape) or 0 do plain = plain and is_whole(shape[i]) end
  return plain and shape or require("flow.tensor.shapes").check_dims(what, shape)
end
tensor.check_dims = check_dims

-- The values of t on a device: t itself where it is there. A tape that records sees a copy.
function tensor.to_device(t, number)
  if C.flow_tensor_is_symbolic(pointer(t)) ~= 0 or C.flow_tensor_device(pointer(t)) == number then return t end
  native.try(C.flow_tensor_to_device, native.context, pointer(t), number, one)
  return native.tensor(one[0])
end

-- The same on the host, for functions that read the elements there.
function tensor.on_host(t)
  return tensor.to_device(t, -1)
end

-- What a function that makes tensors returns: t where its options want it.
local function placed(t, options)
  local moved = tensor.to_device(t, tensor.device_number(options.device))
  if moved.p ~= t.p then t:close() end
  return moved
end

-- A new tensor of zeros on a device of that number; without it on the host. dtype is a number of enum flow_dtype.
local function new(dtype, shape, device)
  local dims, rank = native.dims(shape)
  native.try(C.flow_tensor_new_on, native.context, device or -1, dtype, rank, dims, one)
  return define_op.note(native.tensor(one[0]))
end
tensor.new = new

-- Raises if dtype is one of integers that do not hold a user's number.
function tensor.check_holds(dtype, value, what)
  if dtype < C.FLOW_INT8 or dtype > C.FLOW_INT64 then return end
  require("flow.tensor.values.integer_range").check(dtype, value, what or "flow.full")
end
local check_holds = tensor.check_holds

-- Sets all elements to a number, a boolean or a 64-bit integer.
local function fill(t, value, what)
  if type(value) == "boolean" then value = value and 1 or 0 end
  local dtype = C.flow_tensor_dtype(t.p)
  if integers.is(value) and dtype == C.FLOW_INT64 then return integers.fill(t.p, value, what or "flow.full") or t end
  check_holds(dtype, value, what)
  check(C.flow_tensor_fill(t.p, tonumber(value)))
  return t
end
tensor.fill = fill

-- A rank 0 tensor; value is a number or an int64_t.
function tensor.scalar(dtype, value)
  native.try(C.flow_tensor_scalar, dtype, tonumber(value), one)
  local t = native.tensor(one[0])
  return integers.is(value) and dtype == C.FLOW_INT64 and fill(t, value) or t
end

-- The dtype number that options ask for, else the default.
local function wanted_dtype(options, default)
  return native.dtype(options.dtype or default)
end

-- A tensor of one value (nil: 0), where and of what dtype the options say.
local function new_by(options, default, shape, value)
  local dtype = wanted_dtype(options, default)
  if shape[1] and shape[1] < 0 then return require("flow.tensor.ops").full_raw(nil, shape, value or 0, dtype) end
  local made = new(dtype, shape, tensor.device_number(options.device))
  return value == nil and made or fill(made, value)
end

takes "shape..., { dtype?, device? }"
function tensor.zeros(shape, options)
  return new_by(options, "float32", check_dims("flow.zeros", shape))
end

takes "shape..., { dtype?, device? }"
function tensor.ones(shape, options)
  return new_by(options, "float32", check_dims("flow.ones", shape), 1)
end

takes "shape, value, { dtype?; device? }"
function tensor.full(shape, value, options)
  local dims = check_dims("flow.full", shape)
  local kind = type(value)
  if native.is_tensor(value) then
    if options.dtype then value = value:to(options.dtype) end
    value = value:broadcast_to(dims)
    return options.device and placed(value, options) or value
  end
  if kind ~= "number" and kind ~= "boolean" and not integers.is(value) then
    raise("flow.full: the value is a number, a boolean or a tensor, got %s", errors.describe(value))
  end
  return new_by(options, kind == "boolean" and "bool" or kind == "cdata" and "int64" or "float32", dims, value)
end

-- eye(n [, m [, k]] [, options]): ones on the diagonal, or k above it.
takes "n: whole, m?: whole, k: integer = 0, { dtype?; device? }"
function tensor.eye(n, m, k, options)
  return require("flow.tensor.composed.spaces").eye(n, m or n, k, options, new_by)
end

-- arange(stop), arange(start, stop [, step]) [, options]: start, start + step ... before stop; of whole numbers int32 if it holds all, else
-- int64, as of 64-bit integers.
takes "start: numeric, stop?: numeric, step?: numeric, { dtype?; device? }"
function tensor.arange(start, stop, step, options)
  local exact, dtype
  start, stop, step, exact = integers.range("flow.arange", start, stop, step or 1)
  if exact then
    dtype = wanted_dtype(options, "int64")
    native.try(C.flow_tensor_arange_integers, dtype, start, stop, step, one)
  else
    local count = math.max(0, math.ceil((stop - start) / step))
    if not (count < 2 ^ 53) then raise("flow.arange: from %g to %g in steps of %g there is no end", start, stop, step) end
    dtype = require("flow.tensor.values.integer_range").dtype_of(options.dtype, start, stop, step, count)
    native.try(C.flow_tensor_arange, dtype, start, step, count, one)
  end
  local t = native.tensor(one[0])
  for _, i in ipairs(t.size > 0 and { 0, t.size - 1 } or {}) do check_holds(dtype, start + i * step, "flow.arange") end
  return placed(t, options)
end

local function number_of(value)
  if native.is_tensor(value) and #value.shape == 0 then return value:item() end
  return tonumber(value) or value
end

-- num numbers from start to stop; { endpoint = false } leaves stop out, { retstep = true } returns the step, too. Where start or stop is a
-- tensor with axes, the numbers between their elements stand along a new axis, `axis`.
takes [[start: scalar|list, stop: scalar|list, num: whole = 50, { endpoint: boolean = true, retstep: boolean = false, dtype?,
  axis: integer = 1; device? }]]
function tensor.linspace(start, stop, num, options)
  check_dims("flow.linspace", { num })
  return require("flow.tensor.composed.spaces").linspace(number_of(start), number_of(stop), num, options, placed)
end

---- Lua values to tensors ---------------------------------------------------------------------------------------------------

-- Shape of nested lists by their first entries, and whether the leaves are booleans.
local function shape_of(value, shape)
  shape = shape or {}
  if type(value) ~= "table" then return shape, value end
  shape[errors.deeper("flow.tensor", #shape)] = #value
  if #value == 0 then
    if getmetatable(value) then raise("flow.tensor: %s is not a value", errors.describe(value)) end
    if next(value) ~= nil then raise("flow.tensor: a table with names is not a value; it has %q", tostring(next(value))) end
    return shape, nil
  end
  return shape_of(value[1], shape)
end

local function path_text(path)
  return "[" .. table.concat(path, "][") .. "]"
end

-- Writes the leaves of nested lists into values from position n on; returns the position after them. values.numbers holds doubles,
-- values.exact the 64-bit integers by position, values.fractions says whether a leaf is not whole.
local function flatten(value, shape, depth, values, n, path)
  if depth > #shape then
    local kind = type(value)
    if kind == "number" then
      values.numbers[n] = value
      values.fractions = values.fractions or value ~= math.floor(value)
    elseif kind == "boolean" then values.numbers[n] = value and 1 or 0
    elseif integers.is(value) then values.numbers[n], values.exact[n] = tonumber(value), value
    elseif is_tensor(value) then values.tensors = true
    elseif kind == "table" then
      raise("flow.tensor: the value at %s is a table where a number was expected: the lists differ in depth", path_text(path))
    else raise("flow.tensor: the value at %s is %s, expected a number", path_text(path), errors.describe(value)) end
    return n + 1
  end
  if type(value) ~= "table" then
    raise("flow.tensor: the value at %s is %s where a list of %d was expected", path_text(path), errors.describe(value), shape[depth])
  end
  if table.maxn(value) > #value then
    raise("flow.tensor: the list%s has a hole: its entry %d is nil, but it continues to %d", #path > 0 and " at " .. path_text(path) or "",
      #value + 1, table.maxn(value))
  end
  if #value ~= shape[depth] then
    raise("flow.tensor: the list%s has %d entries, its neighbours have %d: all rows need the same length",
      #path > 0 and " at " .. path_text(path) or "", #value, shape[depth])
  end
  for i = 1, #value do
    path[depth] = i
    n = flatten(value[i], shape, depth + 1, values, n, path)
  end
  path[depth] = nil
  return n
end

-- flow.tensor(number | boolean | nested lists (strings: strings.lua) | numeric cdata array | tensor [, options]): always a copy.
takes "value?: data, { dtype?; device? }"
function tensor.tensor(value, options)
  local kind = type(value)
  if kind == "cdata" then
    if is_tensor(value) then
      local number, own = tensor.device_number(options.device), C.flow_tensor_device(pointer(value))
      if not options.device and number < 0 then number = own end
      if options.dtype and options.dtype ~= value.dtype then value = value:to(options.dtype)
      elseif number == own then value = value:clone() end
      return tensor.to_device(value, number)
    end
    if integers.is(value) then return fill(new_by(options, "int64", {}), value, "flow.tensor") end
    local dtype, shape, memory, unsigned = require("flow.tensor.values.cdata_arrays").describe(value)
    if not dtype then raise("flow.tensor: %s is not a numeric array", tostring(native.typeof(value))) end
    local dims, rank = native.dims(shape)
    check(C.flow_tensor_borrow(memory, native.dtype(dtype), rank, dims, one))
    local source = native.tensor(one[0])
    local t = new(wanted_dtype(options, dtype), shape)
    check(C.flow_tensor_copy(t.p, source.p))
    if unsigned and source.size > 0 and source:min():item() < 0 then
      raise("flow.tensor: the array has an element above 9223372036854775807, the largest int64")
    end
    source:close()
    return placed(t, options)
  elseif kind ~= "number" and kind ~= "boolean" and kind ~= "table" then
    raise("flow.tensor: expected a number, nested lists or an array, got %s%s", errors.describe(value),
      kind == "string" and "; one text is a string of Lua's, flow.tensor { \"a\", \"b\" } holds several" or "")
  end
  local metatable = kind == "table" and getmetatable(value)
  if metatable and metatable.__tensor then return tensor.tensor(metatable.__tensor(value), options) end
  local shape, leaf = shape_of(value)
  if type(leaf) == "string" then return require("flow.tensor.strings").made(value, options) end
  if is_tensor(leaf) then return placed(require "flow.tensor.values.packed" (value, options.dtype), options) end
  local count = 1
  for i = 1, #shape do count = count * shape[i] end
  local values = { numbers = native.array("double", count), exact = {}, fractions = false }
  flatten(value, shape, 1, values, 0, {})
  if values.tensors then return placed(require "flow.tensor.values.packed" (value, options.dtype), options) end
  local exact = next(values.exact) ~= nil
  local t = new(wanted_dtype(options, type(leaf) == "boolean" and "bool" or exact and not values.fractions and "int64" or "float32"), shape)
  local dtype = C.flow_tensor_dtype(t.p)
  local numbers = values.numbers
  if options.dtype then require("flow.tensor.values.integer_range").check_all(dtype, numbers, count, values.exact, "flow.tensor") end
  check(C.flow_tensor_write(t.p, numbers, count))
  if exact and dtype == C.FLOW_INT64 then
    local all = integers.read(t.p)
    for i, integer in pairs(values.exact) do all[i] = integers.of(integer, "flow.tensor") end
    integers.write(t.p, all)
  end
  return placed(t, options)
end

---- fields -------------------------------------------------------------------------------------------------------------------

local fields = native.fields

local function shape_table(p)
  local shape = {}
  for i = 1, C.flow_tensor_rank(p) do shape[i] = C.flow_tensor_dim(p, i - 1) end
  return shape
end

-- The dimensions as a plain list, negative where they count rows of a batch (for lua/flow; users read t.shape).
function tensor.raw_shape(t)
  return shape_table(pointer(t))
end

function tensor.shape_text(shape)
  local parts = {}
  for i = 1, #shape do
    local n = type(shape[i]) == "number" and shape[i] or require("flow.tensor.shapes").raw(shape[i])
    parts[i] = n < 0 and (n == -1 and "None" or ("%d*None"):format(-n)) or ("%d"):format(n)
  end
  return "{" .. table.concat(parts, ", ") .. "}"
end

function fields.shape(t)
  return require "flow.tensor.shape_list" (shape_table(pointer(t)), tensor)
end
function fields.dtype(t) return native.dtype_names[C.flow_tensor_dtype(pointer(t))] end
function fields.device(t) return devices.name(C.flow_tensor_device(pointer(t))) end
function fields.rank(t) return C.flow_tensor_rank(pointer(t)) end
function fields.size(t)      -- as flow.shape(x)[1] times a number in a trace that does not know the rows
  local size = C.flow_tensor_size(pointer(t))
  return size >= 0 and size or require("flow.tensor.shapes").size_of(shape_table(pointer(t)))
end
fields.ndim = fields.rank
-- Which of its steps count, as a layer set it; nil: it has no mask. Ops give tensors without one.
function fields._keras_mask(t)
  local mask = C.flow_tensor_mask(pointer(t))
  return mask ~= nil and native.tensor(C.flow_tensor_retain(mask)) or nil
end

local function unknown_rows(...) require("flow.tensor.shapes").unknown(...) end
tensor.unknown_rows = unknown_rows

-- The method of this name, of an op that is made or loaded now if it was not yet; nil: there is none.
function tensor.late_method(name)
  local _ = require("flow.tensor.ops")[name]
  return methods[name]
end

function hooks.index(t, key)
  if type(key) == "string" then
    local method = methods[key]
    if method then return method end
    local field = fields[key]
    if field then return field(t) end
    method = tensor.late_method(key)
    if method then return method end
    local names = {}
    for _, list in ipairs { methods, native.late_methods, fields } do for name in pairs(list) do names[name] = true end end
    raise("a tensor has no field %q%s", key, errors.elsewhere("tensor", key) or errors.suggestion(key, names))
  end
  return tensor.select(t, key)
end

function hooks.newindex(t, key, value)
  if key == "_keras_mask" then return check(C.flow_tensor_set_mask(pointer(t), value ~= nil and pointer(value) or nil)) end
  if type(key) == "string" then raise("a tensor's field %q cannot be set", key) end
  tensor.assign(t, key, value)
end

function hooks.length(t)
  local p = pointer(t)
  if C.flow_tensor_rank(p) == 0 then raise("a tensor of rank 0 has no length") end
  local n = C.flow_tensor_dim(p, 0)
  if n < 0 then unknown_rows("#tensor") end
  return n
end

function hooks.call(t)
  raise("a tensor cannot be called: a[1] and a[{1, 2}] are positions, ipairs(a) is for loops (got %s)", errors.describe(t))
end

function hooks.each(t) return require "flow.tensor.values.each" (t) end      -- ipairs(t), pairs(t)

function hooks.same(a, b)
  return is_tensor(a) and is_tensor(b) and a.p == b.p
end

function hooks.order()
  raise("tensors are compared elementwise by a:lt(b), a:le(b), a:gt(b), a:ge(b)")
end

---- values as Lua values --------------------------------------------------------------------------------------------------------

local number = native.new("double[1]")

-- The only element: a number, a boolean for dtype bool, an int64_t above 2^53 (integers.lua).
define_op.method("item", function(t)
  local p = need_value(t, "item()")
  check(C.flow_tensor_item(p, number))
  local dtype = C.flow_tensor_dtype(p)
  if dtype == C.FLOW_BOOL then return number[0] ~= 0 end
  if dtype == C.FLOW_INT64 and math.abs(number[0]) >= 2 ^ 53 then return integers.to_lua(integers.read(p)[0]) end
  return number[0]
end)

-- Nested Lua lists of what item() gives; a rank 0 tensor gives its value.
define_op.method("totable", function(t)
  local p = need_value(t, "totable()")
  local boolean, whole = C.flow_tensor_dtype(p) == C.FLOW_BOOL, C.flow_tensor_dtype(p) == C.FLOW_INT64
  local values
  if whole then values = integers.read(p) else values = native.doubles(t) end
  local shape, n = shape_table(p), -1
  local function nest(depth)
    if depth > #shape then
      n = n + 1
      if boolean then return values[n] ~= 0 end
      return whole and integers.to_lua(values[n]) or values[n]
    end
    local list = {}
    for i = 1, shape[depth] do list[i] = nest(depth + 1) end
    return list
  end
  return nest(1)
end)

-- A typed cdata pointer to the elements, borrowed: it is good as long as t lives. float16 and bfloat16 come as uint16_t.
define_op.method("data", function(t)
  local p = need_value(t, "data()")
  if C.flow_tensor_is_contiguous(p) == 0 then raise("data(): this tensor is a view with gaps; take :contiguous() first") end
  return native.data(t)
end)

-- Releases the tensor's memory now instead of at the next collection; any later use is an error.
define_op.method("close", function(t)
  native.close_tensor(t)
end)

define_op.method("is_symbolic", function(t)
  return tensor.is_symbolic(t)
end)

function hooks.tostring(t)
  if t.p == nil then return "Tensor (closed)" end
  local p = t.p
  local symbolic = C.flow_tensor_is_symbolic(p) ~= 0
  local header = ("Tensor %s %s %s"):format(native.dtype_names[C.flow_tensor_dtype(p)], tensor.shape_text(shape_table(p)),
    symbolic and "symbolic" or devices.name(C.flow_tensor_device(p)))
  if symbolic then return header end
  return header .. "\n" .. native.text(C.flow_tensor_format, p)
end

tensor.is_list = is_list

return tensor
