-- job.lua: the job that a configuration and a command line describe, in one form for all back ends:
--
--   { name =, form = "ai-platform" or "vertex", region =, labels =, tree = the document with the flags in it,
--     roles = { { role = "chief", count = 1, machine =, gpu =, gpu_count =, image =, command =, args =, env = {}, title =, place = } },
--     what = { "train.lua" } or { "-m", "trainer.task" } or {}, arguments = {}, job_dir =, max_seconds =, options = ... }
--
-- Roles come in the order chief, worker, ps, evaluator, each with at least one task.
--
-- read() makes it: the configuration becomes a tree (yaml.lua, document.lua), flags are put into the tree (flags.lua), the tree is read by
-- its form (training_input.lua, worker_pools.lua), and what flags say beside it is added. Everything that is wrong goes into the findings,
-- so that the user sees all of it at once; a job with errors may lack fields and goes no further. The other functions are for back ends.

local errors = require "flow.errors"
local document = require "flow.jobs.document"
local findings = require "flow.jobs.findings"
local flags = require "flow.jobs.flags"
local json = require "flow.json"
local mounts = require "flow.jobs.mounts"
local package_of = require "flow.jobs.package"
local training_input = require "flow.jobs.training_input"
local worker_pools = require "flow.jobs.worker_pools"
local yaml = require "flow.jobs.yaml"

local raise = errors.raise
local job = {}

job.CLOUDS = { ["ai-platform"] = true, vertex = true }
local DEFAULT_PORT = 2222
local DEFAULT_RESTARTS = 3

-- "A=b" for each entry, as a table.
local function read_environment(list, report)
  local env = {}
  for _, text in ipairs(list) do
    local name, value = text:match "^([%a_][%w_]*)=(.*)$"
    if name then env[name] = value
    else report:error("--env", "%q is not NAME=VALUE", text) end
  end
  return env
end

-- An option as a whole number; nil: not given, or wrong, which is reported.
local function whole(options, name, report, least, most)
  local text = options[name]
  if text == "" then return nil end
  local number = text:find "^%d+$" and tonumber(text)
  if number and number >= least and number <= most then return number end
  report:error("--" .. name:gsub("_", "-"), "%q is not a whole number from %d to %d", text, least, most)
end

local POLICIES = { Never = true, OnFailure = true, Always = true, ExitCode = true }

-- What the flags say beside the configuration.
local function read_options(self, options, report)
  self.env = read_environment(options.env, report)
  self.mounts = mounts.read(options.mount, report)
  self.port = whole(options, "port", report, 1, 65535) or DEFAULT_PORT
  self.max_restarts = whole(options, "max_restarts", report, 0, 1000000) or DEFAULT_RESTARTS
  self.restarts_said = options.max_restarts ~= ""
  self.threads = whole(options, "threads", report, 1, 512)
  if options.restart_policy ~= "" and not POLICIES[options.restart_policy] then
    report:error("--restart-policy", "%q is not known%s", options.restart_policy, errors.choices(options.restart_policy, POLICIES))
  end
  if options.engine ~= "ring" and options.engine ~= "mpi" then report:error("--engine", "%q is neither ring nor mpi", options.engine) end
  for _, name in ipairs { "cpus", "memory", "shm_size" } do
    if options[name] ~= "" and not options[name]:find "^%d+%.?%d*[%a]*$" then
      report:error("--" .. name:gsub("_", "-"), "%q is not a quantity such as 4 or 16Gi", options[name])
    end
  end
  self.git = mounts.read_git(options, report)
  if options.credentials ~= "" then
    local file = io.open(options.credentials, "rb")
    if file then file:close() else report:error("--credentials", "the file %s cannot be read", options.credentials) end
    self.credentials = options.credentials
  end
end

-- Sets what = { script } or { "-m", module } or {}, which the image's own entry point runs: what the command line says, else the
-- configuration's module, else the script of a container's command that is flowlua. With --package-path also package, of package.lua.
local function check_program(self, parsed, report)
  local what = parsed.what
  if what[1] == "-m" then self.what = { "-m", what[2] }
  else self.what = { what[1] } end
  local extra = what[what[1] == "-m" and 3 or 2]
  if extra then
    report:error("", "%q: arguments of the script come after --: flowlua submit %s %s -- %s", extra, parsed.name or "NAME",
      table.concat(self.what, " "), extra)
  end
  local command = self.roles[1] and self.roles[1].command
  if not self.what[1] and self.module then self.what = { "-m", self.module } end
  -- A container's command that is flowlua with a script names that script.
  local program = command and command[1] and command[1]:match "[^/]*$"
  if not self.what[1] and program == "flowlua" and #command == (command[2] == "-m" and 3 or 2) then
    self.what = { command[2], command[3] }
  end
  if self.options.package_path == "" then return end
  if self.what[1] then
    self.package = package_of.collect(self.options.package_path, self.what)
    self.what = self.package.what
  else
    report:error("--package-path", "which program of it? --module-name trainer.task, or a script")
  end
end

-- The tasks' number, and whether they are a cluster.
local function count_tasks(self)
  self.tasks = 0
  for _, role in ipairs(self.roles) do self.tasks = self.tasks + role.count end
end

-- Reports the first role that has no image, for backends that run containers.
function job.check_images(self, report)
  for _, role in ipairs(self.roles) do
    if not role.image then
      report:error(role.place or "", "%s has no image: --image IMAGE, or imageUri in the configuration", role.title)
      break
    end
  end
end

-- The cluster of TF_CONFIG; address(role, index) is a task's. nil for one task, which is not a cluster.
function job.cluster(self, address)
  local cluster, count = {}, 0
  for _, role in ipairs(self.roles) do
    if role.role ~= "evaluator" then
      cluster[role.role] = {}
      for index = 0, role.count - 1 do cluster[role.role][index + 1] = address(role.role, index) end
      count = count + role.count
    end
  end
  if count > 1 or self.tasks > 1 then return cluster end
end

-- What a task runs, without its arguments; nil where the image's own entry point runs. archive: where it finds the packed files.
function job.command(self, role, archive)
  if not self.what[1] then return role.command end
  local command = { "flowlua", unpack(self.what) }
  return self.package and archive and package_of.command(archive, command) or command
end

-- The arguments of a role's program: those after -- on the command line, else the role's, else the configuration's, with --job-dir before
-- them, except on AI Platform, which adds it itself.
function job.arguments(self, role)
  local list = {}
  if self.job_dir and self.backend ~= "ai-platform" then list[1], list[2] = "--job-dir", self.job_dir end
  for _, text in ipairs(#self.theirs > 0 and self.theirs or role.args or self.args) do list[#list + 1] = text end
  return list
end

-- The variables of a role's tasks, a new table: those of --env, and in their place those that the configuration has for the role.
function job.variables(self, role)
  local values = {}
  for _, from in ipairs { self.env, role.env } do
    for name, value in pairs(from) do values[name] = value end
  end
  return values
end

-- For back ends that start all tasks by one command with one environment: reports roles for which the configuration has others than for the
-- first role, whose they take.
function job.check_alike(self, report, service)
  local first = self.roles[1]
  for _, role in ipairs(self.roles) do
    local what = json.encode(job.arguments(self, role)) ~= json.encode(job.arguments(self, first)) and "args"
      or json.encode(job.variables(self, role)) ~= json.encode(job.variables(self, first)) and "env"
    if what then
      report:error(role.place or "", "%s has other %s than %s: %s starts all tasks alike", role.title, what, first.title, service)
    end
  end
end

-- Reports a name that is missing or that the back end does not take, and one that differs from the configuration's.
local function check_name(self, report)
  local name = self.name
  if not name then return report:error("", "a job has a name: flowlua submit NAME --config config.yaml train.lua") end
  if #name > 128 or not name:find "^%a[%w_-]*$" then
    report:error("", "the name %q should begin with a letter and have letters, digits, - and _, at most 128", name)
  elseif self.backend == "ai-platform" and name:find "-" then
    report:error("", "the name %q: AI Platform allows letters, digits and _; the nearest name is %s", name, (name:gsub("%-", "_")))
  end
  if self.id and self.id ~= name and self.form == "ai-platform" then
    report:warning("", "the configuration calls the job %s, the command line %s, which is taken", self.id, name)
  end
end

-- parsed: of flags.parse, or what init.lua makes of a script's tables: then with `tree`, the document. Returns the job and the findings.
function job.read(parsed)
  local options, report = parsed.options, findings.new()
  local tree = parsed.tree or options.config ~= "" and yaml.read(options.config) or document.map("")
  if tree.kind ~= "map" then
    raise("%s is %s, it should be a map: trainingInput: or workerPoolSpecs:", tree.place, document.describe(tree))
  end
  local given = parsed.tree ~= nil or options.config ~= ""
  local vertex = worker_pools.is(tree) or not given and options.backend == "vertex"
  local backend = options.backend ~= "" and options.backend or given and (vertex and "vertex" or "ai-platform") or "local"
  local strict = job.CLOUDS[backend] == true
  if vertex then tree = worker_pools.wrap(tree)
  elseif not given then document.set(tree, "trainingInput", document.map("")) end
  local beside = flags.apply(parsed, tree, vertex and "vertex" or "training")
  local read = vertex and worker_pools.read or training_input.read
  local self = read(tree, report, { lenient = not given and not strict, strict = strict, region = beside.region or parsed.region,
                                    region_place = parsed.region and tree.place, image = options.image ~= "" and options.image or nil })
  self.tree, self.name, self.theirs, self.options, self.backend = tree, parsed.name, parsed.theirs, options, backend
  self.backend_said, self.display = options.backend ~= "", parsed.display or parsed.name
  self.job_dir, self.module = self.job_dir or beside.jobDir, self.module or beside.pythonModule
  if options.image ~= "" then
    for _, role in ipairs(self.roles) do role.image = role.image or options.image end
  end
  read_options(self, options, report)
  self.env.FLOW_JOB_DIR = self.env.FLOW_JOB_DIR or self.job_dir      -- where BackupAndRestore looks
  check_program(self, parsed, report)
  count_tasks(self)
  check_name(self, report)
  if strict and not self.region and not self.unread then
    report:error("", "the region is missing: %s--region us-central1", self.form == "vertex" and "" or "trainingInput.region, or ")
  end
  return self, report
end

return job
