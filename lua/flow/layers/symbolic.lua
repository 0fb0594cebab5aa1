-- symbolic.lua: the tensors of functional models: a shape and a dtype, and the call of the layer that will make them.
-- flow.Input gives the first ones, layers called on them give more, flow.Model turns them into a model.

local native = require "flow.ffi"
local errors = require "flow.errors"
local names = require "flow.names"
local object = require "flow.object"
local scopes = require "flow.scopes"
local inside = require "flow.layers.classes.inside"
local signature = require "flow.signature"
local strings = require "flow.tensor.strings"

local C, check, raise = native.C, native.check, errors.raise
local context = native.context

local symbolic = {}
local Symbolic = object.class("Symbolic")

---- shapes -------------------------------------------------------------------------------------------------------------------

-- The dimensions of a tensor as a list; -1 where they depend on the batch. In the shape of a symbolic tensor -1 stands for any size that is
-- not known before the model is called.
function symbolic.dims(t)
  local pointer = native.pointer(t)
  local shape = {}
  for i = 0, C.flow_tensor_rank(pointer) - 1 do shape[i + 1] = math.max(C.flow_tensor_dim(pointer, i), -1) end
  return shape
end

-- (None, 28, 28, 1), as Keras prints shapes.
function symbolic.shape_text(shape)
  local parts = {}
  for i = 1, #shape do parts[i] = (type(shape[i]) ~= "number" or shape[i] < 0) and "None" or ("%d"):format(shape[i]) end
  return "(" .. table.concat(parts, ", ") .. (#shape == 1 and ",)" or ")")
end

---- tensors --------------------------------------------------------------------------------------------------------------------

local Shape = { __metatable = false, __tostring = symbolic.shape_text }
function Shape.__index(list, key) return require "flow.classes.from_end" (list, key) end
function Shape.__concat(a, b) return tostring(a) .. tostring(b) end
function Shape.__eq(a, b) return tostring(a) == tostring(b) end

-- A list of sizes as a shape: it prints as in Keras; what asks for its metatable finds none, as of any list.
function symbolic.shape(sizes) return setmetatable(sizes, Shape) end

-- times: its first axis is this many times as long as the batch, as a reshape may make it; nil: it is the batch.
local function new(shape, dtype, layer, node, index, times)
  return object.new(Symbolic, { name = layer.name, shape = symbolic.shape(shape), dtype = dtype, ndim = #shape, layer = layer, node = node,
                                index = index, _times = times or false })
end

-- Its mask, as a layer says of its output: symbolic_masks.lua.
function Symbolic.fields._keras_mask(self) return require("flow.layers.symbolic_masks").of(self) end

function symbolic.is(value)
  return object.is(value, Symbolic)
end

-- Whether inputs is a symbolic tensor or a list that holds one.
function symbolic.any(inputs)
  if type(inputs) ~= "table" then return false end
  if symbolic.is(inputs) then return true end
  if getmetatable(inputs) then return false end
  for i = 1, table.maxn(inputs) do
    if symbolic.is(inputs[i]) then return true end
  end
  return false
end

Symbolic.metatable.__tostring = function(self)
  return ("Symbolic %s, dtype=%s, name=%s"):format(symbolic.shape_text(self.shape), self.dtype, self.name)
end

-- The start of a functional model: a node without inputs. shape without the batch dimension; -1: a size that is not known. rows: of a
-- batch, nil: any number.
function symbolic.input(layer, shape, dtype, rows)
  local full = { rows or -1 }
  for i = 1, #shape do
    local n = shape[i]
    if type(n) ~= "number" or (n < 1 and n ~= -1) or n ~= math.floor(n) or n >= 2 ^ 53 then
      raise("Input: dimension %d is %s, expected a whole number from 1, or -1 for a size that is not known", i, errors.describe(n))
    end
    full[i + 1] = n
  end
  if dtype ~= "string" then native.dtype(dtype) end
  local node = { layer = layer, inputs = {}, outputs = {}, position = #layer._nodes + 1 }
  node.outputs[1] = new(full, dtype, layer, node, 1)
  layer._nodes[#layer._nodes + 1] = node
  return node.outputs[1]
end

---- calls -----------------------------------------------------------------------------------------------------------------------

-- Runs f while a trace is open that is thrown away afterwards: shapes are found by the ops' own rules. is_open: training is not given, so
-- that a layer may take its own default.
local function in_scratch_trace(f, is_open)
  local own = scopes.own()
  local before, was_open = own.scratch_trace, own.training_is_open
  local function finish(ok, ...)
    own.scratch_trace, own.training_is_open = before, was_open
    if not ok then error((...), 0) end
    return ...
  end
  own.scratch_trace, own.training_is_open = true, is_open or was_open
  return finish(pcall(native.while_tracing, function() check(C.flow_trace_begin(context)) end, f))
end

local out = native.out("flow_tensor")
local function trace_input(shape, dtype)
  local dims, rank = native.dims(shape)
  check(C.flow_trace_input(context, native.dtype(dtype), rank, dims, out))
  return native.tensor(out[0])
end
symbolic.trace_input = trace_input

-- The same of a tensor whose first axis is several times the batch, or that has the batch on another axis, as a transpose leaves it.
local function moved_input(shape, dtype, times)
  if times then
    return require("flow.tensor.ops").reshape_raw(trace_input({ -1, times, unpack(shape, 2) }, dtype), { -times, unpack(shape, 2) })
  end
  for axis = 2, #shape do
    if shape[axis] < 0 and shape[1] >= 0 then
      local moved = { unpack(shape) }
      moved[1], moved[axis] = shape[axis], shape[1]
      return require("flow.tensor.ops").swapaxes(trace_input(moved, dtype), 1, axis)
    end
  end
  return trace_input(shape, dtype)
end

-- The same of an input of which the first `masked` axes have a mask.
local function masked_input(input)
  local t = moved_input(input.shape, input.dtype, rawget(input, "_times") or nil)
  if rawget(input, "masked") then
    require("flow.layers.masks").set(t, trace_input({ unpack(input.shape, 1, input.masked) }, "bool"))
  end
  return t
end

-- { shape =, dtype =, _times = } of a traced tensor, -1 for the batch; _times: it has that many rows for each of the batch. nil: no tensor.
local function describe_output(t)
  if not native.is_tensor(t) then return nil end
  local shape = symbolic.dims(t)
  local rows = shape[1] == -1 and tonumber(C.flow_tensor_dim(t.p, 0)) or -1
  return { shape = shape, dtype = native.dtype_names[C.flow_tensor_dtype(t.p)], _times = rows < -1 and -rows or nil }
end

-- The outputs of the layer for inputs of these shapes and dtypes: { shape =, dtype = } for each; single: the layer is called on one
-- tensor, not on a list; as_call(list): the call on several tensors (several.lua), or nil.
local function trace_call(layer, list, single, training, as_call)
  return in_scratch_trace(function()
    local traced = {}
    for i = 1, #list do traced[i] = masked_input(list[i]) end
    local given = single and traced[1] or traced
    local result = inside.call(layer, layer._run, layer, given, traced, training or false, as_call and as_call(traced))
    if native.is_tensor(result) then return { describe_output(result), single = true } end
    local keys = type(result) == "table" and not getmetatable(result) and type(next(result)) == "string" and names.sorted(result)
    if keys then      -- by name: in the order of the names
      local by_name = result
      result = {}
      for i, key in ipairs(keys) do result[i] = by_name[key] end
    end
    if type(result) ~= "table" or #result == 0 then
      raise("%s: call() returned %s, expected a tensor or a list of tensors", object.title(layer), errors.describe(result))
    end
    local several = { names = keys or nil }
    for i = 1, #result do
      several[i] = describe_output(result[i]) or raise("%s: result %d of call() is %s", object.title(layer), i, errors.describe(result[i]))
    end
    return several
  end, training == nil and scopes.own().training == nil)
end

---- sizes that are not known ---------------------------------------------------------------------------------------------------------

-- Pairs of sizes that stand in for those that are not known: what comes out with another size for the second of a pair is not known either.
-- So no shape rule, and no layer, has to know about unknown sizes. They are larger than what a layer could need at least, and multiples of
-- many numbers, for layers that divide a size; the second pair is for what divides by others. Nothing is computed, and no memory is taken
-- for the tensors; but a layer written in Lua may loop over a size, or make constants of it, so it sees the first pair only.
local STAND_INS = { { 1680, 3360 }, { 3603600, 7207200 } }
local FINE = { 26880, 53760 }      -- halved eight times they are whole: for models that halve a size, and double it again

-- An unknown size may also be that of the batch, which a transpose moved to another axis.
local ROWS = { -1, -1 }

-- They stand for the rows of a batch where a layer needs their number: few, since it may loop over them.
local SOME_ROWS = { 240, 480 }

-- Whether a size but that of the batch is not known, of a list of { shape = }.
function symbolic.has_unknown(list)
  for _, t in ipairs(list) do
    for axis = 2, #t.shape do
      if t.shape[axis] < 0 then return true end
    end
  end
  return false
end

-- The list with sizes[axis], or `stand_in`, for the sizes that are not known.
local function fill_sizes(list, stand_in, sizes)
  local filled = {}
  for i, t in ipairs(list) do
    local shape = { unpack(t.shape) }
    for axis = 2, #shape do shape[axis] = shape[axis] < 0 and (sizes[axis] or stand_in) or shape[axis] end
    filled[i] = { shape = shape, dtype = t.dtype, masked = rawget(t, "masked"), _times = rawget(t, "_times") }
  end
  return filled
end

-- Calls f with the list of { shape =, dtype = }; if sizes in it are not known, with each of a pair (the first one) in their place. sizes:
-- what is known of some by their axis. Returns the results. Two calls draw as many random numbers as one.
function symbolic.with_sizes(list, f, pair, sizes)
  if not symbolic.has_unknown(list) then return f(list) end
  pair, sizes = pair or STAND_INS[1], sizes or {}
  local first = f(fill_sizes(list, pair[1], sizes))
  local drawn = native.text(C.flow_context_save, context)
  local second = f(fill_sizes(list, pair[2], sizes))
  check(C.flow_context_restore(context, drawn))
  return first, second
end

-- The sizes on an axis that are known of some input, by axis; of several the first one.
local function known_sizes(list)
  local sizes = {}
  for _, t in ipairs(list) do
    for axis = 2, #t.shape do
      if t.shape[axis] > 1 and not sizes[axis] then sizes[axis] = t.shape[axis] end
    end
  end
  return sizes
end

-- For each axis of an op's inputs that is not known, the sizes that its other operands have: { [axis] = size }, one at a time.
local function sizes_of_operands(list, operation)
  local sizes, attempts = {}, {}
  local function note(shape)
    for _, size in ipairs(shape) do
      if size > 1 then sizes[size] = true end
    end
  end
  for _, t in ipairs(list) do note(t.shape) end
  for i = 1, operation.count do
    local operand = operation.operands[i]
    if native.is_tensor(operand) or native.is_variable(operand) then note(operand.shape) end
  end
  for _, t in ipairs(list) do
    for axis = 2, #t.shape do
      for _, size in ipairs(t.shape[axis] < 0 and names.keys(sizes) or {}) do
        attempts[#attempts + 1] = { STAND_INS[1], { [axis] = size } }
      end
    end
  end
  return attempts
end

-- outputs, with -1 where others, those for the other size, differ.
local function join_outputs(layer, outputs, others)
  for i = 1, math.max(#outputs, #others) do
    local shape, other = outputs[i] and outputs[i].shape or {}, others[i] and others[i].shape or {}
    if #outputs ~= #others or #shape ~= #other then
      raise("%s: the number of tensors that call() gives, or their rank, depends on a size that is not known", object.title(layer))
    end
    for axis = 1, #shape do shape[axis] = shape[axis] == other[axis] and shape[axis] or -1 end
  end
  return outputs
end

-- What an operation or a layer written in Lua gives that computes with the rows of a batch, as the first of them or in groups of four, so
-- that it is not traced for any number of them: sizes stand in for these, too. nil: it does not take them, either.
local function counted_rows(layer, list, call)
  local function of(rows)
    local filled = fill_sizes(list)
    for _, t in ipairs(filled) do
      if t.shape[1] == -1 then t.shape[1], t._times = rows * (t._times or 1), nil end
    end
    return call(filled)
  end
  local drawn = native.text(C.flow_context_save, context)
  local ok, first = pcall(of, SOME_ROWS[1])
  local again, second = pcall(of, SOME_ROWS[2])
  check(C.flow_context_restore(context, drawn))
  if not (ok and again) then return nil end
  local times = {}
  for i, output in ipairs(first) do
    times[i] = second[i] and ((second[i].shape[1] or 0) - (output.shape[1] or 0)) / (SOME_ROWS[2] - SOME_ROWS[1])
  end
  join_outputs(layer, first, second)
  for i, output in ipairs(first) do output._times = times[i] > 1 and times[i] or nil end
  return first
end

-- What the layer gives for a list of inputs { shape =, dtype = }: a list of the same, with -1 for the sizes that are not known; single =
-- true: it gives one tensor. If the layer takes no stand-in, an unknown size is taken to be the one that another input has there: { -1, 3 }
-- and { 5, 3 } can be added where both have five rows. Of an op also one that another operand has elsewhere: { 3, -1 } times { 5, 4 }.
function symbolic.infer(layer, list, single, training, as_call)
  for i, input in ipairs(list) do
    if input.dtype == "string" then
      raise("%s takes numbers, its input %d holds strings: put a layer before it that makes numbers of them, such as TextVectorization, "
        .. "StringLookup or Hashing", object.title(layer), i)
    end
  end
  local function call(filled) return trace_call(layer, filled, single, training, as_call) end
  if not symbolic.has_unknown(list) then
    local ok, found = pcall(call, list)
    if ok then return found end
    local known = not layer._handle and counted_rows(layer, list, call)
    return known or error(found, 0)
  end
  local in_c, first_problem = layer._handle and not rawget(layer, "_own_call") or rawget(layer, "_operation")
  local attempts = { { STAND_INS[1], {} }, { STAND_INS[1], known_sizes(list) }, { in_c and STAND_INS[2] or FINE, {} } }
  attempts[#attempts + 1] = { ROWS, {} }
  local operation = rawget(layer, "_operation")
  for _, attempt in ipairs(operation and sizes_of_operands(list, operation) or {}) do attempts[#attempts + 1] = attempt end
  for _, attempt in ipairs(attempts) do
    local ok, found = pcall(function() return join_outputs(layer, symbolic.with_sizes(list, call, unpack(attempt))) end)
    if ok then return found end
    first_problem = first_problem or found
  end
  if type(first_problem) ~= "string" then error(first_problem, 0) end
  error(("%s (sizes that are not known stand as %d and %d here)"):format(first_problem, unpack(STAND_INS[1])), 0)
end

-- The inputs of a layer with what it is told of their masks, if it is written in Lua.
function symbolic.with_masks(layer, inputs, list)
  if layer._handle and not rawget(layer, "_own_call") or rawget(layer, "_operation") then return list end
  local result = {}
  for i, input in ipairs(list) do
    local mask = inputs[i]._keras_mask
    result[i] = { shape = input.shape, dtype = input.dtype, masked = mask and #mask.shape or nil, _times = rawget(input, "_times") }
  end
  return result
end

-- Raises unless all entries of a list are symbolic.
local function check_inputs(layer, list)
  for i = 1, errors.check_list(object.title(layer) .. ": the inputs", list) do
    if not symbolic.is(list[i]) then
      raise("%s: input %d is %s; symbolic inputs cannot be mixed with values", object.title(layer), i, errors.describe(list[i]))
    end
  end
end

-- Adds the node of a call; returns its output, or its outputs in a list or a table by name.
local function add_node(layer, list, found, node)
  node.layer, node.inputs, node.outputs, node.position = layer, {}, {}, #layer._nodes + 1
  for i = 1, #list do node.inputs[i] = list[i] end
  for i, output in ipairs(found) do node.outputs[i] = new(output.shape, output.dtype, layer, node, i, rawget(output, "_times")) end
  layer._nodes[#layer._nodes + 1] = node
  if found.names then
    local by_name = {}
    for i, name in ipairs(found.names) do by_name[name] = node.outputs[i] end
    return by_name
  end
  return found.single and node.outputs[1] or { unpack(node.outputs) }      -- the caller's own list
end

-- Makes the variables of a layer, and of those inside, for inputs of these shapes and dtypes, of which sizes may be unknown.
function symbolic.build(layer, specs)
  local shapes = {}
  for i, spec in ipairs(specs) do shapes[i] = spec.shape end
  layer:_ensure_built(shapes, #specs == 1)
  layer:_infer(specs, #specs == 1)
end

-- Adds a call of `layer` on a symbolic tensor or a list of them.
function symbolic.call(layer, inputs, options)
  local single, shapes = symbolic.is(inputs), {}
  local list = single and { inputs } or inputs
  check_inputs(layer, list)
  local named = single and options.training == nil and layer._named_inputs
  local mask = named and named.alone and inputs._keras_mask
  if mask then      -- as in Keras, what takes a mask is called with it
    local call = { arguments = { inputs }, options = { mask = mask }, list = { inputs, mask } }
    return symbolic.call_several(layer, call, nil, require "flow.layers.several")
  end
  for i = 1, #list do shapes[i] = list[i].shape end
  layer:_ensure_built(shapes, single)
  local found = layer:_infer(symbolic.with_masks(layer, list, list), single, options.training)
  return add_node(layer, list, found, { single = single, options = options })
end

-- The same of a call on several tensors. several: what knows of them.
function symbolic.call_several(layer, call, training, several)
  check_inputs(layer, call.list)
  several.build(layer, call, function(t) return t.shape end)
  local inputs = symbolic.with_masks(layer, call.list, call.list)
  local found = layer:_infer(inputs, false, training, function(list) return several.replace(call, list) end)
  return add_node(layer, call.list, found, { call = call, options = { training = training } })
end

---- ops ----------------------------------------------------------------------------------------------------------------------------

-- An op that moves strings runs before the plans, as layers for strings do (host_layer.lua): its call on them, and what it makes of shapes.
local function on_strings(layer, op, operands, count)
  local shape_after = strings.move_of(op)
  if not shape_after then return end
  rawset(layer, "_on_host", true)
  rawset(layer, "_named_tensors", function() return {} end)
  rawset(layer, "_read_tensors", function() end)
  rawset(layer, "_infer", function(_, list)
    return { { shape = shape_after(list[1].shape, unpack(operands, 2, count)), dtype = "string" }, single = true }
  end)
  rawset(layer, "_call", function(self, inputs, options)
    if symbolic.any(inputs) then return symbolic.call(self, inputs, options or {}) end
    return self:call(inputs)
  end)
end

-- An op on symbolic tensors becomes a separate layer: the op with its other operands kept. It is named after the class that the op has in
-- Keras: symbolic.class_of(op), which a room above gives.
local function apply(op, ...)
  local Layer = require "flow.layers.layer"
  local operands, count, inputs, lists = { ... }, select("#", ...), {}, {}
  for i = 1, count do
    lists[i] = symbolic.any(operands[i]) and not symbolic.is(operands[i])
    for _, operand in ipairs(lists[i] and operands[i] or { operands[i] }) do
      if symbolic.is(operand) then inputs[#inputs + 1] = operand end
    end
  end
  symbolic.Operation = symbolic.Operation or Layer:extend("Operation")
  local layer = names.instead("Operation", symbolic.class_of and symbolic.class_of(op) or "Operation", symbolic.Operation)
  rawset(layer, "_operation", { op = op, operands = operands, count = count })
  layer.call = function(_, x)
    local filled, next_input = {}, 0
    local function value_of(operand)
      if not symbolic.is(operand) then return operand end
      next_input = next_input + 1
      return x[next_input]
    end
    for i = 1, count do
      if lists[i] then
        filled[i] = {}
        for k, operand in ipairs(operands[i]) do filled[i][k] = value_of(operand) end
      else
        filled[i] = value_of(operands[i])
      end
    end
    return op(unpack(filled, 1, count))
  end
  if inputs[1].dtype == "string" then on_strings(layer, op, operands, count) end
  return layer(inputs)
end
Symbolic.metatable.__apply = apply

-- symbolic[{ {}, { 1, 2 } }] is an op, too: axis 1 is the batch.
local field_of = Symbolic.metatable.__index
Symbolic.metatable.__index = function(self, key)
  if type(key) ~= "string" then return apply(require("flow.tensor").select, self, key) end
  if type(key) == "string" and rawget(self, key) == nil and not Symbolic.methods[key] and not key:find("^_") then
    local op = require("flow.tensor").late_method(key) and require("flow.tensor.ops")[key]
    if op then Symbolic.methods[key] = signature.forward("symbolic:" .. key, Symbolic, op) end
  end
  return field_of(self, key)
end

-- Lets symbolic tensors have the operators and methods that tensors have; each becomes a node of a graph. Called once, when flow.layers is
-- loaded.
function symbolic.install_operators(ops)
  for _, name in ipairs { "add", "sub", "mul", "div", "pow", "mod" } do Symbolic.metatable["__" .. name] = ops[name] end
  Symbolic.metatable.__unm = function(a) return ops.neg(a) end      -- Lua gives the operand twice
  for name, op in pairs(ops) do
    if native.methods[name] then Symbolic.methods[name] = signature.forward("symbolic:" .. name, Symbolic, op) end
  end
end

return symbolic
