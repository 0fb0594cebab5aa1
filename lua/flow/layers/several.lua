-- several.lua: layers that are called on several tensors, layer(query, value, { key = key, use_causal_mask = true }).
--
-- A built-in one has names for its inputs: those given by position are the first, any may be given by its name. One written in Lua gets
-- what was given by position, and then one table of all that was given by name, with training among it:
--   function Cross:call(query, value, options) ... options.key ... end
--
-- Such a call is a table: arguments, what was given by position: tensors, or lists or tables by name of them; options, what was given by
-- name, without training; list, all tensors of both: the arguments', then the options' in the order of their names. A layer written in Lua
-- that is called on one table of tensors by name, layer { age = a, wage = w }, gets that table.

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local symbolic = require "flow.layers.symbolic"
local ops = require "flow.tensor.ops"
local batch_rows = require "flow.tensor.shapes"
local arguments = require "flow.arguments"
local strings = require "flow.tensor.strings"
local host_calls = require "flow.tensor.host_calls"
local parameters = require "flow.layers.classes.parameters"

local C, raise = native.C, errors.raise
local several = {}

---- what it gives -----------------------------------------------------------------------------------------------------------

-- What call() of a layer written in Lua returns: one value, or several as a list. The layer then gives its callers several, too:
-- local mean, log_var = encoder(x).
function several.noted(layer, ...)
  if select("#", ...) < 2 then return (...) end
  local results = { ... }
  errors.check_list(object.title(layer), results, "result %d of call() is nil: is a name misspelt?")
  rawset(layer, "_returns_several", true)
  return results
end

-- A list of results as the layer's callers get it.
function several.spread(layer, result)
  if rawget(layer, "_returns_several") and type(result) == "table" and not getmetatable(result) then return unpack(result) end
  return result
end

-- What a call of a layer gave, as one value or a list: several.gathered(layer(x)).
function several.gathered(...)
  if select("#", ...) < 2 then return (...) end
  return { ... }
end

---- what is given -------------------------------------------------------------------------------------------------------------

-- Whether inputs is one tensor, or what becomes one (nested lists of numbers), and not a list of several.
function several.is_single(inputs)
  if type(inputs) ~= "table" or getmetatable(inputs) then return true end
  local first = inputs[1]
  return not native.is_tensor(first) and not (type(first) == "table" and getmetatable(first))
end

-- A tensor, a variable or a symbolic tensor.
local function is_operand(value)
  if native.is_tensor(value) or symbolic.is(value) then return true end
  local metatable = type(value) == "table" and getmetatable(value)
  return metatable and metatable.__tensor ~= nil
end

-- A list of them; false stands for one that is not given.
local function is_operands(value)
  if type(value) ~= "table" or getmetatable(value) or #value == 0 then return false end
  for _, entry in ipairs(value) do
    if entry ~= false and not is_operand(entry) then return false end
  end
  return true
end

-- A table of them by name.
local function are_named(value)
  if type(value) ~= "table" or getmetatable(value) or next(value) == nil then return false end
  for name, entry in pairs(value) do
    if type(name) ~= "string" or not is_operand(entry) then return false end
  end
  return true
end

-- What a built-in class says of its calls, by its number: names: each input to its position from 0; arguments: the names, in order, with
-- one for the entries of a list; options: a set; alone: whether its first input, one tensor, may be enough, and has a mask. nil: its inputs
-- have no names.
function several.record(index)
  local names, option = {}, 0
  while C.flow_layer_class_input(index, #names) ~= nil do names[#names + 1] = native.string(C.flow_layer_class_input(index, #names)) end
  if #names == 0 then return nil end
  local record = several.inputs(names)
  record.outputs = C.flow_layer_class_outputs(index)
  while C.flow_layer_class_option(index, option) ~= nil do
    record.options[native.string(C.flow_layer_class_option(index, option))] = true
    option = option + 1
  end
  return record
end

-- The same of a layer of flow.layers that is written in Lua, for inputs of these names.
function several.inputs(names)
  local record = { names = {}, arguments = {}, options = {}, count = #names }
  for i, name in ipairs(names) do
    record.names[name] = i - 1
    local base = name:match "^[^%[]*"
    if record.arguments[#record.arguments] ~= base then record.arguments[#record.arguments + 1] = base end
  end
  record.alone = record.names.mask ~= nil and record.names[record.arguments[1]] == 0
  return record
end

-- Whether one of what a layer is called on holds strings, also in a list or a table by name: classes/text_calls.lua.
local function holds_text(value, is_first)
  if type(value) == "string" then return is_first end
  if type(value) ~= "table" then return false end
  if getmetatable(value) then return symbolic.is(value) and value.dtype == "string" or strings.is(value) or host_calls.is_text(value) end
  for key, entry in pairs(value) do
    local is_list = type(entry) == "table" and not getmetatable(entry)
    if is_list and is_first and strings.are(entry) or not is_list and holds_text(entry, key == 1 and is_first) then return true end
  end
  return false
end

function several.hold_text(first, ...)
  if holds_text(first, true) then return true end
  for i = 1, select("#", ...) do
    if holds_text((select(i, ...)), false) then return true end
  end
  return false
end

-- Whether a layer is called on several tensors, or with more than training beside one: with a mask.
function several.is_needed(layer, inputs, options, ...)
  local named = layer._named_inputs
  if named and not named.alone then return true end
  if not named and layer._takes_mask then return type(options) == "table" and not getmetatable(options) and options.mask ~= nil end
  if not named and (layer._handle and not rawget(layer, "_own_call") or not layer._takes_several) then return false end
  if select("#", ...) > 0 or are_named(inputs) then return true end
  if options == nil then return arguments.is_options(inputs) and parameters.by_name(layer, inputs) ~= nil end
  if type(options) ~= "table" or getmetatable(options) or options[1] ~= nil then return true end
  for name in pairs(options) do
    if name ~= "training" then return true end
  end
  return false
end

local sorted_names = require("flow.names").sorted

-- value with f of each tensor in place of it.
local function map(value, f)
  if is_operand(value) then return f(value) end
  local list = {}
  if are_named(value) then
    for _, name in ipairs(sorted_names(value)) do list[name] = f(value[name]) end
    return list
  end
  if not is_operands(value) then return value end
  for i, entry in ipairs(value) do list[i] = entry and f(entry) end
  return list
end

-- The call with f(tensor) in place of each tensor, in one order in all processes: positions, then options by name. list: all results in
-- this order.
local function map_call(call, f)
  local result = { arguments = {}, options = {}, list = {} }
  local function each(t)
    result.list[#result.list + 1] = f(t)
    return result.list[#result.list]
  end
  for i, value in ipairs(call.arguments) do result.arguments[i] = map(value, each) end
  for _, name in ipairs(sorted_names(call.options)) do result.options[name] = map(call.options[name], each) end
  return result
end

-- The call with the tensors of `list` in place of its own. Those of a call on symbolic tensors that have values stay.
function several.replace(call, list)
  local position = 0
  return map_call(call, function(t)
    if call.has_constants and not symbolic.is(t) then return t end
    position = position + 1
    return list[position]
  end)
end

-- What calls the layer once more: layer(unpack(list)).
function several.unpacked(call, training)
  local list, options = { unpack(call.arguments) }, { training = training }
  for name, value in pairs(call.options) do options[name] = value end
  list[#list + 1] = options
  return list
end

-- Of a call on symbolic tensors: what has a value already, such as an attention_mask, is not an input of the node but a part of the call.
local function leave_constants(call)
  local list = {}
  for _, t in ipairs(call.list) do list[#list + 1] = symbolic.is(t) and t or nil end
  call.has_constants, call.list = #list < #call.list, list
end

-- The call that the arguments of layer(...) are, and training.
function several.read(layer, ...)
  local title, count, options = object.title(layer), select("#", ...), {}
  while count > 0 and (select(count, ...)) == nil do count = count - 1 end
  local last = (select(math.max(count, 1), ...))
  local is_first = count == 1 and not layer._named_inputs and are_named(last)
  if count == 1 and not layer._named_inputs and arguments.is_options(last) then
    local first, others = parameters.by_name(layer, last)
    if others then return several.read(layer, first, others) end
  end
  if count > 0 and arguments.is_options(last) and not is_first then count, options = count - 1, last end
  while count > 0 and (select(count, ...)) == nil do count = count - 1 end
  if count == 0 and next(options) == nil then raise("%s: called without an input", title) end
  local given, training = { arguments = {}, options = {} }, options.training
  for i = 1, count do
    local value = (select(i, ...))
    if value == nil then raise("%s: argument %d is nil", title, i) end
    if type(value) == "table" then errors.check_holes(title, value) end
    local is_number = type(value) == "number" or batch_rows.is_rows(value)      -- after the first one as it is, as in Keras
    local is_plain = not layer._named_inputs and (type(value) == "boolean" or type(value) == "string" or is_number and i > 1)
    local stays = is_plain or symbolic.is(value) or is_operands(value) or not layer._named_inputs and are_named(value)
    if stays then given.arguments[i] = value else given.arguments[i] = ops.operand(value, nil, title) end
  end
  if training ~= nil and type(training) ~= "boolean" then
    raise("%s: training is true or false, got %s", title, errors.describe(training))
  end
  local known = layer._named_inputs
  if layer._takes_mask then errors.check_options(title, options, { training = true, mask = true }) end
  if known then
    local names = { training = true }
    for name in pairs(known.options) do names[name] = true end
    for _, name in ipairs(known.arguments) do names[name] = true end
    errors.check_options(title, options, names)
  end
  for name, value in pairs(options) do
    if type(name) ~= "string" then raise("%s: give tensors by position, or by name", title) end
    local is_plain = known and known.options[name] or not known and not is_operand(value) and not is_operands(value)
    if type(value) == "table" then errors.check_holes(("%s: %s"):format(title, name), value) end
    if name ~= "training" then
      if is_plain or symbolic.is(value) or is_operands(value) then given.options[name] = value
      elseif value ~= false then given.options[name] = ops.operand(value, nil, title .. ": " .. name) end
    end
  end
  local is_symbolic = false
  local call = map_call(given, function(t)
    is_symbolic = is_symbolic or symbolic.is(t)
    return symbolic.is(t) and t or ops.operand(t, nil, title)
  end)
  if #call.list == 0 then raise("%s: called without an input", title) end
  if is_symbolic then leave_constants(call) end
  return call, training, is_symbolic
end

---- built-in layers -------------------------------------------------------------------------------------------------------------

-- Whether a value of a call was given as a number, which is a tensor by now.
local function is_number(value) return native.is_tensor(value) and value.rank == 0 end

-- The tensors of a call by the positions of their names, from 1; false: not given.
local function by_name(layer, call)
  local record, list = layer._named_inputs, {}
  local title = object.title(layer)
  for i = 1, record.count do list[i] = false end
  -- One tensor is a list of one, where the list has no more.
  local function put(name, value)
    local position = record.names[name]
    if not is_number(value) and not record.names[name .. "[2]"] then position = position or record.names[name .. "[1]"] end
    if not position then
      local base, entry = name:match "^([^%[]*)%[?(%d*)"
      local wrong = entry == "" and "takes a list of tensors, got one " .. (is_number(value) and "number" or "tensor") or
        record.names[base] and "takes one tensor, got a list" or
        ("takes a list with fewer than %s tensors"):format(entry)
      raise("%s: %s %s", title, base, wrong)
    end
    if list[position + 1] then raise("%s: %s is given twice, by position and by name", title, name) end
    list[position + 1] = value
  end
  local function add(name, value)
    if is_operand(value) then return put(name, value) end
    for i, entry in ipairs(value) do
      if is_number(entry) then raise("%s: %s takes a list of tensors, its entry %d is a number", title, name, i) end
      if entry then put(("%s[%d]"):format(name, i), entry) end
    end
  end
  for i, value in ipairs(call.arguments) do
    local name = record.arguments[i]
    if not name then
      raise("%s takes %d tensors at most, got %d: give options in a table, { use_causal_mask = true }", title, #record.arguments,
        #call.arguments)
    end
    add(name, value)
  end
  for name, value in pairs(call.options) do
    if not record.options[name] then add(name, value) end
  end
  local first, second = record.names["initial_state[1]"], record.names["initial_state[2]"]
  local is_pair = second and not record.names["initial_state[3]"]
  if is_pair and (list[first + 1] ~= false) ~= (list[second + 1] ~= false) then
    raise("%s: initial_state takes a list of tensors, its entry %d is missing", title, list[first + 1] and 2 or 1)
  end
  return list
end

-- Runs a layer of the library; its results, or the only one.
function several.run_native(layer, call, training)
  local record, list = layer._named_inputs, by_name(layer, call)
  local pointers, plain = native.array("flow_tensor *", record.count), {}
  for name, value in pairs(call.options) do
    if record.options[name] then plain[name] = value end
  end
  local options, outputs = arguments.native(object.title(layer), plain), native.out("flow_tensor", record.outputs)
  for i, t in ipairs(list) do
    if t then pointers[i - 1] = native.pointer(t) end
  end
  native.keep(list)
  native.keep(options)
  native.try(C.flow_layer_call_named, native.context, layer._handle, pointers, record.count, options, training and 1 or 0, outputs)
  local results = {}
  for i = 1, record.outputs do
    if outputs[i - 1] ~= nil then results[#results + 1] = native.tensor(outputs[i - 1]) end
  end
  return #results == 1 and results[1] or results
end

---- building and running ---------------------------------------------------------------------------------------------------------

-- Builds the layer for a call. shape_of(tensor): its shape.
function several.build(layer, call, shape_of)
  if layer._built then return end
  if layer._named_inputs then
    local shapes, names, given = {}, {}, {}
    for i, t in ipairs(by_name(layer, call)) do shapes[i] = t and shape_of(t) end
    for name, position in pairs(layer._named_inputs.names) do names[position + 1] = name end
    for i, shape in ipairs(shapes) do      -- Keras builds by the tensors that are not masks
      if shape and not names[i]:find "mask" then given[#given + 1] = { name = names[i], shape = shape } end
    end
    local is_cell = layer._named_inputs.names["states[1]"]      -- its states say nothing of its variables
    if is_cell or #given == 1 and layer._named_inputs.alone then return layer:_ensure_built({ given[1].shape }, true) end
    layer:_ensure_built(shapes, false, nil, given)
  else
    local shapes, of_arguments = {}, {}
    for i, t in ipairs(call.list) do shapes[i] = shape_of(t) end
    for i, value in ipairs(call.arguments) do
      of_arguments[i] = is_operand(value) and symbolic.shape { unpack(shape_of(value)) } or {}
      for k, entry in pairs((is_operands(value) or are_named(value)) and value or {}) do
        of_arguments[i][k] = entry and symbolic.shape { unpack(shape_of(entry)) }
      end
    end
    layer:_ensure_built(shapes, #call.list == 1, of_arguments)
    if #call.arguments == 1 and are_named(call.arguments[1]) then rawset(layer, "_shapes_by_name", of_arguments[1]) end      -- for files
  end
end

-- What a call has for the first argument.
function several.first(layer, call)
  local named = layer._named_inputs
  if call.arguments[1] == nil and named then return call.options[named.arguments[1]] end
  return call.arguments[1]
end

-- The same call with cast(tensor), by default itself, of each of its tensors.
function several.copy(call, cast)
  return map_call(call, cast or function(t) return t end)
end

-- Runs the built layer.
function several.run(layer, call, training)
  if layer._handle and not rawget(layer, "_own_call") then return several.run_native(layer, call, training) end
  return several.noted(layer, layer:call(unpack(several.unpacked(call, training))))
end

return several
