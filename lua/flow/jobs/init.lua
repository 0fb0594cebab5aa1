-- init.lua: flow.jobs: training jobs from a script, in the words of Vertex AI's Python library, with the checks and back ends of
-- flowlua submit:
--
--   local job = flow.jobs.CustomJob { display_name = "digits", worker_pool_specs = { { machine_spec = ..., container_spec = ... } },
--                                     staging_bucket = "gs://bucket" }
--   job:findings()                     all that is wrong or doubtful, a line each
--   job:run { backend = "kubernetes" } writes the files, and hands them over
--   flow.jobs.CustomContainerTrainingJob { display_name = "digits", container_uri = "image" }
--     :run { replica_count = 2, machine_type = "n1-standard-8", accelerator_type = "NVIDIA_TESLA_T4", accelerator_count = 1 }
--
-- The room: training jobs, from their description to the files of what runs them. May use: nothing.

local errors = require "flow.errors"
local object = require "flow.object"
local document = require "flow.jobs.document"
local flags = require "flow.jobs.flags"
local signature = require "flow.signature"
local submission = require "flow.jobs.submission"

local raise, takes = errors.raise, signature.takes
local jobs = signature.module "flow.jobs"

local Job = object.class("Job")
local CustomJob = object.class("CustomJob", Job)
local ContainerJob = object.class("CustomContainerTrainingJob", Job)

local OF_JOB = "{ staging_bucket?: text, base_output_dir?: text, location: text = 'us-central1', project?: text, labels?: table, "
  .. "encryption_spec_key_name?: text"
local OF_RUN = "backend: text = 'vertex', dry_run: boolean = false, submit: boolean = true, output_dir?: text, service_account?: text, "
  .. "network?: text, timeout?: number, restart_job_on_worker_restart?: boolean, enable_web_access?: boolean, tensorboard?: text }"

-- Names with texts, as env lists them.
local function environment_list(variables)
  local list, names = {}, {}
  for name in pairs(variables or {}) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do list[i] = { name = name, value = tostring(variables[name]) } end
  return #list > 0 and list or nil
end

-- What flags.parse makes of a command line, from a job's pools and the options of run.
local function describe(self, pools, options)
  local made = rawget(self, "_options")
  local output = made.base_output_dir
  if not output and made.staging_bucket then output = ("%s/%s"):format(made.staging_bucket:gsub("/+$", ""), self.name) end
  local spec = {
    workerPoolSpecs = pools, serviceAccount = options.service_account, network = options.network, tensorboard = options.tensorboard,
    enableWebAccess = options.enable_web_access, baseOutputDirectory = output and { outputUriPrefix = output } or nil,
    scheduling = (options.timeout or options.restart_job_on_worker_restart ~= nil) and {
      timeout = options.timeout and ("%.14gs"):format(options.timeout) or nil,
      restartJobOnWorkerRestart = options.restart_job_on_worker_restart } or nil,
  }
  local tree = document.from_value({ displayName = self.display_name, labels = made.labels, jobSpec = spec,
    encryptionSpec = made.encryption_spec_key_name and { kmsKeyName = made.encryption_spec_key_name } or nil }, object.title(self))
  local parsed = { name = self.name, display = self.display_name, what = {}, theirs = {}, settings = {}, tree = tree,
                   region = made.location, options = {} }
  for name, default in pairs(flags.OPTIONS) do parsed.options[name] = type(default) == "table" and {} or default end
  parsed.options.backend, parsed.options.output_dir = options.backend or "vertex", options.output_dir or ""
  parsed.options.project, parsed.options.submit = made.project or "", options.submit ~= false
  return parsed
end

-- All that is wrong or doubtful of a job with these pools: a list of lines, those of errors without "warning:".
local function check(self, pools, options)
  local _, report = submission.read(describe(self, pools, options))
  return report:lines()
end

-- Submits a job as flowlua submit does: raises with all errors, warns by the log, and returns the files' texts (dry_run) or what
-- submission.run returns.
local function run(self, pools, options)
  local job, report = submission.read(describe(self, pools, options))
  local log = require "flow.log"
  if report.errors > 0 then
    raise("%s cannot run:\n%s", object.title(self), table.concat(report:lines(), "\n"))
  end
  for _, line in ipairs(report:lines()) do log.warning("%s", line) end
  if options.dry_run then return submission.preview(job) end
  return submission.run(job)
end

local function new(class, display_name, fields, options)
  fields.display_name, fields.name, fields._options = display_name, display_name:gsub("[^%w_-]", "-"), options
  return object.new(class, fields)
end

-- worker_pool_specs: a list of up to four pools, which are the chief, the workers, the parameter servers and the evaluators; {} for one
-- that is left out.
takes("display_name: text, worker_pool_specs: list, " .. OF_JOB .. " }")
function jobs.CustomJob(display_name, worker_pool_specs, options)
  return new(CustomJob, display_name, { worker_pool_specs = worker_pool_specs }, options)
end

-- Returns what was written and whether it was handed over: { name =, backend =, folder =, files =, submitted =, code =, id = }; with
-- dry_run the texts of the files. Raises all findings if there is an error among them.
takes("{ " .. OF_RUN)
function CustomJob:run(options) return run(self, self.worker_pool_specs, options) end

takes("{ " .. OF_RUN)
function CustomJob:findings(options) return check(self, self.worker_pool_specs, options) end

takes("display_name: text, container_uri: text, " .. OF_JOB .. ", command?: list }")
function jobs.CustomContainerTrainingJob(display_name, container_uri, options)
  return new(ContainerJob, display_name, { container_uri = container_uri }, options)
end

local MACHINE = "{ args?: list, environment_variables?: table, replica_count: count = 1, machine_type: text = 'n1-standard-4', "
  .. "accelerator_type?: text, accelerator_count: whole = 0, boot_disk_type: text = 'pd-ssd', boot_disk_size_gb: count = 100, "

-- One chief, and replica_count - 1 workers, on equal machines.
local function pools_of(self, options)
  local function pool(count)
    return {
      machine_spec = { machine_type = options.machine_type, accelerator_type = options.accelerator_type,
                       accelerator_count = options.accelerator_count > 0 and options.accelerator_count or nil },
      replica_count = count, disk_spec = { boot_disk_type = options.boot_disk_type, boot_disk_size_gb = options.boot_disk_size_gb },
      container_spec = { image_uri = self.container_uri, command = rawget(self, "_options").command, args = options.args,
                         env = environment_list(options.environment_variables) },
    }
  end
  return { pool(1), options.replica_count > 1 and pool(options.replica_count - 1) or nil }
end

-- As CustomJob's.
takes(MACHINE .. OF_RUN)
function ContainerJob:run(options) return run(self, pools_of(self, options), options) end

takes(MACHINE .. OF_RUN)
function ContainerJob:findings(options) return check(self, pools_of(self, options), options) end

return jobs
