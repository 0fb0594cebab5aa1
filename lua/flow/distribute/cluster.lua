-- cluster.lua: cluster resolvers: who takes part in a training, and which task this process is.
--
--   local resolver = flow.distribute.TFConfigClusterResolver()                 from TF_CONFIG
--   local resolver = flow.distribute.ClusterResolver()                         from TF_CONFIG, else as mpirun or srun started it
--   local resolver = flow.distribute.ClusterResolver {                         as told
--     cluster = { chief = { "a:2222" }, worker = { "b:2222", "c:2222" } }, task = { type = "worker", index = 0 } }
--   resolver.task_type   "worker"; nil where there is no cluster                resolver.task_id      0, 1, ... as in TF_CONFIG
--   resolver.is_chief    true for one process of the cluster, or if there is none
--   resolver.num_workers chiefs and workers                                     resolver:cluster_spec()   { worker = { "b:2222", ... } }
--
-- A resolver is what its cluster was when it was made; it does not change.

local native = require "flow.ffi"
local errors = require "flow.errors"
local json = require "flow.json"
local object = require "flow.object"

local C, check, raise = native.C, native.check, errors.raise
local signature = require "flow.signature"

local takes = signature.takes
local cluster = signature.module "flow.distribute"

local Resolver = object.class("ClusterResolver")

local function handle(resolver) return rawget(resolver, "_handle") end

function Resolver.fields.task_type(self)
  local job = C.flow_cluster_job(handle(self))
  return job >= 0 and native.string(C.flow_job_name(job)) or nil
end
function Resolver.fields.task_id(self)
  local index = C.flow_cluster_index(handle(self))
  return index >= 0 and index or nil
end
function Resolver.fields.is_chief(self) return C.flow_cluster_is_chief(handle(self)) ~= 0 end
function Resolver.fields.num_workers(self) return C.flow_cluster_workers(handle(self)) end

---- specs ---------------------------------------------------------------------------------------------------------------------------------

-- The addresses of the tasks by their jobs, { worker = { "b:2222", ... } }, with the methods of tf.train.ClusterSpec. Tasks count from 0.
local spec_metatable = {}
local Spec = signature.methods("cluster_spec", spec_metatable)
spec_metatable.__index = Spec

-- The same without these methods.
function Spec:as_dict()
  local jobs = {}
  for job, addresses in pairs(self) do jobs[job] = { unpack(addresses) } end
  return jobs
end

-- The addresses of a job's tasks.
takes "job: string"
function Spec:job_tasks(job)
  return rawget(self, job) and { unpack(self[job]) } or raise("the cluster has no job %q", job)
end
takes "job: string"
function Spec:num_tasks(job) return #self:job_tasks(job) end
takes "job: string, index: whole"
function Spec:task_address(job, index)
  return self:job_tasks(job)[index + 1] or raise("the job %q has %d tasks, counted from 0; %d is not one", job, #self[job], index)
end

-- flow.train.ClusterSpec { worker = { "a:2222" }, ps = { "b:2222" } }; another spec gives a copy.
takes "cluster: data"
function cluster.spec(jobs)
  local made = setmetatable({}, spec_metatable)
  if type(jobs) ~= "table" then raise("ClusterSpec takes a table of jobs, got %s", errors.describe(jobs)) end
  for job, addresses in pairs(jobs) do
    if type(job) ~= "string" or type(addresses) ~= "table" then
      raise("ClusterSpec: a job is a name with a list of addresses, got %s with %s", errors.describe(job), errors.describe(addresses))
    end
    for i = 1, errors.check_list("ClusterSpec: " .. job, addresses) do
      if type(addresses[i]) ~= "string" then
        raise("ClusterSpec: %s: an address is a text such as \"a:2222\", got %s", job, errors.describe(addresses[i]))
      end
    end
    made[job] = { unpack(addresses) }
  end
  return made
end

-- The addresses of each job that has tasks; "" where only the launcher knows a task's address.
function Resolver:cluster_spec()
  return setmetatable(json.decode(native.text(C.flow_cluster_text, handle(self))), spec_metatable)
end

function cluster.is(value)
  return object.is(value, Resolver)
end

local function new(status, out)
  check(status)
  return object.new(Resolver, { _handle = native.own(out, C.flow_cluster_release) })
end

-- A task's type and index among options, as C takes them: NULL and -1 for what is not said.
local function task_of(what, options)
  local kind, index = options.task_type, options.task_id
  if kind ~= nil and type(kind) ~= "string" then raise("%s: task_type is a string, got %s", what, errors.describe(kind)) end
  if index ~= nil and (type(index) ~= "number" or index < 0 or index >= 2 ^ 30 or index % 1 ~= 0) then
    raise("%s: task_id is a whole number from 0, got %s", what, errors.describe(index))
  end
  return kind, index or -1
end

local function from_environment(what, options, with_launchers)
  local kind, index = task_of(what, options)
  local out = native.out("flow_cluster")
  return new(C.flow_cluster_from_environment(with_launchers, kind, index, out), out)
end

-- rpc_layer is accepted and has no meaning here.
takes "{ task_type?, task_id?, rpc_layer? }"
function cluster.TFConfigClusterResolver(options)
  return from_environment("TFConfigClusterResolver", options, 0)
end

takes "{ cluster?, task?, task_type?, task_id?, rpc_layer? }"
function cluster.ClusterResolver(options)
  if options.cluster == nil and options.task == nil then return from_environment("ClusterResolver", options, 1) end
  for _, name in ipairs { "cluster", "task" } do
    local value = options[name]
    if value ~= nil and type(value) ~= "table" then raise("ClusterResolver: %s is a table, got %s", name, errors.describe(value)) end
  end
  local kind, index = task_of("ClusterResolver", options)
  local jobs = options.cluster
  if getmetatable(jobs) == spec_metatable then jobs = jobs:as_dict() end
  local text = json.encode { cluster = jobs, task = options.task }
  local out = native.out("flow_cluster")
  return new(C.flow_cluster_parse(text, #text, "ClusterResolver", kind, index, out), out)
end

-- TensorFlow's form: SimpleClusterResolver({ worker = { "a:2222" } }, { task_type = "worker", task_id = 0 }).
takes "cluster: data, { task_type?, task_id?, rpc_layer? }"
function cluster.SimpleClusterResolver(spec, options)
  if type(spec) ~= "table" then raise("SimpleClusterResolver: the cluster is a table of jobs, got %s", errors.describe(spec)) end
  if spec.cluster then return cluster.ClusterResolver(spec) end
  return cluster.ClusterResolver { cluster = spec, task_type = options.task_type, task_id = options.task_id }
end

return cluster
