-- processes.lua: jobs of this machine as processes in the background. A job's folder has
--   process    the process that leads it and when that began, in the kernel's clock ticks: a number is given out again
--   log        what the tasks say
--   exit       the exit code, once it has ended
--   cancelled  that somebody wanted it to end

local errors = require "flow.errors"
local shell = require "flow.shell"

local processes = {}

local quote = shell.quote

-- The text of a file; nil: there is none.
local function read(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read("*a")
  file:close()
  return text
end

-- The program flowlua: the one that runs this, else the one that PATH leads to.
function processes.program()
  local path = shell.read("readlink /proc/$PPID/exe"):gsub("\n$", "")
  if path:match "[^/]*$" == "flowlua" then return path end
  return shell.find "flowlua" or errors.raise("a job of this machine runs by the program flowlua, which PATH does not lead to")
end

-- A script that runs `before`, then the command, and leaves in the folder what is listed above.
function processes.script(before, command, folder)
  local lines = {}
  for i, line in ipairs(before) do lines[i] = line end
  table.insert(lines, 2, ("folder=%s\necho \"$$ $(cut -d ' ' -f 22 /proc/$$/stat)\" >\"$folder/process\""):format(quote(folder)))
  table.insert(lines, 3, "trap 'code=$?; echo $code >\"$folder/exit.new\" && mv \"$folder/exit.new\" \"$folder/exit\"' EXIT")
  for _, line in ipairs {
    command .. " &", "child=$!", "trap 'kill -TERM \"$child\"' TERM INT",
    'while wait "$child"; code=$?; kill -0 "$child" 2>/dev/null; do :; done',      -- a signal ends a wait before the child has ended
    "exit $code",
  } do lines[#lines + 1] = line end
  return table.concat(lines, "\n") .. "\n"
end

-- Starts the folder's script; it outlives this process.
function processes.start(folder, script)
  os.execute(("cd %s && rm -f process exit cancelled log"):format(quote(folder)))
  local start = ("setsid sh %s </dev/null >%s 2>&1 & "):format(quote(folder .. "/" .. script), quote(folder .. "/log"))
  local wait = ("for i in $(seq 200); do test -s %s && exit 0; sleep 0.05; done; exit 1"):format(quote(folder .. "/process"))
  return os.execute(start .. wait) == 0
end

-- The number of the process that leads the job, nil if it has ended.
local function leader(folder)
  local number, start = (read(folder .. "/process") or ""):match "^(%d+) (%d+)"
  local stat = number and read("/proc/" .. number .. "/stat")
  if not stat then return nil end
  local position, found = 2, nil
  for field in stat:match("%) (.*)$"):gmatch "%S+" do
    position = position + 1
    if position == 22 then found = field end
  end
  return found == start and tonumber(number) or nil
end

-- "running", "succeeded", "failed", "cancelled" or "lost", and the exit code where there is one.
function processes.state(folder)
  local running = leader(folder)
  local code = tonumber((read(folder .. "/exit") or ""):match "%d+")
  if running and not code then return "running" end
  if read(folder .. "/cancelled") then return "cancelled", code end
  if not code then return "lost" end
  return code == 0 and "succeeded" or "failed", code
end

-- SIGTERM: the tasks finish a step and save, as flowlua launch passes it on. Returns whether there was something to end.
function processes.cancel(folder)
  local number = leader(folder)
  if not number or read(folder .. "/exit") then return false end
  local file = assert(io.open(folder .. "/cancelled", "wb"))
  file:close()
  return os.execute(("kill -TERM %d"):format(number)) == 0
end

-- What shows the log; follow: until the job ends.
function processes.log_command(folder, follow)
  local log = folder .. "/log"
  local number = leader(folder)
  if not follow or not number then return { "cat", log } end
  return { "tail", "-n", "+1", "--follow", "--sleep-interval=0.2", "--pid=" .. number, log }
end

return processes
