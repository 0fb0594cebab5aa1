-- strategy.lua: what all strategies are: a scope in which models are made, functions that run on every replica, and sums over replicas.
--
--   strategy.scope(function() ... end)        what is made inside belongs to the strategy; strategy:scope(f) is the same
--   strategy:run(f, { x, y })                 f once per local replica; PerReplica arguments and results are split and grouped
--   strategy:reduce("sum", value)             over all replicas of all workers
--
-- A strategy is a placement (tensor/placement.lua) with names for people.

local debug = require("flow.host").debug
local native = require "flow.ffi"
local errors = require "flow.errors"
local signature = require "flow.signature"
local object = require "flow.object"
local placement = require "flow.tensor.placement"
local devices = require "flow.devices"
local scopes = require "flow.scopes"
local tensor = require "flow.tensor"
local fn = require "flow.tensor.fn"
local cluster = require "flow.distribute.cluster"
local values = require "flow.distribute.values"
local replica = require "flow.distribute.replica"
local reduction = require "flow.distribute.reduction"
local draws = require "flow.distribute.draws"
local closures = require "flow.distribute.closures"
local loop = require "flow.distribute.loop"
local shards = require "flow.shards"

local C, raise = native.C, errors.raise
local takes = signature.takes
local context = native.context

local Strategy = object.class("Strategy")
local strategies = { Strategy = Strategy }
local MAX_FUNCTIONS = 16       -- traced per strategy; the least recently used one goes

---- life -----------------------------------------------------------------------------------------------------------------------

-- Calls f(...) with a placement entered, on the device of its first replica.
local function placed(p, f, ...)
  if rawget(p, "closed") then raise("this strategy was closed") end
  return placement.within(p, devices.within, p.device, f, ...)
end

-- strategy.scope: calls a function in the strategy's scope and returns what it returns. Both strategy.scope(f) and strategy:scope(f) are
-- taken.
local function scope_of(strategy)
  return function(first, second, extra)
    local f = first == strategy and second or first
    if type(f) ~= "function" then raise("strategy.scope takes a function, got %s", errors.describe(f)) end
    if first == f then extra = second end
    if extra ~= nil then raise("strategy.scope takes a function; %s is one argument too many", errors.describe(extra)) end
    local outer = strategies.current()
    if outer and outer ~= strategy then
      raise("Mixing different strategies: the scope of %s was opened inside of the scope of %s", tostring(strategy), tostring(outer))
    end
    return placed(strategy._placement, f)
  end
end

-- A strategy of a class that extends Strategy. fields: devices, names of the local replicas' devices; worker: of worker.lua, or nil;
-- bucket_bytes, factors, gradient_bytes: of CommunicationOptions, or nil; replicas, first, count: of placement.new;
-- workers: how many there may be, if they come and go.
function strategies.make(class, fields)
  local p = placement.new { devices = fields.devices, worker = fields.worker and fields.worker.handle, replicas = fields.replicas,
                             first = fields.first, count = fields.count,
                             bucket_bytes = fields.bucket_bytes, factors = fields.factors,
                             gradient_bytes = fields.gradient_bytes, workers = fields.workers, pairwise = shards.count() ~= nil }
  local strategy = object.new(class, { num_replicas_in_sync = p.count, extended = { worker_devices = fields.devices },
                                       _placement = p, _worker = fields.worker or false, _recovery = false, _functions = {}, _ids = false,
                                       _draws = draws.new() })
  rawset(p, "strategy", strategy)
  if p.workers > 1 then placement.join(p) end
  rawset(strategy, "scope", scope_of(strategy))
  strategy.extended.should_checkpoint = p.worker_index == 0
  strategy.extended.should_save_summary = p.worker_index == 0
  return strategy
end

-- The strategy whose scope is open, or nil.
function strategies.current()
  local p = placement.current()
  return p and rawget(p, "strategy") or nil
end

-- The other workers, or nil if there are none.
function Strategy:_others()
  return self._placement.workers > 1 and self._worker or nil
end

---- running -----------------------------------------------------------------------------------------------------------------------

function Strategy:_trace_of(f)
  return fn.in_place_of(f, function(id, ...) return replica.within(self, id, f, ...) end)
end

-- The flow.fn that runs f as a replica whose number is its first argument. A function that is written inside of a step, and so is another
-- one at each call, is traced once, too.
local function traced(self, f)
  local list = self._functions
  for i = #list, 1, -1 do
    if closures.same(list[i].note, f) then
      local entry = table.remove(list, i)
      list[#list + 1] = entry
      return entry.traced
    end
  end
  local note, own = closures.note(f), draws.resume(self._draws, f, self:_trace_of(f))
  list[#list + 1] = { note = note, traced = own }
  if #list > MAX_FUNCTIONS then table.remove(list, 1).traced:close() end
  return own
end

strategies.traced = traced

-- The numbers of the local replicas among all, as tensors.
local function replica_ids(self)
  if not self._ids then
    local p, ids = self._placement, {}
    for i = 1, p.replicas do ids[i] = tensor.tensor(p.first + i - 1, { dtype = "int32" }) end
    rawset(self, "_ids", ids)
  end
  return self._ids
end

-- Raises for what strategy:run cannot call: its function is traced, so it has to be written in Lua, and it must not call run itself.
local function check_arguments(f, list)
  local metatable = type(f) == "table" and getmetatable(f)
  if type(f) ~= "function" and not (metatable and metatable.__call) then
    raise("strategy:run takes a function and a list of its arguments, got %s", errors.describe(f))
  elseif type(f) == "function" and debug.getinfo(f, "S").what == "C" then
    raise("strategy:run takes a function written in Lua, got one of Lua's own library")
  end
  if list ~= nil and (type(list) ~= "table" or getmetatable(list)) then
    raise("strategy:run: the arguments are a list such as { x, y }, got %s", errors.describe(list))
  end
  if replica.current() then raise("strategy:run was called by a function that strategy:run runs") end
end

strategies.check_arguments = check_arguments

-- The arguments of a call of run, which may be given by their name: strategy:run(f, { args = { x, y } }).
function strategies.arguments(list)
  local is_named = type(list) == "table" and not getmetatable(list) and list[1] == nil and type(list.args) == "table"
  return is_named and not getmetatable(list.args) and list.args or list
end

-- Runs f, a flow.fn or a function that is traced as one, on every local replica, and returns what it returned: PerReplica, or plain
-- values with one local replica. list: its arguments; PerReplica values in it, also in tables, are given to each replica in part.
function Strategy:run(f, list)
  list = strategies.arguments(list)
  check_arguments(f, list)
  list = list or {}
  local p, count = self._placement, table.maxn(list)
  if C.flow_trace_depth(context) > 0 or C.flow_tape_depth(context) > 0 then
    -- A flow.fn that calls run stays Lua with one replica, too, so that f draws the same random numbers with any number of them.
    if p.count > 1 or scopes.own().may_stay_lua then
      fn.cannot_be_traced = true
      raise("strategy:run of %d replicas cannot be part of a step of fit, of map, or of what a tape records: call it outside; the "
        .. "function that it runs is traced by itself, and its tape belongs inside of it", p.count)
    end
    return replica.within(self, replica_ids(self)[1], f, unpack(list, 1, count))
  end
  local ids, per_replica = replica_ids(self), {}
  for i = 1, p.replicas do
    local part = { n = count + 1, ids[i] }
    for k = 1, count do part[k + 1] = values.select(list[k], i) end
    per_replica[i] = part
  end
  if self:_others() then self:_others():progress() end
  local results = placed(p, placement.run, p, traced(self, f), per_replica)
  local returned, most = {}, 0
  for i = 1, p.replicas do most = math.max(most, results[i].n or table.maxn(results[i])) end
  for k = 1, most do
    local entries = {}
    for i = 1, p.replicas do entries[i] = results[i][k] end
    returned[k] = values.regroup(entries, p.replicas)
  end
  return unpack(returned, 1, most)
end

-- Calls f(step, ...) for the steps 1 to `steps`, with the next batch of `dataset`, of experimental_distribute_dataset or
-- distribute_datasets_from_function, whose passes follow each other; without one f(step) alone. Where the strategy's workers wait for one
-- that is lost (MultiWorkerMirroredStrategy { max_restarts }), all go on from the newest whole state of `checkpoint`, a
-- flow.train.Checkpoint of all that f changes (loop.lua). Returns how many steps this process has made.
takes "f, { steps: whole, checkpoint, dataset? }"
function Strategy:run_with_recovery(f, options)
  return loop.run(self, f, options)
end

---- values of replicas --------------------------------------------------------------------------------------------------------------

-- One value of what all replicas of all workers have: "sum" or "mean" of values of equal shapes, or with an axis (from 1) over that axis,
-- too: a mean then counts every element once, however uneven the parts are.
takes "reduce_op, value, axis?"
function Strategy:reduce(how, value, axis)
  return reduction.reduce(self, how, value, axis or nil)      -- false: none
end

-- The tensors of all replicas of all workers one after the other along an axis (1), in the order of the replicas.
takes "value, axis?"
function Strategy:gather(value, axis)
  return reduction.gather(self, value, axis)
end

-- The values of the local replicas as a list.
function Strategy:experimental_local_results(value)
  return { unpack(values.local_list(value)) }
end

-- PerReplica of what f(context) returns for each local replica; context.replica_id_in_sync_group (a number), .num_replicas_in_sync.
function Strategy:experimental_distribute_values_from_function(f)
  signature.check_callable("experimental_distribute_values_from_function", f)
  local p, list = self._placement, {}
  for i = 1, p.replicas do
    list[i] = f { replica_id_in_sync_group = p.first + i - 1, num_replicas_in_sync = p.count }
  end
  return values.regroup(list, p.replicas)
end

---- data ----------------------------------------------------------------------------------------------------------------------------

local INPUT = "{ experimental_fetch_to_device?, experimental_replication_mode?, experimental_place_dataset_on_device?, "
  .. "experimental_per_replica_buffer_size? }"

-- A data set in batches of the global size whose batches are split over all replicas (dataset.lua). options as in tf.distribute.
-- InputOptions; they are accepted and have no meaning here.
takes("dataset, " .. INPUT)
function Strategy:experimental_distribute_dataset(dataset)
  return require("flow.distribute.dataset").distribute(self, dataset)
end

-- A data set that dataset_fn(input_context) makes on each worker, in batches of the size of a replica.
takes("dataset_fn, " .. INPUT)
function Strategy:distribute_datasets_from_function(dataset_fn)
  return require("flow.distribute.dataset").from_function(self, dataset_fn)
end
Strategy.experimental_distribute_datasets_from_function = Strategy.distribute_datasets_from_function

-- Who takes part: a single worker.
function Strategy.fields.cluster_resolver() return cluster.ClusterResolver { cluster = {} } end

-- Strategies of one process have nothing to close.
function Strategy:close() end

return strategies
