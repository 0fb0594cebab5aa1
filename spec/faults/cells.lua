-- cells.lua: the cells of the fault matrix: what happens, at which moment, to whom, on which kind of cluster, and what must follow.
--
-- cells.all() lists them, each { name =, kind =, fault =, moment =, victims =, comes_back =, after =, within =, ... }:
--   kind         memory (RING, one machine), tcp (RING, no shared memory), mpi, net (RING, a network namespace for each worker),
--                hosts (RING, encrypted, the first two as if on one machine and the third on another),
--                elastic (memory, with 4 shards: the others go on without who is lost, at once)
--   comes_back   whether lost workers are started again, and waited for; elastic: whether they are started again
--   after        "equal": all goes on, the results are those of a run without a fault, to the bit
--                "named": it ends in time, every other worker says who it was; started again it ends equal, from the backup
--                "without": as "equal", of all that are there at the end; the others stood by, or are those that were lost
--                "over": all others were done: their results are those of a run without a fault, and the launcher names who was lost
--                "refused": the victim says that its secret is another one, the launcher names it
--                "full": every worker says that the disk is full; started again with an empty one, it ends equal
--   within       seconds from the fault to the last survivor's end, for "named"

local cells = {}

cells.SHARDS = { elastic = 4 }      -- of a kind; the others have none
-- How many workers a cell's cluster has.
function cells.workers(cell) return cells.SHARDS[cell.kind] or 3 end
local MOMENTS = { "start", "step", "save", "end" }
local BEFORE_THE_END = { "start", "step", "save" }
local EVERYONE = { "0", "1", "2" }
local MEMBERS = { "1", "3", "1,2" }      -- not the chief, who is waited for
local PAIRS = { "0,1", "1,2", "0,2" }

-- Seconds until the others know.
local AT_ONCE = 2          -- the connection was closed
local SILENCE = 12         -- who says nothing counts as dead after 10
local TOO_LATE = 44        -- member.lua's workers wait for 40 until all are there
local GOODBYE = 6          -- who ended as a program does is missed when the others have waited for 4

-- What the victim runs; $PID is its process, $TASK its index, $DELAY a part of a second.
cells.faults = {
  kill = "sleep $DELAY; kill -9 $PID",
  terminate = "sleep $DELAY; kill -TERM $PID",
  stop_3 = "sleep $DELAY; kill -STOP $PID; sleep 3; kill -CONT $PID",
  stop_30 = "sleep $DELAY; kill -STOP $PID; sleep 30; kill -CONT $PID",
  exit = "exit",                                                  -- the program itself ends, with status 0
  secret = "secret",                                              -- the worker has another secret than the others
  full = "dd if=/dev/zero of=$FOLDER/backup/fill bs=64k",         -- the disk of the backup
  cut_4 = "sleep $DELAY; ip link set e0 down; sleep 4; ip link set e0 up",
  cut_30 = "sleep $DELAY; ip link set e0 down; sleep 30; ip link set e0 up",
  one_way_30 = "sleep $DELAY; sh $FOLDER/lose out $TASK; sleep 30; sh $FOLDER/lose nothing",
  loss_1 = "sh $FOLDER/lose 1 $TASK",
  loss_5 = "sh $FOLDER/lose 5 $TASK",
  slow = "tc qdisc add dev e0 root tbf rate 20mbit burst 32kbit latency 400ms",
}

local function add(list, kind, comes_back, faults, moments, victims, after, within)
  for _, fault in ipairs(faults) do
    for _, moment in ipairs(moments) do
      for _, who in ipairs(victims) do
        list[#list + 1] = {
          name = ("%s/%s/%s/%s/%s"):format(kind, comes_back and "back" or "ends", fault, moment, who),
          kind = kind, comes_back = comes_back, fault = fault, moment = moment, victims = who, after = after, within = within,
        }
      end
    end
  end
end

function cells.all()
  local list = {}
  -- Lost workers come back.
  for _, kind in ipairs { "memory", "tcp" } do
    add(list, kind, true, { "kill", "terminate" }, BEFORE_THE_END, EVERYONE, "equal")
    add(list, kind, true, { "kill", "terminate" }, { "end" }, EVERYONE, "over")
  end
  add(list, "mpi", true, { "kill", "terminate" }, BEFORE_THE_END, EVERYONE, "equal")      -- all start again, from the backup
  add(list, "memory", true, { "kill" }, BEFORE_THE_END, PAIRS, "equal")
  add(list, "memory", true, { "kill" }, { "end" }, PAIRS, "over")
  add(list, "memory", true, { "stop_3" }, MOMENTS, EVERYONE, "equal")
  add(list, "memory", true, { "stop_30" }, MOMENTS, EVERYONE, "equal")
  -- The others go on without who is lost, and with who comes back.
  add(list, "elastic", false, { "kill", "terminate" }, { "step", "save" }, MEMBERS, "without")
  add(list, "elastic", true, { "kill", "terminate" }, { "step", "save" }, MEMBERS, "without")
  add(list, "elastic", true, { "kill" }, { "start", "step", "save" }, { "0" }, "without")
  add(list, "elastic", true, { "stop_3" }, { "step", "save" }, EVERYONE, "without")
  add(list, "elastic", true, { "stop_30" }, { "step" }, MEMBERS, "without")
  -- The job ends.
  add(list, "memory", false, { "kill", "terminate" }, BEFORE_THE_END, EVERYONE, "named", AT_ONCE)
  add(list, "memory", false, { "kill", "terminate" }, { "end" }, EVERYONE, "over")
  add(list, "memory", false, { "kill" }, { "step", "save" }, PAIRS, "named", AT_ONCE)
  add(list, "memory", false, { "exit" }, { "step", "save" }, EVERYONE, "named", GOODBYE)
  add(list, "memory", false, { "exit" }, { "start" }, EVERYONE, "named", TOO_LATE)
  add(list, "memory", true, { "exit" }, { "step" }, EVERYONE, "named", GOODBYE)
  add(list, "memory", false, { "secret" }, { "start" }, EVERYONE, "refused")
  add(list, "memory", false, { "stop_3" }, BEFORE_THE_END, EVERYONE, "equal")
  add(list, "memory", false, { "stop_30" }, { "step", "save" }, EVERYONE, "named", SILENCE)
  add(list, "tcp", false, { "kill" }, { "step", "save" }, EVERYONE, "named", AT_ONCE)
  add(list, "hosts", true, { "kill", "stop_3" }, { "step", "save" }, EVERYONE, "equal")
  add(list, "hosts", true, { "kill" }, { "step" }, PAIRS, "equal")
  add(list, "hosts", false, { "kill" }, { "step" }, EVERYONE, "named", AT_ONCE)
  add(list, "tcp", false, { "exit" }, { "step", "save" }, EVERYONE, "named", GOODBYE)
  add(list, "mpi", false, { "kill", "terminate" }, BEFORE_THE_END, EVERYONE, "named", AT_ONCE)
  add(list, "mpi", false, { "exit" }, { "step", "save" }, EVERYONE, "named", GOODBYE)
  add(list, "mpi", false, { "stop_3" }, { "step" }, EVERYONE, "equal")
  add(list, "mpi", false, { "stop_30" }, { "step" }, EVERYONE, "named", SILENCE)
  -- The chief writes the backup: its disk is full.
  for _, kind in ipairs { "memory", "tcp", "mpi" } do add(list, kind, false, { "full" }, BEFORE_THE_END, { "0" }, "full") end
  -- The network between machines.
  add(list, "net", true, { "kill", "cut_4", "cut_30", "one_way_30", "loss_1", "loss_5", "slow" }, { "step", "save" }, EVERYONE, "equal")
  add(list, "net", false, { "kill" }, { "step" }, EVERYONE, "named", AT_ONCE)
  add(list, "net", false, { "cut_30", "one_way_30" }, { "step" }, EVERYONE, "named", SILENCE)
  return list
end

return cells
