-- worker_pools.lua: jobs in the form of Vertex AI: { workerPoolSpecs: [ ... ] }, as a file for gcloud, a CustomJob with a jobSpec, or
-- the tables of its Python library. Pools have their meaning by position: the chief, workers, parameter servers, evaluators.

local document = require "flow.jobs.document"
local fields = require "flow.jobs.fields"
local hardware = require "flow.jobs.hardware"
local schema = require "flow.jobs.schema"

local worker_pools = {}

local SERVICE = "vertex"
local ROLES = { "chief", "worker", "ps", "evaluator" }
local MEANING = { "the chief", "the workers", "the parameter servers", "the evaluators" }
local DISKS = { ["pd-ssd"] = true, ["pd-standard"] = true, ["hyperdisk-balanced"] = true }

-- The entry of a map under this name, with or without underscores.
local function entry_of(map, name)
  for _, key in ipairs(map.keys) do
    if schema.canonical(key) == name then return map.entries[key], key end
  end
end
worker_pools.entry_of = entry_of

-- Whether a document is of this form.
function worker_pools.is(tree)
  return entry_of(tree, "workerPoolSpecs") ~= nil or entry_of(tree, "jobSpec") ~= nil
end

-- What gcloud's files have at the top goes into jobSpec.
function worker_pools.wrap(tree)
  if entry_of(tree, "jobSpec") then return tree end
  local outer, inner = document.map(tree.place), document.map(tree.place)
  for _, key in ipairs(tree.keys) do
    local own = fields.custom_job.fields[schema.canonical(key)] and key ~= "jobSpec"
    document.set(own and outer or inner, key, tree.entries[key])
  end
  document.set(outer, "jobSpec", inner)
  return outer
end

-- image: of pools that name none, or nil.
local function check_program(report, pool, entry, image)
  local container, package = pool.containerSpec, pool.pythonPackageSpec
  if container and package then
    report:error(schema.place(pool, "pythonPackageSpec"), "%s and %s exclude each other: keep one",
      schema.path(pool, "containerSpec"), schema.path(pool, "pythonPackageSpec"))
  elseif not (container or package or image) then
    report:error(schema.place(pool), "%s has neither containerSpec nor pythonPackageSpec: what does it run?", schema.path(pool))
  elseif container and not (container.imageUri or image) then
    report:error(schema.place(pool, "containerSpec"), "%s is missing", schema.path(container, "imageUri"))
  elseif package and not package.pythonModule then
    schema.error(report, package, "pythonModule", "is missing: which module is the program?")
  end
  local what = container or package or {}
  entry.image = what.imageUri or what.executorImageUri or not package and image or nil
  entry.command, entry.args = container and container.command, what.args
  entry.module = package and package.pythonModule
  for _, variable in ipairs(what.env or {}) do
    if not variable.name or not variable.name:find "^[%a_][%w_]*$" then
      report:error(schema.place(variable), "%s is %s: names of variables are letters, digits and _", schema.path(variable, "name"),
        variable.name and ("%q"):format(variable.name) or "missing")
    else
      entry.env[variable.name] = variable.value or ""
    end
  end
end

-- Sets machine, gpu and gpu_count of a role's entry as far as the pool's machineSpec is right, and reports the rest. invalid_gpus: GPUs
-- were said, but wrongly, so nothing more is said of them.
local function check_machine(report, pool, entry)
  local machine = pool.machineSpec
  if not machine or not schema.written(machine, "machineType") then
    report:error(schema.place(pool, machine and "machineSpec" or nil), "%s is missing: e.g. n1-standard-4",
      machine and schema.path(machine, "machineType") or schema.path(pool, "machineSpec"))
  elseif machine.machineType and hardware.check_machine(report, machine, "machineType", SERVICE) then
    entry.machine = machine.machineType
  end
  if not machine then return end
  if machine.tpuTopology then
    schema.error(report, machine, "tpuTopology", "is set, but flowlua computes on CPUs and NVIDIA's GPUs")
  end
  if machine.acceleratorType == "ACCELERATOR_TYPE_UNSPECIFIED" and not machine.acceleratorCount then return end
  entry.gpu, entry.gpu_count = hardware.check_gpus(report, machine, "acceleratorCount", "acceleratorType", entry.machine, SERVICE)
  entry.invalid_gpus = not entry.gpu and (machine.acceleratorType or machine.acceleratorCount) and true or nil
  if entry.machine and not entry.invalid_gpus then hardware.check_built_in(report, machine, "machineType", entry.gpu, SERVICE) end
end

-- As disk_of in training_input.lua.
local function check_disk(report, pool)
  local disk = pool.diskSpec
  if not disk then return nil end
  if disk.bootDiskType and not DISKS[disk.bootDiskType] then
    schema.error(report, disk, "bootDiskType", "is %q, disks are %s", disk.bootDiskType,
      schema.listed(DISKS))
  end
  if disk.bootDiskSizeGb and disk.bootDiskSizeGb < 100 then
    schema.error(report, disk, "bootDiskSizeGb", "is %d, a disk has at least 100 GB",
      disk.bootDiskSizeGb)
  end
  return { type = disk.bootDiskType, gigabytes = disk.bootDiskSizeGb }
end

-- A pool that is {} is skipped.
local function is_skipped(pool) return next(pool) == nil or #select(2, schema.each(pool)) == 0 end

-- The role of a pool, by its position from 1: chief, worker, ps, evaluator. image: of --image, for pools without one.
local function read_pool(report, pool, position, image)
  local entry = { role = ROLES[position], title = schema.path(pool), place = schema.place(pool), env = {}, count = pool.replicaCount or 1 }
  if position == 1 and entry.count ~= 1 then
    schema.error(report, pool, "replicaCount", "is %d: the first pool is the chief, of which there is 1; workers are the second pool",
      entry.count)
    entry.count = 1
  elseif entry.count == 0 then
    schema.error(report, pool, "replicaCount", "is 0: a pool that is left out is written {}")
  elseif position == 4 and entry.count > 1 then
    schema.warning(report, pool, "replicaCount", "is %d: a second evaluator repeats what the first one does", entry.count)
  end
  check_machine(report, pool, entry)
  check_program(report, pool, entry, image)
  entry.disk = check_disk(report, pool)
  return entry
end

-- The same as training_input.read, for this form, wrapped. options.region: where the job is to run, if that is said; options.image: of
-- pools that name none.
function worker_pools.read(tree, report, options)
  local read = schema.read(tree, fields.custom_job, report, true)
  local spec = read.jobSpec or schema.empty(schema.place(read))
  local pools = spec.workerPoolSpecs or {}
  local job = { form = SERVICE, labels = read.labels, id = read.displayName, args = {}, roles = {}, spec = spec, read = read,
                max_seconds = spec.scheduling and spec.scheduling.timeout, service_account = spec.serviceAccount, network = spec.network,
                output = spec.baseOutputDirectory and spec.baseOutputDirectory.outputUriPrefix,
                region = options.region, region_place = options.region_place or "--region", region_path = "region" }
  if not pools[1] then
    if report.errors == 0 then
      schema.error(report, spec, "workerPoolSpecs", "has no pool: the first one is the chief")
    end
    job.unread = true
    return job
  end
  for position, pool in ipairs(pools) do
    if position > #ROLES then
      report:error(schema.place(pool), "%s: a job has at most %d pools: %s", schema.path(pool), #ROLES, table.concat(MEANING, ", "))
      break
    elseif is_skipped(pool) then
      if position == 1 then report:error(schema.place(pool), "%s is empty: the first pool is the chief", schema.path(pool)) end
    else
      job.roles[#job.roles + 1] = read_pool(report, pool, position, options.image)
    end
  end
  if job.output and not job.output:find "^gs://[%w][%w._-]+" then
    local directory = spec.baseOutputDirectory
    schema.error(report, directory, "outputUriPrefix", "is %q, it should be a folder of a bucket: gs://BUCKET/FOLDER", job.output)
  end
  hardware.check_equal(report, job.roles)
  if job.region then hardware.check_region(report, job.region_place, job.region_path, job.region, job.roles) end
  return job
end

return worker_pools
