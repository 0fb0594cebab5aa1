-- stateless.lua: calls with other values of variables than they have: layer:stateless_call(...), metric:stateless_update_state(...),
-- optimizer:stateless_apply(...). The variables get these values, and their own back when the call has ended.

local errors = require "flow.errors"
local native = require "flow.ffi"
local tensor = require "flow.tensor"
local variable = require "flow.tensor.variable"

local C = native.C

-- Calls f(...) with values, a list or nil, in the place of those of a list of variables. Returns the values that they have then, a list,
-- and what f returns. lend: what f reads are the values themselves, so that tapes see what comes of them; not for what writes variables
-- below the ops, as optimizers do.
return function(what, variables, values, lend, f, ...)
  if values ~= nil then
    if type(values) ~= "table" or #values ~= #variables then
      errors.raise("%s takes a list of the values of %d variables, got %s", what, #variables,
        type(values) == "table" and #values .. " entries" or errors.describe(values))
    end
  end
  local before, after, lent = {}, {}, {}
  for i, v in ipairs(variables) do before[i] = v:value() end
  local results
  local arguments, count = { ... }, select("#", ...)
  native.between(function() end, function()
    for i, v in ipairs(variables) do
      after[i] = v:value()
      if lent[i] then native.check(C.flow_variable_lend(native.context, v.handle, nil)) end
      v:assign(before[i])
    end
  end, function()
    for i, v in ipairs(variables) do
      local value = values and values[i] or nil
      if variable.is_variable(value) then value = value:value() end
      if value ~= nil then
        v:assign(value)
        if lend then
          if not native.is_tensor(value) then value = tensor.tensor(value, { dtype = v.dtype }) end
          native.try(C.flow_variable_lend, native.context, v.handle, native.pointer(value))
          lent[i] = true
        end
      end
    end
    results = { f(unpack(arguments, 1, count)) }
  end)
  return after, unpack(results, 1, table.maxn(results))
end
