--- launches.lua: reads the lists that the emulated device writes of what it records (spec/cuda/emulation/lists.c).

local launches = {}

-- Where the parts of a call's shared memory end, as far as its launches show: a part reaches to the next one that is pointed to.
local function part_sizes(call)
  local starts = {}
  for _, launch in ipairs(call.launches) do
    for _, at in ipairs(launch.shared) do starts[#starts + 1] = at end
  end
  table.sort(starts)
  local sizes = {}
  for i, at in ipairs(starts) do
    if at ~= starts[i + 1] then sizes[at] = (starts[i + 1] or call.shared) - at end
  end
  return sizes
end

-- The first launch of a call that points to a part writes it, later ones read it.
local function add_shared(call)
  local sizes, written = part_sizes(call), {}
  for _, launch in ipairs(call.launches) do
    for _, at in ipairs(launch.shared) do
      local kind = written[at] and "read" or "written"
      launch[kind] = launch[kind] + sizes[at]
      launch.own = launch.own + sizes[at]
    end
    for _, at in ipairs(launch.shared) do written[at] = true end
  end
end

local function parse(line)
  local call, op, kernel, count, bundled, shared, operands = line:match("^launch (%d+) (%S+) (%S+) (%d+) ([01]) (%d+)(.*)$")
  if not op then return nil end
  local launch = { call = call, op = op, kernel = kernel, count = tonumber(count), bundled = bundled == "1", call_bytes = tonumber(shared),
                   read = 0, written = 0, own = 0, shared = {} }
  for kind, number in operands:gmatch(" (%l):(%d+)") do
    number = tonumber(number)
    if kind == "r" then launch.read = launch.read + number
    elseif kind == "w" then launch.written = launch.written + number
    else launch.shared[#launch.shared + 1] = number end
  end
  return launch
end

-- A launch of a library's plan that the emulation needs for what the plan does at once.
local function is_part_of_plan(kernel) return kernel == "emulated_sums" end

--- The launches and copies of the last recording in a list, in order: { op =, kernel =, count =, node = (its number in the graph, which the
--- launches of a bundle have in common), turns = (of that node, one after the other), early = (whether that node may start before the end
--- of the one before), read =, written =, own = (bytes of those two in memory of the op's own) }.
function launches.read(path)
  local list, call, waiting, nodes = {}, nil, {}, 0
  for line in io.lines(path) do
    local launch, copied = parse(line), tonumber(line:match("^copy (%d+)$"))
    local node, together, turns, early = line:match("^node (%S+) (%d+) (%d+)(.*)$")
    if line == "recording" then
      list, call, waiting, nodes = {}, nil, {}, 0
    elseif copied then
      nodes = nodes + 1
      list[#list + 1] = { op = "", kernel = "copy", count = copied, read = copied, written = copied, own = 0, node = nodes, turns = 1 }
    elseif launch and not is_part_of_plan(launch.kernel) then
      if not call or call.number ~= launch.call then
        if call then add_shared(call) end
        call = { number = launch.call, launches = {}, shared = launch.call_bytes }
      end
      call.launches[#call.launches + 1] = launch
      list[#list + 1], waiting[#waiting + 1] = launch, launch
    elseif node and not is_part_of_plan(node) then
      nodes = nodes + 1
      for _ = 1, tonumber(together) do
        local first = table.remove(waiting, 1)
        first.node, first.turns, first.bundled, first.early = nodes, tonumber(turns), node == "bundle", early == " early"
      end
    end
  end
  if call then add_shared(call) end
  return list
end

--- Of each kernel that was carried out after the last recording of a list, in percent, what it loads and stores by accesses under 8 bytes
--- (spec/cuda/emulation/widths.c): { name = { loads, stores } }.
function launches.narrow(path)
  local sums = {}
  for line in io.lines(path) do
    if line == "recording" then sums = {} end
    local kernel, numbers = line:match("^widths (%S+) %S+ (.*)$")
    if kernel then
      local sum, i = sums[kernel] or { 0, 0, 0, 0 }, 0
      sums[kernel] = sum
      for bytes in numbers:gmatch("%d+") do
        local which = (i < 5 and 1 or 3) + (i % 5 < 3 and 0 or 1)      -- narrow, wide
        sum[which], i = sum[which] + tonumber(bytes), i + 1
      end
    end
  end
  local shares = {}
  for kernel, sum in pairs(sums) do
    shares[kernel] = { 100 * sum[1] / math.max(1, sum[1] + sum[2]), 100 * sum[3] / math.max(1, sum[3] + sum[4]) }
  end
  return shares
end

--- How many launches and copies there are, those of a bundle counted once.
function launches.nodes(list)
  local most = 0
  for _, launch in ipairs(list) do most = math.max(most, launch.node) end
  return most
end

--- How many launches may start before the one before them ends.
function launches.early(list)
  local nodes = {}
  for _, launch in ipairs(list) do nodes[launch.node] = launch.early or nil end
  local count = 0
  for _ in pairs(nodes) do count = count + 1 end
  return count
end

--- The most turns that one launch takes, one after the other.
function launches.turns(list)
  local most = 0
  for _, launch in ipairs(list) do most = math.max(most, launch.turns) end
  return most
end

--- All bytes that they read and write.
function launches.bytes(list)
  local sum = 0
  for _, launch in ipairs(list) do sum = sum + launch.read + launch.written end
  return sum
end

--- Those of them that are in memory of the ops' own.
function launches.own(list)
  local sum = 0
  for _, launch in ipairs(list) do sum = sum + launch.own end
  return sum
end

return launches
