-- shape_list.lua: a shape as users get it: a list that prints as one, and is equal to another with the same dimensions. What asks for its
-- metatable finds none, as of any list. [-1] is the last dimension.

local Shape = { __metatable = false, __index = require "flow.classes.from_end" }
function Shape.__concat(a, b) return tostring(a) .. tostring(b) end
function Shape.__call() require("flow.errors").raise("a shape is a list, not a function: x.shape[1] is the length of the first axis") end
function Shape.__eq(a, b) return tostring(a) == tostring(b) end

-- raw: dimensions as the library has them, negative where they count rows of a batch. tensor: the module of tensors.
return function(raw, tensor)
  Shape.__tostring = tensor.shape_text
  for i = 1, #raw do
    if raw[i] < 0 then return setmetatable(require("flow.tensor.shapes").of(raw), Shape) end
  end
  return setmetatable(raw, Shape)
end
