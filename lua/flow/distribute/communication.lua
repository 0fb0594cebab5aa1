-- communication.lua: CommunicationOptions: how workers add up, and when one of them counts as lost: { bytes_per_pack = 0,
-- timeout_seconds = nil, implementation = "AUTO", heartbeat = nil, dead_after = nil, start_within = nil }.

local errors = require "flow.errors"
local object = require "flow.object"
local arguments = require "flow.arguments"

local raise = errors.raise
local communication = {}

-- What carries sums over workers: MPI under mpirun or srun, else RING; on GPUs they add up among themselves by NCCL, which is what AUTO and
-- NCCL try first. RING and MPI: through the host in any case.
communication.CommunicationImplementation = setmetatable({ AUTO = "AUTO", RING = "RING", NCCL = "NCCL", MPI = "MPI" }, {
  __index = function(self, name)
    raise("CommunicationImplementation has no %q%s", tostring(name), errors.suggestion(tostring(name), self))
  end,
})

local Options = object.class("CommunicationOptions")
local NAMES = { "bytes_per_pack", "timeout_seconds", "implementation", "heartbeat", "dead_after", "start_within" }
local TIMES = { "timeout_seconds", "heartbeat", "dead_after", "start_within" }
local known = {}
for _, name in ipairs(NAMES) do known[name] = true end

-- bytes_per_pack: how much is added up at once, at most; 0: as the engine likes it. timeout_seconds: how long a sum may wait for a worker
-- that is alive; nil: 600. heartbeat: seconds between two signs of life; nil: 1. dead_after: seconds without one after which a worker is
-- lost; nil: 10. start_within: seconds in which all workers have to come; nil: 300. The last three are the same on all workers.
function communication.CommunicationOptions(...)
  local what = "CommunicationOptions"
  local given = errors.check_options(what, arguments.named(what, NAMES, #NAMES, ...), known)
  local bytes, name = given.bytes_per_pack or 0, given.implementation or "AUTO"
  if type(bytes) ~= "number" or bytes < 0 or bytes ~= math.floor(bytes) then
    raise("%s: bytes_per_pack is a whole number from 0, got %s", what, errors.describe(given.bytes_per_pack))
  end
  for _, time in ipairs(TIMES) do
    local seconds = given[time]
    if seconds ~= nil and (type(seconds) ~= "number" or not (seconds > 0 and seconds < math.huge)) then
      raise("%s: %s is a number above 0, or nil, got %s", what, time, errors.describe(seconds))
    end
  end
  local implementation = type(name) == "string" and rawget(communication.CommunicationImplementation, name:upper())
  if not implementation then
    raise("%s: implementation is AUTO, RING, NCCL or MPI, got %s", what, errors.describe(name))
  end
  return object.new(Options, { bytes_per_pack = bytes, timeout_seconds = given.timeout_seconds or false, implementation = implementation,
                               heartbeat = given.heartbeat or false, dead_after = given.dead_after or false,
                               start_within = given.start_within or false })
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
