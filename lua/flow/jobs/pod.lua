-- pod.lua: what Kubernetes runs for one role of a job: the template of its pods, and the secrets that they read.

local errors = require "flow.errors"
local host = require "flow.host"
local json = require "flow.json"
local job_of = require "flow.jobs.job"
local mounts = require "flow.jobs.mounts"
local package_of = require "flow.jobs.package"
local shell = require "flow.shell"

local pod = {}

local SECRETS = "/var/run/secrets/flowlua"
local PACKAGE = "/var/run/flowlua"
local ARCHIVE = "code.tar.gz"
-- The shared memory of a container is 64 MB, in which workers of one machine cannot add up gradients.
local SHARED_MEMORY = "1Gi"

-- A name as Kubernetes has them: lower case, - for _.
function pod.name(job) return (job.name:lower():gsub("_", "-")) end

-- Reports what no pod can do: names that are too long, roles without an image, buckets that Kubernetes does not mount.
function pod.check(job, report)
  if #pod.name(job) > 40 then
    report:error("", "the name %q has %d letters: with what pods add to it, host names have room for 40", job.name, #job.name)
  end
  job_of.check_images(job, report)
  for _, mount in ipairs(job.mounts) do
    if mount.kind == "bucket" and mount.scheme ~= "gs" then
      report:error("--mount", "%s://%s: Kubernetes mounts gs:// by GKE's driver; make a claim for others: pvc:CLAIM:%s", mount.scheme,
        mount.bucket, mount.path)
    end
  end
end

function pod.labels(job, role)
  local labels = { ["app.kubernetes.io/name"] = "flowlua", ["flowlua/job"] = pod.name(job), ["flowlua/role"] = role }
  for name, value in pairs(job.labels or {}) do labels[name] = value end
  return labels
end

function pod.annotations(job)
  for _, mount in ipairs(job.mounts) do
    if mount.kind == "bucket" then return { ["gke-gcsfuse/volumes"] = "true" } end
  end
end

local SOURCES = {
  path = function(mount) return { hostPath = { path = mount.source } } end,
  nfs = function(mount) return { nfs = { server = mount.server, path = mount.export, readOnly = mount.read_only or nil } } end,
  claim = function(mount) return { persistentVolumeClaim = { claimName = mount.claim, readOnly = mount.read_only or nil } } end,
  bucket = function(mount)
    return { csi = { driver = "gcsfuse.csi.storage.gke.io", readOnly = mount.read_only or nil, volumeAttributes = {
      bucketName = mount.bucket, mountOptions = mount.folder ~= "" and "implicit-dirs,only-dir=" .. mount.folder or "implicit-dirs" } } }
  end,
}

-- Adds the volumes of a pod, and to inside where the container has each of them: shared memory, mounts, the clone of --git-url, the package
-- and the key, both out of the job's Secret.
local function add_volumes(job, volumes, inside)
  local function add(name, source, path, read_only)
    source.name = name
    volumes[#volumes + 1] = source
    inside[#inside + 1] = { name = name, mountPath = path, readOnly = read_only or nil }
  end
  local memory = job.options.shm_size ~= "" and job.options.shm_size or SHARED_MEMORY
  add("shm", { emptyDir = { medium = "Memory", sizeLimit = memory } }, "/dev/shm")
  for i, mount in ipairs(job.mounts) do add(("data-%d"):format(i), SOURCES[mount.kind](mount), mount.path, mount.read_only) end
  if job.git then add("code", { emptyDir = { sizeLimit = "10Gi" } }, job.git.path) end
  if job.package then
    add("package", { secret = { secretName = pod.name(job), items = { { key = "package", path = ARCHIVE } } } }, PACKAGE, true)
  end
  if job.credentials then
    add("credentials", { secret = { secretName = pod.name(job), items = { { key = "credentials", path = "credentials.json" } } } }, SECRETS,
      true)
  end
end

-- What a container asks for and may use at most; nil: nothing is said. Both are the same, so that pods with --cpus and --memory are of
-- Kubernetes' class Guaranteed, which is ended last where memory runs short.
local function resources_of(job, role)
  local requests, limits = {}, {}
  if job.options.cpus ~= "" then requests.cpu, limits.cpu = job.options.cpus, job.options.cpus end
  if job.options.memory ~= "" then requests.memory, limits.memory = job.options.memory, job.options.memory end
  if role.gpu_count then limits["nvidia.com/gpu"] = role.gpu_count end
  if not next(limits) then return nil end
  return { requests = next(requests) and requests or nil, limits = limits }
end

-- Kubernetes replaces $(NAME); this keeps a text unchanged.
local function literal(text) return (text:gsub("%$%(", "$$(")) end

local function literals(list)
  local result = {}
  for i, text in ipairs(list or {}) do result[i] = literal(text) end
  return #result > 0 and result or nil
end

-- Variables in order; values are texts, or { key = } of the job's secret.
local function environment_of(job, role, more)
  local env, names, values = {}, {}, job_of.variables(job, role)
  for name, value in pairs(more) do values[name] = value end
  if job.credentials then values.GOOGLE_APPLICATION_CREDENTIALS = SECRETS .. "/credentials.json" end
  for name in pairs(values) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do
    local value = values[name]
    env[i] = type(value) == "table"
      and { name = name, valueFrom = { secretKeyRef = { name = pod.name(job), key = value.key, optional = value.optional } } }
      or { name = name, value = literal(value) }
  end
  return env
end

-- The container that clones --git-url before the task begins. volumes: of the container of the task, from which this one takes the volume
-- for the code.
local function clone_container(job, volumes)
  local lines = mounts.clone_lines(job.git, shell.quote)
  local paths = {}
  for _, volume in ipairs(volumes) do
    if volume.name == "code" then paths[1] = volume end
  end
  return { name = "clone", image = mounts.CLONE_IMAGE, command = { "/bin/sh", "-ec", table.concat(lines, "\n") }, volumeMounts = paths,
           env = { { name = mounts.TOKEN, valueFrom = { secretKeyRef = { name = pod.name(job), key = "git-token", optional = true } } } } }
end

-- The template of a role's pods. options: { container =, restart =, environment =, ports = }.
function pod.template(job, role, options)
  local volumes, inside = {}, {}
  add_volumes(job, volumes, inside)
  local command, arguments = pod.command(job, role), job_of.arguments(job, role)
  local container = {
    name = options.container, image = role.image, command = literals(options.command or command),
    args = literals(options.args or arguments),
    env = environment_of(job, role, options.environment or {}), resources = resources_of(job, role), volumeMounts = inside,
    ports = options.ports, workingDir = job.git and job.git.path or nil,
  }
  if #container.env == 0 then container.env = nil end
  local spec = { restartPolicy = options.restart, subdomain = options.subdomain, volumes = volumes, containers = { container },
                 initContainers = job.git and { clone_container(job, inside) } or nil }
  return { metadata = { labels = pod.labels(job, role.role), annotations = pod.annotations(job) }, spec = spec }
end

-- What a role's containers run.
function pod.command(job, role) return job_of.command(job, role, PACKAGE .. "/" .. ARCHIVE) end

-- The packed files as a Secret holds them.
local function packed(job)
  if job.shown then return "(the files, packed)" end
  local text = package_of.pack(job.package, true)
  if #text > package_of.MOST_BYTES then
    errors.raise("--package-path: the packed files have %d bytes, at most %d fit into a Secret: put them into the image "
      .. "(--write-dockerfile)", #text, package_of.MOST_BYTES)
  end
  return text
end

-- What only the job's pods may read, as a Secret.
function pod.secret(job)
  local data = { secret = job.secret }
  if job.git and host.getenv(mounts.TOKEN) then data["git-token"] = job.shown and "(of the environment)" or host.getenv(mounts.TOKEN) end
  if job.credentials then
    local file = assert(io.open(job.credentials, "rb"))
    data.credentials = job.shown and "(of the file)" or file:read("*a")
    file:close()
  end
  return { apiVersion = "v1", kind = "Secret", type = "Opaque", stringData = data,
           data = job.package and { package = packed(job) } or nil,
           metadata = { name = pod.name(job), namespace = pod.namespace(job), labels = { ["flowlua/job"] = pod.name(job) } } }
end

function pod.namespace(job) return job.options.namespace ~= "" and job.options.namespace or nil end

-- What tasks that are a cluster find in their environment: TF_CONFIG without the index of the task, which Kubernetes says.
function pod.cluster_environment(job, role, cluster)
  local env = { FLOW_THREADS = job.threads and tostring(job.threads) or nil }
  if not cluster then return env end
  env.TF_CONFIG = json.encode { cluster = cluster, task = { type = role.role } }
  env.FLOW_SECRET = { key = "secret" }
  if job.max_restarts > 0 then env.FLOW_MAX_RESTARTS = tostring(job.max_restarts) end
  return env
end

-- kubectl with the job's namespace.
function pod.kubectl(job, ...)
  local command = { "kubectl" }
  if pod.namespace(job) then command[2], command[3] = "--namespace", pod.namespace(job) end
  for i = 1, select("#", ...) do command[#command + 1] = (select(i, ...)) end
  return command
end

-- status, logs and cancel by kubectl; kinds: what there is of the job, files: what was applied.
function pod.commands(job, kinds, files)
  local selector = "--selector=flowlua/job=" .. pod.name(job)
  local most = "--max-log-requests=" .. math.max(5, job.tasks + 1)
  local cancel = pod.kubectl(job, "delete", "--ignore-not-found")
  for _, file in ipairs(files) do
    cancel[#cancel + 1] = "--filename"
    cancel[#cancel + 1] = file
  end
  return {
    status = pod.kubectl(job, "get", kinds .. ",pods", selector),
    logs = pod.kubectl(job, "logs", selector, "--prefix", "--tail=-1", most),
    follow = pod.kubectl(job, "logs", selector, "--prefix", "--tail=-1", most, "--follow"), cancel = cancel,
  }
end

return pod
