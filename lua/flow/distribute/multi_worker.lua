-- multi_worker.lua: MultiWorkerMirroredStrategy: the same program in several processes, which train one model together. Who takes part
-- comes from TF_CONFIG or from mpirun or srun (cluster.lua); the processes find each other in worker.lua.

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local log = require "flow.log"
local at_exit = require "flow.at_exit"
local script = require "flow.command_line"
local signature = require "flow.signature"
local cluster = require "flow.distribute.cluster"
local devices = require "flow.devices"
local communication = require "flow.distribute.communication"
local mirrored = require "flow.distribute.mirrored"
local placement = require "flow.tensor.placement"
local shards = require "flow.shards"
local workers = require "flow.distribute.worker"
local strategies = require "flow.distribute.strategy"
local status = require "flow.distribute.status"
local recovery = require "flow.distribute.recovery"

local C, raise = native.C, errors.raise
local WHAT = "MultiWorkerMirroredStrategy"
local REJOIN_WITHIN, SHRINK_AFTER = 600, 5      -- seconds

local MultiWorker = object.class(WHAT, strategies.Strategy)

-- Platforms start the same program as parameter servers, too. There is nothing for them to do, and nobody waits for them; so they end, and
-- well, since a process that fails would end the others. In a host it is an error like any other.
local function leave(index)
  error(setmetatable({ code = 0, text = ("%s has no parameter servers: this process, ps:%d, has nothing to do and ends; the workers do not "
    .. "wait for it"):format(WHAT, index) }, script.Exit), 0)
end

-- The resolver that was given, checked, or the environment's.
local function resolver_of(given)
  local resolver = given
  if given == nil then
    resolver = cluster.ClusterResolver()
  elseif not cluster.is(given) then
    raise("%s: cluster_resolver is one such as flow.distribute.TFConfigClusterResolver(), got %s", WHAT, errors.describe(given))
  end
  local job, told = resolver.task_type, next(resolver:cluster_spec()) ~= nil
  if told and (not job or not resolver.task_id) then
    raise("%s: the cluster is given, but not which task this process is: TF_CONFIG's \"task\", or task_type and task_id", WHAT)
  end
  if job == "ps" then
    leave(resolver.task_id)
  end
  if told and job ~= "evaluator" and resolver.num_workers == 0 then raise("%s: the cluster has no chief and no worker", WHAT) end
  return resolver
end

-- For the text on which workers agree: equal settings have to give equal texts.
local function time_text(seconds) return seconds > 0 and ("%g s"):format(seconds) or "default" end

-- The connection to the others, after all have found that they fit together and have one random state. devices: how many this process has;
-- recovers: of recovery_of.
local function join(resolver, options, devices_here, recovers)
  local times = communication.times(options)
  status.say { state = "waiting for the workers" }
  local worker = workers.open(resolver._handle, options, times, shards.count(), recovers and recovers.waits)
  status.say { state = "running" }
  status.watch(worker.handle)
  local elastic = recovers and recovers.waits.min_workers
  local function settings()
    return ("local replicas: %s, shards: %s\nheartbeat: %s, dead_after: %s\ncompression: %s, factors: %s\nmin_workers: %s"):format(
      shards.count() and "by shards" or devices_here, shards.count() or "none", time_text(times.heartbeat), time_text(times.dead_after),
      options.compression, tostring(options.factors), elastic or "all")
  end
  for left = recovers and recovers.max_restarts or 0, 0, -1 do
    rawset(worker, "behind", worker.newest_step >= 0)
    local text = settings()
    worker:set_apart(worker.behind)
    local ok, problem = pcall(function()
      worker:agree("settings", text)
      worker:share_random_state()
      worker:set_apart(false)      -- until the placement is made, which is that of all
    end)
    if ok then break end
    local back, why = false, problem
    if left > 0 and C.flow_worker_check(worker.handle) ~= 0 then back, why = pcall(worker.rejoin, worker, -1) end
    if not back then
      pcall(worker.close, worker, true)
      error(getmetatable(why) == script.Exit and why or problem, 0)
    end
  end
  if worker.behind then log.info("%s: this worker was started again and catches up with the others, which are ahead", WHAT) end
  return worker
end

-- Lets GPUs add up among themselves, of all workers, where they can; else the workers' engine carries the sums, by way of the host.
local function connect(strategy, list, implementation)
  local gpus, wanted = devices.number(list[1]) >= 0, implementation == "NCCL"
  if not wanted and not (gpus and implementation == "AUTO") then return end
  local problem = "there are no GPUs"
  if gpus then problem = placement.connect(strategy._placement) end
  if problem then log.warning("%s: no sums by NCCL, they go through the host: %s", WHAT, problem) end
end

-- Whether workers wait for one that is lost, and how: { max_restarts =, waits = of worker.lua }, or nil. count: workers of the cluster.
local function recovery_of(given, count)
  local restarts = communication.whole(given.max_restarts, "FLOW_MAX_RESTARTS", 0)
  local least = communication.whole(given.min_workers, "FLOW_MIN_WORKERS", 1)
  local after = communication.seconds(WHAT, given.shrink_after, "shrink_after", "FLOW_SHRINK_AFTER")
  if restarts == nil and given.rejoin_timeout == nil and least == nil then return nil end
  local rejoin_within = communication.seconds(WHAT, given.rejoin_timeout, "rejoin_timeout") or REJOIN_WITHIN
  if least and least > count then
    raise("%s: min_workers is %d, but the cluster has %d workers", WHAT, least, count)
  elseif least and least < count then
    if not shards.count() then
      log.warning("%s: min_workers = %d goes with flow.config.enable_op_determinism { shards = N }, by which results do not depend on the "
        .. "number of workers; without shards all %d wait for the one that is lost", WHAT, least, count)
    elseif shards.count() == 1 then
      raise("%s: min_workers = %d, but a single shard cannot be shared: set shards to 2 or more", WHAT, least)
    end
  end
  if restarts == 0 then return nil end
  local waits = { rejoin_within = rejoin_within }
  if least and least < count and shards.count() then
    waits.min_workers, waits.shrink_after = least, after or SHRINK_AFTER
  end
  return { max_restarts = restarts or 100, waits = waits }
end

-- In an order that all workers keep: who takes part, what this process has, the connection (which agrees on all of it), the placement,
-- connections between GPUs. What fails before the connection fails on this worker alone; later the others are told.
local function make(given, options, restarts)
  local resolver = resolver_of(given)
  local list = devices.default()
  local job, count = resolver.task_type, resolver.num_workers
  if job == "evaluator" then
    log.info("%s: this process is the evaluator: it runs by itself, the workers do not wait for it", WHAT)
    count = 1
  end
  local worker
  if not resolver.is_chief then status.leave() end
  local recovers = job ~= "evaluator" and recovery_of(restarts, count) or nil
  local elastic = recovers and recovers.waits.min_workers
  if shards.count() then shards.check(WHAT, list, elastic and math.min(count, shards.count()) or count) end
  devices.used(WHAT)
  if count > 1 then worker = join(resolver, options, #list, recovers) end
  local replicas, first
  if worker and shards.count() then replicas, first = worker:shards()
  else replicas = shards.replicas(WHAT, list) end
  local strategy = strategies.make(MultiWorker, { devices = list, worker = worker, workers = elastic and count or nil,
                                                  replicas = replicas, first = first, count = shards.count(),
                                                  bucket_bytes = options.bytes_per_pack, factors = options.factors,
                                                  gradient_bytes = options.compression ~= "none" and 2 or 4 })
  rawset(strategy, "cluster_resolver", resolver)
  rawset(strategy, "communication_options", options)
  rawset(strategy, "_shrink_after", elastic and recovers.waits.shrink_after or false)
  rawset(strategy, "_recovery", worker and recovers and recovery.new(recovers.max_restarts, not worker.behind) or false)
  if worker and recovers then rawset(worker, "recovers", function(...) return recovery.guard(strategy, ...) end) end
  if job ~= "evaluator" then connect(strategy, list, options.implementation) end
  if worker and worker.behind then strategy:_set_apart(true) end
  if not worker then
    log.info("Single-worker %s with local_devices = %s, communication = %s", WHAT, mirrored.text_of(list), options.implementation)
    return strategy
  end
  at_exit.add(strategy, function(orderly, why) strategy:_leave(orderly, why) end)
  log.info("%s with cluster_spec = %s, task_type = '%s', task_id = %d, num_workers = %d, local_devices = %s, communication = %s (%s)", WHAT,
    native.text(C.flow_cluster_text, resolver._handle), job, resolver.task_id, count, mirrored.text_of(list), options.implementation,
    worker.engine)
  return strategy
end

-- Whether this worker does everything by itself, while it catches up with the others. What was traced for one case is of no use in the
-- other.
function MultiWorker:_set_apart(apart)
  self._worker:set_apart(apart)
  rawset(self._placement, "apart", apart)
  for _, entry in ipairs(self._functions) do entry.traced:close() end
  rawset(self, "_functions", {})
  rawset(self._placement, "shared", {})      -- all workers share what functions use for the first time
end

-- After a worker was lost, or has come: waits until all are there, or as many as go on. step: of what this worker has, -1: nothing.
function MultiWorker:_rejoin(step)
  local worker, p = self._worker, self._placement
  worker:rejoin(step)
  if p.elastic then
    local replicas, first = worker:shards()
    placement.move(p, replicas, first, worker.rank, worker.count)
    rawset(self, "_ids", false)
  end
  self:_set_apart(false)
  connect(self, self.extended.worker_devices, self.communication_options.implementation)
end

-- Leaves the cluster, once. orderly: waits for the others as recovery has it; else they learn `why`, a text, or that this process was asked
-- to end. The strategy cannot be used then. Raises what went wrong while it waited, after it has left. A process that was forked from this
-- worker has nobody to wait for.
function MultiWorker:_leave(orderly, why)
  if not self._worker then return end
  at_exit.remove(self)
  local ok, problem = true, why
  local handle = self._worker._handle      -- false: it was closed
  local forked = handle and tonumber(C.flow_worker_check(handle)) == C.FLOW_INVALID_STATE
  if orderly and recovery.of(self) and not forked then ok, problem = pcall(recovery.finish, self._recovery, self) end
  rawset(self._placement, "closed", true)
  self._worker:close(orderly and ok, problem)
  if not ok then error(problem, 0) end
end

-- Says goodbye to the other workers. Models of the strategy cannot train any more; at the end of the program it happens by itself.
function MultiWorker:close()
  self:_leave(true)
end

local multi_worker = signature.module "flow.distribute"

-- MultiWorkerMirroredStrategy { cluster_resolver = ..., communication_options = ... }. With one worker it is as MirroredStrategy. With any
-- of the last three, or with FLOW_MAX_RESTARTS or FLOW_MIN_WORKERS, the workers wait for one that is lost, and go on (recovery.lua).
-- max_restarts: how many times, 100; rejoin_timeout: how many seconds each time, 600. min_workers, with shards: they go on with this many,
-- the chief among them, where another has not come back within shrink_after seconds, 5, and with it when it comes later.
signature.takes("cluster_resolver?, communication_options?, { min_workers?: count, max_restarts?: whole, rejoin_timeout?: number, "
  .. "shrink_after?: number }")
function multi_worker.MultiWorkerMirroredStrategy(resolver, options, restarts)
  return make(resolver, communication.check(WHAT, options), restarts)
end

-- tf.distribute.experimental's older form: { communication = "RING", cluster_resolver = ... }.
signature.takes "communication?, cluster_resolver?"
function multi_worker.experimental(implementation, resolver)
  return make(resolver, communication.CommunicationOptions { implementation = implementation }, {})
end

return multi_worker
