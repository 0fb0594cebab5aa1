-- own_gradients.lua: gradients of targets that are sources, too, for tape.lua.

local native = require "flow.ffi"
local errors = require "flow.errors"
local ops = require "flow.tensor.ops"
local tensor = require "flow.tensor"
local step_share = require "flow.tensor.step_share"

local own_gradients = {}

-- The targets that a tape can have recorded: tensors; the other ones are variables, which depend on themselves alone.
function own_gradients.recorded(targets, given)
  local tensors, of_tensors = {}, {}
  for i, target in ipairs(targets) do
    if native.is_tensor(target) then
      tensors[#tensors + 1] = target
      of_tensors[#tensors] = given[i]
    end
  end
  return tensors, of_tensors
end

-- Adds to the gradients of sources that are targets, too, what the tape does not know of: one of itself, as in TensorFlow, watched or not.
function own_gradients.add(targets, given, leaves, gradients)
  for i, leaf in ipairs(leaves) do
    local is_tensor, is_missing = native.is_tensor(leaf), gradients[i] == nil
    for k, target in ipairs(targets) do
      local same = leaf == target
      if is_tensor then same = is_missing and native.is_tensor(target) and native.pointer(leaf) == native.pointer(target) end
      if same then
        local share = not is_tensor and leaf.rank == 0 and native.C.flow_tape_depth(native.context) == 0 and step_share.of() or 1
        local value = is_tensor and leaf or leaf:value()
        local expected, got = tensor.shape_text(tensor.raw_shape(value)), given[k] and tensor.shape_text(tensor.raw_shape(given[k]))
        if got and got ~= expected then
          errors.raise("gradient: the output gradient has the shape %s, its target %s", got, expected)
        end
        local of_itself = (given[k] or ops.ones_like(value)) * share
        gradients[i] = gradients[i] and gradients[i] + of_itself or of_itself
      end
    end
  end
end

return own_gradients
