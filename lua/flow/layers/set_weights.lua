-- set_weights.lua: new values of all variables of a layer or model, in the order of get_weights(): all of them, or none where one does not
-- fit. input_shape: builds the layer before.

local errors = require "flow.errors"
local object = require "flow.object"
local ops = require "flow.tensor.ops"

local raise = errors.raise

local function shape_text(shape)
  return "{" .. table.concat(shape, ", ") .. "}"
end

return function(self, values, input_shape)
  if input_shape then self:build(input_shape) end
  local weights = self.weights
  errors.check_holes("set_weights()", values)
  if type(values) ~= "table" or #values ~= #weights then
    raise("%s: set_weights() takes a list of %d tensors, got %s", object.title(self), #weights,
      type(values) == "table" and #values .. " entries" or errors.describe(values))
  end
  local converted = {}
  for i, v in ipairs(weights) do
    converted[i] = ops.operand(values[i], v.dtype, "set_weights()")
    if shape_text(converted[i].shape) ~= shape_text(v.shape) then
      raise("%s: set_weights(): entry %d has shape %s, \"%s\" has %s", object.title(self), i, shape_text(converted[i].shape), v.path,
        shape_text(v.shape))
    end
  end
  for i, v in ipairs(weights) do v:assign(converted[i]) end
end
