-- cli/jobs.lua: flowlua jobs status | logs -f | cancel NAME: jobs that flowlua submit handed over, those of this machine by themselves,
-- the others through their back end's client.

local errors = require "flow.errors"
local processes = require "flow.jobs.processes"
local registry = require "flow.jobs.registry"
local shell = require "flow.shell"

local USAGE = [=[
Usage: flowlua jobs [status [NAME]] | logs [-f] NAME | cancel NAME

  status          the jobs that were submitted from here; with NAME what its back end says of one
  logs            what the tasks have said; -f: goes on until the job ends
  cancel          ends the job: SIGTERM, after which tasks finish a step and save

The exit code of status NAME is 0 for a job of this machine that runs or has succeeded, else 1; else it is the client's.]=]

-- Runs a command, a list of texts, on this program's terminal; 0 where its exit code is 0, else 1.
local function run(command)
  local ok = os.execute(shell.line(command))
  return ok == 0 and 0 or 1
end

-- Asks a record's back end (registry.lua) by its client: what is a key of record.commands. Returns the exit code; raises where the job was
-- not handed over, where the back end has no such command or gave no name for the job, and where the client is missing.
local function ask(record, what)
  local command = record.commands and record.commands[what]
  if not record.submitted then
    errors.raise("the job %s was written, but not submitted: its files are in %s", record.name, record.folder)
  elseif not command then
    errors.raise("%s has no command for this: jobs %s", record.backend, what)
  elseif table.concat(command, " "):find "{%a+}" then
    errors.raise("%s did not report its name for the job %s", record.backend, record.name)
  elseif not shell.find(command[1]) then
    errors.raise("%s is not in PATH; where it is: %s", command[1], shell.line(command))
  end
  return run(command)
end

-- The line that `jobs status` prints for a job, and its state. Only of jobs of this machine is more known than that they were submitted.
local function line_of(record)
  local state, code = "written, not submitted", nil
  if record.backend == "local" and record.submitted then state, code = processes.state(record.folder)
  elseif record.submitted then state = "submitted" end
  return ("%-24s %-12s %s%s"):format(record.name, record.backend, state, code and (" (exit code %d)"):format(code) or ""), state
end

-- By the first word of the command line: f(name or nil, follow) -> the exit code.
local actions = {}

function actions.status(name)
  if not name then
    local list = registry.list()
    for _, record in ipairs(list) do print((line_of(record))) end
    if #list == 0 then print("no jobs were submitted from here") end
    return 0
  end
  local record = registry.find(name)
  if record.backend ~= "local" then return ask(record, "status") end
  local line, state = line_of(record)
  print(line)
  return (state == "running" or state == "succeeded") and 0 or 1
end

function actions.logs(name, follow)
  local record = registry.find(name)
  if record.backend ~= "local" then return ask(record, follow and "follow" or "logs") end
  return run(processes.log_command(record.folder, follow))
end

function actions.cancel(name)
  local record = registry.find(name)
  if record.backend ~= "local" then return ask(record, "cancel") end
  if not processes.cancel(record.folder) then
    local state = processes.state(record.folder)
    errors.raise("the job %s does not run: it %s", name, state == "lost" and "ended with this machine" or "has " ..
      (state == "cancelled" and "been cancelled" or state))
  end
  print(("the job %s was told to end: flowlua jobs status %s"):format(name, name))
  return 0
end

local function main(arguments)
  local words, follow = {}, false
  for _, text in ipairs(arguments) do
    if text == "-f" or text == "--follow" then follow = true
    elseif text == "--help" or text == "-h" then
      print(USAGE)
      return 0
    elseif text:find "^%-" then errors.raise("unknown option %s; flowlua jobs --help shows what there is", text)
    else words[#words + 1] = text end
  end
  local what = words[1] or "status"
  local action = actions[what]
  if not action then errors.raise("%q is not one of status, logs and cancel%s", what, errors.suggestion(what, actions)) end
  if #words > 2 then errors.raise("%q: one job at a time", words[3]) end
  if follow and what ~= "logs" then errors.raise("-f goes with logs") end
  if what ~= "status" and not words[2] then errors.raise("which job? flowlua jobs %s NAME", what) end
  return action(words[2], follow)
end

return function(_, arguments)
  local ok, result = pcall(main, arguments)
  if ok then return result end
  io.stderr:write("flowlua jobs: " .. tostring(result) .. "\n")
  return 1
end
