-- reductions.lua: what few programs ask of the reductions and activations of tensor/ops.lua: the dtype of products, a number that is among
-- the elements, softmax over several axes, relu with a slope, a cap or a threshold.

local tensor = require "flow.tensor"
local ops = require "flow.tensor.ops"

local reductions = {}

function reductions.prod(x, axis, keepdims, dtype) return ops.prod(ops.cast(x, dtype), axis, keepdims) end

local function is_empty(x)
  for _, n in ipairs(tensor.raw_shape(x)) do
    if n == 0 then return true end
  end
  return false
end

-- The largest or the smallest of the elements and `initial`, which is all there is where x has no elements.
for name, choose in pairs { max = "maximum", min = "minimum" } do
  reductions[name] = function(x, axis, keepdims, initial)
    if is_empty(x) then return ops.full_like(ops.sum(x, axis, keepdims), initial, { dtype = x.dtype }) end
    return ops[choose](ops[name](x, axis, keepdims), tensor.tensor(initial, { dtype = x.dtype }))
  end
end

-- Over a list of axes, from their largest element.
function reductions.softmax(x, axes)
  if #axes == 1 and type(axes[1]) ~= "table" then return ops.softmax(x, axes[1]) end
  local powers = ops.exp(x - ops.max(x, axes, true))
  return powers / ops.sum(powers, axes, true)
end
function reductions.log_softmax(x, axes)
  if #axes == 1 and type(axes[1]) ~= "table" then return ops.log_softmax(x, axes[1]) end
  local below = x - ops.max(x, axes, true)
  return below - ops.logsumexp(below, axes, true)
end

-- Where branches meet, gradients are Keras': see relu.c of core/layers.
function reductions.relu(x, slope, most, threshold)
  local y = threshold == 0 and ops.relu(x) or ops.where(ops.gt(x, threshold), x, 0)
  if most == 6 and threshold == 0 then y = ops.minimum(ops.full_like(y, most), y)
  elseif most then y = ops.minimum(y, most) end
  if slope == 0 then return y end
  if not most and threshold == 0 then return y + ops.minimum(x, 0) * slope end
  return y - ops.relu(threshold - x) * slope
end

return reductions
