-- kubernetes.lua: jobs for Kubernetes without an operator: an Indexed Job for each role, whose pods keep their names when they are started
-- again, and a headless Service that gives the names addresses. A pod's index is its task's: JOB_COMPLETION_INDEX.

local job_of = require "flow.jobs.job"
local pod = require "flow.jobs.pod"
local writer = require "flow.jobs.yaml_writer"

local kubernetes = { name = "kubernetes" }

local FILE, SECRET_FILE = "kubernetes.yaml", "kubernetes-secret.yaml"

function kubernetes.check(job, report)
  pod.check(job, report)
  if job.options.engine == "mpi" then
    report:error("--engine", "mpi needs an operator that starts mpirun: --backend kubeflow")
  end
  local policy = job.options.restart_policy
  if policy ~= "" and policy ~= "Never" and policy ~= "OnFailure" then
    report:error("--restart-policy", "%s: pods of a Job are restarted Never or OnFailure", policy)
  end
end

local function role_name(job, role) return ("%s-%s"):format(pod.name(job), role) end

local function address_of(job)
  return function(role, index) return ("%s-%d.%s:%d"):format(role_name(job, role), index, pod.name(job), job.port) end
end

local function metadata(job, name, role)
  return { name = name, namespace = pod.namespace(job), labels = pod.labels(job, role) }
end

-- Without an address ("None"): names lead to pods directly. Pods have names before they are ready, since tasks wait for each
-- other to become so.
local function service(job)
  return { apiVersion = "v1", kind = "Service", metadata = metadata(job, pod.name(job)),
           spec = { clusterIP = "None", publishNotReadyAddresses = true, selector = { ["flowlua/job"] = pod.name(job) },
                    ports = { { name = "flowlua", port = job.port } } } }
end

-- A Job for a role: as many pods as tasks, all at once, each of which may be started again max_restarts times.
local function indexed_job(job, role, cluster)
  local policy = job.options.restart_policy ~= "" and job.options.restart_policy or "Never"
  return { apiVersion = "batch/v1", kind = "Job", metadata = metadata(job, role_name(job, role.role), role.role), spec = {
    completionMode = "Indexed", completions = role.count, parallelism = role.count,
    backoffLimit = job.max_restarts * role.count, activeDeadlineSeconds = job.max_seconds and math.ceil(job.max_seconds) or nil,
    template = pod.template(job, role, {
      container = "flowlua", restart = policy, subdomain = pod.name(job), environment = pod.cluster_environment(job, role, cluster),
      ports = cluster and { { name = "flowlua", containerPort = job.port } } or nil,
    }),
  } }
end

-- The Secret in its own file; then one file with the headless service that gives pods their names, where they are a cluster, and a Job
-- for each role.
function kubernetes.files(job)
  local cluster = job_of.cluster(job, address_of(job))
  local texts = {}
  if cluster then texts[1] = writer.encode(service(job)) end
  for _, role in ipairs(job.roles) do texts[#texts + 1] = writer.encode(indexed_job(job, role, cluster)) end
  return { { name = SECRET_FILE, text = writer.encode(pod.secret(job)), secret = true },
           { name = FILE, text = table.concat(texts, "---\n") } }
end

function kubernetes.submit(job, folder)
  return { pod.kubectl(job, "apply", "--filename", folder .. "/" .. SECRET_FILE, "--filename", folder .. "/" .. FILE) }
end

function kubernetes.commands(job, folder)
  return pod.commands(job, "jobs", { folder .. "/" .. FILE, folder .. "/" .. SECRET_FILE })
end

return kubernetes
