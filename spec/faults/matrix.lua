-- matrix.lua: what scripts/faults-cluster runs, which says how to call it: each cell (cells.lua) is a job of three workers (member.lua), a
-- fault, and what must follow. A cell that went as it should is not run again by the next call, until the library changes.
local flow = require "flow"
local cells = require "spec.faults.cells"
local places = require "spec.faults.places"
local processes = require "spec.faults.processes"

local options = flow.args { cells = "", sample = 0, seed = 0, jobs = 2, slack = 0, limit = 150, list = false, again = false, keep = false,
                            folder = "build/faults", program = "build/bin/flowlua" }
local now, read, write, shell = processes.now, processes.read, processes.write, processes.shell

local function pause(seconds)
  local at = now() + seconds
  while now() < at do coroutine.yield() end
end

-- ---- a job: three workers, once ------------------------------------------------------------------------------------

-- The processes of a job that are still there.
local function left_of(cell, folder)
  local left = {}
  for worker = 0, cells.workers(cell) - 1 do
    local process = read(("%s/worker:%d.pid"):format(folder, worker))
    local command = process and read(("/proc/%s/cmdline"):format(process))
    if command and command:find("member.lua", 1, true) then left[#left + 1] = process end
  end
  return left
end

-- Runs the workers of `cell` to their end in a folder; fault: whether it strikes. Returns the exit status, or nil if the limit was reached.
local function run(cell, place, folder, fault)
  for worker = 0, cells.workers(cell) - 1 do
    for _, kind in ipairs { "pid", "failed", "digest", "batches" } do os.remove(("%s/worker:%d.%s"):format(folder, worker, kind)) end
  end
  os.remove(folder .. "/status")
  local arguments = ("--folder %s --backup %s/backup"):format(folder, folder)
  if fault then
    arguments = ("%s --victims %s --moment %s --fault '\\''%s'\\''"):format(arguments, cell.victims, cell.moment, fault)
    arguments = arguments:gsub("'\\''", "'")
  end
  write(folder .. "/run", place.commands(cell, folder, arguments) .. "\necho $? >" .. folder .. "/status\n")
  local group = shell(("setsid sh %s/run >>%s/out 2>>%s/err </dev/null & echo $!"):format(folder, folder, folder)):match "%d+"
  local deadline = now() + options.limit
  while not (read(folder .. "/status") or ""):find "\n" do
    if now() > deadline then
      shell(("kill -9 -%s %s 2>&1"):format(group, table.concat(left_of(cell, folder), " ")))
      return nil
    end
    coroutine.yield()
  end
  return tonumber(read(folder .. "/status"))
end

-- ---- what must follow ------------------------------------------------------------------------------------------------

-- Each judge returns nil, or what is wrong; the second result is a figure for the report.

local wanted = {}              -- of each kind of cluster: the digest of a run without a fault, and its steps

local function is_victim(cell, worker) return ("," .. cell.victims .. ","):find("," .. worker .. ",", 1, true) ~= nil end

local function judge_equal(cell, folder, status, survivors)
  if status ~= 0 then return ("ended with status %s instead of going on"):format(status) end
  for worker = 0, cells.workers(cell) - 1 do
    local name = ("%s/worker:%d."):format(folder, worker)
    local digest, batches = read(name .. "digest"), tonumber(read(name .. "batches"))
    if survivors and is_victim(cell, worker) then digest, batches = wanted[cell.kind].digest, 0 end
    if digest ~= wanted[cell.kind].digest then
      return ("worker:%d ends with %s, without the fault with %s"):format(worker, digest, wanted[cell.kind].digest)
    end
    if batches > wanted[cell.kind].batches + 1 then return ("worker:%d made %d steps"):format(worker, batches) end
  end
end

-- Who is there at the end has the bits of a run without a fault; the chief is.
local function judge_without(cell, folder, status)
  if status ~= 0 then return ("ended with status %s instead of going on"):format(status) end
  for worker = 0, cells.workers(cell) - 1 do
    local digest = read(("%s/worker:%d.digest"):format(folder, worker))
    local failed = read(("%s/worker:%d.failed"):format(folder, worker))
    if failed and not is_victim(cell, worker) then return ("worker:%d failed: %s"):format(worker, failed) end
    if digest and digest ~= wanted[cell.kind].digest or not digest and worker == 0 then
      return ("worker:%d ends with %s, without the fault with %s"):format(worker, digest or "nothing", wanted[cell.kind].digest)
    end
  end
end

local function names_victim(cell, text)
  for victim in cell.victims:gmatch "%d" do
    if text:find("worker:" .. victim, 1, true) then return true end
  end
  return false
end

-- What the launcher itself said, or nil.
local function launcher_lines(folder)
  local lines = {}
  for line in (read(folder .. "/err") or ""):gmatch "flowlua launch: [^\n]*" do lines[#lines + 1] = line end
  return lines[1] and table.concat(lines, "\n")
end

-- When the fault struck: the first victim's second.
local function struck(folder, cell)
  local first
  for victim in cell.victims:gmatch "%d" do
    local at = tonumber(read(("%s/worker:%s.at"):format(folder, victim)))
    if at and (not first or at < first) then first = at end
  end
  return first
end

local function judge_named(cell, folder, status)
  if status == 0 then return "ended with status 0" end
  local slowest, at = 0, struck(folder, cell)
  for worker = 0, cells.workers(cell) - 1 do
    if not is_victim(cell, worker) then
      local seconds, sentence = (read(("%s/worker:%d.failed"):format(folder, worker)) or ""):match "^(%S+) (.*)"
      -- mpirun ends all its processes as soon as it sees one die, and who never came is not known to be dead: then the launcher names it.
      local launcher = (cell.kind == "mpi" or cell.moment == "start") and launcher_lines(folder)
      local named = sentence and names_victim(cell, sentence) or launcher and names_victim(cell, launcher)
      if not sentence and not launcher then return ("worker:%d did not say why it ended"):format(worker) end
      if not named then return ("worker:%d did not name worker:%s: %s"):format(worker, cell.victims, sentence or launcher) end
      if seconds then slowest = math.max(slowest, tonumber(seconds) - at) end
    end
  end
  if slowest > cell.within + options.slack then return ("the others ended after %.1f s"):format(slowest) end
  return nil, slowest
end

local function judge_full(cell, folder, status)
  if status == 0 then return "ended with status 0" end
  -- mpirun may end those who did not speak yet.
  if cell.kind == "mpi" and (read(folder .. "/err") or ""):find "No space" then return nil end
  for worker = 0, cells.workers(cell) - 1 do
    local sentence = read(("%s/worker:%d.failed"):format(folder, worker))
    if not sentence then return ("worker:%d did not say why it ended"):format(worker) end
    if not sentence:find "No space" then return ("worker:%d does not say that the disk is full: %s"):format(worker, sentence) end
  end
end

local judges = {
  equal = function(cell, folder, status) return judge_equal(cell, folder, status), nil, false end,
  without = function(cell, folder, status) return judge_without(cell, folder, status), nil, false end,
  named = function(cell, folder, status)
    local wrong, figure = judge_named(cell, folder, status)
    return wrong, figure, true
  end,
  full = function(cell, folder, status) return judge_full(cell, folder, status), nil, true end,
  refused = function(cell, folder, status)
    if status == 0 then return "ended with status 0" end
    local sentence = read(("%s/worker:%s.failed"):format(folder, cell.victims)) or ""
    if not sentence:find "SECRET" then return ("worker:%s does not speak of its secret: %s"):format(cell.victims, sentence) end
    return nil, nil, true
  end,
  over = function(cell, folder, status)
    if status ~= 0 and not names_victim(cell, launcher_lines(folder) or "") then
      return "the launcher did not name it"
    end
    return judge_equal(cell, folder, 0, true), nil, false
  end,
}

-- Runs a cell in its own folder. Returns nil or what is wrong, and the figure.
local function try(cell, place, folder)
  local delay = ("%.3f"):format(cell.random * 0.03)
  local fault = cells.faults[cell.fault]:gsub("%$DELAY", delay):gsub("%$FOLDER", folder)
  local status = run(cell, place, folder, fault)
  if not status then return ("still ran after %d s"):format(options.limit) end
  if not struck(folder, cell) then return "the fault did not strike" end
  local wrong, figure, ended = judges[cell.after](cell, folder, status)
  if wrong then return wrong end
  pause(0.2)                                                      -- a killed process takes a moment to go
  local left = left_of(cell, folder)
  if #left > 0 then return "processes are left: " .. table.concat(left, " ") end
  if ended then                                                   -- the user starts it again: from the backup, to the same end
    if cell.fault == "full" then os.remove(folder .. "/backup/fill") end
    status = run(cell, place, folder)
    if not status then return "the job that was started again still ran at its limit" end
    wrong = judge_equal(cell, folder, status)
    if wrong then return "started again: " .. wrong end
  end
  return nil, figure
end

-- ---- the matrix ------------------------------------------------------------------------------------------------------

local library = shell(("sha256sum %s/../lib/libflow.so.0 | cut -c 1-16"):format(options.program:match "(.*)/")):match "%x+" or "unknown"
local results_path = options.folder .. "/matrix.tsv"
shell("mkdir -p " .. options.folder)
local results = {}
local saved = read(results_path) or ""
if saved:match "^library (%x+)" == library then
  for name, verdict in saved:gmatch "\n([^\t\n]+)\t([^\t\n]+)" do results[name] = verdict end
else
  write(results_path, ("library %s\n"):format(library))
end

local function record(name, verdict, seconds)
  results[name] = verdict
  local file = assert(io.open(results_path, "a"))
  file:write(name, "\t", verdict, "\t", ("%.1f"):format(seconds), "\n")
  file:close()
end

local chosen, skipped = {}, {}
local seed = options.seed ~= 0 and options.seed or math.floor(now())
math.randomseed(seed)
for _, cell in ipairs(cells.all()) do
  cell.random = math.random()
  if cell.name:find(options.cells) then
    local why = places.missing(cell)
    if why then skipped[why] = (skipped[why] or 0) + 1 else chosen[#chosen + 1] = cell end
  end
end
if options.sample > 0 then
  for i = #chosen, 2, -1 do
    local j = math.random(i)
    chosen[i], chosen[j] = chosen[j], chosen[i]
  end
  for i = #chosen, options.sample + 1, -1 do chosen[i] = nil end
end
if options.list then
  for _, cell in ipairs(chosen) do print(cell.name, results[cell.name] or "") end
  os.exit(0)
end

-- What a kind of cluster leaves without a fault, once.
local function plain(kind, number)
  while wanted[kind] == false do coroutine.yield() end
  if wanted[kind] then return end
  wanted[kind] = false
  local cell = { kind = kind, comes_back = false, name = kind }
  local place = places.open(cell, number, options)
  local folder = place.folder
  local status = run(cell, place, folder)
  local digest = read(folder .. "/worker:0.digest")
  if status ~= 0 or not digest then
    print(("faults-cluster: %s does not even train without a fault: see %s/err"):format(kind, folder))
    os.exit(1)
  end
  wanted[kind] = { digest = digest, batches = tonumber(read(folder .. "/worker:0.batches")) }
  places.close(place, false)
end

local next_cell, done, failed, passed_before, started = 1, 0, 0, 0, now()
local function lane(number)
  while next_cell <= #chosen do
    local cell = chosen[next_cell]
    next_cell = next_cell + 1
    if results[cell.name] == "ok" and not options.again then
      passed_before = passed_before + 1
    else
      plain(cell.kind, number)
      local place, begun = places.open(cell, number, options), now()
      local wrong, figure = try(cell, place, place.folder)
      record(cell.name, wrong or "ok", now() - begun)
      done = done + 1
      if wrong then failed = failed + 1 end
      print(("%-38s %5.1f s  %s"):format(cell.name, now() - begun, wrong and "WRONG: " .. wrong .. "; see " .. place.folder
        or figure and ("ok, told after %.2f s"):format(figure) or "ok"))
      io.stdout:flush()
      places.close(place, options.keep or wrong ~= nil)
    end
  end
end

print(("faults-cluster: %d cells, seed %d, results in %s"):format(#chosen, seed, results_path))
local lanes = {}
for i = 1, options.jobs do lanes[i] = coroutine.create(lane) end
local alive = true
while alive do
  alive = false
  for i = 1, options.jobs do
    if coroutine.status(lanes[i]) ~= "dead" then
      local ok, message = coroutine.resume(lanes[i], i)
      if not ok then error(message, 0) end
      alive = true
    end
  end
  processes.sleep(0.02)
end
for why, count in pairs(skipped) do print(("faults-cluster: %d cells skipped: %s"):format(count, why)) end
print(("faults-cluster: %d cells as they should be, %d wrong, %d were so before; %.0f s"):format(done - failed, failed, passed_before,
  now() - started))
os.exit(failed == 0 and 0 or 1)
