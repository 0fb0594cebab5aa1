-- compose.lua: jobs for Docker Compose: a service for each task, with TF_CONFIG, on one machine.

local job_of = require "flow.jobs.job"
local json = require "flow.json"
local mounts = require "flow.jobs.mounts"
local package_of = require "flow.jobs.package"
local shell = require "flow.shell"
local writer = require "flow.jobs.yaml_writer"

local compose = { name = "compose" }

local FILE, SECRET_FILE = "compose.yaml", "secret.env"
local KEY = "/run/flowlua/credentials.json"
local ARCHIVE = "code.tar.gz"
local PACKAGE = "/run/flowlua/" .. ARCHIVE
-- Shared memory of each container alone; 64 MB, the default, has no room for gradients.
local SHARED_MEMORY = "1gb"
local POLICIES = { Never = "no", OnFailure = "on-failure", Always = "always" }

-- A number of processors, of which Kubernetes' form may count thousandths: "500m"; nil: --cpus is not given, or is another quantity.
local function cpus_of(job)
  local number, unit = job.options.cpus:match "^([%d.]+)(%a*)$"
  if number and (unit == "" or unit == "m") then return tonumber(number) / (unit == "m" and 1000 or 1) end
end

function compose.check(job, report)
  job_of.check_images(job, report)
  if job.options.engine == "mpi" then report:error("--engine", "Docker Compose starts no mpirun: --engine ring") end
  for _, mount in ipairs(job.mounts) do
    if mount.kind == "claim" then report:error("--mount", "pvc:%s: claims are Kubernetes' own", mount.claim) end
  end
  if job.options.restart_policy ~= "" and not POLICIES[job.options.restart_policy] then
    report:error("--restart-policy", "%s: containers are restarted Never, OnFailure or Always", job.options.restart_policy)
  end
  if job.options.cpus ~= "" and not cpus_of(job) then
    report:error("--cpus", "%q is not a number of processors such as 4, 0.5 or 500m", job.options.cpus)
  end
  if job.max_seconds and not job.what[1] then
    report:error("", "a time limit needs the script: flowlua submit %s ... train.lua", job.name)
  end
end

-- Compose replaces $NAME; this keeps a text unchanged.
local function literal(text) return (text:gsub("%$", "$$")) end

local function literals(list)
  local result = {}
  for i, text in ipairs(list) do result[i] = literal(text) end
  return result
end

local function service_name(role, index) return ("%s-%d"):format(role, index) end

-- The volumes of each service as "source:target[:ro]"; nil: none.
local function volumes_of(job)
  local list = {}
  local function add(source, target, read_only) list[#list + 1] = ("%s:%s%s"):format(source, target, read_only and ":ro" or "") end
  for i, mount in ipairs(job.mounts) do
    -- A bucket is mounted on the host by the user, for example with gcsfuse.
    local source = mount.kind == "path" and mount.source or mount.kind == "nfs" and ("nfs-%d"):format(i)
      or ("/%s/%s%s"):format(mount.scheme == "gs" and "gcs" or mount.scheme, mount.bucket, mount.folder ~= "" and "/" .. mount.folder or "")
    add(source, mount.path, mount.read_only)
  end
  if job.git then add("code", job.git.path) end
  if job.package then add("./" .. ARCHIVE, PACKAGE, true) end
  if job.credentials then add(job.credentials, KEY, true) end
  return #list > 0 and list or nil
end

-- Variables of one task: the user's first, so that what the job needs (TF_CONFIG, the key file) is not lost to them. The secret is in a
-- file of its own, which others cannot read.
local function environment_of(job, role, index, cluster)
  local env = {}
  for name, value in pairs(job_of.variables(job, role)) do env[name] = literal(value) end
  if job.credentials then env.GOOGLE_APPLICATION_CREDENTIALS = KEY end
  if job.threads then env.FLOW_THREADS = tostring(job.threads) end
  if cluster then
    env.TF_CONFIG = json.encode { cluster = cluster, task = { type = role.role, index = index } }
    if job.max_restarts > 0 then env.FLOW_MAX_RESTARTS = tostring(job.max_restarts) end
  end
  return next(env) and env or nil
end

local function restart_of(job)
  local policy = POLICIES[job.options.restart_policy] or (job.max_restarts > 0 and "on-failure" or "no")
  return policy == "on-failure" and ("on-failure:%d"):format(job.max_restarts) or policy
end

-- A service is one task: its name is its host name, by which the others reach it.
local function service_of(job, role, index, cluster)
  local command, arguments = job_of.command(job, role, PACKAGE), job_of.arguments(job, role)
  if command and job.max_seconds then command = { "timeout", "-k", "30", ("%.14g"):format(job.max_seconds), unpack(command) } end
  local name, options = service_name(role.role, index), job.options
  return name, {
    image = role.image, hostname = name, entrypoint = command and literals(command) or nil,
    command = #arguments > 0 and literals(arguments) or nil, environment = environment_of(job, role, index, cluster),
    env_file = cluster and { SECRET_FILE } or nil, volumes = volumes_of(job), restart = restart_of(job),
    shm_size = options.shm_size ~= "" and options.shm_size or SHARED_MEMORY, working_dir = job.git and job.git.path or nil,
    cpus = cpus_of(job),
    mem_limit = options.memory ~= "" and options.memory:lower():gsub("i$", "") or nil,
    stop_grace_period = "2m", labels = { ["flowlua.job"] = job.name },
    depends_on = job.git and { clone = { condition = "service_completed_successfully" } } or nil,
    deploy = role.gpu_count and { resources = { reservations = { devices = {
      { driver = "nvidia", count = role.gpu_count, capabilities = { "gpu" } } } } } } or nil,
  }
end

-- compose.yaml, with the archive of --package-path and the file of the secret beside it.
function compose.files(job)
  local cluster = job_of.cluster(job, function(role, index) return ("%s:%d"):format(service_name(role, index), job.port) end)
  local services, volumes = {}, {}
  for _, role in ipairs(job.roles) do
    for index = 0, role.count - 1 do
      local name, service = service_of(job, role, index, cluster)
      services[name] = service
    end
  end
  if job.git then
    volumes.code = {}
    services.clone = { image = mounts.CLONE_IMAGE, volumes = { "code:" .. job.git.path },
      entrypoint = { "/bin/sh", "-ec", literal(table.concat(mounts.clone_lines(job.git, shell.quote), "\n")) },
      environment = { [mounts.TOKEN] = ("${%s:-}"):format(mounts.TOKEN) } }
  end
  for i, mount in ipairs(job.mounts) do
    if mount.kind == "nfs" then
      volumes[("nfs-%d"):format(i)] = { driver_opts = { type = "nfs", o = "addr=" .. mount.server .. (mount.read_only and ",ro" or ",rw"),
                                                       device = ":" .. mount.export } }
    end
  end
  local files = { { name = FILE, text = writer.encode { services = services, volumes = next(volumes) and volumes or nil } } }
  if job.package then files[2] = { name = ARCHIVE, text = package_of.pack(job.package), binary = true } end
  if cluster then table.insert(files, 1, { name = SECRET_FILE, text = "FLOW_SECRET=" .. job.secret .. "\n", secret = true }) end
  return files
end

-- Where there is no docker, docker-compose may be there with another engine.
local function docker(job, folder, ...)
  local own = { "--file", folder .. "/" .. FILE, "--project-name", job.name:lower(), ... }
  if shell.find "docker" or not shell.find "docker-compose" then return { "docker", "compose", unpack(own) } end
  return { "docker-compose", unpack(own) }
end

function compose.submit(job, folder) return { docker(job, folder, "up", "--detach") } end

function compose.commands(job, folder)
  return { status = docker(job, folder, "ps", "--all"), logs = docker(job, folder, "logs"),
           follow = docker(job, folder, "logs", "--follow"), cancel = docker(job, folder, "down", "--volumes") }
end

return compose
