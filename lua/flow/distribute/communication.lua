-- communication.lua: CommunicationOptions: how workers sum gradients, and when a worker counts as lost: { bytes_per_pack = 0,
-- timeout_seconds = nil, implementation = "AUTO", heartbeat = nil, dead_after = nil, start_within = nil, compression = "none",
-- factors = "auto" }.

local host = require "flow.host"
local errors = require "flow.errors"
local object = require "flow.object"
local arguments = require "flow.arguments"

local raise = errors.raise
local signature = require "flow.signature"
local takes = signature.takes

local communication = signature.module "flow.distribute"

-- What carries sums over workers: MPI under mpirun or srun, else RING; on GPUs they add up among themselves by NCCL, which is what AUTO and
-- NCCL try first. RING and MPI: through the host in any case.
communication.CommunicationImplementation = setmetatable({ AUTO = "AUTO", RING = "RING", NCCL = "NCCL", MPI = "MPI" }, {
  __index = function(self, name)
    raise("CommunicationImplementation has no %q%s", tostring(name), errors.suggestion(tostring(name), self))
  end,
})

local Options = object.class("CommunicationOptions")
-- The times, and the variable that says each where the script does not.
local TIMES = { timeout_seconds = "FLOW_TIMEOUT_SECONDS", heartbeat = "FLOW_HEARTBEAT", dead_after = "FLOW_DEAD_AFTER",
                start_within = "FLOW_START_WITHIN" }

local function is_time(value) return type(value) == "number" and value > 0 and value < math.huge end

-- bytes_per_pack: how much is added up at once, at most, the same on all workers; 0: as the engine likes it; by RING it changes no bit.
-- timeout_seconds: how long a sum may wait for a worker that is alive; nil: 600. heartbeat: seconds between two signs of life; nil: 1.
-- dead_after: seconds without one after which a worker is lost; nil: 10. start_within: seconds in which all workers have to come; nil: 300.
-- compression: what gradients are rounded to between machines: bfloat16, float16 or, also nil, none. factors: whether gradients of large
-- matrices travel as the two matrices of rows whose product they are; "auto", also nil: where workers share memory, and where it takes
-- less time (core/plan/passes/fuse_optimizer.c). The last five are the same on all workers.
takes ("bytes_per_pack: whole = 0, timeout_seconds?, implementation = 'AUTO', heartbeat?, dead_after?, start_within?, compression?, "
  .. "factors?")
function communication.CommunicationOptions(bytes, timeout_seconds, name, heartbeat, dead_after, start_within, compression, factors)
  local what = "CommunicationOptions"
  local given = { timeout_seconds = timeout_seconds, heartbeat = heartbeat, dead_after = dead_after, start_within = start_within }
  for time in pairs(TIMES) do
    local seconds = given[time]
    if seconds ~= nil and not is_time(seconds) then
      raise("%s: %s is a number above 0, or nil, got %s", what, time, errors.describe(seconds))
    end
  end
  local implementation = type(name) == "string" and rawget(communication.CommunicationImplementation, name:upper())
  if not implementation then
    raise("%s: implementation is AUTO, RING, NCCL or MPI, got %s", what, errors.describe(name))
  end
  compression = compression == nil and "none" or compression
  if compression ~= "none" and compression ~= "bfloat16" and compression ~= "float16" then
    raise("%s: compression is none, bfloat16 or float16, got %s", what, errors.describe(compression))
  end
  if factors == nil then factors = "auto" end
  if factors ~= "auto" and type(factors) ~= "boolean" then
    raise("%s: factors is \"auto\", true or false, got %s", what, errors.describe(factors))
  end
  return object.new(Options, { bytes_per_pack = bytes, timeout_seconds = given.timeout_seconds or false, implementation = implementation,
                               heartbeat = given.heartbeat or false, dead_after = given.dead_after or false,
                               start_within = given.start_within or false, compression = compression, factors = factors })
end

-- The seconds of each of the times: as the options say, else the variable; 0: neither does, and the library's default holds.
function communication.times(options)
  local times = {}
  for name, variable in pairs(TIMES) do
    local told = host.getenv(variable)
    local seconds = options[name] or told and told ~= "" and (tonumber(told) or told) or nil
    if seconds and not is_time(seconds) then raise("%s is a number of seconds above 0, got %q", variable, told) end
    times[name] = seconds or 0
  end
  return times
end

-- A whole number from `least` that a script gives (checked by what it calls), else the one in the environment variable `name`; nil: neither
-- says one.
function communication.whole(given, name, least)
  local told = host.getenv(name)
  if given ~= nil or not told or told == "" then return given end
  local number = tonumber(told)
  if not number or not (number >= least) or number % 1 ~= 0 then raise("%s is a whole number from %d, got %q", name, least, told) end
  return number
end

-- The same of seconds, which are checked in both cases. what: the caller, option: the name of what was given, in messages; name: nil where
-- the environment says nothing of it.
function communication.seconds(what, given, option, name)
  local told = given == nil and name and host.getenv(name) or ""
  local seconds = given or tonumber(told)
  if told ~= "" and not seconds or seconds and not (seconds > 0 and seconds < 1e6) then
    raise("%s: %s is a number of seconds above 0, got %s", what, given and option or name, errors.describe(given or told))
  end
  return seconds
end

-- The options that a strategy was given: such an object, a table of their names, or nil.
function communication.check(what, value)
  if object.is(value, Options) then return value end
  if value ~= nil and not arguments.is_options(value) then
    raise("%s: communication_options is flow.distribute.CommunicationOptions { ... }, got %s", what, errors.describe(value))
  end
  return communication.CommunicationOptions(value or {})
end

return communication
