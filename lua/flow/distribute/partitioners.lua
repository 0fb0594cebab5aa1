-- partitioners.lua: into how many parts a variable is cut that parameter servers keep: tf.distribute.experimental.partitioners. Parts are
-- cut along the first axis.
--
--   partitioner(shape, dtype)      a list with the number of parts along each axis: all but the first are 1

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local signature = require "flow.signature"

local C, raise = native.C, errors.raise
local takes = signature.takes
local partitioners = signature.module "flow.distribute"

local Partitioner = object.class("Partitioner")

local function ones(shape)
  local list = {}
  for axis = 1, #shape do list[axis] = 1 end
  return list
end

local function row_bytes(shape, dtype)
  local bytes = C.flow_dtype_size(native.dtype(dtype))
  for axis = 2, #shape do bytes = bytes * shape[axis] end
  return bytes
end

local function new(name, parts_of)
  local self = object.new(Partitioner, { _name = name, _parts_of = parts_of })
  return self
end

function Partitioner._call(self, shape, dtype)
  local list = ones(shape)
  if #shape > 0 and shape[1] > 0 then list[1] = self._parts_of(shape, dtype or "float32") end
  return list
end

-- num_shards parts, or as many as there are rows.
takes "num_shards: count"
function partitioners.FixedShardsPartitioner(num_shards)
  return new("FixedShardsPartitioner", function(shape) return math.min(num_shards, shape[1]) end)
end

-- As many parts as have at least min_shard_bytes each, up to max_shards.
takes "min_shard_bytes: count = 262144, max_shards: count = 1, bytes_per_string: count = 16"
function partitioners.MinSizePartitioner(min_shard_bytes, max_shards)
  return new("MinSizePartitioner", function(shape, dtype)
    return math.max(1, math.min(shape[1], max_shards, math.ceil(row_bytes(shape, dtype) * shape[1] / min_shard_bytes)))
  end)
end

-- As few parts as have at most max_shard_bytes each, if a row has no more; up to max_shards, if that is given.
takes "max_shard_bytes: count, max_shards?: count, bytes_per_string: count = 16"
function partitioners.MaxSizePartitioner(max_shard_bytes, max_shards)
  return new("MaxSizePartitioner", function(shape, dtype)
    local rows = math.max(1, math.floor(max_shard_bytes / math.max(row_bytes(shape, dtype), 1)))      -- a row may have no elements
    return math.min(math.ceil(shape[1] / rows), max_shards or math.huge)
  end)
end

-- How many parts a variable has. partitioner: one of these, a function like them, or nil: one part.
function partitioners.count(partitioner, shape, dtype)
  if partitioner == nil or #shape == 0 then return 1 end
  local list = partitioner(shape, dtype)
  if type(list) ~= "table" or #list ~= #shape then
    raise("variable_partitioner: it returns a list with a number for each of the %d axes, got %s", #shape, errors.describe(list))
  end
  for axis = 2, #list do
    if list[axis] ~= 1 then
      raise("variable_partitioner: variables are cut along their first axis only, got %g parts along axis %d", list[axis], axis)
    end
  end
  if type(list[1]) ~= "number" or list[1] < 1 or list[1] % 1 ~= 0 then
    raise("variable_partitioner: the number of parts is a whole number from 1, got %s", errors.describe(list[1]))
  end
  return math.max(1, math.min(list[1], shape[1]))
end

return partitioners
