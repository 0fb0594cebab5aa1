-- outside_traces.lua: what is made while a function is traced but is not a part of it: the first values of weights, and what build() of a
-- layer makes. A trace draws other random numbers in each run, and its tensors have no values that a variable could begin with.

local native = require "flow.ffi"
local scopes = require "flow.scopes"
local devices = require "flow.devices"

local C, context = native.C, native.context
local out = native.out("flow_scopes")

-- What modules keep of traces and tapes that are open.
local OF_TRACES = { "tracing", "tapes", "assignments", "bodies", "scratch_trace", "step" }

-- Calls f(...), whose ops run at once on the device that is set, and returns its results: no trace or tape that is open takes them.
return function(f, ...)
  if C.flow_trace_depth(context) == 0 then return f(...) end
  local own, device, kept = scopes.own(), devices.current(), {}
  local handle = own.handle
  native.check(C.flow_scopes_new(context, out))
  local empty = native.own(out, C.flow_scopes_release)
  for _, name in ipairs(OF_TRACES) do kept[name] = own[name] end
  return native.between(function()
    own.handle = empty
    C.flow_scopes_enter(context, empty)
    native.check(C.flow_context_set_device(context, device))
    for _, name in ipairs(OF_TRACES) do own[name] = nil end
  end, function()
    own.handle = handle
    C.flow_scopes_enter(context, handle)
    for _, name in ipairs(OF_TRACES) do own[name] = kept[name] end
  end, f, ...)
end
