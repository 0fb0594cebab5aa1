-- values.lua: values that differ from replica to replica of this process. With one replica they are plain values.

local errors = require "flow.errors"
local native = require "flow.ffi"
local object = require "flow.object"

local values = {}

local PerReplica = object.class("PerReplica")
values.PerReplica = PerReplica

-- One value for each local replica, in their order: per_replica.values is that list.
function values.per_replica(list)
  return #list == 1 and list[1] or object.new(PerReplica, { values = list })
end

function values.is_per_replica(value)
  return object.is(value, PerReplica)
end

PerReplica.metatable.__tostring = function(self)
  local lines = {}
  for i, value in ipairs(self.values) do lines[i] = ("  %d: %s"):format(i - 1, tostring(value)) end
  return "PerReplica {\n" .. table.concat(lines, "\n") .. "\n}"
end

local function is_plain(value)
  return type(value) == "table" and not getmetatable(value)
end

local MOST_DEPTH = 100      -- of tables within tables
local function deeper(depth)
  depth = (depth or 0) + 1
  if depth > MOST_DEPTH then
    errors.raise("a value for replicas has tables within tables, more than %d deep: does one hold itself?", MOST_DEPTH)
  end
  return depth
end

-- What replica `i` (from 1) gets of a value: PerReplica values in it, also in nested tables, become their part.
function values.select(value, i, depth)
  if values.is_per_replica(value) then return value.values[i] end
  if not is_plain(value) then return value end
  local part, below = {}, deeper(depth)
  for key, entry in pairs(value) do part[key] = values.select(entry, i, below) end
  return part
end

-- Whether a value is PerReplica or a table that has one.
function values.has_per_replica(value, depth)
  if values.is_per_replica(value) then return true end
  if not is_plain(value) then return false end
  local below = deeper(depth)
  for _, entry in pairs(value) do
    if values.has_per_replica(entry, below) then return true end
  end
  return false
end

-- The opposite of select: list[i] is what replica i gave, for `count` replicas. What is the same everywhere stays unchanged.
function values.regroup(list, count)
  local first, same, plain = list[1], true, true
  for i = 1, count do
    same = same and not native.is_tensor(first) and rawequal(list[i], first)
    plain = plain and is_plain(list[i])
  end
  if same or count == 1 then return first end
  if not plain then return object.new(PerReplica, { values = { unpack(list, 1, count) } }) end
  local grouped = {}
  for key in pairs(first) do
    local entries = {}
    for i = 1, count do entries[i] = list[i][key] end
    grouped[key] = values.regroup(entries, count)
  end
  return grouped
end

-- The values of the local replicas of a PerReplica, of which there are `count`; of another value, itself alone.
function values.local_list(value)
  return values.is_per_replica(value) and value.values or { value }
end

return values
