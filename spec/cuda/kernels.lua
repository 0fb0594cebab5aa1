--- kernels.lua: what the machine code of the GPU's kernels has in flight, for scripts/cuda-kernels:
---   kernels.lua SASS PTXAS [LIST]      SASS: cuobjdump's text of all kernels for one target; PTXAS: what the assembler said of them;
---                                      LIST: launches that the emulated device recorded (spec/support/launches.lua), and how wide
---                                      their loads and stores were (FLOW_EMULATED_WIDTHS=1)
---
--- A kernel's widest load says what its code can do; "narrow loads" what it did in that step: the share of what it read, in percent, that
--- it asked for by loads under 8 bytes. A bundle's are those of all its launches. Below the table is a line for each kernel whose narrow
--- loads count, with the reason, if one is known.
---
--- In flight is what a thread has asked memory for and not used yet, at most, between two branches; on a multiprocessor that is times the
--- threads of the blocks that fit there. Latency and bandwidth limit each other (J. D. C. Little, "A proof
--- for the queuing formula L = lambda W", 1961): bytes per second = bytes in flight / latency.
local root = arg[0]:match("^(.*)spec/cuda/kernels%.lua$")
package.path = root .. "?.lua;" .. package.path

-- An H100: NVIDIA's figures of what a multiprocessor has, a rate that copies reach on one, and assumptions: how long memory takes to
-- answer under load, which each turn of a bundle but the first waits for again, and what a launch in a graph costs.
local GPU = { multiprocessors = 132, registers = 65536, shared = 228 * 1024, threads = 2048, block = 256, rate = 3.0e12, latency = 800e-9,
              launch = 1.5e-6 }
-- Percent of what a kernel reads, from which on it counts as read by narrow loads. Scalars and labels beside rows are less.
local NARROW = 10
-- Why rows do not allow more: of each kernel that reads by narrow loads in a step.
local BECAUSE = {
  bundle = "its items are scalars, labels, rows of ten numbers, and sums of a batch's rows, a thread a column: at most 150 KB in a step",
  bring_operands = "the filter of a few KB, which it transposes beside the image, is read an element at a time along its columns",
}

local function width_of(modifiers)
  if modifiers:find("%.128") then return 16 elseif modifiers:find("%.64") then return 8 end
  if modifiers:find("[US]8") then return 1 elseif modifiers:find("[US]16") then return 2 end
  return 4
end

--- The largest number of bytes that loads have asked for and nothing has used yet, and the widest load. Branches are taken to wait for all:
--- what is in flight across them depends on which are taken.
local function in_flight(lines)
  local waiting, now, most, widest, targets = {}, 0, 0, 0, {}
  for _, line in ipairs(lines) do
    local target = line:match("BRA[^;]*0x(%x+)")
    if target then targets[tonumber(target, 16)] = true end
  end
  for _, line in ipairs(lines) do
    local address, code = line:match("^%s+/%*(%x+)%*/(.*)$")
    if targets[tonumber(address, 16)] or code:find("BRA") then waiting, now = {}, 0 end
    code = code:gsub("/%*.-%*/", "")
    for register in code:gmatch("R(%d+)") do
      local at = tonumber(register)
      for first, load in pairs(waiting) do
        if at >= first and at <= load.last then waiting[first], now = nil, now - load.bytes end
      end
    end
    local modifiers, target = code:match("LDG(%S*) R(%d+)")
    if target then
      local bytes, first = width_of(modifiers), tonumber(target)
      waiting[first] = { bytes = bytes, last = first + math.max(1, bytes / 4) - 1 }
      now, widest = now + bytes, math.max(widest, bytes)
      most = math.max(most, now)
    end
  end
  return most, widest
end

--- The smallest number of instructions for each multiply-add of a loop without branches inside; nil: no loop has 16 of those.
local function instructions_a_product(lines)
  local place, least = {}, nil
  for i, line in ipairs(lines) do
    local address, code = line:match("^%s+/%*(%x+)%*/%s*(.-)%s*;")
    if address then place[tonumber(address, 16)] = i end
    local target = code and code:match("BRA[^;]*0x(%x+)")
    local from = target and place[tonumber(target, 16)]
    local products, branches = 0, 0
    for k = from or i + 1, i do
      if lines[k]:find("FFMA") then products = products + 1 end
      if lines[k]:find("BRA") then branches = branches + 1 end
    end
    if branches == 1 and products >= 16 then least = math.min(least or math.huge, (i - from + 1) / products) end
  end
  return least
end

local function read_code(path)
  local kernels, lines = {}, nil
  for line in io.lines(path) do
    local name = line:match("Function : (%S+)")
    if name then
      lines = {}
      kernels[name:gsub("_kernel$", "")] = lines
    elseif lines and line:find("^%s+/%*%x+%*/ ") then
      lines[#lines + 1] = line
    end
  end
  return kernels
end

local function read_resources(path, target)
  local found, name = {}, nil
  for line in io.lines(path) do
    local entry, of = line:match("Compiling entry function '([%w_]+)_kernel' for '([%w_]+)'")
    if entry then name = of == target and entry or nil end
    local registers = line:match("Used (%d+) registers")
    if registers and name then
      found[name] = { registers = tonumber(registers), shared = tonumber(line:match("(%d+) bytes smem") or 0) }
    end
  end
  return found
end

local function blocks_of(resources)
  local rounded = math.ceil(resources.registers / 8) * 8 * GPU.block
  return math.min(math.floor(GPU.registers / rounded), math.floor(GPU.threads / GPU.block),
    math.floor(GPU.shared / (resources.shared + 1024)))
end

local kernels, resources = {}, read_resources(arg[2], "sm_90")
for name, lines in pairs(read_code(arg[1])) do
  local bytes, widest = in_flight(lines)
  local blocks = blocks_of(resources[name])
  local held = bytes * GPU.block * blocks
  kernels[name] = { registers = resources[name].registers, blocks = blocks, widest = widest, held = held,
                    products = instructions_a_product(lines),
                    rate = math.min(GPU.rate, held * GPU.multiprocessors / GPU.latency) }
end

if arg[3] then
  local launches = require "spec.support.launches"
  local list, shares, sums, order, narrow, total, number = launches.read(arg[3]), launches.narrow(arg[3]), {}, {}, {}, 0, 0
  for _, launch in ipairs(list) do
    local name, first = launch.bundled and "bundle" or launch.kernel, launch.node > number
    number = math.max(number, launch.node)
    local kernel = kernels[name]
    local rate = kernel and kernel.rate > 0 and kernel.rate or GPU.rate
    local seconds = math.max(first and GPU.launch or 0, (launch.read + launch.written) / rate)
    if first then seconds = seconds + (launch.turns - 1) * GPU.latency end
    if not sums[name] then
      local share = shares[name] and shares[name][1] or 0
      if kernel and (share > NARROW or (kernel.widest > 0 and kernel.widest < 8)) then narrow[#narrow + 1] = name end
      sums[name] = { launches = 0, bytes = 0, seconds = 0, kernel = kernel }
      order[#order + 1] = name
    end
    local sum = sums[name]
    sum.launches, sum.seconds = sum.launches + (first and 1 or 0), sum.seconds + seconds
    sum.bytes = sum.bytes + launch.read + launch.written
    total = total + seconds
  end
  table.sort(order, function(a, b) return sums[a].seconds > sums[b].seconds end)
  print(("%-30s %8s %14s %8s %13s %14s %9s %9s"):format("kernel", "launches", "bytes", "widest", "narrow loads", "narrow stores",
    "in flight", "estimate"))
  for _, name in ipairs(order) do
    local sum = sums[name]
    local kernel, share = sum.kernel, shares[name]
    print(("%-30s %8d %14.0f %8s %13s %14s %9s %6.1f us"):format(name, sum.launches, sum.bytes, kernel and kernel.widest or "library",
      kernel and share and ("%.0f %%"):format(share[1]) or "", kernel and share and ("%.0f %%"):format(share[2]) or "",
      kernel and ("%.1f KB"):format(kernel.held / 1024) or "", sum.seconds * 1e6))
  end
  for _, name in ipairs(narrow) do print("loads under 8 bytes: " .. name .. (BECAUSE[name] and ", since " .. BECAUSE[name] or "")) end
  if #narrow == 0 then print("loads under 8 bytes: none") end
  print(("%d launches, %d of which start early, at most %d turns in one, %.1f us on an H100 by estimate, of which nothing was measured: " ..
    "libraries count as copies"):format(number, launches.early(list), launches.turns(list), total * 1e6))
  return
end

local names = {}
for name in pairs(kernels) do names[#names + 1] = name end
table.sort(names)
print(("%-40s %9s %6s %12s %12s %14s %22s"):format("kernel", "registers", "blocks", "widest load", "in flight", "at most",
  "instructions a product"))
for _, name in ipairs(names) do
  local k = kernels[name]
  print(("%-40s %9d %6d %6d bytes %9.1f KB %9.2f TB/s%s"):format(name, k.registers, k.blocks, k.widest, k.held / 1024, k.rate / 1e12,
    k.products and (" %22.2f"):format(k.products) or ""))
end
