-- host_calls.lua: functions of the host, which no plan holds, among those that ds:map traces: layers that take strings. Such a function
-- makes a further component of components of the data set's elements, before the plan runs on them; so it is called on components as they
-- come, or on what another one made.
--
-- What the traced function computed must be a component before such a function can take it: the trace ends there, what it made so far is a
-- map of its own, which adds the value to the elements, and the function is traced again, on these.
--
-- A trace of ds:map opens a recorder: { places = { [symbol] = component, from 1 }, specs = { { shape =, dtype = }, ... }, symbol_of =
-- function(component, spec), steps = {}, computed = { component, ... } }: those that maps before it added, in the order in which they are
-- asked for. A step is { handle = flow_function } or { call = f(value), component = n, spec = }.

local native = require "flow.ffi"
local scopes = require "flow.scopes"
local strings = require "flow.tensor.strings"

local host_calls = {}

-- Calls f while the recorder is open.
function host_calls.within(recorder, f, ...)
  local own = scopes.own()
  local before = own.host_calls
  own.host_calls = recorder
  local function finish(ok, ...)
    own.host_calls = before
    if not ok then error((...), 0) end
    return ...
  end
  return finish(pcall(f, ...))
end

function host_calls.recorder() return scopes.own().host_calls end

-- What stands for a component with one more axis, of size 1, as the last one. moved: an op on one of text.
local Column = {}
local moved
function Column.__apply(...) return moved(...) end
function Column.__index(_, name) return host_calls.method(name) end

-- The position of a value among those of the function that ds:map records just now, and its spec; nothing for other values, or elsewhere.
local function find(value)
  local recorder = scopes.own().host_calls
  local kind = type(value)
  local place = recorder and (kind == "table" or kind == "cdata") and recorder.places[value]
  if place then return place, recorder.specs[place] end
end

-- The component that a value stands for while a map is traced, from 1, and its spec, which has `column` where that axis was added; nil: it
-- stands for none.
function host_calls.component(value)
  if getmetatable(value) ~= Column then return find(value) end
  local place, spec = find(value[1])
  local shape = { unpack(spec.shape) }
  shape[#shape + 1] = 1
  return place, { shape = shape, dtype = spec.dtype, column = true }
end

-- Whether a value stands for a component of strings while a map is traced.
function host_calls.is_text(value)
  local place, spec = host_calls.component(value)
  return place ~= nil and spec.dtype == "string"
end

local Computed = {}

-- The component, and its spec, that a value of the trace was made by a map before; without one the trace ends here.
function host_calls.computed(value)
  local recorder = scopes.own().host_calls
  recorder.asked = (recorder.asked or 0) + 1
  local place = recorder.computed[recorder.asked]
  if place then return place, recorder.specs[place] end
  error(setmetatable({ value = value }, Computed), 0)
end

-- The value that a trace ended for, of what it raised; nil: it raised something else.
function host_calls.ended_for(problem)
  return getmetatable(problem) == Computed and problem.value or nil
end

function host_calls.column(value) return setmetatable({ value }, Column) end
-- A column as what ops take.
function host_calls.numbers(value)
  return getmetatable(value) == Column and native.is_tensor(value[1]) and value[1]:expand_dims(-1) or value
end
function host_calls.plain(value) return getmetatable(value) == Column and value[1] or value end

-- Adds a step that makes a component of this spec; returns its symbol.
function host_calls.add(step, spec)
  local recorder = scopes.own().host_calls
  recorder.steps[#recorder.steps + 1] = step
  recorder.specs[#recorder.specs + 1] = spec
  return recorder.symbol_of(#recorder.specs, spec)
end

-- A component that a function returns or moves further: of a column, a step that makes it.
local function settled(value)
  if getmetatable(value) ~= Column then return value end
  local place, found = host_calls.component(value)
  local spec = { shape = found.shape, dtype = found.dtype }
  return host_calls.add({ component = place, spec = spec, call = function(text) return strings.reshaped(text, spec.shape) end }, spec)
end
host_calls.settled = settled

-- The text that an op makes of one: with one more axis at the end, which layers take without a further step, or in another shape.
function moved(op, value, ...)
  local place, spec = host_calls.component(value)
  local shape_after = place and strings.move_of(op)
  if not shape_after then return nil end
  local shape = shape_after(spec.shape, ...)
  local is_column = getmetatable(value) ~= Column and #shape == #spec.shape + 1 and shape[#shape] == 1
  for axis, n in ipairs(spec.shape) do is_column = is_column and shape[axis] == n end
  if is_column then return host_calls.column(value) end
  place = host_calls.component(settled(value))
  spec = { shape = shape, dtype = spec.dtype }
  return host_calls.add({ component = place, spec = spec, call = function(text) return strings.reshaped(text, shape) end }, spec)
end
host_calls.moved = moved

-- text:reshape(...) and the like; nil: texts have no such method.
function host_calls.method(name)
  local op = strings.moves(name)
  return op and function(value, ...) return moved(op, value, ...) end
end

return host_calls
