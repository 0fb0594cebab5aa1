-- communication.lua: CommunicationOptions: how workers add up, and when one of them counts as lost: { bytes_per_pack = 0,
-- timeout_seconds = nil, implementation = "AUTO", heartbeat = nil, dead_after = nil, start_within = nil }.

local errors = require "flow.errors"
local object = require "flow.object"
local arguments = require "flow.arguments"

local raise = errors.raise
local signature = require "flow.signature"

local communication = signature.module "flow.distribute"

-- What carries sums over workers: MPI under mpirun or srun, else RING; on GPUs they add up among themselves by NCCL, which is what AUTO and
-- NCCL try first. RING and MPI: through the host in any case.
communication.CommunicationImplementation = setmetatable({ AUTO = "AUTO", RING = "RING", NCCL = "NCCL", MPI = "MPI" }, {
  __index = function(self, name)
    raise("CommunicationImplementation has no %q%s", tostring(name), errors.suggestion(tostring(name), self))
  end,
})

local Options = object.class("CommunicationOptions")
local TIMES = { "timeout_seconds", "heartbeat", "dead_after", "start_within" }

-- bytes_per_pack: how much is added up at once, at most; 0: as the engine likes it. timeout_seconds: how long a sum may wait for a worker
-- that is alive; nil: 600. heartbeat: seconds between two signs of life; nil: 1. dead_after: seconds without one after which a worker is
-- lost; nil: 10. start_within: seconds in which all workers have to come; nil: 300. The last three are the same on all workers.
signature.takes "bytes_per_pack: whole = 0, timeout_seconds?, implementation = 'AUTO', heartbeat?, dead_after?, start_within?"
function communication.CommunicationOptions(bytes, timeout_seconds, name, heartbeat, dead_after, start_within)
  local what = "CommunicationOptions"
  local given = { timeout_seconds = timeout_seconds, heartbeat = heartbeat, dead_after = dead_after, start_within = start_within }
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
