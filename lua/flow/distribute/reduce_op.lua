-- reduce_op.lua: flow.distribute.ReduceOp: how values of replicas become one.

local errors = require "flow.errors"
local closed = require "flow.errors.closed"

local reduce_op = { ReduceOp = closed("flow.distribute.ReduceOp", { SUM = "SUM", MEAN = "MEAN" }) }

-- "SUM" or "MEAN", from a name in any case; what: the caller, as messages name it.
function reduce_op.check(what, how)
  local name = type(how) == "string" and rawget(reduce_op.ReduceOp, how:upper())
  return name or errors.raise("%s: \"sum\" or \"mean\", got %s", what, errors.describe(how))
end

return reduce_op
