-- submission.lua: from a job (job.lua) to files and a client that takes them.
--
-- A back end is a module of backends: { name =, check(job, report) reports what it cannot do,
-- files(job, folder) returns { { name =, text =, secret =, binary = }, ... }, submit(job, folder) a list of commands, commands(job, folder)
-- those of registry.lua, id = a pattern for what the last command of submit prints: "{id}" in commands, and "{number}" its last digits,
-- start(job, folder) runs it without a client }.

local errors = require "flow.errors"
local files = require "flow.io"
local job_of = require "flow.jobs.job"
local log = require "flow.log"
local processes = require "flow.jobs.processes"
local registry = require "flow.jobs.registry"
local shell = require "flow.shell"

local raise = errors.raise
local submission = {}

submission.BACKENDS = { ["local"] = "local", kubernetes = "kubernetes", kubeflow = "kubeflow", slurm = "slurm", compose = "compose",
                        vertex = "vertex", ["ai-platform"] = "ai_platform", ["pai-dlc"] = "pai_dlc" }

function submission.backend(name)
  local module = submission.BACKENDS[name]
  if not module then raise("there is no back end %q%s", name, errors.choices(name, submission.BACKENDS)) end
  return require("flow.jobs.backends." .. module)
end

-- The job of a command line (flags.parse), checked by its form and its back end, and the findings.
function submission.read(parsed)
  local name = parsed.options.backend
  if name ~= "" then submission.backend(name) end
  local job, report = job_of.read(parsed)
  if report.errors == 0 then submission.backend(job.backend).check(job, report) end
  return job, report
end

-- Writes a Dockerfile for the program of a command line; returns what to do next, a line each.
function submission.write_dockerfile(parsed)
  local job, report = job_of.read(parsed)
  if report.errors > 0 then raise("%s", table.concat(report:lines(), "\n")) end
  return require("flow.jobs.dockerfile").write(job)
end

-- 64 random digits.
local function make_secret()
  local file = assert(io.open("/dev/urandom", "rb"))
  local bytes = file:read(32)
  file:close()
  return (bytes:gsub(".", function(byte) return ("%02x"):format(byte:byte()) end))
end

-- A file that only its owner may read, from the beginning: a shell makes it empty, by a umask, in place of what was there, and then it is
-- written. It is not written through the shell: if that cannot make the file, SIGPIPE would end this program without a word.
local function write_secret(path, text)
  local made = os.execute(("umask 077; rm -f %s && : >%s"):format(shell.quote(path), shell.quote(path))) == 0
  local file = made and io.open(path, "wb")
  local written = file and file:write(text)
  if not (file and file:close() and written) then raise("%s cannot be written", path) end
end

-- The folder that a job's files go to. Keeps in the job which one it was called in, from which the key's path counts.
local function folder_of(job)
  job.folder_of_call = shell.read("pwd -P"):gsub("\n$", "")
  if job.credentials and job.credentials:sub(1, 1) ~= "/" then job.credentials = job.folder_of_call .. "/" .. job.credentials end
  local folder = job.options.output_dir ~= "" and files.path(job.options.output_dir) or registry.folder(job.name)
  if folder:sub(1, 1) ~= "/" then folder = job.folder_of_call .. "/" .. folder end
  return folder
end

-- The texts of all files as one, for reading; secrets are not shown.
function submission.preview(job)
  job.secret, job.shown = "(made when the job is written)", true
  local list, parts = submission.backend(job.backend).files(job, folder_of(job)), {}
  for i, file in ipairs(list) do
    local text = file.binary and ("(%d bytes)\n"):format(#file.text) or file.text
    parts[i] = (#list > 1 and "# " .. file.name .. "\n" or "") .. text
  end
  return table.concat(parts, list[1].name:find "%.yaml$" and "---\n" or "\n")
end

-- Runs commands one after the other and shows what they print; returns the exit code of the first that fails, else 0, and the last output.
local function run_client(commands)
  local output, code
  for _, command in ipairs(commands) do
    output, code = shell.read(shell.line(command))
    if output ~= "" then log.print("%s\n", (output:gsub("\n$", ""))) end
    if code ~= 0 then return code, output end
  end
  return 0, output
end

-- The commands with {id} and {number} replaced, where the client said an id; without one they stay, and jobs.lua says that it is missing.
local function substitute(commands, id)
  local result = {}
  for name, command in pairs(commands) do
    result[name] = {}
    for i, text in ipairs(command) do
      local number = id and id:match "%d+$"
      result[name][i] = (text:gsub("{id}", function() return id end):gsub("{number}", function() return number end))
    end
  end
  return result
end

-- Refuses a name whose job still runs here.
local function check_free(job)
  local before = registry.read(job.name)
  if before and before.backend == "local" and processes.state(before.folder) == "running" and not job.options.force then
    raise("the job %s is still running: flowlua jobs cancel %s, or another name", job.name, job.name)
  end
end

-- Writes the files, and hands them to the client if there is one, unless --no-submit was given or no back end was named. Returns
-- { name =, backend =, folder =, files =, submitted =, code = }.
function submission.run(job)
  local backend, folder = submission.backend(job.backend), folder_of(job)
  check_free(job)
  local own = registry.folder(job.name)
  if os.execute(("mkdir -p -m 700 %s && mkdir -p %s"):format(shell.quote(own), shell.quote(folder))) ~= 0 then
    raise("the folder %s cannot be made", folder)
  end
  job.secret, job.shown = make_secret(), false
  local written = {}
  for i, file in ipairs(backend.files(job, folder)) do
    written[i] = folder .. "/" .. file.name
    if file.secret then write_secret(written[i], file.text) else files.write(written[i], file.text) end
    log.print("wrote %s\n", written[i])
  end
  local record = { name = job.name, backend = job.backend, folder = folder, created = os.time(), submitted = false, tasks = job.tasks,
                   commands = backend.commands and backend.commands(job, folder) or nil }
  local result = { name = job.name, backend = job.backend, folder = folder, files = written, submitted = false, code = 0 }
  if backend.start then
    if job.options.submit then
      if not backend.start(job, folder) then raise("the job did not start: %s/log says why", folder) end
      result.submitted = true
      log.print("started %s: flowlua jobs status %s, flowlua jobs logs -f %s\n", job.name, job.name, job.name)
    end
  else
    local commands = backend.submit(job, folder)
    local client, lines = commands[1][1], {}
    for i, command in ipairs(commands) do lines[i] = shell.line(command) end
    if not shell.find(client) then
      log.print("not submitted: %s is not in PATH; where it is: %s\n", client, table.concat(lines, " && "))
    elseif not job.options.submit or not job.backend_said then
      log.print("not submitted%s: %s\n", job.options.submit and ", since --backend was not given" or "", table.concat(lines, " && "))
    else
      local output
      result.code, output = run_client(commands)
      result.submitted = result.code == 0
      record.id = backend.id and output and output:match(backend.id) or nil
      if not result.submitted then log.warning("%s failed (exit code %d): %s", client, result.code, table.concat(lines, " && ")) end
    end
  end
  record.submitted = result.submitted
  if record.commands then record.commands = substitute(record.commands, record.id) end
  registry.write(record)
  result.id = record.id
  return result
end

return submission
