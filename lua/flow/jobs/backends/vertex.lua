-- vertex.lua: requests of Vertex AI: a CustomJobSpec for gcloud, and a CustomJob as the body of projects.locations.customJobs.create.

local cloud = require "flow.jobs.cloud"
local document = require "flow.jobs.document"
local job_of = require "flow.jobs.job"
local json = require "flow.json"
local package_of = require "flow.jobs.package"
local schema = require "flow.jobs.schema"
local writer = require "flow.jobs.yaml_writer"

local vertex = { name = "vertex", id = "(projects/%S+/customJobs/%d+)" }

local FILE, REQUEST, ARCHIVE = "custom_job.yaml", "request.json", "code.tar.gz"
local POSITIONS = { chief = 1, worker = 2, ps = 3, evaluator = 4 }

function vertex.check(job, report)
  cloud.check(job, report, "Vertex AI")
  if job.package and not job.options.staging_bucket:find "^gs://[%w][%w._-]+" then
    report:error("--package-path", "needs --staging-bucket gs://BUCKET, through which the files go")
  end
  for _, role in ipairs(job.roles) do
    if not role.machine and job.form ~= "vertex" then
      report:error(role.place or "", "%s has no machine of Compute Engine, which Vertex AI needs: e.g. n1-standard-4", role.title)
      break
    end
  end
end

-- All keys in the REST interface's spelling.
local function canonical(value)
  if type(value) ~= "table" then return value end
  local result = {}
  for key, entry in pairs(value) do result[type(key) == "string" and schema.canonical(key) or key] = canonical(entry) end
  return setmetatable(result, getmetatable(value))
end

-- The variables of a role's containers as the service has them, by name; nil: none.
local function environment_of(job, role)
  local values, names, list = job_of.variables(job, role), {}, {}
  if job.tasks > 1 then values.FLOW_SECRET = job.secret end
  if job.threads then values.FLOW_THREADS = tostring(job.threads) end
  for name in pairs(values) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do list[i] = { name = name, value = values[name] } end
  return #list > 0 and list or nil
end

-- The packed files in the bucket, without gs://.
local function archive_of(job)
  return ("%s/flowlua/%s/%s"):format(job.options.staging_bucket:gsub("^gs://", ""):gsub("/+$", ""), job.name, ARCHIVE)
end

-- The pool of a role. Buckets need no mounts: the service has each at /gcs/BUCKET.
local function pool_of(job, role)
  local mounts = {}
  for _, mount in ipairs(job.mounts) do
    if mount.kind == "nfs" then mounts[#mounts + 1] = { server = mount.server, path = mount.export, mountPoint = mount.path } end
  end
  local arguments = job_of.arguments(job, role)
  return {
    machineSpec = { machineType = role.machine, acceleratorType = role.gpu, acceleratorCount = role.gpu_count }, replicaCount = role.count,
    diskSpec = role.disk and { bootDiskType = role.disk.type, bootDiskSizeGb = role.disk.gigabytes } or nil,
    nfsMounts = #mounts > 0 and mounts or nil,
    containerSpec = { imageUri = role.image, command = job_of.command(job, role, job.package and "/gcs/" .. archive_of(job)),
                      args = #arguments > 0 and arguments or nil,
                      env = environment_of(job, role) },
  }
end

-- The specification: of a configuration in Vertex' form all that it says but the pools, which are made of the job.
local function spec_of(job)
  local spec, given = {}, {}
  if job.form == "vertex" then
    for name, value in pairs(canonical(document.to_value(job.tree)).jobSpec) do spec[name] = value end
    given = spec.workerPoolSpecs
  else
    spec.serviceAccount, spec.network = job.service_account, job.network
    spec.scheduling = job.max_seconds and { timeout = cloud.seconds(job.max_seconds) } or nil
  end
  local pools, last = json.list {}, 0
  for _, role in ipairs(job.roles) do
    local position = POSITIONS[role.role]
    local before, pool = given[position], pool_of(job, role)
    if before and before.pythonPackageSpec then pool.containerSpec, pool.pythonPackageSpec = nil, before.pythonPackageSpec end
    for name, value in pairs(before or {}) do pool[name] = pool[name] or value end
    if pool.pythonPackageSpec then pool.containerSpec = nil end
    pools[position], last = pool, math.max(last, position)
  end
  for i = 1, last do pools[i] = pools[i] or {} end
  spec.workerPoolSpecs = pools
  return spec
end

function vertex.files(job)
  local spec = spec_of(job)
  local encryption = job.read and job.read.encryptionSpec and { kmsKeyName = job.read.encryptionSpec.kmsKeyName } or nil
  local request = { displayName = job.display, labels = job.labels, encryptionSpec = encryption, jobSpec = spec }
  local files = { { name = FILE, text = writer.encode(spec), secret = true },
                  { name = REQUEST, text = json.encode(request) .. "\n", secret = true } }
  if job.package then files[3] = { name = ARCHIVE, text = package_of.pack(job.package), binary = true } end
  return files
end

-- gcloud's command, and before it, with a package, the one that copies the archive to the bucket.
function vertex.submit(job, folder)
  local command = cloud.gcloud(job, "ai", "custom-jobs", "create", "--region=" .. job.region, "--display-name=" .. job.display,
    "--config=" .. folder .. "/" .. FILE, "--format=value(name)")
  if job.labels and next(job.labels) then
    local parts = {}
    for name, value in pairs(job.labels) do parts[#parts + 1] = name .. "=" .. value end
    table.sort(parts)
    command[#command + 1] = "--labels=" .. table.concat(parts, ",")
  end
  if not job.package then return { command } end
  return { cloud.gcloud(job, "storage", "cp", folder .. "/" .. ARCHIVE, "gs://" .. archive_of(job)), command }
end

function vertex.commands(job)
  local function of(what, ...) return cloud.gcloud(job, "ai", "custom-jobs", what, "{id}", "--region=" .. job.region, ...) end
  return { status = of "describe", follow = of "stream-logs", cancel = of "cancel",
           logs = cloud.logs(job, "{number}", "jsonPayload.message") }
end

return vertex
