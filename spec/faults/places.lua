-- places.lua: where the workers of a cell run: on this machine, started by flowlua launch, or each in its own network namespace,
-- as on its own machine.
--
--   local why = places.missing(cell)               why it cannot run here, or nil
--   local place = places.open(cell, lane, options) place.folder: for the job; place.commands(cell, folder, arguments): shell text
--   places.close(place, keep)                      keep: the folder is left for a reader
local cells = require "spec.faults.cells"

local places = {}

local function succeeds(command) return os.execute(command .. " >/dev/null 2>&1") == 0 end

local known = {}
local function once(key, ask)
  if known[key] == nil then known[key] = ask() or false end
  return known[key]
end

local function is_root() return once("root", function() return succeeds "test $(id -u) = 0" end) end
local function has(program) return once(program, function() return succeeds("command -v " .. program) end) end

local function namespaces()
  return once("namespaces", function() return succeeds "ip netns add flowprobe && ip netns del flowprobe" end)
end

function places.missing(cell)
  if cell.kind == "mpi" and not has "mpirun" then return "mpirun is not installed: apt-get install openmpi-bin" end
  if cell.fault == "full" and not is_root() then return "a small disk needs root, who may mount one" end
  if cell.kind ~= "net" then return nil end
  if not is_root() then return "network namespaces need root" end
  if not has "ip" then return "ip is not installed: apt-get install iproute2" end
  if not namespaces() then return "this kernel makes no network namespaces" end
  if (cell.fault:find "^loss" or cell.fault:find "^one_way") and not has "nft" then
    return "nft is not installed: apt-get install nftables"
  end
end

-- ---- this machine ----------------------------------------------------------------------------------------------------

local function launch(program)
  return function(cell, _, arguments)
    local options = cell.comes_back and "--max-restarts 6" or ""
    if cells.SHARDS[cell.kind] then
      options, arguments = options .. " --min-workers 1", ("--shards %d --pace 30 %s"):format(cells.SHARDS[cell.kind], arguments)
    end
    if cell.kind == "hosts" then arguments = "--machines aab " .. arguments end
    return ("export FLOW_SHARED_MEMORY=%d FLOW_SHRINK_AFTER=1.5 FLOW_ENCRYPT=%d\n%s launch --workers %d --threads 1 --kill-after 3 "
      .. "--engine %s %s spec/faults/member.lua -- --engine %s %s"):format(cell.kind == "tcp" and 0 or 1, cell.kind == "hosts" and 1 or 0,
      program, cells.workers(cell), cell.kind == "mpi" and "mpi" or "ring", options, cell.kind == "mpi" and "MPI" or "RING", arguments)
  end
end

-- ---- namespaces ------------------------------------------------------------------------------------------------------

-- A worker's namespace has the interface e0, which a bridge connects with those of the others.
local function namespace(lane, worker) return ("flow%d_%d"):format(lane, worker) end
local function address(lane, worker) return ("10.77.%d.%d"):format(lane, worker + 1) end

-- lose PERCENT TASK: that part of the packets that the task sends and gets is lost, drawn at random; lose out TASK: all that it sends; lose
-- nothing: no more. A packet is dropped where it arrives: a rule where it is sent would tell TCP, which would not have to find out.
local LOSE = [[
of=$1 victim=$2 address=10.77.LANE
for worker in 0 1 2; do
  from= lost="numgen random mod 100 < $of"
  [ "$worker" = "$victim" ] || from="ip saddr $address.$((victim + 1))"
  [ "$of" = out ] && lost=
  if [ "$of" = nothing ]; then rules="flush ruleset"
  elif [ "$of$worker" = "out$victim" ]; then continue
  else rules="table inet faults { chain in { type filter hook input priority 0; iifname e0 $from $lost drop; }; }"
  fi
  ip netns exec "flowLANE_$worker" nft "$rules"
done
]]

local function take_down(cell, lane)
  for worker = 0, cells.workers(cell) - 1 do
    os.execute(("ip netns del %s 2>/dev/null; ip link del flow%dv%d 2>/dev/null"):format(namespace(lane, worker), lane, worker))
  end
  os.execute(("ip link del flow%d 2>/dev/null"):format(lane))
end

local function set_up(cell, lane, folder)
  take_down(cell, lane)
  local commands = { ("ip link add flow%d type bridge && ip link set flow%d up"):format(lane, lane) }
  for worker = 0, cells.workers(cell) - 1 do
    local name, outer = namespace(lane, worker), ("flow%dv%d"):format(lane, worker)
    commands[#commands + 1] = ("ip netns add %s && ip link add %s type veth peer name e0 netns %s"):format(name, outer, name)
    commands[#commands + 1] = ("ip link set %s master flow%d up && ip -n %s addr add %s/24 dev e0"):format(outer, lane, name,
      address(lane, worker))
    commands[#commands + 1] = ("ip -n %s link set e0 up && ip -n %s link set lo up"):format(name, name)
  end
  assert(os.execute(table.concat(commands, " && ")) == 0, "the namespaces cannot be set up")
  local file = assert(io.open(folder .. "/lose", "w"))
  file:write((LOSE:gsub("LANE", lane)))
  file:close()
end

-- A worker that comes back is started again as often as it takes, after a third of a second.
local function each_in_its_own(program, lane)
  return function(cell, folder, arguments)
    local addresses, lines = {}, { "export FLOW_SHARED_MEMORY=0 FLOW_THREADS=1 FLOW_SECRET=0123456789abcdef0123456789abcdef" }
    for worker = 0, cells.workers(cell) - 1 do addresses[worker + 1] = ('"%s:2222"'):format(address(lane, worker)) end
    if cell.comes_back then lines[2] = "export FLOW_MAX_RESTARTS=6" end
    for worker = 0, cells.workers(cell) - 1 do
      local config = ('{"cluster":{"worker":[%s]},"task":{"type":"worker","index":%d}}'):format(table.concat(addresses, ","), worker)
      local script = ("%s/run.%d"):format(folder, worker)
      local file = assert(io.open(script, "w"))
      file:write(("lives=%d\nwhile [ $lives -gt 0 ]; do\n  %s spec/faults/member.lua --engine RING %s && exit 0\n  lives=$((lives - 1))\n"
        .. "  sleep 0.3\ndone\nexit 1\n"):format(cell.comes_back and 7 or 1, program, arguments))
      file:close()
      lines[#lines + 1] = ("TF_CONFIG='%s' ip netns exec %s sh %s &\njob%d=$!"):format(config, namespace(lane, worker), script, worker)
    end
    lines[#lines + 1] = "status=0"
    for worker = 0, cells.workers(cell) - 1 do lines[#lines + 1] = ("wait $job%d || status=1"):format(worker) end
    lines[#lines + 1] = "(exit $status)"
    return table.concat(lines, "\n")
  end
end

-- ---- open and close --------------------------------------------------------------------------------------------------

function places.open(cell, lane, options)
  local folder = ("%s/%s"):format(options.folder, (cell.name:gsub("/", "-")))
  if folder:sub(1, 1) ~= "/" then folder = ("%s/%s"):format(os.getenv "PWD", folder) end
  os.execute(("umount %s/backup 2>/dev/null; rm -rf %s; mkdir -p %s/backup"):format(folder, folder, folder))
  local place = { folder = folder, cell = cell, lane = lane, program = options.program }
  if cell.fault == "full" then
    place.mounted = folder .. "/backup"
    assert(os.execute(("mount -t tmpfs -o size=4m none %s"):format(place.mounted)) == 0, "a small disk cannot be mounted")
  end
  if cell.kind == "net" then
    set_up(cell, lane, folder)
    place.namespaces, place.commands = true, each_in_its_own(options.program, lane)
  else
    place.commands = launch(options.program)
  end
  return place
end

function places.close(place, keep)
  if place.namespaces then take_down(place.cell, place.lane) end
  if place.mounted then os.execute("umount " .. place.mounted) end
  if not keep then os.execute("rm -rf " .. place.folder) end
end

return places
