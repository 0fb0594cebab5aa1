-- host_calls.lua: functions of the host, which no plan holds, among those that ds:map traces: layers that take strings. Such a function
-- makes a further component of components of the data set's elements, before the plan runs on them; so it is called on components as they
-- come, or on what another one made.
--
-- A trace of ds:map opens a recorder: { places = { [symbol] = component, from 1 }, specs = { { shape =, dtype = }, ... }, symbol_of =
-- function(component, spec), steps = {} }. A step is { handle = flow_function } or { call = f(value), component = n, spec = }.

local scopes = require "flow.scopes"

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

-- What stands for a component with one more axis, of size 1, as the last one.
local Column = {}

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

function host_calls.column(value) return setmetatable({ value }, Column) end
function host_calls.plain(value) return getmetatable(value) == Column and value[1] or value end

-- Adds a step that makes a component of this spec; returns its symbol.
function host_calls.add(step, spec)
  local recorder = scopes.own().host_calls
  recorder.steps[#recorder.steps + 1] = step
  recorder.specs[#recorder.specs + 1] = spec
  return recorder.symbol_of(#recorder.specs, spec)
end

return host_calls
