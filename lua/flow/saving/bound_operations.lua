-- bound_operations.lua: operations of keras.ops whose arguments are bound by their names: those with tensors that may be left out, tensors
-- in lists, or positions among their values or results, which count from 1 here and from 0 in Keras. operation_classes.lua lists them.
--
-- What is read is one operation again: its op keeps the entry and the call, and files that are written have them as they were.

local errors = require "flow.errors"
local json = require "flow.json"
local native = require "flow.ffi"
local classes = require "flow.saving.operation_classes"
local ops = require "flow.tensor.ops"
local signature = require "flow.signature"
local symbolic = require "flow.layers.symbolic"

local raise = errors.raise
local bound = {}
local by_class, by_name = classes.by_class, classes.by_name

-- What was read, by its op: { entry =, args =, kwargs =, record = }.
bound.kept = setmetatable({}, { __mode = "k" })

-- Our function of a record.
local function function_of(record)
  local name = record.name:match "^image%.(.*)$"
  if name then return require("flow.tensor.composed.image")[name] end
  return record.name == "linspace" and require("flow.tensor").linspace or ops[record.name]
end

local function is_null(value) return value == nil or value == json.null end

-- Positions from 0 as those from 1, and back: numbers, lists of them, and tensors of whole numbers. Negative ones count from the end.
local function shifted(value, by)
  if type(value) == "number" then return value >= (by > 0 and 0 or 1) and value + by or value end
  if native.is_tensor(value) or symbolic.is(value) then
    return by > 0 and ops.where(ops.ge(value, 0), ops.add(value, 1), value) or ops.sub(value, 1)
  end
  if type(value) ~= "table" or getmetatable(value) and not json.is_list(value) then return value end
  local list = {}
  for i = 1, #value do list[i] = shifted(value[i], by) end
  return list
end

---- reading ---------------------------------------------------------------------------------------------------------------------

-- The record of an entry of a file, or nil.
function bound.of(entry)
  return type(entry.module) == "string" and type(entry.class_name) == "string" and by_class[entry.module .. "." .. entry.class_name] or nil
end

-- A value with the tensors of `inputs`, in their order, in place of symbolic ones. state: { next = the number of the next one }.
local function filled(value, inputs, state)
  if symbolic.is(value) then
    state.next = state.next + 1
    return inputs[state.next]
  end
  if type(value) ~= "table" or getmetatable(value) and not json.is_list(value) then return value end
  local result = {}
  for i = 1, #value do result[i] = filled(value[i], inputs, state) end
  for key, inner in pairs(value) do
    if type(key) == "string" then result[key] = inner end
  end
  return result
end

-- The symbolic tensors among values, in their order.
local function collect(value, list)
  if symbolic.is(value) then list[#list + 1] = value
  elseif type(value) == "table" and (not getmetatable(value) or json.is_list(value)) then
    for i = 1, #value do collect(value[i], list) end
  end
  return list
end

-- The arguments of a call by our names, with symbolic tensors where the file names them. constant(table): the tensor that it is, or nil.
local function given_of(record, entry, args, kwargs, constant)
  local given, content = {}, type(entry.config) == "table" and entry.config or {}
  local function put(own, value)
    if own.name == "dtype" and type(value) == "table" then value = nil end      -- a policy, which operations do not use
    if value == json.null and own.mark == "?" then value = false end
    if is_null(value) then return end
    if own.mark == "!" then
      if value == false then return end
      raise("%s: %s = %s is not supported", entry.class_name, own.name, tostring(value))
    end
    if type(value) == "table" and not getmetatable(value) and value.class_name then value = constant(value) or value end
    given[own.own] = value
  end
  for i, own in ipairs(record.call) do
    if own.rest then
      local list = {}
      for k = i, #args do list[#list + 1] = args[k] end
      given[own.own] = list
    else
      local value = args[i] or nil      -- false stands for null there
      if is_null(value) then value = kwargs[own.name] end
      put(own, value)
    end
  end
  if record.class_name == "Rearrange" then      -- lengths are in the call by the names of the axes
    for name, value in pairs(kwargs) do
      if type(value) == "number" then
        given.lengths = given.lengths or {}
        given.lengths[name] = value
      end
    end
  end
  for _, own in ipairs(record.config) do put(own, content[own.name]) end
  return given
end

-- Calls a function with arguments by their names.
local function call_named(f, given)
  local takes, list, options, count = signature.of(f), {}, nil, 0
  for i, own in ipairs(takes.positional) do
    list[i] = given[own.name]
    if list[i] ~= nil then count = i end
  end
  for _, own in ipairs(takes.options or {}) do
    if given[own.name] ~= nil then
      options = options or {}
      options[own.name] = given[own.name]
    end
  end
  if options then
    count = #takes.positional + 1
    list[count] = options
  end
  return f(unpack(list, 1, count))
end

-- The results of a call with those that are positions as Keras has them: int32, counted from 0.
local function from_zero(record, ...)
  if next(record.positions) == nil then return ... end
  local results = { ... }
  local list = #results == 1 and not native.is_tensor(results[1]) and results[1] or results
  for i = 1, #list do
    if record.positions[i] then list[i] = ops.cast(shifted(list[i], -1), "int32") end
  end
  return unpack(results, 1, select("#", ...))
end

-- Calls that are not those of our function with other names: by class, a function of the values by our names, with axes from 1.
local OTHERWISE = {}

function OTHERWISE.Array(values) return values.dtype and ops.cast(values.x, values.dtype) or ops.mul(values.x, 1) end
OTHERWISE.ConvertToTensor = OTHERWISE.Array

function OTHERWISE.Einsum(values) return ops.einsum(values.equation, unpack(values.operands)) end
function OTHERWISE.Meshgrid(values)
  local list = values.vectors
  list[#list + 1] = { indexing = values.indexing }
  return ops.meshgrid(unpack(list))
end

-- Without an axis: over all elements.
local function over_all(f)
  return function(values)
    if values.axis then return f(values.x, values.axis) end
    return ops.reshape(f(ops.reshape(values.x, { -1 }), 1), values.x.shape)
  end
end
OTHERWISE.Softmax, OTHERWISE.LogSoftmax = over_all(ops.softmax), over_all(ops.log_softmax)

function OTHERWISE.ExtractPatches(values)
  local image = require "flow.tensor.composed.image"
  if type(values.size) ~= "table" or #values.size ~= 3 then return call_named(image.extract_patches, values) end
  values.volumes, values.images = values.images, nil
  return call_named(image.extract_patches_3d, values)
end

-- The value may be a tensor.
function OTHERWISE.FullLike(values)
  if not native.is_tensor(values.value) then return call_named(ops.full_like, values) end
  local zeros = ops.zeros_like(values.x, { dtype = values.dtype })
  return ops.add(zeros, ops.cast(values.value, zeros.dtype))
end

-- The starts may be a tensor: then each axis is gathered.
function OTHERWISE.Slice(values)
  if not native.is_tensor(values.starts) then return call_named(ops.slice, values) end
  local x = values.x
  for axis, size in ipairs(values.shape) do
    local first = ops.slice(values.starts, { axis }, { 1 })
    x = ops.take(x, ops.add(require("flow.tensor").arange(0, size, { dtype = first.dtype }), first), axis)
  end
  return x
end

-- Runs a call whose arguments are values of the eager or of the traced kind.
local function run(record, given)
  local values = {}
  for name, value in pairs(given) do values[name] = value end
  for _, list in ipairs { record.call, record.config } do
    for _, own in ipairs(list) do
      local value = values[own.own]
      if own.mark == "@" or own.mark == "%" and type(value) == "table" or own.mark == "?" and own.name == "axis" then
        values[own.own] = shifted(value, 1)
      end
    end
  end
  local otherwise = OTHERWISE[record.class_name]
  if otherwise then return from_zero(record, otherwise(values)) end
  return from_zero(record, call_named(function_of(record), values))
end

-- The result of an entry's call with these args and kwargs. operations.entry and operations.arguments write it as it was: see again.
function bound.call(entry, args, kwargs, constant)
  local record = bound.of(entry)
  local given = given_of(record, entry, args, kwargs, constant)
  local names, inputs = {}, {}
  for _, list in ipairs { record.call, record.config } do
    for _, own in ipairs(list) do
      names[#names + 1] = own.own
      collect(given[own.own], inputs)
    end
  end
  if #inputs == 0 then raise("%s in a file has no tensor among its operands", entry.class_name) end
  local function op(list)
    local values, state = {}, { next = 0 }
    for _, name in ipairs(names) do values[name] = filled(given[name], list, state) end
    return run(record, values)
  end
  bound.kept[op] = { entry = entry, args = args, kwargs = kwargs, record = record }
  return getmetatable(inputs[1]).__apply(op, inputs)
end

---- writing ---------------------------------------------------------------------------------------------------------------------

-- A value of a call or of a config in a file. reference(): the next tensor of the call; constant(value, what).
local function value_json(value, reference, constant, what)
  if value == nil or value == json.null or value == false and reference then return json.null end      -- false: a gap in a list
  if symbolic.is(value) then return reference() end
  if native.is_tensor(value) or native.is_variable(value) then return constant(value, what) end
  if type(value) ~= "table" then return value end
  local list = json.list()
  for i = 1, #value do list[i] = value_json(value[i], reference, constant, what) end
  return list
end

-- Whether there is a tensor of any kind in a value.
local function holds_tensors(value)
  if native.is_tensor(value) or native.is_variable(value) or symbolic.is(value) then return true end
  if type(value) == "table" and not getmetatable(value) then
    for _, inner in ipairs(value) do
      if holds_tensors(inner) then return true end
    end
  end
  return false
end

-- The arguments of an op's call by its own names, or nil where they have no names.
local function arguments_of(operation)
  local takes, given = signature.of(operation.op), {}
  if not takes then return nil end
  local most = #takes.positional
  for i = 1, operation.count do
    local value = operation.operands[i]
    if type(value) == "table" and not getmetatable(value) and signature.is_options(value) then
      for name, inner in pairs(value) do given[name] = inner end
    elseif takes.variadic and i >= most and not (i == most and type(value) == "table" and not symbolic.is(value)) then
      local list = given[takes.positional[most].name] or {}
      list[#list + 1] = value
      given[takes.positional[most].name] = list
    elseif i <= most then
      given[takes.positional[i].name] = value
    elseif value ~= nil then
      local option = (takes.options or {})[i - most]
      if not option then return nil end
      given[option.name] = value
    end
  end
  return given
end

-- An argument as Keras has it; nil: it has no form there.
local function to_keras(own, value)
  if own.mark == "@" or own.mark == "%" and type(value) == "table" or own.mark == "?" and own.name == "axis" then
    if holds_tensors(value) then return nil end
    value = shifted(value, -1)
  end
  if value == false and own.mark == "?" then return json.null end
  return value
end

-- A size for each axis of pictures {batch, ..., channels}.
local function repeated(size, x)
  local list = {}
  for i = 1, #x.shape - 2 do list[i] = size end
  return list
end

-- How Keras has the call of an op that has one of these names here: { record =, content = by Keras' names }; nil: it has no such operation,
-- or it counts the positions among its results otherwise.
function bound.written(operation, names)
  if bound.kept[operation.op] then return bound.kept[operation.op] end
  local record
  for _, name in ipairs(names) do record = record or by_name[name] end
  local given = record and next(record.positions) == nil and arguments_of(operation)
  if not given then return nil end
  if record.class_name == "Quantile" and given.method == "linear" then given.method = nil end
  local call, content, known = {}, {}, {}
  for k, list in ipairs { record.call, record.config } do
    for _, own in ipairs(list) do
      local value = given[own.own]
      if own.name == "data_format" and value == nil then value = "channels_last" end      -- Keras' ConvTranspose has no other default
      if own.name == "output_size" and record.module:find "nn$" and type(value) == "number" then value = repeated(value, given.inputs) end
      known[own.own] = true
      if value ~= nil then
        local converted, is_list = to_keras(own, value), own.mark == "+" or own.rest
        if converted == nil or own.mark == "!" or k == 2 and holds_tensors(value) then return nil end
        if not is_list and symbolic.any(value) and not symbolic.is(value) then return nil end      -- a tensor of several
        (k == 1 and call or content)[own.name] = converted
      end
    end
  end
  for name in pairs(given) do
    if not known[name] then return nil end
  end
  return { record = record, call = call, content = content }
end

-- The config, without the name, of what bound.written gave. An entry of a file may have none.
function bound.content(written)
  local content, config = {}, written.content or written.entry.config
  for name, value in pairs(type(config) == "table" and config or {}) do
    content[name] = written.content and value_json(value) or value
  end
  return content
end

-- The args and kwargs.
function bound.arguments(written, reference, constant)
  local args, kwargs, record = json.list(), {}, written.record
  local function json_of(own, value, number)
    local what = ("operand %d of flow.%s on symbolic tensors"):format(number, record.name)
    local is_constant = own.mark == "" and type(value) == "table" and not getmetatable(value)
    if is_constant and not own.rest and type(value[1] or value) ~= "string" and not written.entry then return constant(value, what) end
    return value_json(value, reference, constant, what)
  end
  if record.class_name == "Rearrange" and not written.entry then      -- lengths are in the call by the names of the axes
    for name, length in pairs(written.call.axes_lengths or {}) do kwargs[name] = length end
    args[1], args[2] = json_of(record.call[1], written.call.tensor, 1), written.call.pattern
    return args, kwargs
  end
  if written.entry then      -- in the order in which bound.call saw the tensors
    for i, own in ipairs(record.call) do
      if own.rest then
        for k = i, #written.args do args[k] = json_of(own, written.args[k], k) end
      else
        if i <= #written.args then args[i] = json_of(own, written.args[i], i) end
        if written.kwargs[own.name] ~= nil then kwargs[own.name] = json_of(own, written.kwargs[own.name], i) end
      end
    end
    for name, value in pairs(written.kwargs) do
      if kwargs[name] == nil then kwargs[name] = value end
    end
    return args, kwargs
  end
  for i, own in ipairs(record.call) do      -- null for those that were not given: Keras' LayerNorm takes all of them
    local value = written.call[own.name]
    if own.rest then
      for _, inner in ipairs(value) do args[#args + 1] = json_of(own, inner, #args + 1) end
    else
      args[i] = json_of(own, value, i)
    end
  end
  return args, kwargs
end

return bound
