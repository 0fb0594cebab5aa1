-- trace.lua: the functions of ds:map and ds:filter: called once on symbols, then run in C for every element, as a plan.
--
-- A component that a plan can hold becomes an input of the trace. One that it cannot, a text or one with an unknown size besides the first,
-- becomes an object that may only be passed on (passed_on). The result is a flow_function: a plan, the components that are its inputs, and
-- for each result an output of the plan or a component. What needs the host in between, such as a vocabulary, is recorded as steps
-- (tensor/host_calls.lua).

local debug = require("flow.host").debug
local native = require "flow.ffi"
local errors = require "flow.errors"
local tensor = require "flow.tensor"
local devices = require "flow.devices"
local variable = require "flow.tensor.variable"
local host_calls = require "flow.tensor.host_calls"
local elements = require "flow.data.elements"
local structure = require "flow.data.structure"

local C, check, raise = native.C, native.check, errors.raise
local context = native.context
local trace = {}

local one, out_plan, out_function = native.out("flow_tensor"), native.out("flow_plan"), native.out("flow_function")

-- What stands for a component that the plan cannot take: it can be passed on; whatever else is done with it raises.
local function passed_on(name, why)
  local function refuse() raise("%s", why) end
  local metatable = { __tostring = function() return name end, __tensor = refuse }
  for _, event in ipairs { "index", "newindex", "call", "add", "sub", "mul", "div", "mod", "pow", "unm", "concat", "lt", "le" } do
    metatable["__" .. event] = refuse
  end
  function metatable.__apply(...) return host_calls.moved(...) or refuse() end
  function metatable.__index(_, key) return host_calls.method(key) or refuse() end
  return setmetatable({}, metatable)
end

local TEXT = "a text has no value while the function is traced: it can be passed on and reshaped, and layers such as " ..
  "TextVectorization make numbers of it"
local UNKNOWN = "component %d is %s: a traced function needs to know every size but the first, otherwise it can only pass a component " ..
  "on; bring elements to one size before they are batched: flow.image.resize, or padded_batch with padded_shapes"

-- Whether a plan can hold a component: it is not a text, and its sizes are known but for the first.
local function is_traceable(spec)
  for axis = 2, #spec.shape do
    if spec.shape[axis] < 0 then return false end
  end
  return spec.dtype ~= "string"
end

-- What stands for component i, from 1, while f is traced. A trace must be open.
local function symbol_of(i, spec)
  if spec.dtype == "string" then return passed_on("text", TEXT) end
  if not is_traceable(spec) then return passed_on(elements.spec_text(spec), UNKNOWN:format(i, elements.spec_text(spec))) end
  local dims, rank = native.dims(spec.shape)
  check(C.flow_trace_input(context, native.dtype(spec.dtype), rank, dims, one))
  return native.tensor(one[0])
end

-- A result as a symbol of this trace.
local function output_of(what, i, value)
  if variable.is_variable(value) then value = variable.read(value) end
  if type(value) == "number" or type(value) == "boolean" then value = tensor.tensor(value) end
  if not native.is_tensor(value) then
    raise("%s: result %d of the function is %s, expected a tensor", what, i, errors.describe(value))
  end
  if tensor.is_symbolic(value) then return value end
  check(C.flow_trace_constant(context, native.pointer(value), one))
  return native.tensor(one[0])
end

-- Where a function is defined, for messages.
local function where_of(f)
  local info = type(f) == "function" and debug.getinfo(f, "S")
  return info and info.short_src .. ":" .. info.linedefined or "a callable object"
end

local function has_texts(specs)
  for _, spec in ipairs(specs) do
    if spec.dtype == "string" then return true end
  end
  return false
end

-- Calls f once. Returns the plan, steps of the host, the components that are its inputs (from 0), and for every result an output of the
-- plan (from 0) or -1 - a component that is passed on. own: the structure of what f is called with; that of results comes with the rest.
-- added: how many components, the last ones, maps before made of values that f computes (host_calls.computed). Where it computes another
-- one for the host, `again` is true, and the results are all components and that value. constants: results, by their number, that are
-- numbers of Lua, where elements have texts.
local function run(what, f, specs, own, added)
  local symbols, inputs, places, outputs, results = {}, {}, {}, {}, {}
  local function make_symbol(i, spec)
    local symbol = symbol_of(i, spec)
    places[symbol] = i
    if is_traceable(spec) then inputs[#inputs + 1] = i - 1 end
    return symbol
  end
  local recorder = { places = places, specs = { unpack(specs) }, steps = {}, symbol_of = make_symbol, computed = {} }
  for i, spec in ipairs(specs) do
    local symbol = make_symbol(i, spec)
    if i <= #specs - added then symbols[i] = symbol else table.insert(recorder.computed, i) end
  end
  local given, count = structure.pack(own, symbols)
  local returned = { pcall(host_calls.within, recorder, f, unpack(given, 1, count)) }
  local ok, again = table.remove(returned, 1), nil
  if not ok then
    again = what == "map" and host_calls.ended_for(returned[1]) or error(returned[1], 0)
    returned = {}
    for symbol, i in pairs(places) do
      if i <= #specs then returned[i] = symbol end
    end
    table.insert(returned, again)
  end
  local only = ok and #returned == 1 and returned[1]
  if type(only) == "table" and not getmetatable(only) and not structure.is_named(only) then returned = only end
  local components, made = structure.flatten(what, returned)
  returned = components
  if #returned == 0 then raise("%s: the function returned nothing", what) end
  local constants
  -- A text's symbol is a table, whose # tells nothing: numbers that do not depend on the element may have been computed with it.
  for i, value in ipairs(has_texts(specs) and components or {}) do
    if type(value) == "number" or type(value) == "boolean" then
      if what == "filter" then raise("filter: the function gave %s, which does not depend on the element", tostring(value)) end
      constants = constants or {}
      constants[i] = value
    end
  end
  host_calls.within(recorder, function()
    for i, value in ipairs(components) do components[i] = host_calls.settled(value) end
  end)
  for i, value in ipairs(returned) do
    if (type(value) == "cdata" or type(value) == "table") and places[value] then
      results[i] = -places[value]
    else
      outputs[#outputs + 1] = output_of(what, i, value)
      results[i] = #outputs - 1
    end
  end
  if #results > C.FLOW_MAX_COMPONENTS then
    raise("%s: the function returned %d values, at most %d are possible", what, #results, C.FLOW_MAX_COMPONENTS)
  end
  if what == "filter" and results[1] < 0 then      -- a component as it is: through the plan all the same
    outputs[1], results[1] = symbols[-results[1]], 0
  end
  local pointers, pointer_count = native.pointers(outputs)
  check(C.flow_trace_end(context, pointers, pointer_count, out_plan))
  return { plan = native.own(out_plan, C.flow_plan_release), inputs = inputs, results = results, steps = recorder.steps,
           structure = made, again = again ~= nil, constants = constants }
end

-- Raises unless f can be called.
function trace.check_function(what, f)
  local callable = type(f) == "function" or (type(f) == "table" and getmetatable(f) and getmetatable(f).__call)
  if not callable then raise("%s: expected a function, got %s", what, errors.describe(f)) end
end

-- run() in its own trace, which is thrown away if it fails; the error then says that the function cannot be traced.
local function trace_here(what, f, specs, own, added)
  trace.check_function(what, f)
  if C.flow_trace_depth(context) > 0 then raise("%s cannot be called while another function is traced", what) end
  local function begin() check(C.flow_trace_begin(context)) end
  local ok, result = pcall(tensor.while_tracing, where_of(f), begin, run, what, f, specs, own, added)
  if not ok then
    if type(result) ~= "string" then error(result, 0) end      -- what the function threw itself
    local text = tostring(result)
    local position, rest = text:match("^([^\n:]+:%d+: )(.*)$")
    error(("%s%s: the function cannot be traced: %s"):format(position or "", what, rest or text), 0)
  end
  return result
end

-- What a data set's threads do is done on the host.
local function trace_function(what, f, specs, own, added)
  return devices.within(-1, trace_here, what, f, specs, own, added or 0)
end

-- A list of numbers as a C array, and their number.
local function integers(list)
  local array = native.array("int", math.max(#list, 1))
  for i, n in ipairs(list) do array[i - 1] = n end
  return array, #list
end

-- A flow_function for ds:map, the steps of the host that make further components before it (flow.tensor.host_calls), the structure of what
-- it makes, whether this map adds another component, so that a further one with f follows it, and the constants of run(). own: the
-- structure of elements. added: how many components maps before it added for f, 0 at first.
function trace.map_function(f, specs, own, added)
  local traced = trace_function("map", f, specs, own, added)
  local inputs, input_count = integers(traced.inputs)
  local results, result_count = integers(traced.results)
  native.keep(traced)
  check(C.flow_function_from_plan(traced.plan, inputs, input_count, results, result_count, out_function))
  return native.own(out_function, C.flow_function_release), traced.steps, traced.structure, traced.again, traced.constants
end

-- A flow_function for ds:filter.
function trace.filter_function(f, specs, own)
  local traced = trace_function("filter", f, specs, own)
  if #traced.steps > 0 then raise("filter: its function takes numbers: let a map before it make them of strings") end
  local inputs, input_count = integers(traced.inputs)
  native.keep(traced)
  check(C.flow_function_filter(traced.plan, inputs, input_count, out_function))
  return native.own(out_function, C.flow_function_release)
end

return trace
