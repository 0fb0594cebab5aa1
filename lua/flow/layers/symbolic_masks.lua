-- symbolic_masks.lua: masks of the symbolic tensors of functional models. As in Keras they are operations of the model, x:ne(0), which
-- become separate layers where a layer takes one: GlobalAveragePooling1D called on the output of an Embedding with mask_zero is called
-- with its mask. When the model runs, tensors carry masks besides (masks.lua), for what does not take them as arguments.

local object = require "flow.object"
local ops = require "flow.tensor.ops"
local masks = require "flow.layers.masks"
local several = require "flow.layers.several"

local symbolic_masks = {}

---- compute_mask of built-in layers -----------------------------------------------------------------------------------------------

-- By class name: rule(layer, inputs, mask), the record's compute_mask with operations that files hold. Without one the first input's mask
-- is passed on.
local RULES = {}

function RULES.Embedding(layer, inputs)
  return layer:get_config().mask_zero and ops.ne(inputs, 0) or nil
end

function RULES.Masking(layer, inputs)
  return ops.any(ops.ne(inputs, layer:get_config().mask_value), -1)
end

for _, name in ipairs { "GlobalAveragePooling1D", "Dot" } do RULES[name] = function() return nil end end

local function of_sequences(layer, _, mask) return layer:get_config().return_sequences and mask or nil end
for _, name in ipairs { "SimpleRNN", "LSTM", "GRU", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D" } do RULES[name] = of_sequences end

local function merged(_, _, mask)
  local result
  for _, own in ipairs(mask or {}) do
    if not own then return nil end
    result = result and ops.logical_or(result, own) or own
  end
  return result
end
for _, name in ipairs { "Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum" } do RULES[name] = merged end

-- A step counts where it does in one of the inputs, or, joined along the steps, as in its own.
function RULES.Concatenate(layer, inputs, mask)
  local whole, any = {}, false
  for i, x in ipairs(inputs) do
    local own = mask and mask[i]
    any = any or own
    if not own then whole[i] = ops.ones_like(x, { dtype = "bool" })
    elseif #own.shape < #x.shape then whole[i] = ops.logical_or(ops.expand_dims(own, -1), ops.zeros_like(x, { dtype = "bool" }))
    else whole[i] = own end
  end
  if not any then return nil end
  local axis = layer:get_config().axis
  return ops.any(ops.concat(whole, axis >= 0 and axis + 1 or axis), -1)
end

-- The mask of a layer's output, symbolic or nil: by the rule of its class, else that of its first input.
function symbolic_masks.compute(layer, inputs, mask)
  local rule = RULES[object.class_of(layer).name]
  if rule then return rule(layer, inputs, mask) end
  if type(mask) == "table" and not getmetatable(mask) then mask = mask[1] end
  return mask or nil
end

---- tensors -------------------------------------------------------------------------------------------------------------------------

-- The masks of a call's outputs, by their positions.
local function of_node(node)
  local layer = node.layer
  if #node.inputs == 0 or not layer.supports_masking then return {} end
  local first = node.call and several.first(layer, node.call) or not node.call and (node.single and node.inputs[1] or node.inputs)
  local given = node.call and node.call.options.mask
  if given == nil then given = masks.of(first) end
  return masks.computed(layer, first, given)
end

-- The mask of a symbolic tensor, made when it is first asked for; nil: it has none.
function symbolic_masks.of(t)
  local node = t.node
  node.masks = node.masks or of_node(node)
  return node.masks[t.index] or nil
end

return symbolic_masks
