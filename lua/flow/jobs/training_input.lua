-- training_input.lua: jobs in the form of AI Platform Training: { trainingInput: { scaleTier: CUSTOM, masterType: ..., ... } }: what the
-- service would refuse, and the job that it means (job.lua says what that is).

local errors = require "flow.errors"
local fields = require "flow.jobs.fields"
local hardware = require "flow.jobs.hardware"
local machines = require "flow.jobs.machine_types"
local schema = require "flow.jobs.schema"

local training_input = {}

local SERVICE = "ai-platform"
local MOST_PACKAGES = 100
-- The first version of the run-time image whose TF_CONFIG names the first machine chief, not master.
local CHIEF_FROM = "2.1"

local ROLES = {
  { role = "chief", name = "master" }, { role = "worker", name = "worker" }, { role = "ps", name = "parameterServer" },
  { role = "evaluator", name = "evaluator" },
}

local function is_legacy(machine) return machines.legacy[machine] ~= nil end

-- scaleTier and what may be beside it. Returns the tier.
local function check_tier(input, report, lenient)
  local tier = input.scaleTier
  if tier and not machines.tiers[tier] then
    local upper = tier:upper():gsub("%-", "_")
    local nearest = machines.tiers[upper] and upper or errors.nearest(upper, machines.tiers)
    schema.error(report, input, "scaleTier", "is %q: there is no such tier%s", tier,
      nearest and ("; the nearest name is %s"):format(nearest) or "; there are " .. schema.listed(machines.tiers))
    return nil
  end
  if tier == "BASIC_TPU" then
    report:error(schema.place(input, "scaleTier"), "scaleTier is BASIC_TPU: flowlua computes on CPUs and NVIDIA's GPUs")
  end
  if tier and machines.tiers[tier].servers then
    report:warning(schema.place(input, "scaleTier"), "scaleTier %s comes with parameter servers, for which a synchronous strategy has no "
      .. "use: with CUSTOM a job has the machines that it names", tier)
  end
  if tier == "CUSTOM" or lenient and not tier then return "CUSTOM" end
  for _, role in ipairs(ROLES) do
    for _, suffix in ipairs { "Type", "Count", "Config" } do
      local field = role.name .. suffix
      local value = input[field]
      -- The image of a predefined tier's master may be chosen.
      local allowed = suffix == "Config" and value and not value.acceleratorConfig
      if value and value ~= 0 and not allowed then
        schema.error(report, input, field, "goes with scaleTier CUSTOM, %s",
          tier and "here it is " .. tier or "without one it is BASIC")
      end
    end
  end
  return tier or "BASIC"
end

local function count_of(input, role)
  if role.role == "chief" then return 1 end
  return input[role.name .. "Count"] or 0
end

-- Machine and GPUs of a role; config is nil where there is none.
local function check_role(input, role, config, entry, report, lenient)
  local type_field, count_field = role.name .. "Type", role.name .. "Count"
  local machine = input[type_field]
  if machine and hardware.check_machine(report, input, type_field, SERVICE) then entry.machine = machine end
  if not schema.written(input, type_field) and entry.count > 0 and not lenient then
    if role.role == "chief" then
      report:error(schema.place(input), "%s is missing: with scaleTier CUSTOM it says which machine the master is, e.g. n1-standard-4",
        schema.path(input, type_field))
    else
      schema.error(report, input, count_field, "is %d, but %s does not say on which machines, e.g. n1-standard-4", entry.count,
        schema.path(input, type_field))
    end
  elseif machine and role.role ~= "chief" and entry.count == 0 and (input[count_field] == 0 or not schema.written(input, count_field)) then
    schema.error(report, input, type_field, "is %s, but %s does not say how many", machine,
      schema.path(input, count_field))
  end
  local gpus = config and config.acceleratorConfig
  if gpus and machine and is_legacy(machine) then
    schema.error(report, config, "acceleratorConfig", "goes with machines of Compute Engine: %s %s", machine,
      machines.legacy[machine][1] and ("is one of AI Platform's own, with %d %s in it"):format(machines.legacy[machine][2],
        machines.legacy[machine][1]) or "is one of AI Platform's own; n1-standard-8 takes GPUs, for instance")
    entry.invalid_gpus = true
  elseif gpus then
    entry.gpu, entry.gpu_count = hardware.check_gpus(report, gpus, "count", "type", entry.machine, SERVICE)
    entry.invalid_gpus = not entry.gpu
  elseif machine and is_legacy(machine) then
    entry.gpu, entry.gpu_count = machines.legacy[machine][1], machines.legacy[machine][2]
  else
    hardware.check_built_in(report, input, type_field, nil, SERVICE)
  end
end

-- Names of Compute Engine and AI Platform's own do not go together.
local function check_families(input, roles, report)
  local first = roles[1]
  if not first.machine then return end
  for _, role in ipairs(roles) do
    if role.machine and is_legacy(role.machine) ~= is_legacy(first.machine) then
      local field = role.name .. "Type"
      local of_own = is_legacy(role.machine) and role.machine or first.machine
      report:error(schema.place(input, field), "%s is %s and masterType %s: %s is one of AI Platform's own machines, and those do not go "
        .. "with Compute Engine's in one job", schema.path(input, field), role.machine, first.machine, of_own)
    end
  end
end

-- Versions as numbers that are in order: 1.15 comes after 1.9. nil: not a version.
local function version_of(text)
  local major, minor = text:match "^(%d+)%.(%d+)$"
  return major and tonumber(major) * 1000 + tonumber(minor)
end

-- What runs, and in which versions: image and runtimeVersion, packages and module exclude or need each other as the service says.
local function check_program(input, roles, report)
  local image = roles[1].image
  local version = input.runtimeVersion
  if version and not version_of(version) then
    report:error(schema.place(input, "runtimeVersion"), "runtimeVersion is %q, it should be two numbers, such as '2.11'", version)
  end
  if input.pythonVersion and not version_of(input.pythonVersion) then
    report:error(schema.place(input, "pythonVersion"), "pythonVersion is %q, it should be two numbers, such as '3.7'", input.pythonVersion)
  end
  if image and version then
    report:error(schema.place(input, "runtimeVersion"), "runtimeVersion and %s exclude each other: the image is the run-time; keep one",
      schema.path(input.masterConfig, "imageUri"))
  end
  if image and input.packageUris then
    report:error(schema.place(input, "packageUris"), "packageUris and %s exclude each other: what the program needs is in the image",
      schema.path(input.masterConfig, "imageUri"))
  end
  if input.packageUris and #input.packageUris > MOST_PACKAGES then
    report:error(schema.place(input, "packageUris"), "packageUris has %d packages, at most %d are possible", #input.packageUris,
      MOST_PACKAGES)
  end
  if input.packageUris and not image and not input.pythonModule then
    report:error(schema.place(input, "packageUris"), "pythonModule is missing: which module of the packages is the program?")
  end
  local several = (input.workerCount or 0) > 0
  local old = version and version_of(version) and version_of(version) < version_of(CHIEF_FROM)
  if old and several and not input.useChiefInTfConfig then
    report:warning(schema.place(input, "runtimeVersion"), "runtimeVersion %s calls the first of several workers master, not chief, in "
      .. "TF_CONFIG: take 2.1 or later, or set useChiefInTfConfig: true", version)
  end
end

-- strict: the file is for the service itself, where a folder has to be in a bucket; else a path of this machine will do.
local function check_storage(input, report, strict)
  local folder = input.jobDir
  if not folder then return end
  local path = schema.path(input, "jobDir")
  if strict and not folder:find "^gs://[%w][%w._-]+" then
    report:error(schema.place(input, "jobDir"), "%s is %q, it should be a folder of a bucket: gs://BUCKET/FOLDER", path, folder)
  elseif folder:find "^gs:" and not folder:find "^gs://[%w][%w._-]+" then
    report:error(schema.place(input, "jobDir"), "%s is %q: a bucket is written gs://BUCKET/FOLDER", path, folder)
  elseif folder:find "%s" then
    report:error(schema.place(input, "jobDir"), "%s is %q: folders of a job have no spaces in their names", path, folder)
  end
end

-- The disk of a role's config, { type =, gigabytes = }, or nil; a type that the service does not have is reported.
local function disk_of(config, report)
  local disk = config and config.diskConfig
  if not disk then return nil end
  if disk.bootDiskType and disk.bootDiskType ~= "pd-ssd" and disk.bootDiskType ~= "pd-standard" then
    schema.error(report, disk, "bootDiskType", "is %q, disks are pd-ssd and pd-standard",
      disk.bootDiskType)
  end
  return { type = disk.bootDiskType, gigabytes = disk.bootDiskSizeGb }
end

-- tree: the whole document. options: lenient: machines need not be named, since no service lends them; strict: the service itself is to
-- run the job. Returns the job, as far as it could be read.
function training_input.read(tree, report, options)
  local read = schema.read(tree, fields.training_job, report)
  local input = read.trainingInput
  if not input then
    if report.errors == 0 then report:error(schema.place(read), "trainingInput is missing") end
    return { form = SERVICE, roles = {}, args = {}, labels = read.labels, unread = true }
  end
  local lenient = options.lenient
  local tier = check_tier(input, report, lenient)
  local job = { form = SERVICE, labels = read.labels, id = read.jobId, region = input.region, args = input.args or {},
                job_dir = input.jobDir, module = input.pythonModule, region_place = schema.place(input, "region"),
                region_path = schema.path(input, "region"), roles = {}, input = input,
                max_seconds = input.scheduling and input.scheduling.maxRunningTime, service_account = input.serviceAccount,
                network = input.network, priority = input.scheduling and input.scheduling.priority }
  local all = {}
  for _, role in ipairs(ROLES) do
    local config = input[role.name .. "Config"]
    local entry = { role = role.role, title = role.name, count = count_of(input, role), env = {}, disk = disk_of(config, report),
                    name = role.name, image = config and config.imageUri, command = config and config.containerCommand,
                    args = config and config.containerArgs,
                    place = schema.place(input, role.name .. (config and "Config" or "Count")) }
    if config and config.tpuTfVersion then
      schema.error(report, config, "tpuTfVersion", "is set, but flowlua computes on CPUs and NVIDIA's GPUs")
    end
    if tier == "CUSTOM" then check_role(input, role, config, entry, report, lenient) end
    all[#all + 1] = entry
    if entry.count > 0 then job.roles[#job.roles + 1] = entry end
  end
  if tier == "BASIC_GPU" then job.roles[1].gpu, job.roles[1].gpu_count = machines.tiers.BASIC_GPU.gpu, machines.tiers.BASIC_GPU.count end
  for _, entry in ipairs(job.roles) do entry.image = entry.image or job.roles[1].image end
  check_families(input, all, report)
  check_program(input, all, report)
  check_storage(input, report, options.strict)
  hardware.check_equal(report, job.roles)
  if job.region then hardware.check_region(report, job.region_place, job.region_path, job.region, job.roles) end
  if (input.evaluatorCount or 0) > 1 then
    report:warning(schema.place(input, "evaluatorCount"), "evaluatorCount is %d: a second evaluator repeats what the first one does",
      input.evaluatorCount)
  end
  if input.scheduling and input.scheduling.maxRunningTime == 0 then
    schema.error(report, input.scheduling, "maxRunningTime", "is 0: the job would end before it begins")
  end
  return job
end

return training_input
