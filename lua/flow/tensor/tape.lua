-- tape.lua: gradients of what ran while a tape recorded.
--
--   local tape = flow.GradientTape()
--   local loss = tape:record(function() return loss_fn(y, model(x)) end)
--   local gradients = tape:gradient(loss, model.trainable_variables)
--
-- Trainable variables are watched by being read, or, with watch_accessed_variables = false, by tape:watch(variable) alone; tensors are
-- watched by tape:watch(t). As in TensorFlow a tape is asked for gradients once,
-- after which it lets go of what it remembers, unless it is made as flow.GradientTape { persistent = true }; recording again starts from
-- the beginning.
--
-- A function made by flow.custom_gradient(f) says itself what the gradients of its inputs are. Its results have no connection with its
-- inputs in the graph that C knows: every open tape watches them, and remembers the call. Tape:gradient asks C for the gradients of the
-- targets down to such results, the call's own function for those of its inputs, and C for what they add to those below, the last call
-- first.

local native = require "flow.ffi"
local errors = require "flow.errors"
local names = require "flow.names"
local signature = require "flow.signature"
local variable = require "flow.tensor.variable"
local ops = require "flow.tensor.ops"
local tensor = require "flow.tensor"
local step_share = require "flow.tensor.step_share"
local loops = require "flow.tensor.loops"
local scopes = require "flow.scopes"

local C, check, raise = native.C, native.check, errors.raise
local context = native.context
local tape = signature.module "flow"
local takes = signature.takes

local metatable = {}
local Tape = signature.methods("tape", metatable)
metatable.__index = function(_, key)
  local method = Tape[key]
  if method == nil then
    key = tostring(key)
    raise("a gradient tape has no field %q%s", key, errors.elsewhere("tape", key) or errors.suggestion(key, Tape))
  end
  return method
end

-- persistent: it may be asked for gradients several times. watch_accessed_variables = false: of variables only those have gradients that
-- are watched.
takes "{ persistent: boolean = false, watch_accessed_variables: boolean = true }"
function tape.GradientTape(options)
  return setmetatable({ handle = false, recording = false, persistent = options.persistent, spent = false, watched = {}, customs = {},
    watched_variables_only = not options.watch_accessed_variables, chosen = {} }, metatable)
end

local out = native.out("flow_tape")

-- The tapes that record in the running coroutine.
local function recorders()
  local own = scopes.own()
  own.tapes = own.tapes or {}
  return own.tapes
end

-- Frees what was recorded.
local function release(self)
  if self.handle then native.close(self.handle, C.flow_tape_release) end
  self.handle, self.customs = false, {}
end

-- Raises sentence, with what f is, if it cannot be called.
local function check_callable(f, sentence)
  if type(f) ~= "function" and not (type(f) == "table" and getmetatable(f) and getmetatable(f).__call) then
    raise(sentence, errors.describe(f))
  end
end

-- Runs f(...) while the tape records, and returns its results.
takes("f: callable, arguments...", true)
function Tape:record(f, ...)
  if self.recording then raise("this tape records already") end
  check_callable(f, "tape:record takes a function whose operations it records, got %s")
  if self.handle then native.close(self.handle, C.flow_tape_release) end
  self.handle, self.spent = false, false
  local depth, status = C.flow_tape_depth(context), 0
  local function enter()
    check(C.flow_tape_begin(context, out))
    self.handle = native.own(out, C.flow_tape_release)
    self.recording, self.customs = true, {}
    table.insert(recorders(), self)
    for _, t in ipairs(self.watched) do check(C.flow_tape_watch(self.handle, native.pointer(t))) end
  end
  local function leave()
    self.recording = false
    local tapes = recorders()
    for i = #tapes, 1, -1 do
      if tapes[i] == self then table.remove(tapes, i) end
    end
    if C.flow_tape_depth(context) > depth then status = C.flow_tape_end(context, self.handle or out[0]) end
    if self.spent then release(self) end
  end
  local function finish(...)
    check(status)
    return ...
  end
  return finish(native.between(enter, leave, f, ...))
end

-- Forgets what was recorded so far, while the tape records: what comes counts from here. Tensors stay watched that were
-- watched before the recording.
function Tape:reset()
  if not self.recording then
    release(self)
    self.spent = false
    return
  end
  if self.spent then raise("reset(): this tape gave its gradients already; call tape:record(f) again") end
  check(C.flow_tape_begin(context, out))
  local handle = native.own(out, C.flow_tape_release)
  check(C.flow_tape_end(context, self.handle))
  native.close(self.handle, C.flow_tape_release)
  self.handle, self.customs = handle, {}
  for _, t in ipairs(self.watched) do check(C.flow_tape_watch(handle, native.pointer(t))) end
end

-- The tensors of a result, also inside of lists and tables, as constants.
local function without_gradients(value)
  if native.is_tensor(value) then return value.dtype:find("float", 1, true) and ops.stop_gradient(value) or value end
  if type(value) ~= "table" or getmetatable(value) then return value end
  local result = {}
  for key, entry in pairs(value) do result[key] = without_gradients(entry) end
  return result
end

-- Runs f(...) and returns its results, through which no gradient flows.
takes("f: callable, arguments...", true)
function Tape:stop_recording(f, ...)
  check_callable(f, "tape:stop_recording takes a function whose operations are not recorded, got %s")
  local function stopped(...)
    local results = { ... }
    for i = 1, select("#", ...) do results[i] = without_gradients(results[i]) end
    return unpack(results, 1, select("#", ...))
  end
  return stopped(f(...))
end

-- watch() of what is inside of `depth` lists.
local function watch(self, t, depth)
  if native.is_tensor(t) then
    if not t.dtype:find("float", 1, true) then raise("watch(): gradients need floating-point numbers, this tensor is %s", t.dtype) end
    if self.recording then check(C.flow_tape_watch(self.handle, native.pointer(t)))
    else self.watched[#self.watched + 1] = t end
  elseif variable.is_variable(t) then
    if not t.trainable then raise("watch(): variable %q is not trainable: set variable.trainable = true", t.name) end
    self.chosen[t] = true
  elseif type(t) == "table" then
    depth = errors.deeper("watch()", depth)
    for i = 1, errors.check_list("watch()", t) do watch(self, t[i], depth) end
  else
    raise("watch(): expected a tensor or a list of tensors, got %s", errors.describe(t))
  end
end

-- Watches a tensor (or a list of them): every recording from now on, or, while one runs, that one alone, so that a tape that is used for
-- many steps keeps no tensor of those before. Variables need no watching, unless the tape was made with watch_accessed_variables = false:
-- then it watches these from now on.
function Tape:watch(t) watch(self, t) end

-- Appends the tensors and variables of a nested list to `leaves`; returns the same structure with positions in their place.
local function flatten(sources, leaves, depth)
  if native.is_tensor(sources) or variable.is_variable(sources) then
    leaves[#leaves + 1] = sources
    return #leaves
  end
  if type(sources) ~= "table" or getmetatable(sources) then
    raise("gradient(): a source is a tensor, a variable or a list of them, got %s", errors.describe(sources))
  end
  if #sources > 0 then errors.check_list("gradient(): the sources", sources) end
  local positions = {}
  depth = errors.deeper("gradient(): the sources", depth)
  for key, value in names.ordered(sources) do positions[key] = flatten(value, leaves, depth) end
  return positions
end

-- Takes out what was found for variables that the tape does not watch; none: what stands for nothing, nil or false. list: by leaf.
local function only_watched(self, leaves, list, none)
  for i, leaf in ipairs(self.watched_variables_only and leaves or {}) do
    if variable.is_variable(leaf) and not self.chosen[leaf] then list[i] = none end
  end
  return list
end

-- Gradients, nested as the sources were. positions: the same nesting with each one's number.
local function unflatten(positions, gradients)
  if type(positions) == "number" then return gradients[positions] end
  local result = {}
  for key, position in pairs(positions) do result[key] = unflatten(position, gradients) end
  return result
end

-- Appends the target, or the targets of a nested list, to `leaves`, and what is given for each to `given`: its output gradient, or nil.
local function flatten_targets(target, gradient, leaves, given, depth)
  if native.is_tensor(target) or variable.is_variable(target) then
    if not target.dtype:find("float", 1, true) then
      raise("gradient(): the target has dtype %s, which has no gradient", target.dtype)
    end
    leaves[#leaves + 1] = target
    given[#leaves] = gradient ~= nil and ops.operand(gradient, target.dtype, "gradient(): an output gradient"):to(target.dtype) or nil
    return
  end
  if type(target) ~= "table" or getmetatable(target) then raise("gradient(): the target is a tensor, got %s", errors.describe(target)) end
  if gradient ~= nil and (type(gradient) ~= "table" or getmetatable(gradient)) then
    raise("gradient(): output_gradients has the structure of the target, a list, got %s", errors.describe(gradient))
  end
  if #target > 0 then errors.check_list("gradient(): the target", target) end
  for key in pairs(gradient or {}) do
    if target[key] == nil then raise("gradient(): output_gradients has the entry %s, the target has not", tostring(key)) end
  end
  depth = errors.deeper("gradient(): the target", depth)
  for key, entry in names.ordered(target) do      -- pairs() has another order in each process, and sums of gradients follow it
    flatten_targets(entry, gradient and gradient[key], leaves, given, depth)
  end
end

-- Gradients of the targets' sum for a list of tensors and variables, nil where no target depends on one. given: of flatten_targets.
local function gradients_of(handle, targets, given, leaves)
  local count = #leaves
  local tensors, variables = native.out("flow_tensor", math.max(count, 1)), native.out("flow_variable", math.max(count, 1))
  for i = 1, count do
    if native.is_tensor(leaves[i]) then tensors[i - 1] = native.pointer(leaves[i]) else variables[i - 1] = leaves[i].handle end
  end
  local of_given = native.out("flow_tensor", math.max(#targets, 1))
  for i = 1, #targets do
    if given[i] then of_given[i - 1] = native.pointer(given[i]) end
  end
  local results = native.out("flow_tensor", math.max(count, 1))
  native.keep(leaves)
  native.keep(given)
  local of_targets = native.pointers(targets)
  native.try(C.flow_tape_gradients, context, handle, of_targets, of_given, #targets, tensors, variables, count, results)
  local gradients = {}
  for i = 1, count do
    if results[i - 1] ~= nil then gradients[i] = native.tensor(results[i - 1]) end
  end
  return gradients
end

-- Where replicas share a model's step: the gradients for variables, which they add up, are those of this replica's part of each number
-- among the targets. Not so for tensors, and not inside another tape's recording, which goes on computing with what this replica has.
local function weighed(targets, given)
  local share, result = step_share.of(), {}
  for i, target in ipairs(targets) do
    result[i] = given[i]
    if target.rank == 0 then result[i] = (given[i] and given[i] * share or share):to(target.dtype) end
  end
  return result
end

-- The gradients of a custom call's inputs, by its own function, for those of its results; inputs without one are left out.
local function custom_gradients(custom, upstream)
  local found = { custom.gradient(unpack(upstream, 1, #custom.results)) }
  if type(found[1]) == "table" and not getmetatable(found[1]) then found = found[1] end
  local targets, given = {}, {}
  for i, input in ipairs(custom.inputs) do
    if found[i] ~= nil and input.dtype:find("float", 1, true) then
      local gradient = ops.operand(found[i], input.dtype, "custom_gradient"):to(input.dtype)
      local expected, got = tensor.shape_text(tensor.raw_shape(input)), tensor.shape_text(tensor.raw_shape(gradient))
      if expected ~= got then
        raise("custom_gradient: the gradient of argument %d has shape %s, the argument %s: it has one number for each of its elements", i,
          got, expected)
      end
      targets[#targets + 1], given[#given + 1] = input, gradient
    end
  end
  return targets, given
end

-- gradients_of, through the custom calls of a tape.
local function all_gradients(self, targets, given, leaves)
  local customs, places, count = self.customs, {}, #leaves
  if #customs == 0 then return gradients_of(self.handle, targets, given, leaves) end
  local all = { unpack(leaves, 1, count) }
  for k, custom in ipairs(customs) do
    places[k] = #all
    for _, result in ipairs(custom.results) do all[#all + 1] = result end
  end
  local gradients = gradients_of(self.handle, targets, given, all)
  for k = #customs, 1, -1 do
    local upstream, is_reached = {}, false
    for i, result in ipairs(customs[k].results) do
      local gradient = gradients[places[k] + i]
      is_reached = is_reached or gradient ~= nil
      upstream[i] = gradient or ops.zeros_like(result)
    end
    if is_reached then
      local below, of_below = custom_gradients(customs[k], upstream)
      local more = #below > 0 and gradients_of(self.handle, below, of_below, { unpack(all, 1, places[k]) }) or {}
      for i, gradient in pairs(more) do gradients[i] = gradients[i] and gradients[i] + gradient or gradient end
    end
  end
  for i = count + 1, #all do gradients[i] = nil end
  return gradients
end

local function shared_gradients(self, targets, given, leaves)
  if C.flow_tape_depth(context) > 0 or not step_share.of() then return all_gradients(self, targets, given, leaves) end
  local gradients, unweighed = all_gradients(self, targets, weighed(targets, given), leaves), nil
  for i, leaf in ipairs(leaves) do
    if native.is_tensor(leaf) then
      unweighed = unweighed or all_gradients(self, targets, given, leaves)
      gradients[i] = unweighed[i]
    end
  end
  return gradients
end

-- What f(self, ...) answers for a tape. One that is not persistent answers once, and remembers nothing from then on; a question that fails
-- leaves it unchanged. what: who asks, for messages.
local function ask(self, what, f, ...)
  if self.spent then
    raise("%s: this tape gave its gradients already; flow.GradientTape { persistent = true } makes one that may be asked several times",
      what)
  end
  if not self.handle then raise("%s: this tape has recorded nothing; call tape:record(f) first", what) end
  local result = f(self, ...)
  if not self.persistent then
    self.read_before, self.spent = self:watched_variables(), true
    if not self.recording then release(self) end
  end
  return result
end

-- Gradients of the sum of the target's elements, or of those of all targets of a list, in the structure of sources; nil for a source that
-- no target depends on, or zeros with unconnected_gradients = "zero". output_gradients, of the target's structure: each element counts so
-- much, as if the computation went on with a loss of which these are the gradients (a vector-Jacobian product); nil stands for ones.
takes "target?: data, sources?: data, output_gradients?: gaps, unconnected_gradients: 'none'|'zero' = 'none'"
function Tape:gradient(target, sources, output_gradients, unconnected)
  local targets, given, leaves = {}, {}, {}
  flatten_targets(target, output_gradients, targets, given)
  local positions = flatten(sources, leaves)
  local own = require "flow.tensor.values.own_gradients"
  local tensors, of_tensors = own.recorded(targets, given)
  local gradients = only_watched(self, leaves, ask(self, "gradient()", shared_gradients, tensors, of_tensors, leaves))
  own.add(targets, given, leaves, gradients)
  if unconnected == "zero" then
    for i = 1, #leaves do gradients[i] = gradients[i] or ops.zeros_like(leaves[i]) end
  end
  return unflatten(positions, gradients)
end

-- The gradients of each of the `count` parts of a target, which seed(i) picks: a list for each leaf, or false where none depends on it.
local function gradients_of_parts(self, target, count, seed, leaves)
  local lists = {}
  for k = 1, #leaves do lists[k] = false end
  for i = 1, count do
    for k, gradient in pairs(all_gradients(self, { target }, { seed(i) }, leaves)) do
      lists[k] = lists[k] or {}
      lists[k][i] = gradient
    end
  end
  for k, list in ipairs(lists) do
    for i = 1, list and count or 0 do list[i] = list[i] or ops.zeros_like(leaves[k]) end
  end
  return lists
end

-- The dimensions of a target from axis `from` on, and their product.
local function known_dims(what, target, from)
  if not native.is_tensor(target) then raise("%s: the target is a tensor, got %s", what, errors.describe(target)) end
  local dims, count = { unpack(tensor.raw_shape(target), from) }, 1
  for i, n in ipairs(dims) do
    if n < 0 then tensor.unknown_rows(("%s: dimension %d of the target"):format(what, i + from - 1)) end
    count = count * n
  end
  return dims, count
end

local function joined(...)
  local list = {}
  for i = 1, select("#", ...) do
    for _, n in ipairs((select(i, ...))) do list[#list + 1] = n end
  end
  return list
end

-- The gradient of each element of the target for each element of the sources: tensors with the target's axes and then the source's, in the
-- structure of sources; nil, or zeros with unconnected_gradients = "zero", for one that no target depends on. Each element takes a pass.
takes "target, sources: data, unconnected_gradients: 'none'|'zero' = 'none'"
function Tape:jacobian(target, sources, unconnected)
  local dims, count = known_dims("jacobian()", target, 1)
  local leaves, results = {}, {}
  local positions = flatten(sources, leaves)
  local lists = ask(self, "jacobian()", gradients_of_parts, target, count, function(i)
    return ops.reshape_raw(ops.one_hot(i - 1, count):to(target.dtype), dims)
  end, leaves)
  only_watched(self, leaves, lists, false)
  for k, leaf in ipairs(leaves) do
    local shape = joined(dims, tensor.raw_shape(variable.is_variable(leaf) and leaf:value() or leaf))
    if lists[k] then results[k] = ops.reshape_raw(ops.stack(lists[k], 1), shape)
    elseif unconnected == "zero" then results[k] = tensor.zeros(shape, { dtype = leaf.dtype }) end
  end
  return unflatten(positions, results)
end

-- The same row by row, of a target whose row i depends on row i of the source alone: the rows, the target's other axes, the source's.
takes "target, source"
function Tape:batch_jacobian(target, source)
  local dims, count = known_dims("batch_jacobian()", target, 2)
  if not native.is_tensor(source) then raise("batch_jacobian(): the source is a tensor, got %s", errors.describe(source)) end
  if target.rank == 0 or source.rank == 0 then
    raise("batch_jacobian(): the first axis of the target and of the source is that of the rows; one of them is a single number")
  end
  local list = ask(self, "batch_jacobian()", gradients_of_parts, target, count, function(i)
    return ops.zeros_like(target) + ops.reshape_raw(ops.one_hot(i - 1, count):to(target.dtype), joined({ 1 }, dims))
  end, { source })[1]
  if not list then return nil end
  local own = tensor.raw_shape(source)
  return ops.reshape_raw(ops.stack(list, 2), joined({ own[1] }, dims, { unpack(own, 2) }))
end

-- The trainable variables that this tape watches, each once, in the order in which they were first read, also while it records, and in a
-- traced function; after them, by their paths, those of tape:watch that were not read.
function Tape:watched_variables()
  if self.spent then return self.read_before end
  local list, met, count = {}, {}, self.handle and C.flow_tape_variables(self.handle, nil, 0) or 0
  local pointers = native.out("flow_variable", math.max(count, 1))
  if count > 0 then C.flow_tape_variables(self.handle, pointers, count) end
  for i = 1, count do
    local v = variable.wrap(pointers[i - 1])
    if not met[v] and (self.chosen[v] or not self.watched_variables_only) then list[#list + 1] = v end
    met[v] = true
  end
  local unread = {}
  for v in pairs(self.chosen) do
    if not met[v] then unread[#unread + 1] = v end
  end
  table.sort(unread, function(a, b) return a.path < b.path end)
  for _, v in ipairs(unread) do list[#list + 1] = v end
  return list
end

function Tape:close()
  if self.recording then self.handle, self.customs = false, {} else release(self) end
  self.watched = {}
end

function metatable.__tostring(self)
  return self.recording and "GradientTape (recording)" or "GradientTape"
end

---- custom gradients ------------------------------------------------------------------------------------------------------------------

-- What f of a custom gradient returned first as a list of tensors; nil: it is something else.
local function results_of(value)
  local list = type(value) == "table" and not getmetatable(value) and value or { value }
  for _, result in ipairs(list) do
    if not native.is_tensor(result) then return nil end
  end
  return #list > 0 and list or nil
end

-- f with its own gradients: f(x, ...) returns what it computes, a tensor or a list, and a function: that is called with the gradient of
-- each result, and returns those of x, ..., nil for none. What f computes with besides its arguments gets no gradient.
takes "f: callable"
function tape.custom_gradient(f)
  return function(...)
    local inputs = {}
    for i = 1, select("#", ...) do
      local x = (select(i, ...))
      local of = type(x) == "table" and getmetatable(x)
      if of and of.__apply then
        raise("custom_gradient: argument %d is a symbolic tensor of a functional model: call it in a layer written in Lua, made by "
          .. "layers.Layer:extend", i)
      end
      inputs[i] = ops.operand(x, nil, "custom_gradient")
    end
    local value, gradient = f(unpack(inputs))
    local list = results_of(value)
    if not list or type(gradient) ~= "function" then
      raise("custom_gradient: f returns a tensor or a list of them, and a function that returns gradients, got %s and %s",
        errors.describe(value), errors.describe(gradient))
    end
    local results = {}
    for i, result in ipairs(list) do results[i] = ops.stop_gradient(result) end
    -- The gradient of a loop of a plan is taken in C, which knows nothing of such calls: its rounds are written out instead.
    for _, recorder in ipairs(loops.write_out() and {} or recorders()) do
      table.insert(recorder.customs, { inputs = inputs, results = results, gradient = gradient })
      for _, result in ipairs(results) do
        if result.dtype:find("float", 1, true) then check(C.flow_tape_watch(recorder.handle, native.pointer(result))) end
      end
    end
    return list == value and results or results[1]
  end
end

return tape
