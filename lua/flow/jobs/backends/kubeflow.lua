-- kubeflow.lua: jobs for Kubeflow's operators: a TFJob (kubeflow.org/v1), which puts TF_CONFIG into its pods, or, with --engine mpi, an
-- MPIJob (kubeflow.org/v2beta1), whose launcher calls mpirun.

local job_of = require "flow.jobs.job"
local pod = require "flow.jobs.pod"
local writer = require "flow.jobs.yaml_writer"

local kubeflow = { name = "kubeflow" }

local FILE, SECRET_FILE = "kubeflow.yaml", "kubeflow-secret.yaml"
local TYPES = { chief = "Chief", worker = "Worker", ps = "PS", evaluator = "Evaluator" }
local PORT = 2222      -- of TFJob's operator

local function is_mpi(job) return job.options.engine == "mpi" or job.options.kubeflow_kind == "MPIJob" end

-- A TFJob has roles of all kinds, which meet by TF_CONFIG at a port that the operator sets; an MPIJob has workers only and needs the
-- script.
function kubeflow.check(job, report)
  pod.check(job, report)
  local kind = job.options.kubeflow_kind
  if kind ~= "" and kind ~= "TFJob" and kind ~= "MPIJob" then report:error("--kubeflow-kind", "%q is neither TFJob nor MPIJob", kind) end
  if kind == "TFJob" and job.options.engine == "mpi" then
    report:error("--kubeflow-kind", "a TFJob's tasks meet by TF_CONFIG: --engine ring")
  end
  if not is_mpi(job) then
    if job.port ~= PORT then report:error("--port", "a TFJob's tasks have the port %d", PORT) end
    return
  end
  for _, role in ipairs(job.roles) do
    if role.role == "ps" or role.role == "evaluator" then
      report:error(role.place or "", "%s: an MPIJob has workers only", role.title)
    end
  end
  if not job.what[1] then report:error("", "an MPIJob's mpirun needs the script: flowlua submit NAME ... train.lua") end
end

-- Both operators take the same policies.
local function run_policy(job)
  return { cleanPodPolicy = "Running", backoffLimit = job.max_restarts,
           activeDeadlineSeconds = job.max_seconds and math.ceil(job.max_seconds) or nil }
end

local function policy_of(job) return job.options.restart_policy ~= "" and job.options.restart_policy or "OnFailure" end

local function metadata(job)
  return { name = pod.name(job), namespace = pod.namespace(job), labels = pod.labels(job) }
end

-- The operator sets TF_CONFIG; what else tasks need are variables of the pods.
local function tf_job(job)
  local replicas = {}
  for _, role in ipairs(job.roles) do
    local environment = { FLOW_THREADS = job.threads and tostring(job.threads) or nil }
    if job.tasks > 1 then
      environment.FLOW_SECRET = { key = "secret" }
      environment.FLOW_MAX_RESTARTS = job.max_restarts > 0 and tostring(job.max_restarts) or nil
    end
    replicas[TYPES[role.role]] = { replicas = role.count, restartPolicy = policy_of(job), template = pod.template(job, role, {
      container = "tensorflow", environment = environment, ports = { { name = "tfjob-port", containerPort = PORT } } }) }
  end
  return { apiVersion = "kubeflow.org/v1", kind = "TFJob", metadata = metadata(job),
           spec = { runPolicy = run_policy(job), tfReplicaSpecs = replicas } }
end

-- All ranks are alike, so that the chief's machine and image are everybody's.
local function mpi_job(job)
  local role = job.roles[1]
  local ranks = 0
  for _, each in ipairs(job.roles) do ranks = ranks + each.count end
  local arguments = { "-n", tostring(ranks) }
  for _, list in ipairs { { "-x", "FLOW_THREADS" }, pod.command(job, role), job_of.arguments(job, role) } do
    if list[1] ~= "-x" or job.threads then for _, text in ipairs(list) do arguments[#arguments + 1] = text end end
  end
  local environment = { FLOW_THREADS = job.threads and tostring(job.threads) or nil }
  local launcher = pod.template(job, { role = "launcher", image = role.image, env = role.env }, {
    container = "mpi-launcher", command = { "mpirun" }, args = arguments, environment = environment })
  local worker = pod.template(job, role, { container = "mpi-worker", command = { "/usr/sbin/sshd" }, args = { "-De" },
                                           environment = environment })
  return { apiVersion = "kubeflow.org/v2beta1", kind = "MPIJob", metadata = metadata(job), spec = {
    slotsPerWorker = 1, runPolicy = run_policy(job), mpiImplementation = "OpenMPI", sshAuthMountPath = "/root/.ssh",
    mpiReplicaSpecs = { Launcher = { replicas = 1, restartPolicy = policy_of(job), template = launcher },
                        Worker = { replicas = ranks, restartPolicy = policy_of(job), template = worker } } } }
end

function kubeflow.files(job)
  return { { name = SECRET_FILE, text = writer.encode(pod.secret(job)), secret = true },
           { name = FILE, text = writer.encode((is_mpi(job) and mpi_job or tf_job)(job)) } }
end

function kubeflow.submit(job, folder)
  return { pod.kubectl(job, "apply", "--filename", folder .. "/" .. SECRET_FILE, "--filename", folder .. "/" .. FILE) }
end

function kubeflow.commands(job, folder)
  return pod.commands(job, is_mpi(job) and "mpijobs" or "tfjobs", { folder .. "/" .. FILE, folder .. "/" .. SECRET_FILE })
end

return kubeflow
