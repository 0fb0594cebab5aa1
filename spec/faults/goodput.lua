-- goodput.lua: what scripts/faults-cluster --goodput SECONDS runs: two workers train (digits.lua), undisturbed for half a minute, then for
-- that number of seconds with kill -9 of one of them, in turn, every 15 s. Prints how many steps were made, as a part of those that the
-- same seconds had without kills (share.lua), and how long it took from each kill to the end of the next step.
local flow = require "flow"
local processes = require "spec.faults.processes"
local share = require "spec.faults.share"

local options = flow.args { goodput = 600, every = 15, before = 30, folder = "build/faults", program = "build/bin/flowlua" }
local WORKERS = 2
local now, read, shell, pause = processes.now, processes.read, processes.shell, processes.sleep

local folder = options.folder .. "/goodput"
shell(("rm -rf %s; mkdir -p %s"):format(folder, folder))
local launcher = shell(("setsid %s launch --workers %d --threads 1 --max-restarts 100000 spec/faults/digits.lua -- --folder %s "
  .. ">%s/out 2>&1 </dev/null & echo $!"):format(options.program, WORKERS, folder, folder)):match "%d+"

-- Seconds at which steps ended, as worker `index` saw them, in all its lives.
local function steps_of(index)
  local times = {}
  for text in (read(("%s/worker:%d.steps"):format(folder, index)) or ""):gmatch "(%S+)\n" do times[#times + 1] = tonumber(text) end
  return times
end

local deadline = now() + 60
while #steps_of(0) < 10 do
  if now() > deadline then
    print("goodput: no step in 60 s; see " .. folder .. "/out")
    os.exit(1)
  end
  pause(0.1)
end
local begun = now()
pause(options.before)

local kills, first = {}, now()
while now() < first + options.goodput do
  local victim = #kills % WORKERS
  local process = read(("%s/worker:%d.pid"):format(folder, victim))
  kills[#kills + 1] = { at = now(), victim = victim }
  shell("kill -9 " .. process)
  pause(options.every)
end
local ended = now()
shell(("kill -9 %s; sleep 0.5"):format(launcher))

local found = share.of({ [0] = steps_of(0), steps_of(1) }, begun, kills, ended)
print(("goodput: %.1f %%: %d steps in %.0f s with %d kills, %.1f a second between recoveries, %.1f before the first kill"):format(
  100 * found.share, found.made, ended - first, #kills, found.quiet_rate, found.rate_before))
print(("goodput: from kill -9 to the end of the next step %.2f s (median), %.2f s (slowest)"):format(found.median, found.slowest))
