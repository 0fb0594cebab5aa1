-- fn.lua: flow.fn(f): a function whose tensor operations are traced once per signature and then run as one plan, without Lua.
--
-- A signature is what could change the trace: dtypes and shapes of tensors, Lua numbers, strings and booleans by value,
-- nested tables by their content, objects by identity, and which variables are trainable. The first dimension of the
-- tensors is the batch: the plan first is traced for any number of rows, and for exactly this number if that fails, for
-- example because f reads x.shape[1]. A plan runs with fewer rows as it is; more rows get a larger instance of it.
--
-- Inside another trace, and while a tape records, f is simply called, so that its operations become part of that.
--
-- What runs on several replicas (strategy:run) is a separate plan: a function that calls it stays Lua, without a trace around it. So does
-- a function that takes elements from an iterator: a trace would hold the first one for ever. So does one that ds:map or ds:filter calls
-- with values and that looks at them: there an if may, as in TensorFlow's graphs.

local debug = require("flow.host").debug
local native = require "flow.ffi"
local errors = require "flow.errors"
local names = require "flow.names"
local signature = require "flow.signature"
local tensor = require "flow.tensor"
local variable = require "flow.tensor.variable"
local log = require "flow.log"
local placement = require "flow.tensor.placement"
local devices = require "flow.devices"
local scopes = require "flow.scopes"

local C, check, raise = native.C, native.check, errors.raise
local context = native.context
local is_tensor = native.is_tensor

local fn = {
  cannot_be_traced = false,      -- set before an error: what the function calls is not an op, but has to be done at every call
}

local MAX_PLANS = 8                -- per function; the least recently used one goes
local RETRACES_BEFORE_WARNING = 5
local MOST_CALLS_OF_ITSELF = 10000 -- while it is traced: more never end, and tail calls do not even fill the stack

-- Raises while something is traced, with what would have to be done by every run of the trace. Of a flow.fn it is not an error: it stays
-- Lua.
function fn.check_untraced(message, ...)
  if C.flow_trace_depth(context) == 0 then return end
  fn.cannot_be_traced = true
  raise(message, ...)
end

---- signatures ------------------------------------------------------------------------------------------------------------

local identities, identity_count = setmetatable({}, { __mode = "k" }), 0
-- A number that stands for an object as long as it lives; objects are told apart by it in keys of calls.
local function identity(object)
  if not identities[object] then
    identity_count = identity_count + 1
    identities[object] = identity_count
  end
  return identities[object]
end

-- Describes value in `parts` (one entry per leaf, with its place in `places`) and appends its tensors to `tensors`.
local function describe(value, place, parts, places, tensors, depth)
  local kind = type(value)
  local text
  if kind == "cdata" and is_tensor(value) then
    local p = native.pointer(value)
    local dims = {}
    for i = 1, C.flow_tensor_rank(p) do dims[i] = C.flow_tensor_dim(p, i - 1) end
    tensors[#tensors + 1] = { value = value, dtype = C.flow_tensor_dtype(p), dims = dims, part = #parts + 1 }
    text = ""        -- filled in when the rows of the batch are known
  elseif kind == "number" then
    text = ("%.17g"):format(value)
  elseif kind == "string" then
    text = ("%q"):format(value)
  elseif kind == "nil" or kind == "boolean" then
    text = tostring(value)
  elseif kind == "table" and not getmetatable(value) then
    parts[#parts + 1], places[#places + 1] = "{", place
    depth = errors.deeper("flow.fn: an argument", depth)
    for _, key in ipairs(names.keys(value)) do
      parts[#parts + 1], places[#places + 1] = ("%s %q"):format(type(key), tostring(key)), place
      describe(value[key], place .. "[" .. tostring(key) .. "]", parts, places, tensors, depth)
    end
    text = "}"
  else
    text = kind .. " #" .. identity(value)
  end
  parts[#parts + 1], places[#places + 1] = text, place
end

-- Fills in the tensors' shapes, with "rows" for the batch dimension; returns the signature's text.
local function complete(parts, tensors, rows)
  for _, t in ipairs(tensors) do
    local dims = {}
    for i, n in ipairs(t.dims) do dims[i] = ("%d"):format(n) end
    t.batched = rows ~= nil and #dims > 0 and t.dims[1] == rows
    if t.batched then dims[1] = "None" end
    parts[t.part] = native.dtype_names[t.dtype] .. " {" .. table.concat(dims, ", ") .. "}"
  end
  return table.concat(parts, "|")
end

local function batch_rows(tensors)
  for _, t in ipairs(tensors) do
    if #t.dims > 0 then return t.dims[1] end
  end
end

---- structures ----------------------------------------------------------------------------------------------------------------

-- The value with its n-th tensor (in the order of describe) replaced by replacements[n].
local function substitute(value, replacements, counter)
  if is_tensor(value) then
    counter[1] = counter[1] + 1
    return replacements[counter[1]]
  end
  if type(value) ~= "table" or getmetatable(value) then return value end
  local result = {}
  for key, entry in names.ordered(value) do result[key] = substitute(entry, replacements, counter) end
  return result
end

local OUTPUT = {}      -- the metatable of a mark { number = } in place of a tensor
-- A copy of what a traced function returned, with a mark in place of each tensor, which is added to outputs; fill_template puts results
-- into it. Objects that stand for a tensor count as it, other objects stay.
local function template(value, outputs, depth)
  local stands_for = type(value) == "table" and getmetatable(value)
  if type(stands_for) == "table" and stands_for.__tensor then value = stands_for.__tensor(value) end
  if is_tensor(value) then
    outputs[#outputs + 1] = value
    return setmetatable({ number = #outputs }, OUTPUT)
  end
  if type(value) ~= "table" or getmetatable(value) then return value end
  local result = {}
  depth = errors.deeper("flow.fn: a result", depth)
  for key, entry in names.ordered(value) do result[key] = template(entry, outputs, depth) end
  return result
end

local function fill_template(value, results)
  if type(value) ~= "table" then return value end
  local metatable = getmetatable(value)
  if metatable == OUTPUT then return results[value.number] end
  if metatable ~= nil then return value end
  local filled = {}
  for key, entry in pairs(value) do filled[key] = fill_template(entry, results) end
  return filled
end

---- tracing --------------------------------------------------------------------------------------------------------------------

local one, out_plan, out_instance = native.out("flow_tensor"), native.out("flow_plan"), native.out("flow_instance")

local function pack(...)
  return { n = select("#", ...), ... }
end

-- Calls trace(...) with the random state of the function's first trace: what is drawn while it is traced becomes part of the plan, and a
-- program that goes on in another process (random.lua: get_state) needs the same plan.
local function as_first(self, trace, ...)
  local now, own = native.text(C.flow_context_save, context), scopes.own()
  local first, outer, outer_prints = self.first_draws, own.draws_owner, own.prints
  self.first_draws = first or now
  if first then check(C.flow_context_restore(context, first)) end
  own.draws_owner, own.prints, own.may_stay_lua = { name = fn.name_of(self), at = {} }, {}, true
  local ok, result = pcall(trace, self, ...)
  own.draws_owner, own.prints, own.may_stay_lua = outer, outer_prints, nil
  if first then check(C.flow_context_restore(context, now)) end
  return ok, result
end

-- Calls f once on symbolic tensors. Returns the finished plan with the template of its results; an error passes through.
local function trace(self, arguments, tensors)
  self.calls_inside = 0
  return tensor.while_tracing(self.where, function() placement.begin_trace(placement.current()) end, function()
    local symbols = {}
    for i, t in ipairs(tensors) do
      local dims, rank = native.dims(t.dims)
      if t.batched then dims[0] = -1 end
      check(C.flow_trace_input(context, t.dtype, rank, dims, one))
      symbols[i] = native.tensor(one[0])
    end
    local counter, symbolic = { 0 }, { n = arguments.n }
    for i = 1, arguments.n do symbolic[i] = substitute(arguments[i], symbols, counter) end
    local returned = pack(self.f(unpack(symbolic, 1, symbolic.n)))

    local outputs, templates, prints = {}, { n = returned.n }, scopes.own().prints      -- prints: of composed/print.lua
    for i = 1, returned.n do templates[i] = template(returned[i], outputs) end
    for i, values in ipairs(prints) do prints[i] = template(values, outputs) end
    for i, output in ipairs(outputs) do
      if not tensor.is_symbolic(output) then
        check(C.flow_trace_constant(context, native.pointer(output), one))
        outputs[i] = native.tensor(one[0])
      end
    end
    local pointers, count = native.pointers(outputs)
    check(C.flow_trace_end(context, pointers, count, out_plan))
    return { plan = native.own(out_plan, C.flow_plan_release), templates = templates, prints = prints, output_count = #outputs,
             instance = false }
  end)
end

---- running ------------------------------------------------------------------------------------------------------------------------

local function release(entry)
  if entry.instance then native.close(entry.instance, C.flow_instance_release) end
  if entry.plan then native.close(entry.plan, C.flow_plan_release) end
  entry.instance, entry.plan = false, false
end

-- The instance of an entry for up to `rows` rows in each replica, with the keys of its next run.
local function ready(self, entry, rows)
  rows = math.max(rows or 1, 1)
  if not entry.instance or C.flow_instance_capacity(entry.instance) < rows then
    if entry.instance then native.close(entry.instance, C.flow_instance_release) end
    entry.instance = false
    local current = placement.current()
    placement.share_variables(current, entry.plan)
    native.try(C.flow_instance_new, entry.plan, rows, out_instance)
    local instance = native.own(out_instance, C.flow_instance_release)
    placement.replicate(current, instance)
    entry.instance = instance
  end
  self.runs = self.runs + 1
  C.flow_instance_scalars(entry.instance, self.seed, self.runs, 0)
  return entry.instance
end

-- The results of replica `index` (from 0) out of `outputs`, as a list with its length n.
local function take_results(entry, outputs, index)
  local results, values = {}, { n = entry.templates.n }
  for i = 1, entry.output_count do results[i] = native.tensor(outputs[index * entry.output_count + i - 1]) end
  for i = 1, values.n do values[i] = fill_template(entry.templates[i], results) end
  for _, given in ipairs(entry.prints) do require("flow.tensor.composed.print").show(fill_template(given, results)) end
  return values
end

-- Runs a plan on the tensors of a call and returns what the function returned when it was traced, with new tensors.
local function run(self, entry, tensors, rows)
  local instance, list = ready(self, entry, rows), {}
  for i, t in ipairs(tensors) do list[i] = t.value end
  local pointers, count = native.pointers(list)
  local outputs = native.out("flow_tensor", math.max(entry.output_count, 1))
  native.try(C.flow_instance_run, context, instance, pointers, count, outputs)
  local values = take_results(entry, outputs, 0)
  return unpack(values, 1, values.n)
end

-- One line that names the first difference to the call before, so that the cause of the retraces can be found.
local function warn_of_retraces(self, parts, places)
  local before = self.last_parts
  local difference = "the structure of the arguments changed"
  if before and #before == #parts then
    for i = 1, #parts do
      if before[i] ~= parts[i] then
        difference = ("%s is %s, it was %s"):format(places[i], parts[i], before[i])
        break
      end
    end
  end
  log.warning("flow.fn (%s): traced %d times; %s. Pass what changes as a tensor, and keep the shapes equal.",
    self.where, self.traces, difference)
end

-- Keeps a plan as the one used last; above MAX_PLANS the one that was not used for the longest time is released.
local function remember(self, key, entry)
  local recent = self.recent
  for i = 1, #recent do
    if recent[i] == key then table.remove(recent, i) break end
  end
  table.insert(recent, key)
  self.plans[key] = entry
  if #recent > MAX_PLANS then
    local oldest = table.remove(recent, 1)
    release(self.plans[oldest])
    self.plans[oldest] = nil
  end
end

-- What a call brings: parts and places of its signature, its tensors, and the rows of the batch.
local function describe_call(arguments)
  local parts, places, tensors = {}, {}, {}
  for i = 1, arguments.n do describe(arguments[i], "argument " .. i, parts, places, tensors) end
  parts[#parts + 1], places[#places + 1] = ("trainable set %d"):format(variable.trainable_version), "which variables are trainable"
  parts[#parts + 1], places[#places + 1] = C.flow_context_exact(context) == 1 and "exact" or "fast", "the precision"
  parts[#parts + 1], places[#places + 1] = placement.text(placement.current()), "where it runs"
  parts[#parts + 1], places[#places + 1] = devices.name(devices.current()), "its device"
  for _, t in ipairs(tensors) do tensor.need_value(t.value, "an argument of a traced function") end
  return parts, places, tensors, batch_rows(tensors)
end

-- The plan for calls like this one. Returns its entry and whether its rows are symbolic; nil if the function stays Lua.
local function entry_for(self, arguments, parts, places, tensors, rows)
  local key = complete(parts, tensors, rows)
  local fixed = rows and self.fixed[key]
  if fixed then key = complete(parts, tensors, nil) end
  local entry = self.plans[key]
  if not entry then
    self.traces = self.traces + 1
    if self.traces > RETRACES_BEFORE_WARNING then warn_of_retraces(self, parts, places) end
    fn.cannot_be_traced = false
    local before = errors.obstacles
    local ok, result = as_first(self, trace, arguments, tensors)
    self.calls_inside = false
    -- What fails without an obstacle does not fail for being traced: it is f's own error.
    if not ok and errors.obstacles == before then error(result, 0) end
    local stays_lua = not ok and fn.cannot_be_traced
    fn.cannot_be_traced = false
    if stays_lua then
      self.stays_lua = true
      return nil
    end
    if not ok and rows and not fixed then
      self.fixed[key], fixed = true, true
      key = complete(parts, tensors, nil)
      ok, result = as_first(self, trace, arguments, tensors)
      self.calls_inside = false
    end
    if not ok and self.may_stay_lua then
      self.stays_lua = true
      return nil
    end
    if not ok and scopes.own().maps_in_lua then
      self.stays_lua_in_maps = true
      return nil
    end
    if not ok then error(result, 0) end
    entry = result
  end
  self.last_parts = parts
  remember(self, key, entry)
  return entry, not fixed
end

-- A call: by a plan for arguments of this kind, or by Lua, where a trace or tape that is under way has to see the ops, and where the
-- function cannot be traced.
local function call_as_given(self, ...)
  if self.calls_inside then
    self.calls_inside = self.calls_inside + 1
    if self.calls_inside > MOST_CALLS_OF_ITSELF then
      raise("%s calls itself without end while it is traced: an if cannot look at tensors then; flow.while_loop and flow.scan repeat",
        tostring(self))
    end
  end
  if self.stays_lua_in_maps and scopes.own().maps_in_lua then return self.f(...) end
  if self.stays_lua or C.flow_trace_depth(context) > 0 or C.flow_tape_depth(context) > 0 then return self.f(...) end
  local arguments = pack(...)
  local parts, places, tensors, rows = describe_call(arguments)
  local entry = entry_for(self, arguments, parts, places, tensors, rows)
  if not entry then return self.f(...) end
  return run(self, entry, tensors, rows)
end

-- Arguments as the function gets them.
local function read_arguments(self, arguments)
  if not self.input_signature then return arguments end
  return require("flow.tensor.composed.input_signature").read(tostring(self), self.input_signature, arguments)
end

local function call(self, ...)
  if not self.input_signature then return call_as_given(self, ...) end
  local arguments = read_arguments(self, pack(...))
  return call_as_given(self, unpack(arguments, 1, arguments.n))
end

-- Calls it on every local replica of the current placement, with arguments[i] (a list with its length n) on replica i, and returns a list
-- of what each returned. One plan serves all: arguments may differ in their values and in the rows of their batches.
function fn.call_each(self, arguments)
  for i, given in ipairs(arguments) do arguments[i] = read_arguments(self, given) end
  local parts, places, tensors, rows = describe_call(arguments[1])
  local entry, symbolic = entry_for(self, arguments[1], parts, places, tensors, rows)
  if not entry then raise("strategy:run was called by a function that strategy:run runs") end
  local key, most, list = complete(parts, tensors, symbolic and rows or nil), rows or 1, {}
  for i, given in ipairs(arguments) do
    local own_parts, own_places, own, own_rows = describe_call(given)
    if complete(own_parts, own, symbolic and own_rows or nil) ~= key then
      for k = 1, #parts do
        if own_parts[k] ~= parts[k] then
          raise("strategy:run: replicas run the same function of the same kind of arguments; %s is %s on replica %d and %s on the first",
            own_places[k] or "their number", own_parts[k] or "missing", i - 1, parts[k])
        end
      end
      raise("strategy:run: replica %d has more arguments than the first one", i - 1)
    end
    most = math.max(most, own_rows or 1)
    for _, t in ipairs(own) do list[#list + 1] = t.value end
  end
  local instance = ready(self, entry, most)
  local outputs = native.out("flow_tensor", math.max(entry.output_count * #arguments, 1))
  native.try(C.flow_instance_run_each, context, instance, native.pointers(list), #tensors, outputs)
  local results = {}
  for i = 1, #arguments do results[i] = take_results(entry, outputs, i - 1) end
  return results
end

local metatable = { __call = call, __tostring = function(self) return "flow.fn (" .. self.where .. ")" end }
local Fn = signature.methods("fn", metatable)

function metatable.__index(_, key)
  local method = Fn[key]
  if method == nil then
    raise("a traced function has no field %q%s", tostring(key),
      errors.elsewhere("traced function", key) or errors.suggestion(tostring(key), Fn))
  end
  return method
end

-- Text of the most recently used plan: one line an entry. "" before the first call.
function Fn:describe()
  local entry = self.plans[self.recent[#self.recent]]
  return entry and native.text(C.flow_plan_describe, entry.plan) or ""
end

-- Releases all plans; the next call traces again.
function Fn:close()
  for _, entry in pairs(self.plans) do release(entry) end
  self.plans, self.recent, self.fixed = {}, {}, {}
end

-- Those that are in use, with their numbers in the order in which they were made: flow.random keeps how often each has run, and where its
-- first trace was in the random numbers.
fn._living = setmetatable({}, { __mode = "k" })
local made_ever = 0

-- What tells functions apart, in another run of the same program, too.
function fn.name_of(self) return ("%.17g"):format(self.seed) end

local function new(f, where, seed)
  local made = setmetatable({
    f = f, where = where, plans = {}, recent = {}, fixed = {}, traces = 0, runs = 0, last_parts = false, stays_lua = false,
    may_stay_lua = false, stays_lua_in_maps = false, seed = seed, first_draws = false, input_signature = false,
    calls_inside = false,      -- a number while it is traced
  }, metatable)
  made_ever = made_ever + 1
  fn._living[made] = made_ever
  return made
end

-- A traced version of f, which is a function or anything that can be called. input_signature: what it is called with.
fn.fn = signature.guard("flow.fn", function(f, options)
  local specs = options.input_signature
  local callable = type(f) == "function" or (type(f) == "table" and getmetatable(f) and getmetatable(f).__call)
  if not callable then raise("flow.fn takes a function, got %s", errors.describe(f)) end
  if fn.is(f) and not specs then return f end
  local where = "a callable table"
  if type(f) == "function" then
    local info = debug.getinfo(f, "S")
    where = info.short_src .. ":" .. info.linedefined
  end
  local made = new(f, where, C.flow_context_next_seed(context))
  if specs then made.input_signature = require("flow.tensor.composed.input_signature").check(specs) end
  return made
end, "f?: given, { input_signature? }")

-- Whether this is such a function.
function fn.is(f) return type(f) == "table" and getmetatable(f) == metatable end

-- The same of `around`, which calls f and takes its place: it draws the random numbers that f, traced by itself, would draw.
function fn.in_place_of(f, around)
  local inner = fn.fn(f)
  return new(around, inner.where, inner.seed)
end

-- The same of f that runs as it is, from the first time on that it cannot be traced.
function fn.if_possible(f)
  local own = fn.in_place_of(f, f)
  own.may_stay_lua = true
  return own
end

return fn
