-- packed.lua: nested lists that have tensors among their entries, as flow.tensor takes them: one tensor of them, by stacks from the inside,
-- through which gradients go: flow.tensor { { flow.cos(a), -flow.sin(a) }, { 0, 1 } }.

local errors = require "flow.errors"
local tensor = require "flow.tensor"

local function packed(value)
  if type(value) ~= "table" or getmetatable(value) then return value end
  errors.check_list("flow.tensor", value)
  local list = {}
  for i = 1, #value do list[i] = packed(value[i]) end
  return tensor.stack(list)
end

return function(value, dtype)
  local whole = packed(value)
  return dtype and whole:to(dtype) or whole
end
