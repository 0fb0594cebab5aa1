-- pai_dlc.lua: jobs for Alibaba Cloud's PAI-DLC: the body of CreateJob (API of 2020-12-03). A TFJob's tasks find TF_CONFIG.

local job_of = require "flow.jobs.job"
local json = require "flow.json"
local mounts = require "flow.jobs.mounts"
local shell = require "flow.shell"

local pai_dlc = { name = "pai-dlc", id = '"JobId"%s*:%s*"([%w_-]+)"' }

local FILE = "request.json"
local TYPES = { chief = "Chief", worker = "Worker", ps = "PS", evaluator = "Evaluator" }

function pai_dlc.check(job, report)
  if not job.what[1] then report:error("", "PAI-DLC runs a command: flowlua submit %s ... train.lua", job.name) end
  job_of.check_images(job, report)
  job_of.check_alike(job, report, "PAI-DLC")
  local options = job.options
  if options.workspace_id == "" then report:error("--workspace-id", "is missing: PAI's workspace that the job belongs to") end
  if options.ecs_spec == "" and (options.cpus == "" or options.memory == "") then
    report:error("", "PAI-DLC has its own machines: --ecs-spec ecs.c6.large, or of a quota --cpus 8 --memory 32Gi")
  elseif options.ecs_spec ~= "" and (options.cpus ~= "" or options.memory ~= "") then
    report:error("--ecs-spec", "says the same as --cpus and --memory: keep one")
  end
  if job.package then
    report:error("--package-path", "PAI-DLC takes code from its sources, --code-source-id, or from the image (--write-dockerfile)")
  end
  if options.engine == "mpi" then report:error("--engine", "a TFJob's tasks meet by TF_CONFIG: --engine ring") end
  if job.credentials then report:error("--credentials", "a key would stand in the request: mount it, or give the workspace a role") end
  if job.git and options.code_source_id == "" then
    report:error("--git-url", "PAI-DLC clones what is registered there: --code-source-id ID, with --git-branch and --git-commit")
  end
  for _, mount in ipairs(job.mounts) do
    if not (mount.kind == "nfs" or mount.kind == "bucket" and mount.scheme == "oss") then
      report:error("--mount", "%s: PAI-DLC mounts NAS, nfs://SERVER/DIR:/PATH, and OSS, oss://BUCKET/FOLDER:/PATH", mount.path)
    end
  end
end

-- A specification for each role: by --ecs-spec, or, in a quota of the workspace, by processors and memory.
local function specs_of(job)
  local list, options = {}, job.options
  for i, role in ipairs(job.roles) do
    local resources = options.ecs_spec == "" and {
      CPU = options.cpus, Memory = options.memory, SharedMemory = options.shm_size ~= "" and options.shm_size or nil,
      GPU = role.gpu_count and tostring(role.gpu_count) or nil } or nil
    list[i] = { Type = TYPES[role.role], Image = role.image, PodCount = role.count, ResourceConfig = resources,
                EcsSpec = options.ecs_spec ~= "" and options.ecs_spec or nil,
                RestartPolicy = options.restart_policy ~= "" and options.restart_policy or "OnFailure" }
  end
  return list
end

-- The mounts, NAS and OSS, as data sources; nil: none.
local function sources_of(job)
  local list = {}
  for i, mount in ipairs(job.mounts) do
    local uri = mount.kind == "nfs" and ("nas://%s%s"):format(mount.server, mount.export)
      or ("oss://%s/%s"):format(mount.bucket, mount.folder)
    list[i] = { Uri = uri, MountPath = mount.path, Options = mount.read_only and '{"readOnly":true}' or nil }
  end
  return #list > 0 and list or nil
end

-- The repository that the workspace knows by --code-source-id; nil: none.
local function code_of(job)
  local options = job.options
  if options.code_source_id == "" then return nil end
  return { CodeSourceId = options.code_source_id, MountPath = options.git_path ~= "" and options.git_path or mounts.CODE,
           Branch = options.git_branch ~= "" and options.git_branch or nil,
           Commit = options.git_commit ~= "" and options.git_commit or nil }
end

-- The request. It has the cluster's secret among its variables, so only the owner may read it.
function pai_dlc.files(job)
  local command = job_of.command(job, job.roles[1])
  for _, text in ipairs(job_of.arguments(job, job.roles[1])) do command[#command + 1] = text end
  local line, code = shell.line(command), code_of(job)
  if code then line = ("cd %s && %s"):format(shell.quote(code.MountPath), line) end
  local env = job_of.variables(job, job.roles[1])
  if job.tasks > 1 then
    env.FLOW_SECRET = job.secret
    if job.max_restarts > 0 then env.FLOW_MAX_RESTARTS = tostring(job.max_restarts) end
  end
  if job.threads then env.FLOW_THREADS = tostring(job.threads) end
  local request = {
    DisplayName = job.name, JobType = "TFJob", JobSpecs = specs_of(job), UserCommand = line, WorkspaceId = job.options.workspace_id,
    ResourceId = job.options.resource_id ~= "" and job.options.resource_id or nil, Envs = next(env) and env or nil,
    DataSources = sources_of(job), CodeSource = code, Priority = job.priority,
    JobMaxRunningTimeMinutes = job.max_seconds and math.ceil(job.max_seconds / 60) or nil,
  }
  return { { name = FILE, text = json.encode(request) .. "\n", secret = true } }
end

-- The request has the cluster's secret: the client reads it from the file, since others can see the arguments of a process.
function pai_dlc.submit(_, folder)
  return { { "aliyun", "pai-dlc", "POST", "/api/v1/jobs", "--header", "Content-Type=application/json", "--body-file",
             folder .. "/" .. FILE } }
end

function pai_dlc.commands()
  return { status = { "aliyun", "pai-dlc", "GET", "/api/v1/jobs/{id}" },
           cancel = { "aliyun", "pai-dlc", "POST", "/api/v1/jobs/{id}/stop" } }
end

return pai_dlc
