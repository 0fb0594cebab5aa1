-- own_constraints.lua: applies constraints that are written in Lua after an update: each weight that has one is assigned its result.

local errors = require "flow.errors"
local native = require "flow.ffi"
local object = require "flow.object"

-- gradients: an array of the library, NULL where a variable has none; servers: the store of parameter servers, or nil.
return function(optimizer, gradients, variables, servers)
  for i, v in ipairs(variables) do
    local constraint = rawget(v, "_constraint")
    if constraint and gradients[i - 1] ~= nil then
      if servers then
        errors.raise("%s: the constraint of %q is written in Lua, but updates run on the parameter servers, which have those of the " ..
          "library only", object.title(optimizer), v.path)
      end
      local value = constraint(v:value())
      if not native.is_tensor(value) then
        errors.raise("%s: the constraint of %q returned %s, expected the weights", object.title(optimizer), v.path, errors.describe(value))
      end
      v:assign(value)
    end
  end
end
