-- cli/launch.lua: flowlua launch --workers 2 train.lua -- ARGS: a cluster on this machine in one command, or, by mpirun, on several.
--
-- Each task finds in its environment
--   TF_CONFIG               the cluster and which task it is
--   FLOW_SECRET             what only this cluster's tasks know
--   FLOW_LISTEN_DESCRIPTOR  its own address of TF_CONFIG, bound and listening, so that nobody can take the port in between
--   FLOW_THREADS            its share of the cores
--   FLOW_STATUS_PORT        with --status-port: where the chief shows how it goes (distribute/status.lua)
--   FLOW_MODULES            with many tasks: a descriptor of lua/flow's modules, translated once (launch_modules.lua)
--   FLOW_MAX_RESTARTS       with --max-restarts: that workers wait for one that is lost (distribute/recovery.lua)
--   FLOW_MIN_WORKERS        with --min-workers
--   FLOW_LAUNCHED           tasks are not started again once the chief is done
-- Under mpirun only FLOW_THREADS and FLOW_STATUS_PORT: the ranks know each other by MPI. On other machines (cli/launch_hosts.lua) the tasks
-- bind their addresses themselves.

local flow = require "flow"
local json = require "flow.json"
local host_io = require "flow.host"
local launch_hosts = require "flow.cli.launch_hosts"
local launch_modules = require "flow.cli.launch_modules"
local shell = require "flow.shell"

local USAGE = [=[
Usage: flowlua launch [options] script.lua [-- arguments of the script]
       flowlua launch [options] -m MODULE [-- arguments]

Runs a script in several processes that make up a cluster (TF_CONFIG). Their output comes line by line, with the task in front; on a
terminal a table of the tasks stays below it. The first task that fails ends the others; the exit code is its own, 128 and the number of the
signal if one ended it.

  --workers N              workers (2; with --hosts: as many as they have)
  --chief                  a chief beside the workers
  --parameter-servers P    parameter servers (0); they are ended when chief and workers are done
  --evaluator              an evaluator beside the cluster
  --max-restarts N         starts a chief or worker that fails again, N times in all (0); the others wait for it and go on. mpirun ends all:
                           then the whole job starts again, from its backup
  --min-workers N          with how many workers the script may go on without the others, the first one among them; for scripts with
                           shards (all)
  --threads T              threads of each task (the cores, shared out)
  --status-port P          shows how it goes at http://127.0.0.1:P/, /status (JSON) and /metrics (Prometheus); 0.0.0.0:P: to other machines
  --log-dir DIR            writes what each task says to DIR/worker-0.log ..., too
  --output FORM            lines: each line of a task with its name in front; table: with the state, restarts and last line of each task
                           below them; json: a JSON object a line for what happens to tasks and for each line (table on a terminal, else
                           lines)
  --start-port P           addresses with the ports P, P + 1, ... (ports that are free; with --hosts, on each: 2222, ...)
  --kill-after SECONDS     how long the others have to end when one failed, before SIGTERM, and again before SIGKILL (10)
  --engine ring | mpi      how the workers find each other: by TF_CONFIG, or as ranks of mpirun (ring)
  --hosts A,B:2            the machines, with how many workers each has (1); started by ssh, or by mpirun. All have this program at the same
                           path and the folder that the command is called in; FLOW_* and LUA_* variables go with the tasks
  --ssh COMMAND            what starts a command on a host: COMMAND HOST TEXT (FLOW_SSH, or ssh -x -T -o BatchMode=yes)
  --help                   this text

Ctrl-C goes to all tasks; the second one kills them.]=]

local UNSAID = -math.huge      -- --workers was not given
local DEFAULTS = {
  workers = UNSAID, chief = false, parameter_servers = 0, evaluator = false, max_restarts = 0, min_workers = 0, threads = 0,
  status_port = "", log_dir = "", start_port = 0, kill_after = 10, engine = "ring", hosts = "", ssh = "", output = "auto",
  help = false,
}
local FORMS = { auto = true, lines = true, table = true, json = true }
local MOST_TASKS = 1000
-- Of a launcher around this one, for which each task would take itself for a part of that.
local LAUNCHERS = { "OMPI_COMM_WORLD_", "PMIX_", "PMI_", "SLURM_STEP_", "SLURM_PROCID=" }

-- Ends the command with a sentence; no traceback, since no code is wrong.
local Refusal = { __tostring = function(refusal) return refusal.text end }
local function refuse(text, ...)
  error(setmetatable({ text = text:format(...) }, Refusal), 0)
end

-- Refuses an option that is not a whole number in a range.
local function check_count(options, name, least, most)
  local value = options[name]
  if value % 1 ~= 0 or value < least or value > most then
    refuse("--%s is a whole number from %d to %d, got %.14g", name:gsub("_", "-"), least, most, value)
  end
end

-- Refuses options that cannot be, each by itself; what depends on the number of tasks is checked where the tasks are planned.
local function check_options(options)
  if options.workers ~= UNSAID then check_count(options, "workers", 0, MOST_TASKS) end
  if options.workers == 0 and not options.chief then refuse("--workers 0: nobody would train: --chief is missing, or a worker") end
  check_count(options, "parameter_servers", 0, MOST_TASKS)
  check_count(options, "threads", 0, 512)
  check_count(options, "max_restarts", 0, 1e6)
  check_count(options, "min_workers", 0, MOST_TASKS)
  check_count(options, "start_port", 0, 65535)
  if not (options.kill_after >= 0 and options.kill_after < 1e6) then
    refuse("--kill-after is a number of seconds, got %.14g", options.kill_after)
  end
  if options.engine ~= "ring" and options.engine ~= "mpi" then refuse("--engine is ring or mpi, got %q", options.engine) end
  if not FORMS[options.output] then refuse("--output is lines, table or json, got %q", options.output) end
  if options.ssh ~= "" and options.hosts == "" then refuse("--ssh goes with --hosts: which machines?") end
end

-- The options before --, what runs ({ script } or { "-m", module }), and the script's arguments after --. With --help only the options.
local function parse(arguments)
  local own, theirs = {}, {}
  local target = own
  for _, text in ipairs(arguments) do
    if text == "--" and target == own then target = theirs else target[#target + 1] = text end
  end
  local ok, options = pcall(flow.args, DEFAULTS, own)
  if not ok then
    if type(options) ~= "string" then error(options, 0) end
    refuse("%s (write arguments of the script after --)", options)
  end
  if options.help then return options end
  check_options(options)
  local by_name = options[1] == "-m"
  local extra = options[by_name and 3 or 2]
  local what = { options[1], by_name and options[2] or nil }
  if not what[1] or by_name and not what[2] then refuse("which script? flowlua launch --workers 2 train.lua -- --epochs 3") end
  if extra then refuse("%q: arguments of the script come after --: flowlua launch %s -- %s", extra, table.concat(what, " "), extra) end
  return options, what, theirs
end

local function program(host)
  return host.program() or refuse("the path of this program is not known: /proc is not mounted")
end

-- What each task runs, a list of texts: this program, the script or module, its arguments.
local function command_of(host, what, theirs)
  local command = { program(host) }
  for _, list in ipairs { what, theirs } do
    for _, text in ipairs(list) do command[#command + 1] = text end
  end
  return command
end

-- FLOW_THREADS for each of `count` processes of a machine: nil where the user has set it.
local function threads_of(options, count)
  if options.threads > 0 then return options.threads end
  if os.getenv("FLOW_THREADS") then return nil end
  return math.max(1, math.floor(flow.config.get_threads() / count))
end

-- After everything that can be wrong with the options. command: the program, then what it runs.
local function check_script(options, command)
  local script = command[2]
  if script == "-m" or options.hosts ~= "" or host_io.readable(script) then return end
  refuse("cannot open %s: there is no such file", script)
end

-- The path of a task's file of --log-dir, whose folder is made; nil without that option.
local function log_of(options, job, index)
  if options.log_dir == "" then return nil end
  local ok, message = pcall(flow.io.makedirs, options.log_dir)
  if not ok then refuse("--log-dir: %s", message) end
  return ("%s/%s-%d.log"):format(options.log_dir, job, index)
end

---- a cluster of this machine ------------------------------------------------------------------------------------------

-- The tasks of the cluster in order, the evaluator beside it last: { job =, index = from 0, listens = a descriptor that listens at the
-- task's address, which the task inherits, address = "127.0.0.1:port" }. The evaluator has neither of the last two, since no task connects
-- to it. The ports are bound here, before any task starts, so that all know all addresses.
local function plan_tasks(host, options)
  local tasks = {}
  local function add(job, count)
    for index = 0, count - 1 do tasks[#tasks + 1] = { job = job, index = index } end
  end
  add("chief", options.chief and 1 or 0)
  add("worker", options.workers)
  add("ps", options.parameter_servers)
  if #tasks > MOST_TASKS then refuse("%d tasks: at most %d are possible", #tasks, MOST_TASKS) end
  if options.start_port > 0 and options.start_port + #tasks - 1 > 65535 then
    refuse("--start-port %d: %d tasks need the ports up to %d", options.start_port, #tasks, options.start_port + #tasks - 1)
  end
  for position, task in ipairs(tasks) do
    local descriptor, port = host.listen(options.start_port > 0 and options.start_port + position - 1 or 0)
    if not descriptor then refuse("%s:%d: %s", task.job, task.index, port) end
    task.listens, task.address = descriptor, "127.0.0.1:" .. port
  end
  add("evaluator", options.evaluator and 1 or 0)
  return tasks
end

-- The cluster of TF_CONFIG: the addresses of each job's tasks, in order.
local function cluster_of(tasks)
  local cluster = {}
  for _, task in ipairs(tasks) do
    if task.address then
      cluster[task.job] = cluster[task.job] or {}
      table.insert(cluster[task.job], task.address)
    end
  end
  return cluster
end

local function check_least(options, cluster)
  local count = #(cluster.worker or {}) + #(cluster.chief or {})
  if options.min_workers > count then refuse("--min-workers %d: the cluster has %d", options.min_workers, count) end
end

-- What a task finds in its environment wherever it runs; false: not that variable.
local function environment_of(options, task, cluster, secret)
  return {
    TF_CONFIG = json.encode { cluster = cluster, task = { type = task.job, index = task.index } },
    FLOW_SECRET = secret, FLOW_SECRET_FILE = false, FLOW_LISTEN_DESCRIPTOR = task.listens and tostring(task.listens) or false,
    FLOW_MAX_RESTARTS = options.max_restarts > 0 and tostring(options.max_restarts) or nil,
    FLOW_STATUS_PORT = options.status_port ~= "" and options.status_port or nil,
    FLOW_MIN_WORKERS = options.min_workers > 0 and tostring(options.min_workers) or nil,
    FLOW_LAUNCHED = "1",
  }
end

-- Runs the tasks until all that decide have ended (bindings/cli); returns the exit code, or nil and why they could not be started. without:
-- beginnings of variables that tasks do not inherit; least: with how many workers the others go on, 0 for all.
local function supervise(host, options, tasks, without, least)
  return host.supervise { kill_after = options.kill_after, max_restarts = options.max_restarts, min_workers = least,
    output = options.output, without = without, tasks = tasks }
end

-- Whether the job is done only when this task is: parameter servers and the evaluator are ended when chief and workers are done.
local function decides(task) return task.job == "chief" or task.job == "worker" end

-- All tasks on this machine. Returns what supervise() does.
local function run_here(host, options, command)
  if options.workers < 0 then options.workers = 2 end
  local tasks, secret = plan_tasks(host, options), host.random(32)
  local cluster = cluster_of(tasks)
  check_least(options, cluster)
  local threads = threads_of(options, options.workers + (options.chief and 1 or 0))      -- the others compute little
  local list = {}
  local translated = launch_modules.translate(#tasks)
  local modules = translated and host.share_modules(translated)
  for position, task in ipairs(tasks) do
    local environment = environment_of(options, task, cluster, secret)
    environment.FLOW_THREADS = threads and tostring(threads) or nil
    environment.FLOW_MODULES = modules and tostring(modules) or false
    list[position] = {
      name = ("%s:%d"):format(task.job, task.index), arguments = command, listens = task.listens, decides = decides(task),
      modules = modules or nil,
      log = log_of(options, task.job, task.index), environment = environment,
    }
  end
  check_script(options, command)
  -- Workers of parameter servers that may come back may as well not: others do what they were given.
  local replaceable = options.parameter_servers > 0 and options.max_restarts > 0 and 1 or 0
  return supervise(host, options, list, LAUNCHERS, math.max(options.min_workers, replaceable))
end

---- on other machines -----------------------------------------------------------------------------------------------------

-- Each task by ssh on a host of --hosts: what it needs goes there on the standard input of ssh, so that the secret is in no arguments.
local function run_on_hosts(host, options, command)
  local tasks, secret = launch_hosts.plan(options, MOST_TASKS, refuse), host.random(32)
  local cluster, list = cluster_of(tasks), {}
  check_least(options, cluster)
  local folder = host.folder() or refuse("the current folder is gone")
  for position, task in ipairs(tasks) do
    local environment = environment_of(options, task, cluster, secret)
    environment.FLOW_THREADS = options.threads > 0 and tostring(options.threads) or nil
    list[position] = {
      name = ("%s:%d"):format(task.job, task.index), decides = decides(task), log = log_of(options, task.job, task.index),
      arguments = launch_hosts.command(options, task.host, command[1], refuse), host = task.host,
      input = launch_hosts.order(host, { folder = folder, environment = environment, share = task.share, command = command }, refuse),
      environment = {},
    }
  end
  return supervise(host, options, list, {}, options.min_workers)
end

---- by mpirun ------------------------------------------------------------------------------------------------------------

-- Path and version of mpirun.
local function find_mpirun()
  local path = shell.find "mpirun"
  if not path then refuse("--engine mpi needs mpirun, which is not in PATH: install openmpi-bin") end
  local pipe = io.popen(shell.quote(path) .. " --version 2>&1")
  local text = pipe:read("*a")
  pipe:close()
  local version = text:match("%(Open MPI%) (%d+)")
  if not version then refuse("--engine mpi needs Open MPI, but %s --version says: %s", path, text:match("[^\n]*")) end
  return path, tonumber(version)
end

-- One task, mpirun, which starts the workers as its ranks, here or on --hosts; what they say comes with their rank in front, by which the
-- lines are told apart.
local function run_by_mpi(host, options, command)
  if options.min_workers > 0 then refuse("--min-workers goes with --engine ring: mpirun ends all ranks with the first one that fails") end
  if options.chief or options.evaluator or options.parameter_servers > 0 or options.start_port > 0 then
    refuse("--engine mpi has workers only: --chief, --evaluator, --parameter-servers and --start-port go with --engine ring")
  end
  local mpirun, version = find_mpirun()
  local hosts, slots = launch_hosts.parse(options.hosts, refuse)
  local workers = options.workers >= 0 and options.workers or #hosts > 0 and slots or 2
  local each = math.ceil(workers / math.max(#hosts, 1))
  local threads = threads_of(options, each)
  local arguments = { mpirun, "--tag-output", "--oversubscribe", "--bind-to", "none", "-n", tostring(workers), "-x", "FLOW_THREADS" }
  -- Ranks wait by spinning. Besides its compute threads a rank has a thread that adds up gradients.
  local crowded = each * ((threads or 1) + 1) > flow.config.get_threads()
  local environment = {
    TF_CONFIG = false, FLOW_SECRET = false, FLOW_SECRET_FILE = false, FLOW_LISTEN_DESCRIPTOR = false,
    OMPI_ALLOW_RUN_AS_ROOT = "1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM = "1",
    OMPI_MCA_mpi_yield_when_idle = not os.getenv("OMPI_MCA_mpi_yield_when_idle") and crowded and "1" or nil,
    FLOW_STATUS_PORT = options.status_port ~= "" and options.status_port or nil,
    OMPI_MCA_plm_rsh_agent = options.ssh ~= "" and options.ssh or nil,
    FLOW_THREADS = threads and tostring(threads) or nil,
  }
  if options.status_port ~= "" then arguments[#arguments + 1], arguments[#arguments + 2] = "-x", "FLOW_STATUS_PORT" end
  if #hosts > 0 then
    for _, name in ipairs(launch_hosts.variables(host)) do
      if environment[name] == nil then arguments[#arguments + 1], arguments[#arguments + 2] = "-x", name end
    end
    for _, text in ipairs { "--map-by", "node", "-H", options.hosts } do arguments[#arguments + 1] = text end
  end
  arguments[#arguments + 1], arguments[#arguments + 2] = command[1], "--rank"      -- a witness: rank.h
  for _, text in ipairs(command) do arguments[#arguments + 1] = text end
  local ranks = {}
  for index = 0, workers - 1 do
    ranks[index + 1] = { name = ("worker:%d"):format(index), log = log_of(options, "worker", index) }
  end
  check_script(options, command)
  return supervise(host, options, {
    { name = "mpirun", arguments = arguments, environment = environment, ranks = ranks, tag_spaces = version >= 5, decides = true,
      signals_children = #hosts == 0 },
  }, {})
end

local function run(host, arguments)
  local options, what, theirs = parse(arguments)
  if options.help then
    print(USAGE)
    return 0
  end
  local start = options.engine == "mpi" and run_by_mpi or options.hosts ~= "" and run_on_hosts or run_here
  local code, message = start(host, options, command_of(host, what, theirs))
  return code or refuse("%s", message)
end

return function(host, arguments)
  local code
  local ok, failure = xpcall(function() code = run(host, arguments) end, function(failure)
    return type(failure) == "string" and debug.traceback(failure, 2) or failure
  end)
  if ok then return code end
  if getmetatable(failure) ~= Refusal then error(failure, 0) end
  io.stderr:write("flowlua launch: " .. failure.text .. "\n")
  return 1
end
