-- share.lua: the arithmetic of goodput.lua: from the seconds at which steps ended and workers were killed to what the kills cost.
local share = {}

-- So long after a kill an interval counts as quiet at the earliest: workers that were met again are as fast as before.
local SETTLED = 7.5

local function count(times, from, to)
  local number = 0
  for _, time in ipairs(times) do if time >= from and time < to then number = number + 1 end end
  return number
end

-- The end of the first step after the longest pause of an interval: the step that was under way at the kill may still have ended.
local function next_step(times, from, to)
  local before, longest, after = from, 0, to
  for _, time in ipairs(times) do
    if time >= from and time < to then
      if time - before > longest then longest, after = time - before, time end
      before = time
    end
  end
  return after
end

-- times[worker]: the seconds at which steps ended, as worker 0 and worker 1 saw them; begun: from when worker 0 was undisturbed; kills:
-- a list of { at =, victim = }; ended: when the last interval ended. A step counts once: of each interval, those that the survivor saw.
-- Returns made; share: made as a part of what all these seconds bring at quiet_rate; quiet_rate: steps a second in the quiet parts of the
-- intervals, in which the machine is as busy with other work as in the rest; rate_before: the same before the first kill; median, slowest:
-- seconds from a kill to the end of the next step.
function share.of(times, begun, kills, ended)
  local made, quiet, quiet_seconds, waits = 0, 0, 0, {}
  for i, kill in ipairs(kills) do
    local survivor, to = times[1 - kill.victim], kills[i + 1] and kills[i + 1].at or ended
    local settled = math.min(to, kill.at + SETTLED)
    made = made + count(survivor, kill.at, to)
    quiet, quiet_seconds = quiet + count(survivor, settled, to), quiet_seconds + to - settled
    waits[i] = next_step(survivor, kill.at, to) - kill.at
  end
  table.sort(waits)
  local first = kills[1].at
  local rate_before = count(times[0], begun, first) / (first - begun)
  local quiet_rate = quiet > 0 and quiet / quiet_seconds or rate_before
  return { made = made, share = made / (quiet_rate * (ended - first)), quiet_rate = quiet_rate, rate_before = rate_before,
           median = waits[math.floor(#waits / 2) + 1], slowest = waits[#waits] }
end

return share
