-- verify.lua: checks that all copies of a model's variables have the same numbers. Each worker has a copy, and each GPU of a worker;
-- replicas on the CPU of one process share their variables. Hashes are compared; only if they differ, the differing copies are looked for.

local native = require "flow.ffi"
local errors = require "flow.errors"
local devices = require "flow.devices"

local C, check, raise = native.C, native.check, errors.raise
local verify = {}

-- The GPUs of a placement that have copies; { -1 }: there is one set of variables.
local function devices_of(p)
  if not p or p.device < 0 then return { -1 } end
  local list = {}
  for i, name in ipairs(p.strategy.extended.worker_devices) do list[i] = devices.number(name) end
  return list
end

local function worker_of(p)
  return p and p.workers > 1 and p.strategy._worker or nil
end

-- Whether there is more than one copy.
function verify.has_copies(p)
  return worker_of(p) ~= nil or #devices_of(p) > 1
end

-- An array of a hash for each variable on each of these devices.
local function hashes_of(variables, list)
  local handles = native.array("flow_variable *", #variables)
  for i, v in ipairs(variables) do handles[i - 1] = v.handle end
  local hashes = native.array("uint64_t", #variables * #list)
  for d, device in ipairs(list) do check(C.flow_variables_hash(handles, #variables, device, hashes + (d - 1) * #variables)) end
  native.keep(variables)
  return hashes
end

-- Two numbers that are equal on all workers only if all hashes are: one made of the first device's hashes, and whether the hashes of the
-- other devices equal those.
local function summary_of(hashes, count, copies)
  local words = native.array("uint64_t", 2)
  for i = 0, count - 1 do words[0] = words[0] * 0x100000001b3ULL + hashes[i] end
  for i = count, count * copies - 1 do
    if hashes[i] ~= hashes[i % count] then words[1] = 1 end
  end
  return words
end

-- The names of all replicas in the order in which their values come: "worker:0 gpu:1". list: devices of this process.
local function names_of(p, worker, list)
  local names = {}
  for rank = 0, worker and worker.count - 1 or 0 do
    for _, device in ipairs(list) do
      local gpu = device >= 0 and ("gpu:%d"):format(device) or nil
      names[#names + 1] = worker and worker:name_of(rank) .. (#list > 1 and " " .. gpu or "") or gpu
    end
  end
  return names
end

-- Who has which number of one variable: lists of names, the largest first.
local function groups_of(all, names, count, index)
  local groups, by_hash = {}, {}
  for i, name in ipairs(names) do
    local hash = tostring(all[(i - 1) * count + index])
    if not by_hash[hash] then
      by_hash[hash] = {}
      groups[#groups + 1] = by_hash[hash]
    end
    table.insert(by_hash[hash], name)
  end
  table.sort(groups, function(a, b) return #a > #b end)
  return groups
end

-- The names of all groups but the first, for a message.
local function others(groups)
  local list = {}
  for i = 2, #groups do
    for _, name in ipairs(groups[i]) do list[#list + 1] = name end
  end
  return table.concat(list, ", ")
end

-- "worker:2 c:1 has other numbers in "dense/kernel" than the other 3".
local function sentence(groups, variable, total)
  if 2 * #groups[1] > total then
    return ("%s has other numbers in %q than the other %d"):format(others(groups), variable, #groups[1])
  end
  local sides = {}
  for i, group in ipairs(groups) do sides[i] = table.concat(group, ", ") end
  return ("%s have different numbers in %q, and there is no majority that would tell who is right"):format(table.concat(sides, " and "),
    variable)
end

-- Raises on all workers, at the same call, unless all copies of these variables are the same. p: the placement (may be nil); step: for the
-- message.
function verify.compare(p, variables, step)
  local worker, list = worker_of(p), devices_of(p)
  local count, copies = #variables, #list
  local hashes = hashes_of(variables, list)
  local words = summary_of(hashes, count, copies)
  local said, same = worker and worker:gather_words(words, 2) or words, true
  for rank = 0, worker and worker.count - 1 or 0 do
    same = same and said[2 * rank] == said[0] and said[2 * rank + 1] == 0
  end
  if same then return end

  local names = names_of(p, worker, list)
  local all = worker and worker:gather_words(hashes, count * copies) or hashes
  local first, found = nil, 0
  for index = 0, count - 1 do
    local groups = groups_of(all, names, count, index)
    if #groups > 1 then
      found = found + 1
      first = first or sentence(groups, variables[index + 1].path, #names)
    end
  end
  raise("distribute.verify: after step %d %s; %d of %d variables differ: a memory or a processor is at fault, or a script has changed "
    .. "variables on one side only; go on from an earlier backup", step, first, found, count)
end

return verify
