-- operations.lua: ops on symbolic tensors, x * 2 + 1 or flow.concat { a, b }, as Keras writes them: operations of keras.ops in the list of
-- layers. An entry's config holds what the operation's constructor takes, the call its tensors and numbers.
--
-- A record describes one operation: { name = our op, class_name and module = Keras', tensors = how many operands come first (0: a list of
-- tensors), parameters, rest }. A parameter is { name = in the file, own = here, write and read = conversions, default = here, kwarg = it
-- is in the call and not in the config } or { name =, fixed = the only value that is read }. Records are found by the op (by_op), by the
-- name of a composed op, which may not be loaded yet (by_name), and by Keras' class (by_class); of several ops with one class the first one
-- is read.

local errors = require "flow.errors"
local item_keys = require "flow.saving.item_keys"
local json = require "flow.json"
local native = require "flow.ffi"
local ops = require "flow.tensor.ops"
local own_operations = require "flow.saving.own_operations"
local symbolic = require "flow.layers.symbolic"
local gathered = require("flow.layers.several").gathered
local tensor = require "flow.tensor"
local variable = require "flow.tensor.variable"

local raise = errors.raise
local operations = {}

local NUMPY, NN, CORE = "keras.src.ops.numpy", "keras.src.ops.nn", "keras.src.ops.core"
local LINALG, MATH = "keras.src.ops.linalg", "keras.src.ops.math"

---- parameters --------------------------------------------------------------------------------------------------------

-- A JSON list of values, or of f of each.
local function list_of(values, f)
  local list = json.list()
  for i = 1, #values do list[i] = f and f(values[i]) or values[i] end
  return list
end

local function is_null(value) return value == nil or value == json.null end

-- Axes and positions count from 1 here, from 0 in files; negative ones from the end in both.
local function axis_to_file(axis)
  if axis == nil then return json.null end
  if type(axis) == "table" then return list_of(axis, axis_to_file) end
  return axis > 0 and axis - 1 or axis
end
local function axis_from_file(axis)
  if is_null(axis) then return nil end
  if type(axis) == "table" then
    local list = {}
    for i = 1, #axis do list[i] = axis_from_file(axis[i]) end
    return list
  end
  if type(axis) ~= "number" then raise("an operation's axis is %s, expected a whole number", errors.describe(axis)) end
  return axis >= 0 and axis + 1 or axis
end

-- A value from a file as it is; null is nil.
local function same(value)
  if is_null(value) then return nil end
  return value
end

-- A parameter: its name in the file and in option tables here, how a value goes to the file and comes from it, and the default here.
local function parameter(name, options)
  options = options or {}
  return { name = name, own = options.own or name, write = options.write or function(value) return value end, read = options.read or same,
           default = options.default, kwarg = options.kwarg }
end
local function axis_parameter(default, name)
  return parameter(name or "axis", { write = axis_to_file, read = axis_from_file, default = default })
end
-- Where new axes go: a place, or a list of places.
local NEW_AXES = parameter("axis", { default = 1, write = axis_to_file, read = function(axis)
  if is_null(axis) then raise("ExpandDims in a file has no axis, expected a whole number or a list of them") end
  for _, each in ipairs(type(axis) == "table" and axis or {}) do
    if type(each) == "table" then raise("an operation's axis is a table in a list, expected a whole number") end
  end
  return axis_from_file(axis)
end })
-- What Keras has and we have not: only that value is read.
local function fixed(name, value)
  return { name = name, fixed = value == nil and json.null or value }
end

local function in_table(name)      -- an option that our op takes in a table only
  return function(value)
    if is_null(value) then return nil end
    return { [name] = value }
  end
end

local AXIS, KEEPDIMS = axis_parameter(), parameter("keepdims", { default = false })
local REDUCTION, LAST = { AXIS, KEEPDIMS }, { axis_parameter(-1) }

-- {before, after} for each axis, as flow.pad takes widths.
local function write_widths(widths, node)
  local list = json.list()
  for axis = 1, #node.inputs[1].shape do
    local pair = type(widths) == "number" and { widths, widths } or type(widths[1]) == "number" and widths or widths[axis]
    list[axis] = { pair[1], pair[2] }
  end
  return list
end

-- What to() was given: a dtype, not a device.
local function write_dtype(name)
  if not native.dtypes[name] then raise("to(%q) on a symbolic tensor names a device, which has no form in a file", tostring(name)) end
  return name
end

---- the table ---------------------------------------------------------------------------------------------------------

-- Operations with parameters: our name, Keras' class, its module, the number of tensors and numbers that a call takes first (0: one list of
-- tensors), and the parameters in the order in which our op takes them. rest: the last parameter takes all further arguments, as a list.
local TABLE = {
  { "round", "Round", NUMPY, 1, { parameter("decimals", { default = 0 }) } }, { "isnan", "Isnan", NUMPY, 1 },
  { "elu", "Elu", NN, 1, { parameter("alpha", { default = 1 }) } },
  { "leaky_relu", "LeakyRelu", NN, 1, { parameter("negative_slope", { default = 0.2 }) } },
  { "gelu", "Gelu", NN, 1, { parameter("approximate", { default = true }) } },
  { "softmax", "Softmax", NN, 1, LAST }, { "log_softmax", "LogSoftmax", NN, 1, LAST },
  { "prod", "Prod", NUMPY, 1, { AXIS, KEEPDIMS, parameter("dtype") } },
  { "mean", "Mean", NUMPY, 1, REDUCTION }, { "var", "Var", NUMPY, 1, REDUCTION }, { "std", "Std", NUMPY, 1, REDUCTION },
  { "max", "Max", NUMPY, 1, { AXIS, KEEPDIMS, parameter("initial") } },
  { "min", "Min", NUMPY, 1, { AXIS, KEEPDIMS, parameter("initial") } },
  { "exponential", "Exp", NUMPY, 1 }, { "swish", "Silu", NN, 1 }, { "hard_swish", "HardSilu", NN, 1 },
  { "true_divide", "TrueDivide", NUMPY, 2 },
  { "classes", "Argmax", NUMPY, 1, { fixed("axis", -1), fixed("keepdims", false) } },
  { "clip", "Clip", NUMPY, 1, { parameter("x_min"), parameter("x_max") } },
  { "cast", "Cast", CORE, 1, { parameter("dtype") } }, { "to", "Cast", CORE, 1, { parameter("dtype", { write = write_dtype }) } },
  { "concat", "Concatenate", NUMPY, 0, { axis_parameter(1) } }, { "stack", "Stack", NUMPY, 0, { axis_parameter(1) } },
  { "reshape", "Reshape", NUMPY, 1, { parameter("newshape", { write = function(shape) return list_of(shape) end }) }, rest = true },
  { "transpose", "Transpose", NUMPY, 1, { axis_parameter(nil, "axes") } },
  { "permute", "Transpose", NUMPY, 1, { axis_parameter(nil, "axes") }, rest = true },
  { "swapaxes", "Swapaxes", NUMPY, 1, { axis_parameter(nil, "axis1"), axis_parameter(nil, "axis2") } },
  { "expand_dims", "ExpandDims", NUMPY, 1, { NEW_AXES } }, { "squeeze", "Squeeze", NUMPY, 1, { AXIS } },
  { "flatten", "Ravel", NUMPY, 1 }, { "flip", "Flip", NUMPY, 1, { AXIS } },
  { "split", "Split", NUMPY, 1, { parameter("indices_or_sections"), axis_parameter(1) } },
  { "unstack", "Unstack", CORE, 1, { parameter("num"), axis_parameter(1) } },
  { "tile", "Tile", NUMPY, 1, { parameter("repeats") } }, { "repeat_", "Repeat", NUMPY, 1, { parameter("repeats"), AXIS } },
  { "pad", "Pad", NUMPY, 1, { parameter("pad_width", { write = write_widths }), parameter("mode", { default = "constant" }),
                              parameter("constant_values", { kwarg = true }) } },
  { "one_hot", "OneHot", NN, 1, { parameter("num_classes"), parameter("dtype", { default = "float32", read = in_table "dtype" }),
                                  fixed("axis", -1), fixed("sparse", false) } },
  { "zeros_like", "ZerosLike", NUMPY, 1, { parameter("dtype", { read = in_table "dtype" }) } },
  { "ones_like", "OnesLike", NUMPY, 1, { parameter("dtype", { read = in_table "dtype" }) } },
  { "take", "Take", NUMPY, 1, { parameter("positions", { write = axis_to_file, read = axis_from_file, kwarg = true }), AXIS } },
}

-- The same of ops that are composed of others: they are looked up when they are used, since each loads the file that it is in. Their names
-- here, with Keras' classes where these are not the names in another form.
local COMPOSED = {
  { NUMPY, 1, [[exp2 log2 log10 cbrt arcsin arccos sinh cosh arcsinh arccosh arctanh deg2rad rad2deg sinc i0 trunc isinf isposinf isneginf
    fliplr flipud]] },
  { NUMPY, 2, "arctan2 hypot fmod fmax fmin logaddexp logaddexp2 heaviside" },
  { NUMPY, 1, "tril triu", { parameter("k", { default = 0 }) } },
  { NUMPY, 1, "cumsum cumprod", { AXIS } }, { NUMPY, 1, "sort", LAST },
  { NUMPY, 1, "moveaxis", { axis_parameter(nil, "source"), axis_parameter(nil, "destination") } },
  { NN, 1, "log_sigmoid tanh_shrink hard_tanh sparse_sigmoid sparse_plus" }, { NN, 1, "celu", { parameter("alpha", { default = 1 }) } },
  { NN, 1, "hard_shrink soft_shrink", { parameter("threshold", { default = 0.5 }) } },
  { NN, 1, "threshold", { parameter "threshold", parameter "default_value" } }, { NN, 1, "glu sparsemax", LAST },
  { NN, 1, "normalize", { axis_parameter(-1), parameter("order", { default = 2 }), parameter "epsilon" } },
  { LINALG, 1, "det inv eigh" }, { NUMPY, 1, "slogdet" }, { MATH, 1, "logdet" }, { LINALG, 2, "solve" },
  { LINALG, 1, "cholesky cholesky_inverse", { parameter("upper", { default = false }) } },
  { LINALG, 2, "solve_triangular", { parameter("lower", { default = false }) } },
  { LINALG, 1, "qr", { parameter("mode", { default = "reduced" }) } }, { LINALG, 2, "lstsq", { parameter "rcond" } },
  { LINALG, 1, "svd=SVD", { parameter("full_matrices", { default = true }), parameter("compute_uv", { default = true }) } },
  { LINALG, 1, "norm", { parameter "ord", AXIS, KEEPDIMS } },
  { MATH, 0, "fft=FFT fft2=FFT2 ifft2=IFFT2" }, { MATH, 1, "rfft=RFFT", { parameter "fft_length" } },
  { MATH, 0, "irfft=IRFFT", { parameter "fft_length" } },
  { MATH, 1, "stft=STFT", { parameter "sequence_length", parameter "sequence_stride", parameter "fft_length",
                           parameter("window", { default = "hann" }), parameter("center", { default = true }) } },
  { NUMPY, 1, "copy fabs signbit bitwise_invert bitwise_not" }, { MATH, 1, "erfinv" }, { MATH, 2, "cdist=CDist" },
  { NUMPY, 2, [[bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift left_shift right_shift logical_xor gcd lcm
    ldexp]] },
  { NUMPY, 1, "median ptp nanmax nanmean nanmedian nanmin nanprod nanstd nansum nanvar", REDUCTION },
  { NUMPY, 1, "nan_to_num", { parameter("nan", { default = 0 }), parameter "posinf", parameter "neginf" } },
  { NUMPY, 1, "count_nonzero", { AXIS } }, { NUMPY, 2, "append", { AXIS } }, { NUMPY, 0, "hstack dstack" },
  { NUMPY, 1, "diff", { parameter("n", { default = 1 }), axis_parameter(-1) } }, { NUMPY, 1, "roll", { parameter "shift", AXIS } },
  { NUMPY, 1, "diagonal trace", { parameter("offset", { default = 0 }), axis_parameter(1, "axis1"), axis_parameter(2, "axis2") } },
  { NN, 1, "squareplus", { parameter("b", { default = 4 }) } },
  { NN, 1, "moments", { axis_parameter(nil, "axes"), KEEPDIMS, fixed("synchronized", false) } },
  { NN, 1, "space_to_depth depth_to_space", { parameter "block_size", parameter("data_format", { default = "channels_last" }) } },
  { NN, 2, "binary_crossentropy", { parameter("from_logits", { default = false }) } },
  { NN, 2, "categorical_crossentropy", { parameter("from_logits", { default = false }), axis_parameter(-1) } },
}

local by_op, by_class, by_name = {}, {}, {}

for _, entry in ipairs(COMPOSED) do
  for name, class_name in entry[3]:gmatch "([%w_]+)=?([%w_]*)" do
    if class_name == "" then class_name = ("_" .. name):gsub("_(%w)", string.upper) end
    by_name[name] = { name = name, class_name = class_name, module = entry[1], tensors = entry[2], parameters = entry[4] or {} }
    by_class[class_name] = by_name[name]
  end
end

-- Adds a record of an op that is loaded; an earlier one of the same op or class stays.
local function add(name, class_name, module, tensors, parameters, rest)
  local record = { name = name, class_name = class_name, module = module, tensors = tensors, parameters = parameters or {}, rest = rest }
  local op = ops[name]
  if op then by_op[op] = by_op[op] or record end
  by_class[class_name] = by_class[class_name] or op and record
end

for _, entry in ipairs(TABLE) do add(entry[1], entry[2], entry[3], entry[4], entry[5], entry.rest) end

-- Operations that are one op: the library's table, from which models without Lua read them, too.
for index = 0, math.huge do
  local row = native.text(native.C.flow_operation_row, index)
  if row == "" then break end
  local name, class_name, module, tensors, kind = row:match("^(%S+) (%S+) (%S+) (%d) (%S+)$")
  add(name, class_name, "keras.src.ops." .. module, tonumber(tensors), kind == "reduction" and REDUCTION or {})
end
by_class.Divide, by_class.Amax, by_class.Amin = by_class.TrueDivide, by_class.Max, by_class.Min
by_op[tensor.select] = { name = "index", class_name = "GetItem", module = NUMPY, tensors = 1, parameters = {} }
by_class.GetItem = by_op[tensor.select]

---- writing -----------------------------------------------------------------------------------------------------------

-- Whether a layer of a graph stands for an operation on symbolic tensors.
function operations.is(layer)
  return type(layer) == "table" and rawget(layer, "_operation") ~= nil
end

-- The names of an op, and its record or nil: Keras has no such operation.
local function names_of(op)
  local names, record = {}, by_op[op]      -- of a composed op, whose file is loaded, since it was called
  for name, value in pairs(ops) do
    if value == op then names[#names + 1] = name end
  end
  table.sort(names)
  for _, name in ipairs(names) do record = record or by_name[name] end
  return names, record
end

-- Whether a value is a table of options.
local function is_named(value)
  if type(value) ~= "table" or getmetatable(value) then return false end
  local key = next(value)
  return key ~= nil and type(key) ~= "number"
end

-- The arguments after the tensors, by the names of the record's parameters; those that it has not as well.
local function given_parameters(record, operation)
  local given, first = {}, math.max(record.tensors, 1)
  if record.class_name == "GetItem" then return given end
  if record.rest then
    local value = operation.operands[first + 1]
    given[record.parameters[1].own] = type(value) == "table" and value or { unpack(operation.operands, first + 1, operation.count) }
    return given
  end
  -- Arguments by position, of which a table with names holds options, and an empty one none.
  for i = 1, operation.count - first do
    local own, value = record.parameters[i], operation.operands[first + i]
    if is_named(value) then
      for name, inner in pairs(value) do given[name] = inner end
    elseif own and own.own then
      given[own.own] = value
    elseif value ~= nil and not (type(value) == "table" and next(value) == nil) then
      given[first + i] = value
    end
  end
  return given
end

-- Whether an argument is a tensor, or a list with symbolic ones.
local function holds_tensors(value)
  return native.is_tensor(value) or symbolic.is(value) or type(value) == "table" and symbolic.any(value)
end

-- Whether Keras' operation takes what was given.
local function fits(record, operation)
  if record.class_name == "GetItem" then return true end
  for i = 1, record.tensors do
    local operand = operation.operands[i]
    if operand == nil or not symbolic.is(operand) and symbolic.any(operand) then return false end
  end
  local known = {}
  for _, own in ipairs(record.parameters) do known[own.own or false] = true end
  for name, value in pairs(given_parameters(record, operation)) do
    if not known[name] or holds_tensors(value) then return false end
  end
  return true
end

-- Operations whose arguments are bound by name, in a separate file, which few programs need.
local function bound() return require "flow.saving.bound_operations" end

local class_names = setmetatable({}, { __mode = "k" })

-- The name of Keras' class for an op, as summaries show it; else the op's own; nil: it is none of ours.
function operations.class_name(op)
  if class_names[op] == nil then
    local names, record = names_of(op)
    local name = record and record.class_name or names[1]
    class_names[op] = name and name:gsub("^%l", string.upper):gsub("_(%l)", string.upper) or false
  end
  return class_names[op] or nil
end

-- The record of an operation in a model, as far as Keras has one that takes these arguments; else nil, the op's name and, if Keras binds
-- the arguments by name, what bound.written gives.
local function record_of(layer)
  local names, record = names_of(layer._operation.op)
  if record and fits(record, layer._operation) then return record end
  local written = bound().written(layer._operation, names)
  if written then return nil, written.record.name, written end
  return nil, names[1] or raise("%s stands for a function of the script, which a file cannot hold", layer.name)
end

-- The value of a parameter as a file has it. node: the call, whose input tells the number of axes.
local function file_value(own, given, node)
  local value = given[own.own]
  if value == nil then value = own.default end
  if value == nil then return json.null end
  return own.write(value, node)
end

-- A list of numbers as JSON numbers, those of floats with a point.
local function values_json(value, is_float)
  if type(value) == "table" then return list_of(value, function(inner) return values_json(inner, is_float) end) end
  if type(value) == "number" and is_float then return json.real(value) end
  return type(value) == "cdata" and json.printed((tostring(value):gsub("LL$", ""))) or value
end

-- A tensor or nested lists beside symbolic tensors: a constant of the call.
local function constant_json(value, what)
  if variable.is_variable(value) then raise("%s is a variable, which a file keeps in a layer only", what) end
  local t = ops.operand(value, nil, what)
  return { class_name = "__tensor__", config = { value = values_json(t:totable(), t.dtype:find("float") ~= nil), dtype = t.dtype } }
end

-- The entry of an operation in the list of layers.
function operations.entry(layer)
  local record, name, written = record_of(layer)
  local content = written and bound().content(written) or {}
  content.name = layer.name
  if written then
    record = written.record
    return { module = record.module, class_name = record.class_name, config = content, registered_name = record.class_name }
  end
  if not record then return own_operations.entry(layer, name, constant_json) end
  local given = given_parameters(record, layer._operation)
  for _, own in ipairs(record.parameters) do
    if own.fixed ~= nil then content[own.name] = own.fixed
    elseif not own.kwarg then content[own.name] = file_value(own, given, layer._nodes[1]) end
  end
  return { module = record.module, class_name = record.class_name, config = content, registered_name = record.class_name }
end

-- The args and kwargs of a call; reference(t) of tensors.
function operations.arguments(layer, node, reference)
  local operation, args, kwargs, next_input = layer._operation, json.list(), {}, 1
  local record, _, written = record_of(layer)
  if written then
    return bound().arguments(written, function()
      next_input = next_input + 1
      return reference(node.inputs[next_input - 1])
    end, constant_json)
  end
  if not record then return list_of(node.inputs, reference), kwargs end
  local function operand_json(operand, what)
    if symbolic.is(operand) then
      next_input = next_input + 1
      return reference(node.inputs[next_input - 1])
    elseif type(operand) == "number" then      -- 2.0 would make float32 of whole numbers in Keras
      local is_whole = operand % 1 == 0 and node.outputs[1].dtype:find("int", 1, true)
      return is_whole and operand or json.real(operand)
    elseif type(operand) == "boolean" then return operand
    elseif operand == nil then raise("%s is nil", what) end
    return constant_json(operand, what)
  end
  if record.tensors == 0 then
    args[1] = list_of(operation.operands[1], function(operand) return operand_json(operand, "an operand of " .. record.name) end)
  end
  for i = 1, record.tensors do      -- Lua gives the operand of a minus twice
    args[i] = operand_json(operation.operands[i], ("operand %d of %s"):format(i, record.name))
  end
  if record.class_name == "GetItem" then args[2] = item_keys.to_file(operation.operands[2]) end
  local given = given_parameters(record, operation)
  for _, own in ipairs(record.parameters) do
    if own.kwarg and given[own.own] ~= nil then
      if own.name == "positions" then args[2] = file_value(own, given, node) else kwargs[own.name] = file_value(own, given, node) end
    end
  end
  return args, kwargs
end

---- reading -----------------------------------------------------------------------------------------------------------

-- The record of an entry by which it is read from position to position. nil: it has another value of what is fixed there, no
-- axis or window where that is not the default, or positions, which may be a tensor.
local function record_for(entry)
  local record, content = by_class[entry.class_name], type(entry.config) == "table" and entry.config or {}
  if not record or record.module ~= entry.module then return nil end
  for _, own in ipairs(record.parameters) do
    local value = content[own.name]
    if own.fixed ~= nil and value ~= nil and value ~= own.fixed or own.name == "positions" then return nil end
    if (own.default == -1 or own.name == "window") and value == json.null then return nil end
  end
  return record
end

-- Whether an entry of a file is an operation that operations.read can make.
function operations.knows(entry)
  if own_operations.knows(entry) then return true end
  return operations.is_of_keras(entry) and (by_class[entry.class_name] ~= nil or bound().of(entry) ~= nil)
end

-- Whether an entry is an operation of keras.ops, which may not be known here.
function operations.is_of_keras(entry)
  return type(entry.module) == "string" and entry.module:find "^keras%.src%.ops%." ~= nil
end

-- Classes of operations that call a function.
local TAKE_FUNCTIONS = " AssociativeScan Cond ForiLoop Map Scan Switch VectorizedMap WhileLoop "

-- Raises that an operation of keras.ops is not known here, and what to write instead.
function operations.refuse(entry, path)
  local class = entry.class_name
  local name = class:gsub("(%l)(%u)", "%1_%2"):gsub("(%u)(%u%l)", "%1_%2"):lower()
  local hint = errors.elsewhere("flow", name) or ""
  if hint == "" and TAKE_FUNCTIONS:find(" " .. class .. " ", 1, true) then
    hint = ("; Lua cannot read its Python function: make the model in Lua, with flow.%s, and load its weights"):format(name)
  elseif hint == "" then
    hint = ops[name] and ("; flow.%s computes it of what the model predicts"):format(name)
      or "; leave it out of the model and compute it of what the model predicts"
  end
  raise("%s: it has the operation %s of keras.ops, which is not supported in files of models%s", path, class, hint)
end

-- The entry of a constant of a call.
function operations.tensor_entry(value) return constant_json(value, "a constant of a call") end

-- A constant that a file holds, or nil.
function operations.constant(value)
  if value.class_name ~= "__tensor__" and value.class_name ~= "__numpy__" then return nil end
  local content = value.config
  if type(content) ~= "table" or is_null(content.value) then raise("a constant of a call has no value") end
  return tensor.tensor(content.value, { dtype = content.dtype })
end

-- A function of the args and kwargs of a call. The first one gets the name that the file has for it.
function operations.read(entry)
  local record, content = record_for(entry), type(entry.config) == "table" and entry.config or {}
  local by_names = not record and not own_operations.knows(entry) and bound().of(entry)
  record = record or not by_names and by_class[entry.class_name]
  local op, name = record and ops[record.name], type(entry.config) == "table" and entry.config.name or entry.name
  local function named(...)      -- several results are a list
    local result = gathered(...)
    local first = type(result) == "table" and not symbolic.is(result) and result[1] or result
    if symbolic.is(first) and type(name) == "string" then rawset(first.layer, "name", name) end
    name = nil
    return result
  end
  if own_operations.knows(entry) then
    return function(args) return named(own_operations.call(entry, args, operations.constant)) end
  end
  return function(args, kwargs)
    if by_names then return named(bound().call(entry, args, kwargs, operations.constant)) end
    local list, count = {}, math.max(record.tensors, 1)
    if record.class_name == "GetItem" then return named(args[1][item_keys.from_file(args[2], args[1])]) end
    for i = 1, count do
      list[i] = args[i]
      if list[i] == nil or i > 1 and i == count and not list[i] and not list[i - 1] then      -- false stands for null
        raise("%s: a call with %d operands is not supported, it takes %d", entry.class_name, i - 1, count)
      end
    end
    for i, own in ipairs(record.parameters) do
      local value = content[own.name]
      if own.kwarg then value = kwargs[own.name] end
      if own.name == "positions" then value = args[count + 1] end
      if own.fixed ~= nil then
        if value ~= nil and value ~= own.fixed then
          raise("%s: %s = %s is not supported", entry.class_name, own.name, tostring(value))
        end
      else
        count = math.max(record.tensors, 1) + i
        list[count] = own.read(value)
      end
    end
    return named(op(unpack(list, 1, count)))
  end
end

return operations
