-- parameter_server.lua: ParameterServerStrategy: variables live on tasks of the job ps; workers take them, compute gradients and send
-- these, each at its own speed. All tasks run the same script: parameter servers stop at the strategy's constructor, and serve there until
-- the chief has ended; the chief says what is done (fit, ClusterCoordinator), and works as well; the other workers follow it.

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local log = require "flow.log"
local at_exit = require "flow.at_exit"
local script = require "flow.command_line"
local signature = require "flow.signature"
local host = require "flow.host"
local cluster = require "flow.distribute.cluster"
local communication = require "flow.distribute.communication"
local devices = require "flow.devices"
local placement = require "flow.tensor.placement"
local saving = require "flow.distribute.saving"
local server_links = require "flow.distribute.servers.links"
local server_task = require "flow.distribute.servers.task"
local server_variables = require "flow.distribute.servers.variables"
local strategies = require "flow.distribute.strategy"

local C, raise = native.C, errors.raise
local WHAT, START_WITHIN, REJOIN_WITHIN, REASSIGN_AFTER = "ParameterServerStrategy", 300, 600, 60      -- seconds

local ParameterServer = object.class(WHAT, strategies.Strategy)
local parameter_server = signature.module "flow.distribute"

-- The resolver that was given, or the environment's, checked.
local function resolver_of(what, given)
  if given ~= nil and not cluster.is(given) then
    raise("%s: cluster_resolver is one such as flow.distribute.TFConfigClusterResolver(), got %s", what, errors.describe(given))
  end
  local resolver = given or cluster.ClusterResolver()
  local handle = resolver._handle
  if C.flow_cluster_count(handle, C.FLOW_JOB_PS) == 0 then
    raise("%s: the cluster has no parameter server: TF_CONFIG needs the job \"ps\" (flowlua launch --parameter-servers 1)", what)
  end
  if not resolver.task_type or not resolver.task_id then
    raise("%s: the cluster is given, but not which task this process is: TF_CONFIG's \"task\", or task_type and task_id", what)
  end
  local workers = C.flow_cluster_count(handle, C.FLOW_JOB_WORKER) + C.flow_cluster_count(handle, C.FLOW_JOB_CHIEF)
  if resolver.task_type ~= "evaluator" and workers == 0 then
    raise("%s: the cluster has no chief and no worker", what)
  end
  return resolver
end

-- Seconds in which a chief or a server that was lost may come back; nil: it does not. options: of the strategy, or nil.
local function rejoin_within(options)
  local restarts = communication.whole(options and options.max_restarts, "FLOW_MAX_RESTARTS", 0)
  return restarts and restarts > 0 and (options and options.rejoin_timeout or REJOIN_WITHIN) or nil
end

local function start_within()
  local within = communication.times(communication.check(WHAT)).start_within
  return within > 0 and within or START_WITHIN
end

-- What a parameter server waits for, and how long (task.lua).
local function times_of(options)
  local within = rejoin_within(options)
  local after = communication.seconds(WHAT, options and options.reassign_after, "reassign_after", "FLOW_REASSIGN_AFTER")
  return { start_within = start_within(), rejoin_within = within, waits_for_lost = within and not host.getenv "FLOW_LAUNCHED",
           reassign_after = after or REASSIGN_AFTER }
end

local function check_partitioner(partitioner)
  if partitioner ~= nil and not signature.is_callable(partitioner) then
    raise("%s: variable_partitioner is one such as flow.distribute.MinSizePartitioner(), got %s", WHAT, errors.describe(partitioner))
  end
end

-- The variables' side of the connections to all servers, waited for as long as the options of communication say, else 300 seconds.
local function connect(resolver, partitioner, options)
  local name = ("%s:%d"):format(resolver.task_type, resolver.task_id)
  local links = server_links.open(resolver, name, resolver.is_chief, start_within())
  return server_variables.new(links, partitioner, options.max_staleness, rejoin_within(options))
end

-- ParameterServerStrategy { cluster_resolver =, variable_partitioner =, max_staleness = }. max_staleness: how many steps a worker may be
-- ahead of the slowest one; without it they do not wait for each other. reassign_after: seconds after which a batch that a worker has taken
-- goes to another one, too. max_restarts above 0: a chief or a server that was lost is waited for, rejoin_timeout seconds. On a task ps
-- it does not return: the script ends with exit code 0 when the chief has ended.
signature.takes("cluster_resolver?, variable_partitioner?, { max_staleness?: whole, reassign_after?: positive, max_restarts?: whole, "
  .. "rejoin_timeout?: positive }")
function parameter_server.ParameterServerStrategy(given, partitioner, options)
  local resolver = resolver_of(WHAT, given)
  if host.getenv "FLOW_ENCRYPT" == "1" then
    raise("%s: FLOW_ENCRYPT=1, but what variables hold is not encrypted on its way to parameter servers: use a network that encrypts", WHAT)
  end
  check_partitioner(partitioner)
  if resolver.task_type == "ps" then
    server_task.run(resolver, times_of(options))
    error(setmetatable({ code = 0, text = ("%s: the chief has ended, and so does ps:%d"):format(WHAT, resolver.task_id) }, script.Exit), 0)
  end
  local list = { devices.default()[1] }
  devices.used(WHAT)
  local strategy = strategies.make(ParameterServer, { devices = list })
  rawset(strategy, "cluster_resolver", resolver)
  rawset(strategy, "_store", false)
  if resolver.task_type == "evaluator" then
    log.info("%s: this process is the evaluator: it runs by itself, the workers do not wait for it", WHAT)
    return strategy
  end
  rawset(strategy, "_store", connect(resolver, partitioner, options))
  rawset(strategy._placement, "servers", strategy._store)
  saving.is_left_to_chief = not resolver.is_chief
  saving.prepare = resolver.is_chief and function() strategy._store:fetch() end
  placement.updates_of = function(name) return strategy._store:updates_of(name) end
  strategy.extended.should_checkpoint, strategy.extended.should_save_summary = resolver.is_chief, resolver.is_chief
  at_exit.add(strategy, function(orderly) strategy:_leave(orderly) end)
  log.info("%s with cluster_spec = %s, task_type = '%s', task_id = %d", WHAT, native.text(C.flow_cluster_text, resolver._handle),
    resolver.task_type, resolver.task_id)
  return strategy
end

-- orderly: the servers are told, and end when the chief has said so. Otherwise they see that the connection is lost.
function ParameterServer:_leave(orderly)
  if not self._store then return end
  at_exit.remove(self)
  rawset(self._placement, "closed", true)
  saving.is_left_to_chief, saving.prepare, placement.updates_of = false, false, false
  if orderly then pcall(self._store.links.ask_all, self._store.links, function() return { is = "bye" } end) end
  self._store.links:close()
  rawset(self, "_store", false)
end

-- Says goodbye to the parameter servers, which end if this process is the chief. At the end of the program it happens by itself.
function ParameterServer:close() self:_leave(true) end

-- tf.distribute.Server: Server(resolver):join() serves as the parameter server that this process is, and returns when the chief has ended.
local Server = object.class("Server")

function Server:join() server_task.run(self._resolver, times_of()) end

signature.takes "cluster_resolver?"
-- A server of this process' own, which serves when it is joined. Raises where TF_CONFIG says that this process is another task.
function parameter_server.Server(given)
  local resolver = resolver_of("Server", given)
  if resolver.task_type ~= "ps" then
    raise("Server: this process is %s:%d, not a parameter server", resolver.task_type, resolver.task_id)
  end
  return object.new(Server, { _resolver = resolver })
end

return parameter_server
