-- ai_platform.lua: requests of AI Platform Training: a configuration for gcloud, and the same as the body of projects.jobs.create.

local cloud = require "flow.jobs.cloud"
local document = require "flow.jobs.document"
local job_of = require "flow.jobs.job"
local json = require "flow.json"
local names = require "flow.names"
local writer = require "flow.jobs.yaml_writer"

local ai_platform = { name = "ai-platform" }

local FILE, REQUEST = "config.yaml", "request.json"
local NAMES = { chief = "master", worker = "worker", ps = "parameterServer", evaluator = "evaluator" }

-- Variables of a role, which the service has no field for: env sets them where we say what a container runs.
local function variables_of(job, role)
  local values, list = job_of.variables(job, role), {}
  if job.tasks > 1 then values.FLOW_SECRET = job.secret end
  if job.threads then values.FLOW_THREADS = tostring(job.threads) end
  for i, name in ipairs(names.sorted(values)) do list[i] = name .. "=" .. values[name] end
  return list
end

-- Variables need a command to stand before, so they are refused where the image's own entry point runs.
function ai_platform.check(job, report)
  cloud.check(job, report, "AI Platform")
  if job.package then
    report:error("--package-path", "containers of AI Platform see no bucket: put the files into the image (--write-dockerfile)")
  end
  if job.what[1] or not job.roles[1].image then return end
  if next(job.env) then
    report:error("--env", "AI Platform has variables only for a command that is named: flowlua submit %s ... train.lua", job.name)
  end
  if job.tasks > 1 then
    report:warning("", "the image's own entry point runs, to which AI Platform gives no secret for the cluster: name the script, or set "
      .. "FLOW_SECRET in the image")
  end
end

-- A job that was described in another form.
local function input_of(job)
  local input = { scaleTier = "CUSTOM" }
  for _, role in ipairs(job.roles) do
    local name = NAMES[role.role]
    input[name .. "Type"] = role.machine
    if role.role ~= "chief" then input[name .. "Count"] = role.count end
    input[name .. "Config"] = { imageUri = role.image, containerCommand = role.command, containerArgs = role.args,
      acceleratorConfig = role.gpu and { count = role.gpu_count, type = role.gpu } or nil,
      diskConfig = role.disk and { bootDiskType = role.disk.type, bootDiskSizeGb = role.disk.gigabytes } or nil }
  end
  input.serviceAccount, input.network = job.service_account, job.network
  input.scheduling = job.max_seconds and { maxRunningTime = cloud.seconds(job.max_seconds) } or nil
  return input
end

-- The body of the request: what a file in the service's own form says, else what the job says; in both cases with the folder, the image
-- and the command that flowlua submit adds.
local function training_input(job)
  local input = job.form == "ai-platform" and document.to_value(job.tree.entries.trainingInput) or input_of(job)
  input.region, input.jobDir = job.region, job.job_dir
  -- Only a master that leads others is called anything; chief is what TensorFlow 2 calls it.
  if job.tasks > 1 and input.useChiefInTfConfig == nil then input.useChiefInTfConfig = true end
  for _, role in ipairs(job.roles) do
    local name = NAMES[role.role] .. "Config"
    local config = input[name] or {}
    if role.image then config.imageUri = role.image end
    if job.what[1] and role.image then
      local command, variables = job_of.command(job, role), variables_of(job, role)
      if #variables > 0 then
        table.insert(variables, 1, "env")
        for _, text in ipairs(command) do variables[#variables + 1] = text end
        command = variables
      end
      config.containerCommand = command
    end
    if next(config) then input[name] = config end
  end
  local arguments = job_of.arguments(job, job.roles[1])
  input.args = #arguments > 0 and arguments or nil
  return input
end

function ai_platform.files(job)
  local input = training_input(job)
  return { { name = FILE, text = writer.encode { trainingInput = input, labels = job.labels }, secret = true },
           { name = REQUEST, text = json.encode { jobId = job.name, labels = job.labels, trainingInput = input } .. "\n", secret = true } }
end

function ai_platform.submit(job, folder)
  return { cloud.gcloud(job, "ai-platform", "jobs", "submit", "training", job.name, "--config=" .. folder .. "/" .. FILE) }
end

function ai_platform.commands(job)
  local function of(what, ...) return cloud.gcloud(job, "ai-platform", "jobs", what, job.name, ...) end
  return { status = of "describe", follow = of "stream-logs", cancel = of "cancel", logs = cloud.logs(job, job.name, "textPayload") }
end

return ai_platform
