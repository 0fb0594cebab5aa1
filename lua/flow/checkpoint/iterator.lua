-- iterator.lua: flow.train.checkpoints_iterator: the newest checkpoint of a folder, each as it appears, for programs that evaluate while
-- another one trains.

local os = require("flow.host").os
local native = require "flow.ffi"
local errors = require "flow.errors"
local directory = require "flow.checkpoint.directory"

local C, raise = native.C, errors.raise
local LOOK_EVERY = 0.25      -- seconds

local function seconds_of(name, value)
  if type(value) ~= "number" or not (value >= 0) then
    raise("flow.train.checkpoints_iterator: %s is a number of seconds, got %s", name, errors.describe(value))
  end
  return value
end

-- For a for loop: the path of the newest checkpoint whenever it is another one than before. options: min_interval_secs between two;
-- timeout: seconds after which the loop ends, unless timeout_fn() is false then. It also ends where this process is asked to.
return function(folder, min_interval, timeout, timeout_fn)
  seconds_of("min_interval_secs", min_interval)
  if timeout then seconds_of("timeout", timeout) end
  local before, given = nil, -math.huge
  return function()
    local begin = C.flow_clock()
    while not native.preempted() do
      local now = C.flow_clock()
      local latest = now - given >= min_interval and directory.latest_checkpoint(folder)
      if latest and latest ~= before then
        before, given = latest, now
        return latest
      end
      if timeout and now - begin >= timeout then
        if not timeout_fn or timeout_fn() then return nil end
        begin = C.flow_clock()
      end
      os.execute(("sleep %g"):format(timeout and math.min(LOOK_EVERY, math.max(timeout - (now - begin), 0.01)) or LOOK_EVERY))
    end
  end
end
