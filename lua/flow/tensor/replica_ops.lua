-- replica_ops.lua: the ops of replicas that train together: all_reduce(x), their sum, and how the rows of a batch are shared. They mean
-- something in a trace made for several replicas (placement.lua); alone a replica has all rows and its own sum.

local native = require "flow.ffi"
local ops = require "flow.tensor.ops"

local C, context = native.C, native.context
local outputs = native.out("flow_tensor", 4)
local ALL_REDUCE, GLOBAL_ROWS, ROW_SHARE = C.flow_op_find("all_reduce"), C.flow_op_find("global_rows"), C.flow_op_find("row_share")

local function apply(op, x)
  native.try(C.flow_apply, context, op, x and native.pointers { x } or nil, x and 1 or 0, nil, outputs)
  return native.tensor(outputs[0])
end

-- The sum of x, a float tensor of the same shape everywhere, over all replicas.
function ops.all_reduce(x)
  x = ops.operand(x, nil, "all_reduce")
  if C.flow_trace_depth(context) > 0 then      -- what does not depend on the batch is still summed over replicas
      if C.flow_tensor_is_symbolic(native.pointer(x)) == 0 then
      native.try(C.flow_trace_constant, context, native.pointer(x), outputs)
      x = native.tensor(outputs[0])
    end
  end
  return apply(ALL_REDUCE, x)
end

-- Rows of the batch over all replicas, and the share of this one, as float32 scalars.
function ops.global_rows() return apply(GLOBAL_ROWS) end
function ops.row_share() return apply(ROW_SHARE) end

return ops
