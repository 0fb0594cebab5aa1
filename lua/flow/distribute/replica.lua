-- replica.lua: the replica context: what a function that runs on each replica knows of the others.
--
--   local context = flow.distribute.get_replica_context()        in a function that strategy:run runs
--   context.num_replicas_in_sync, context.strategy
--   context.replica_id_in_sync_group       from 0; a tensor, since one trace serves all replicas
--   context:all_reduce("sum", x), context:all_gather(x, axis)
--
-- Lua runs while the function is traced, once for all replicas, so a context is a matter of the trace.

local native = require "flow.ffi"
local errors = require "flow.errors"
local names = require "flow.names"
local object = require "flow.object"
local tensor = require "flow.tensor"
local scopes = require "flow.scopes"
local ops = require "flow.tensor.replica_ops"
local reduce_op = require "flow.distribute.reduce_op"

local raise = errors.raise
local replica = {}
local is_float = { float16 = true, bfloat16 = true, float32 = true, float64 = true }

local Context = object.class("ReplicaContext")

-- Contexts of functions that the running coroutine traces, innermost last.
local function list_of_own()
  local own = scopes.own()
  own.replicas = own.replicas or {}
  return own.replicas
end

function Context.fields.num_replicas_in_sync(self) return self.strategy.num_replicas_in_sync end

-- Sums are those of float numbers: whole ones go as float64, exact up to 2^53.
local function add_up(x)
  local dtype = x.dtype
  return is_float[dtype] and ops.all_reduce(x) or ops.all_reduce(x:to("float64")):to(dtype)
end

-- The sum or mean over all replicas of all workers, on each of them; of a table of tensors, of each.
function Context:all_reduce(how, value)
  how = reduce_op.check("all_reduce", how)
  if type(value) == "table" and not getmetatable(value) then
    local results = {}
    for key, entry in names.ordered(value) do results[key] = self:all_reduce(how, entry) end
    return results
  end
  local x, count = ops.operand(value, nil, "all_reduce"), self.num_replicas_in_sync
  if count == 1 then return x end
  local total = add_up(x)
  return how == "SUM" and total or total / count
end

-- The tensors of all replicas, which have one shape, one after the other along an axis (1).
function Context:all_gather(value, axis)
  local x, count = ops.operand(value, nil, "all_gather"), self.num_replicas_in_sync
  if x.rank == 0 then raise("all_gather: a single number has no axis to gather along") end
  axis = axis or 1
  if type(axis) ~= "number" or axis == 0 or axis ~= math.floor(axis) or math.abs(axis) > x.rank then
    raise("all_gather: there is no axis %s in %d dimensions", tostring(axis), x.rank)
  end
  if count == 1 then return x end
  if axis < 0 then axis = x.rank + axis + 1 end
  local is_mine = ops.eq(tensor.arange(0, count, { dtype = "int32" }), self.replica_id_in_sync_group)
  local parts = {}
  for i = 1, count do parts[i] = add_up(ops.where(is_mine[i], x, ops.zeros_like(x))) end
  return ops.concat(parts, axis)
end

-- Calls f(...) as replica `id` (a tensor) of a strategy.
function replica.within(strategy, id, f, ...)
  local running = list_of_own()
  local depth = #running
  return native.between(function() running[depth + 1] = object.new(Context, { strategy = strategy, replica_id_in_sync_group = id }) end,
    function()
      for i = #running, depth + 1, -1 do running[i] = nil end
    end, f, ...)
end

-- The context of a strategy's only replica.
function replica.alone(strategy)
  return object.new(Context, { strategy = strategy, replica_id_in_sync_group = tensor.tensor(0, { dtype = "int32" }) })
end

-- The context of the function that runs on replicas, or nil.
function replica.current()
  local running = list_of_own()
  return running[#running]
end

return replica
