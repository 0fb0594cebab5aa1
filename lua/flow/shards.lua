-- shards.lua: the same bits for any number of workers: flow.config.enable_op_determinism { shards = 8 }.
--
-- A strategy then has as many replicas as there are shards, whatever it runs on: 8 in one process, 2 in each of 4 workers. So the global
-- batch is cut in the same places, each part is computed in the same way, and what the parts give is added up in the order of one balanced
-- tree (core/tensor/pairwise.h), in a process and over workers. Each worker has a subtree, therefore shards are a power of two; of 3
-- workers one has 4 of 8 shards, the others 2. What it costs: parts are smaller, and a worker fetches the gradients of all others instead
-- of their sum.

local errors = require "flow.errors"
local devices = require "flow.devices"

local raise = errors.raise
local shards = {}

local MOST = 256      -- replicas of a process
local count = nil

-- nil: strategies have a replica for each device. what: the caller, as messages name it. Only before the first strategy is made.
function shards.set(what, wanted)
  local number = type(wanted) == "number" and wanted or -1
  local fraction = math.frexp(number)
  if wanted ~= nil and (number < 1 or number > MOST or fraction ~= 0.5) then
    raise("%s: shards is a power of two from 1 to %d, got %s", what, MOST, errors.describe(wanted))
  end
  local user = devices.user()
  if user and wanted ~= count then raise("%s: %s was made already: call it at the beginning of the program", what, user) end
  count = wanted
end

function shards.count() return count end

-- The least that one of `workers` workers has.
function shards.least(workers)
  local parts = 1
  while parts < workers do parts = 2 * parts end
  return count / parts
end

-- Raises unless each of `workers` workers has at least a shard for each device of this process.
function shards.check(what, names, workers)
  if devices.number(names[1]) >= 0 then
    raise("%s on %s: enable_op_determinism's shards requires CPU replicas; remove the shards option", what, table.concat(names, ", "))
  end
  if shards.least(workers) < #names then
    raise("%s: %d shards cannot be spread over %d workers with %d devices each: use more shards, or fewer workers or devices", what, count,
      workers, #names)
  end
end

-- How many replicas a strategy has on the devices of this process, which is alone.
function shards.replicas(what, names)
  if not count then return #names end
  shards.check(what, names, 1)
  return count
end

return shards
