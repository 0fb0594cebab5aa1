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

local C, raise = native.C, errors.raise
local WHAT = "MultiWorkerMirroredStrategy"

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

-- The connection to the others, after all have found that they fit together and have one random state.
local function join(resolver, options, replicas)
  local worker = workers.open(resolver._handle, options, shards.count() ~= nil)
  local ok, problem = pcall(function()
    worker:agree("number of local replicas", ("%d, shards: %s"):format(replicas, shards.count() or "none"))
    worker:share_random_state()
  end)
  if ok then return worker end
  pcall(worker.close, worker, true)
  error(problem, 0)
end

-- Lets GPUs add up among themselves, of all workers, where they can; else the workers' engine carries the sums, by way of the host.
local function connect(strategy, list, implementation)
  local gpus, wanted = devices.number(list[1]) >= 0, implementation == "NCCL"
  if not wanted and not (gpus and implementation == "AUTO") then return end
  local problem = "there are no GPUs"
  if gpus then problem = placement.connect(strategy._placement) end
  if problem then log.warning("%s: no sums by NCCL, they go through the host: %s", WHAT, problem) end
end

local function make(given, options)
  local resolver = resolver_of(given)
  local list = devices.default()
  local job, count = resolver.task_type, resolver.num_workers
  if job == "evaluator" then
    log.info("%s: this process is the evaluator: it runs by itself, the workers do not wait for it", WHAT)
    count = 1
  end
  local worker
  local replicas = shards.replicas(WHAT, list, count)
  devices.used(WHAT)
  if count > 1 then
    worker = join(resolver, options, replicas)
  end
  local strategy = strategies.make(MultiWorker, { devices = list, worker = worker, replicas = replicas,
                                                  bucket_bytes = options.bytes_per_pack })
  rawset(strategy, "cluster_resolver", resolver)
  rawset(strategy, "communication_options", options)
  if job ~= "evaluator" then connect(strategy, list, options.implementation) end
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

function MultiWorker:_leave(orderly, why)
  if not self._worker then return end
  at_exit.remove(self)
  rawset(self._placement, "closed", true)
  self._worker:close(orderly, why)
end

-- Says goodbye to the other workers. Models of the strategy cannot train any more; at the end of the program it happens by itself.
function MultiWorker:close()
  self:_leave(true)
end

local multi_worker = signature.module "flow.distribute"

-- MultiWorkerMirroredStrategy { cluster_resolver = ..., communication_options = ... }. With one worker it is as MirroredStrategy.
signature.takes "cluster_resolver?, communication_options?"
function multi_worker.MultiWorkerMirroredStrategy(resolver, options)
  return make(resolver, communication.check(WHAT, options))
end

-- tf.distribute.experimental's older form: { communication = "RING", cluster_resolver = ... }.
signature.takes "communication?, cluster_resolver?"
function multi_worker.experimental(implementation, resolver)
  return make(resolver, communication.CommunicationOptions { implementation = implementation })
end

return multi_worker
