-- step_share.lua: a model's step that several replicas share (train/steps.lua). Each computes its part of the batch, and what it computes
-- as one number, a loss above all, counts as a mean over its rows: the whole batch's is the mean of the replicas', weighted by their rows.
-- So tapes weigh the gradients of numbers, metrics the numbers that they are given, and the sum over replicas is what one replica would
-- have. Alone, and outside of steps, nothing is weighed.

local native = require "flow.ffi"
local ops = require "flow.tensor.replica_ops"
local scopes = require "flow.scopes"

local step_share = {}

-- Calls f(...) as a step of a model, which this many replicas share, and returns its results.
function step_share.within(replicas, f, ...)
  local own = scopes.own()
  local outer = own.step
  return native.between(function() own.step = { replicas = replicas } end, function() own.step = outer end, f, ...)
end

-- Whether the running coroutine traces a step of a model.
function step_share.in_step()
  return scopes.own().step ~= nil
end

-- The share of this replica in the rows of the batch, a float32 scalar; nil: it has all.
function step_share.of()
  local step = scopes.own().step
  return step and step.replicas > 1 and ops.row_share() or nil
end

-- The number, or `other` where this replica has no rows: a mean of none is not a number.
function step_share.without_rows(number, other)
  local share = step_share.of()
  return share and ops.where(share:gt(0), number, other) or number
end

-- What a number counts for in a sum over replicas.
function step_share.weigh(number)
  local share = step_share.of()
  return share and step_share.without_rows(number * share, 0) or number
end

-- The number of the whole batch.
function step_share.mean(number)
  return step_share.of() and ops.all_reduce(step_share.weigh(number)) or number
end

-- The other way: of a sum over rows, which replicas add up, the number that weigh() makes that of.
function step_share.unweigh(number)
  local share = step_share.of()
  return share and step_share.without_rows(number / share, 0) or number
end

return step_share
