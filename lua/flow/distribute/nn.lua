-- nn.lua: flow.nn: tf.nn's two helpers for losses of custom training loops, whose gradients are summed over replicas. Its other names are
-- those of flow's operations: flow.nn.softmax is flow.softmax.

local errors = require "flow.errors"
local ops = require "flow.tensor.ops"
local distribute = require "flow.distribute"

local raise = errors.raise
local signature = require "flow.signature"

local nn = signature.module("flow.nn", nil, function(_, name) return type(name) == "string" and ops[name] or nil end)

local function need_replica_context(what)
  if distribute.in_cross_replica_context() then
    raise("%s belongs in the function that strategy:run runs: it was called in the scope of the strategy", what)
  end
end

-- The sum of the losses of the samples of this replica, divided by the samples of all replicas: { sample_weight =, global_batch_size = };
-- by default all replicas have as many as this one.
signature.takes "per_example_loss, { sample_weight?, global_batch_size? }"
function nn.compute_average_loss(per_example_loss, options)
  local what = "flow.nn.compute_average_loss"
  need_replica_context(what)
  local loss, size = ops.operand(per_example_loss, nil, what), options.global_batch_size
  if loss.rank == 0 then raise("%s: it takes a loss for each sample, got a single number: use a loss with reduction = \"none\"", what) end
  if options.sample_weight ~= nil then
    local weight = ops.operand(options.sample_weight, loss.dtype, what)
    for _ = weight.rank + 1, weight.rank > 0 and loss.rank or 0 do weight = weight:expand_dims(-1) end
    loss = loss * weight
  end
  if size == nil then
    local others = {}
    for axis = 2, loss.rank do others[#others + 1] = axis end
    if #others > 0 then loss = ops.sum(loss, others) end
    return ops.mean(loss) / distribute.get_strategy().num_replicas_in_sync
  end
  if type(size) == "number" and size <= 0 then raise("%s: global_batch_size is a number above 0, got %g", what, size) end
  return ops.sum(loss) / size
end

-- A loss that does not depend on samples, such as that of a regularizer, divided by the number of replicas.
function nn.scale_regularization_loss(loss)
  local what = "flow.nn.scale_regularization_loss"
  need_replica_context(what)
  return ops.sum(ops.operand(loss, nil, what)) / distribute.get_strategy().num_replicas_in_sync
end

return nn
