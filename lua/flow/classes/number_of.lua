-- number_of.lua: tensors of rank 0 where a parameter is a number, as Python takes NumPy's: ds:take(flow.tensor(3)).

local native = require "flow.ffi"
local scopes = require "flow.scopes"

-- The value of such a tensor; what is something else as it is. Notes for Dataset:map that a traced one has no value.
return function(value)
  if not native.is_tensor(value) or #value.shape > 0 then return value end
  if native.C.flow_tensor_is_symbolic(native.pointer(value)) == 0 then return value:item() end
  scopes.own().needs_values = true
  return value
end
