-- init.lua: flow.distribute: strategies, which decide on which devices and workers models and steps are. Names are tf.distribute's.
--
-- Reading order: strategy.lua (scope, run, reduce), values.lua, replica.lua, reduction.lua, mirrored.lua, multi_worker.lua over
-- worker.lua, dataset.lua. Beside them: verify.lua (are all replicas the same?), status.lua (the status page over HTTP), cost.lua (how
-- many workers are worth their cost).
--
-- The room: strategies, clusters, and what the workers of a model agree on. May use: tensor, data.

local signature = require "flow.signature"
local cluster = require "flow.distribute.cluster"
local strategies = require "flow.distribute.strategy"
local replica = require "flow.distribute.replica"
local reduce_op = require "flow.distribute.reduce_op"
local cross_device_ops = require "flow.distribute.cross_device_ops"
local communication = require "flow.distribute.communication"
local mirrored = require "flow.distribute.mirrored"
local multi_worker = require "flow.distribute.multi_worker"
local parameter_server = require "flow.distribute.parameter_server"
local partitioners = require "flow.distribute.partitioners"
local coordinator = require "flow.distribute.coordinator"
local status = require "flow.distribute.status"
local cost = require "flow.distribute.cost"

local named = signature.module
local above = {}      -- names that rooms above this one give, each a function that loads it: flow's init.lua passes them
local distribute
distribute = signature.module("flow.distribute", {
  MirroredStrategy = mirrored.MirroredStrategy,
  OneDeviceStrategy = mirrored.OneDeviceStrategy,
  MultiWorkerMirroredStrategy = multi_worker.MultiWorkerMirroredStrategy,
  ParameterServerStrategy = parameter_server.ParameterServerStrategy,
  Server = parameter_server.Server,
  ClusterCoordinator = coordinator.ClusterCoordinator,
  coordinator = named("flow.distribute.coordinator", { ClusterCoordinator = coordinator.ClusterCoordinator }),
  FixedShardsPartitioner = partitioners.FixedShardsPartitioner,
  MinSizePartitioner = partitioners.MinSizePartitioner,
  MaxSizePartitioner = partitioners.MaxSizePartitioner,
  CommunicationOptions = communication.CommunicationOptions,
  CommunicationImplementation = communication.CommunicationImplementation,
  CollectiveCommunication = communication.CommunicationImplementation,
  NcclAllReduce = cross_device_ops.NcclAllReduce,
  HierarchicalCopyAllReduce = cross_device_ops.HierarchicalCopyAllReduce,
  ReductionToOneDevice = cross_device_ops.ReductionToOneDevice,
  ReduceOp = reduce_op.ReduceOp,
  cost = cost.cost,
  TFConfigClusterResolver = cluster.TFConfigClusterResolver,
  ClusterResolver = cluster.ClusterResolver,
  SimpleClusterResolver = cluster.SimpleClusterResolver,
  cluster_resolver = named("flow.distribute.cluster_resolver", {
    TFConfigClusterResolver = cluster.TFConfigClusterResolver, SimpleClusterResolver = cluster.SimpleClusterResolver,
    ClusterResolver = cluster.ClusterResolver,
  }),
  experimental = named("flow.distribute.experimental", {
    partitioners = named("flow.distribute.experimental.partitioners", {
      FixedShardsPartitioner = partitioners.FixedShardsPartitioner, MinSizePartitioner = partitioners.MinSizePartitioner,
      MaxSizePartitioner = partitioners.MaxSizePartitioner,
    }),
    ParameterServerStrategy = parameter_server.ParameterServerStrategy,
    MultiWorkerMirroredStrategy = multi_worker.experimental, CommunicationOptions = communication.CommunicationOptions,
    CommunicationImplementation = communication.CommunicationImplementation,
    CollectiveCommunication = communication.CommunicationImplementation,
  }),
}, function(_, name)
  if not above[name] then return nil end
  local value = above[name]()
  rawset(distribute, name, value)
  return value
end)
signature.internal(distribute).above = above
signature.names_of(distribute, function()
  local names = {}
  for name in pairs(above) do names[#names + 1] = name end
  return names
end)

-- Shows numbers of a loop that is not fit's, where the status is shown: flow.distribute.report { step = 300, loss = 0.2 }. Each call is a
-- point of the curves.
signature.takes "values: data"
function distribute.report(values) status.report(values) end

local default = nil
local function default_strategy()
  default = default or mirrored.default()
  return default
end

-- The strategy of the function that runs on replicas, else that whose scope is open, else the default one.
function distribute.get_strategy()
  local context = replica.current()
  return context and context.strategy or strategies.current() or default_strategy()
end

function distribute.has_strategy()
  return replica.current() ~= nil or strategies.current() ~= nil
end

-- Whether the code runs once for all replicas: in a scope, and not in a function that strategy:run runs.
function distribute.in_cross_replica_context()
  return replica.current() == nil and strategies.current() ~= nil
end

-- The context (replica.lua) of the function that strategy:run runs; outside of all scopes that of the one replica there is; nil in
-- a scope.
function distribute.get_replica_context()
  local context = replica.current()
  if context or strategies.current() then return context end
  return replica.alone(default_strategy())
end

return distribute
