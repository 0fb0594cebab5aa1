-- slurm.lua: jobs for Slurm: a script for sbatch. srun starts the tasks; they find each other by Slurm's variables, by MPI with --engine
-- mpi, and where there are parameter servers or an evaluator by TF_CONFIG, which each task makes from its number and the list of hosts.

local job_of = require "flow.jobs.job"
local mounts = require "flow.jobs.mounts"
local names = require "flow.names"
local package_of = require "flow.jobs.package"
local shell = require "flow.shell"

local slurm = { name = "slurm", id = "^(%d+)" }

local FILE, SECRET_FILE, ARCHIVE = "job.sh", "secret", "code.tar.gz"
local quote = shell.quote

local function has_others(job)
  for _, role in ipairs(job.roles) do
    if role.role == "ps" or role.role == "evaluator" then return role end
  end
end

-- Bytes of a quantity as Kubernetes has them, whose bare numbers are bytes; nil: another unit.
local UNITS = { [""] = 1, k = 1e3, K = 1e3, M = 1e6, G = 1e9, T = 1e12, Ki = 2 ^ 10, Mi = 2 ^ 20, Gi = 2 ^ 30, Ti = 2 ^ 40 }
local function bytes_of(quantity)
  local number, unit = quantity:match "^([%d.]+)(%a*)$"
  return number and UNITS[unit] and tonumber(number) * UNITS[unit] or nil
end

function slurm.check(job, report)
  if not job.what[1] then report:error("", "Slurm starts a script, not an image: flowlua submit NAME ... train.lua") end
  for _, mount in ipairs(job.mounts) do
    if not (mount.kind == "path" and mount.source == mount.path) then
      report:error("--mount", "%s: the hosts of Slurm have their own folders: mount it on them", mount.path)
    end
  end
  local cpus, memory = job.options.cpus, job.options.memory
  if cpus ~= "" and not cpus:find "^[1-9]%d*$" then report:error("--cpus", "%q: Slurm gives a task whole processors, from 1", cpus) end
  if memory ~= "" and not bytes_of(memory) then report:error("--memory", "%q is not bytes, Ki, Mi, Gi or Ti", memory) end
  if job.what[1] then job_of.check_alike(job, report, "srun") end
  local other = has_others(job)
  if other and job.options.engine == "mpi" then report:error("--engine", "ranks of MPI are workers: no %s", other.title) end
  local policy = job.options.restart_policy
  if policy ~= "" and policy ~= "Never" and policy ~= "OnFailure" then
    report:error("--restart-policy", "%s: Slurm starts a job again (OnFailure) or not (Never)", policy)
  end
  if not job.name:find "^[%w_-]+$" then report:error("", "%q cannot be the name of a job", job.name) end
end

-- hours:minutes:seconds, rounded up: Slurm takes 00:00:00 as "no limit".
local function clock(seconds)
  seconds = math.ceil(seconds)
  return ("%02d:%02d:%02d"):format(math.floor(seconds / 3600), math.floor(seconds / 60) % 60, seconds % 60)
end

local function most_gpus(job)
  local most = 0
  for _, role in ipairs(job.roles) do most = math.max(most, role.gpu_count or 0) end
  return most
end

-- The lines for sbatch. Each task has a host to itself (--ntasks-per-node=1), and all hosts as many GPUs as the role that needs most.
local function directives(job)
  local gpus, options = most_gpus(job), job.options
  local lines = { "#SBATCH --job-name=" .. job.name, "#SBATCH --nodes=" .. job.tasks, "#SBATCH --ntasks=" .. job.tasks,
                  "#SBATCH --ntasks-per-node=1" }
  local function add(name, value) lines[#lines + 1] = ("#SBATCH --%s=%s"):format(name, value) end
  if options.cpus ~= "" then add("cpus-per-task", options.cpus) end
  -- M is 2^20 bytes for Slurm.
  if options.memory ~= "" then add("mem", ("%.0fM"):format(math.ceil(bytes_of(options.memory) / 2 ^ 20))) end
  if gpus > 0 then add("gres", "gpu:" .. gpus) end
  if options.partition ~= "" then add("partition", options.partition) end
  if job.max_seconds then add("time", clock(job.max_seconds)) end
  add("output", job.name .. "-%j.log")
  add("signal", "TERM@120")      -- two minutes before the end: the step is finished and saved
  if options.restart_policy ~= "Never" then lines[#lines + 1] = "#SBATCH --requeue" end
  return lines
end

-- TF_CONFIG as text of a shell: the hosts are known when the job runs.
local function cluster_lines(job)
  local lines = { 'hosts=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))', "port=$((20000 + SLURM_JOB_ID % 20000))" }
  local position, parts, tasks = 0, {}, {}
  for _, role in ipairs(job.roles) do
    local list = {}
    for index = 0, role.count - 1 do
      list[index + 1] = ([["${hosts[%d]}:$port"]]):format(position + index)
      tasks[position + index + 1] = ("  %d) type=%s index=%d ;;"):format(position + index, role.role, index)
    end
    if role.role ~= "evaluator" then parts[#parts + 1] = ('"%s":[%s]'):format(role.role, table.concat(list, ",")) end
    position = position + role.count
  end
  local text = ("{%s}"):format(table.concat(parts, ",")):gsub('"', '\\"')
  lines[3] = ('export flow_cluster="%s"'):format(text)
  local inner = { "case $SLURM_PROCID in", table.concat(tasks, "\n"), "esac",
                  [[export TF_CONFIG="{\"cluster\":$flow_cluster,\"task\":{\"type\":\"$type\",\"index\":$index}}"]], 'exec "$@"' }
  return lines, table.concat(inner, "\n")
end

-- job.sh, and beside it the secret and the package. With parameter servers or an evaluator each task makes its TF_CONFIG first; otherwise
-- workers find each other by themselves.
function slurm.files(job, folder)
  local command = job_of.command(job, job.roles[1], folder .. "/" .. ARCHIVE)
  for _, text in ipairs(job_of.arguments(job, job.roles[1])) do command[#command + 1] = text end
  local lines = { "#!/bin/bash", table.concat(directives(job), "\n"), "set -e" }
  local function add(text, ...) lines[#lines + 1] = select("#", ...) > 0 and text:format(...) or text end
  local variables = job_of.variables(job, job.roles[1])
  for _, name in ipairs(names.sorted(variables)) do add("export %s=%s", name, quote(variables[name])) end
  if job.credentials then add("export GOOGLE_APPLICATION_CREDENTIALS=%s", quote(job.credentials)) end
  if job.threads then add("export FLOW_THREADS=%d", job.threads)
  elseif job.options.cpus ~= "" then add("export FLOW_THREADS=%s", job.options.cpus) end
  local mpi = job.options.engine == "mpi"
  if job.tasks > 1 and not mpi then
    add("export FLOW_SECRET_FILE=%s", quote(folder .. "/" .. SECRET_FILE))
    if job.max_restarts > 0 and job.restarts_said then add("export FLOW_MAX_RESTARTS=%d", job.max_restarts) end
  end
  if job.git then
    local path = "code-$SLURM_JOB_ID"      -- known when the job runs: not quoted as a text
    local function quote_other(text) return text == path and '"' .. path .. '"' or quote(text) end
    for _, line in ipairs(mounts.clone_lines(job.git, quote_other, path)) do add(line) end
    add('cd "%s"', path)
  end
  local start = ("srun --kill-on-bad-exit=%d"):format(job.max_restarts > 0 and job.restarts_said and 0 or 1)
  if mpi then start = start .. " --mpi=pmix" end
  if has_others(job) then
    local before, inner = cluster_lines(job)
    for _, line in ipairs(before) do add(line) end
    add("%s bash -c %s flowlua %s", start, quote(inner), shell.line(command))
  else
    add("%s %s", start, shell.line(command))
  end
  local files = { { name = FILE, text = table.concat(lines, "\n") .. "\n" } }
  if job.package then files[2] = { name = ARCHIVE, text = package_of.pack(job.package), binary = true } end
  if job.tasks > 1 and not mpi then table.insert(files, 1, { name = SECRET_FILE, text = job.secret .. "\n", secret = true }) end
  return files
end

function slurm.submit(_, folder) return { { "sbatch", "--parsable", folder .. "/" .. FILE } } end

function slurm.commands(job)
  local log = ("%s-{id}.log"):format(job.name)
  return { status = { "squeue", "--jobs", "{id}", "--long" }, logs = { "cat", log }, follow = { "tail", "-n", "+1", "-f", log },
           cancel = { "scancel", "{id}" } }
end

return slurm
