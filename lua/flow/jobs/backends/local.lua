-- local.lua: jobs of this machine: flowlua launch in the background, with a log, an exit code and a process that status and cancel find.

local job_of = require "flow.jobs.job"
local mounts = require "flow.jobs.mounts"
local names = require "flow.names"
local processes = require "flow.jobs.processes"
local shell = require "flow.shell"

local on_this_machine = { name = "local" }

local SCRIPT = "run.sh"
local quote = shell.quote

function on_this_machine.check(job, report)
  if not job.what[1] then
    report:error("", "which script? An image is not run here: flowlua submit %s --backend local train.lua", job.name or "NAME")
  end
  for _, mount in ipairs(job.mounts) do
    if not (mount.kind == "path" and mount.source == mount.path) then
      report:error("--mount", "%s: a job of this machine sees the folders of this machine", mount.path)
    end
  end
  job_of.check_alike(job, report, "flowlua launch")
  local policy = job.options.restart_policy
  if policy ~= "" and policy ~= "Never" and policy ~= "OnFailure" then
    report:error("--restart-policy", "%s: workers are started again (OnFailure) or not (Never)", policy)
  end
  if job.options.engine == "mpi" then
    for _, role in ipairs(job.roles) do
      if role.role == "ps" or role.role == "evaluator" then report:error("--engine", "ranks of MPI are workers: no %s", role.title) end
    end
  end
end

-- flowlua launch's options for the job's tasks. A chief without workers is a cluster of one worker.
local function launch_options(job)
  local count = {}
  for _, role in ipairs(job.roles) do count[role.role] = role.count end
  local options = {}
  local function add(...)
    for i = 1, select("#", ...) do options[#options + 1] = (select(i, ...)) end
  end
  local workers = count.worker or 0
  if job.options.engine == "mpi" then add("--engine", "mpi", "--workers", tostring(1 + workers))
  elseif workers > 0 then add("--chief", "--workers", tostring(workers))
  else add("--workers", "1") end
  if count.ps then add("--parameter-servers", tostring(count.ps)) end
  if count.evaluator then add("--evaluator") end
  if job.threads then add("--threads", tostring(job.threads)) end
  local restarts = job.options.restart_policy == "OnFailure" or job.restarts_said
  if restarts and job.options.restart_policy ~= "Never" and job.max_restarts > 0 then add("--max-restarts", tostring(job.max_restarts)) end
  return options
end

-- run.sh, which goes to the folder that flowlua submit was called in, or to the package's, and runs flowlua launch there.
function on_this_machine.files(job, folder)
  local command = job.max_seconds and { "timeout", "-k", "30", ("%.14g"):format(job.max_seconds) } or {}
  command[#command + 1] = processes.program()
  command[#command + 1] = "launch"
  local arguments = job_of.arguments(job, job.roles[1])
  for _, list in ipairs { launch_options(job), job.what, #arguments > 0 and { "--" } or {}, arguments } do
    for _, text in ipairs(list) do command[#command + 1] = text end
  end
  local lines = { "#!/bin/sh", "cd " .. quote(job.folder_of_call) .. " || exit 1" }
  if job.package then lines[3] = ("cd %s || exit 1"):format(quote(job.package.root)) end
  local variables = job_of.variables(job, job.roles[1])
  for _, name in ipairs(names.sorted(variables)) do lines[#lines + 1] = ("export %s=%s"):format(name, quote(variables[name])) end
  if job.credentials then lines[#lines + 1] = "export GOOGLE_APPLICATION_CREDENTIALS=" .. quote(job.credentials) end
  if job.git then
    local path = folder .. "/code"
    lines[#lines + 1] = "{ " .. table.concat(mounts.clone_lines(job.git, quote, path), "\n") .. "\ncd " .. quote(path) .. "; } || exit 1"
  end
  return { { name = SCRIPT, text = processes.script(lines, shell.line(command), folder) } }
end

-- Starts it instead of calling a client.
function on_this_machine.start(_, folder) return processes.start(folder, SCRIPT) end

return on_this_machine
