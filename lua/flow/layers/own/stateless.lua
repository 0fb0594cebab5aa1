-- stateless.lua: calls with other values of variables than they have: layer:stateless_call(...), metric:stateless_update_state(...),
-- optimizer:stateless_apply(...). The variables get these values, and their own back when the call has ended.

local errors = require "flow.errors"
local native = require "flow.ffi"
local variable = require "flow.tensor.variable"

-- Calls f(...) with values, a list or nil, in the place of those of a list of variables. Returns the values that they have then, a list,
-- and what f returns.
return function(what, variables, values, f, ...)
  if values ~= nil then
    if type(values) ~= "table" or #values ~= #variables then
      errors.raise("%s takes a list of the values of %d variables, got %s", what, #variables,
        type(values) == "table" and #values .. " entries" or errors.describe(values))
    end
  end
  local before, after = {}, {}
  for i, v in ipairs(variables) do before[i] = v:value() end
  local results
  local call, arguments, count = f, { ... }, select("#", ...)
  native.between(function()
    for i, v in ipairs(variables) do
      local value = values and values[i] or nil
      if variable.is_variable(value) then value = value:value() end
      if value ~= nil then v:assign(value) end
    end
  end, function()
    for i, v in ipairs(variables) do
      after[i] = v:value()
      v:assign(before[i])
    end
  end, function() results = { call(unpack(arguments, 1, count)) } end)
  return after, unpack(results, 1, table.maxn(results))
end
