-- reduction.lua: strategy:reduce and strategy:gather: one value out of those of all replicas. What other workers have comes in the
-- order of the workers and is added in that of a balanced tree, as in steps (core/tensor/pairwise.h), so that all have the same bits.

local errors = require "flow.errors"
local ops = require "flow.tensor.ops"
local variable = require "flow.tensor.variable"
local values = require "flow.distribute.values"
local reduce_op = require "flow.distribute.reduce_op"

local raise = errors.raise
local reduction = {}

local is_float = { float16 = true, bfloat16 = true, float32 = true, float64 = true }

-- The values of local replicas as tensors.
local function local_tensors(what, value)
  local list = {}
  for i, entry in ipairs(values.local_list(value)) do list[i] = ops.operand(entry, nil, what) end
  return list
end

local function shape_text(t)
  return ("%s {%s}"):format(t.dtype, table.concat(t.shape, ", "))
end

-- Who has the i-th value, for messages.
local function replica(i) return ("replica %d"):format(i - 1) end

-- Raises unless all tensors of a list have the same shape. owner(i): whose the i-th one is, for messages.
local function check_equal(list, owner)
  for i = 2, #list do
    if shape_text(list[i]) ~= shape_text(list[1]) then
      raise("strategy:reduce: %s has %s, %s has %s; values of equal shapes can be added, or name an axis", owner(1), shape_text(list[1]),
        owner(i), shape_text(list[i]))
    end
  end
end

-- The sum of a list of tensors of equal shapes, first of neighbours, then of those sums, and so on.
local function add_up(list)
  while #list > 1 do
    local sums = {}
    for i = 1, #list, 2 do sums[#sums + 1] = list[i + 1] and list[i] + list[i + 1] or list[i] end
    list = sums
  end
  return list[1]
end

-- Where the number of workers is not a power of two, shards are spread such that the last ones have half as much as the others
-- (core/tensor/pairwise.h): two of those make one.
local function join_halves(list)
  local whole = 2 ^ (select(2, math.frexp(#list)) - 1)
  local uncut, terms = 2 * whole - #list, {}
  for i = 1, whole do
    local at = math.max(i, 2 * i - uncut - 1)
    terms[i] = i <= uncut and list[i] or add_up { list[at], list[at + 1] }
  end
  return terms
end

-- Of this worker's replicas; then over_workers, of all workers. Both add by a balanced tree, so that the bits depend on the number of
-- terms alone.
local function over_replicas(list)
  check_equal(list, replica)
  return add_up(list)
end

-- The sum of a tensor over all workers; itself where there is one. All workers add up in the same order, so they get the same bits.
local function over_workers(strategy, t, purpose)
  local others = strategy:_others()
  if not others then return t end
  local list = others:gather_tensors(t, purpose)
  check_equal(list, function(i) return others:name_of(i - 1) end)
  return add_up(strategy._placement.pairwise and join_halves(list) or list)
end

-- Sums over the axis of each entry, and how many elements that were.
local function sum_axis(list, axis)
  local sums, count = {}, 0
  for i, t in ipairs(list) do
    sums[i] = t:sum(axis)
    count = count + t.shape[axis > 0 and axis or t.rank + axis + 1]
  end
  return sums, count
end

-- A value that is one and the same on all replicas, as a variable is.
local function reduce_mirrored(strategy, how, value)
  local t, count = ops.operand(value, nil, "reduce"), strategy.num_replicas_in_sync
  return how == "SUM" and count > 1 and t * count or t
end

-- axis nil: of whole values, "mean" over the replicas; with an axis also along it, "mean" over all elements there are. A value that is
-- the same on all replicas is not added up.
function reduction.reduce(strategy, how, value, axis)
  how = reduce_op.check("strategy:reduce", how)
  local count, replicas = strategy.num_replicas_in_sync, strategy._placement.replicas
  if axis ~= nil and (type(axis) ~= "number" or axis == 0 or axis ~= math.floor(axis)) then
    raise("strategy:reduce: axis is a whole number from 1, or negative, from the last one, got %s", errors.describe(axis))
  end
  if axis == nil and variable.is_variable(value) then return reduce_mirrored(strategy, how, value) end
  if replicas > 1 and not values.is_per_replica(value) then
    if value == 0 then return ops.operand(0, nil, "reduce") end
    if how == "SUM" then
      raise("strategy:reduce: \"sum\" of a value that is not PerReplica (%s) over %d replicas: give it what strategy:run returned",
        errors.describe(value), replicas)
    end
    if axis == nil then return ops.operand(value, nil, "reduce") end
  end
  local list = local_tensors("strategy:reduce", value)
  if axis == nil then
    local total = over_workers(strategy, over_replicas(list), "reduces by " .. how)
    return how == "MEAN" and count > 1 and total / count or total
  end
  for _, t in ipairs(list) do
    if math.abs(axis) > t.rank then raise("strategy:reduce: there is no axis %d in a value of %d dimensions", axis, t.rank) end
  end
  local sums, elements = sum_axis(list, axis)
  local purpose = ("reduces by %s over axis %d"):format(how, axis)
  local total = over_workers(strategy, over_replicas(sums), purpose)
  if how == "SUM" then return total end
  elements = strategy:_others() and over_workers(strategy, ops.operand(elements, "float64", "reduce"), purpose):item() or elements
  return (is_float[total.dtype] and total or total:to("float32")) / elements
end

-- One value of values that differ along this axis at most.
local function join(list, axis, owner)
  local function outline(t)
    local shape = { unpack(t.shape) }
    shape[axis > 0 and axis or t.rank + axis + 1] = "any"
    return ("%s {%s}"):format(t.dtype, table.concat(shape, ", "))
  end
  for i = 2, #list do
    if outline(list[i]) ~= outline(list[1]) then
      raise("strategy:gather: %s has %s, %s has %s; they may differ along axis %d only", owner(1), shape_text(list[1]), owner(i),
        shape_text(list[i]), axis)
    end
  end
  return #list == 1 and list[1] or ops.concat(list, axis)
end

-- Replicas of one worker first, since workers may have different numbers of them.
function reduction.gather(strategy, value, axis)
  axis = axis or 1
  if type(axis) ~= "number" or axis == 0 or axis ~= math.floor(axis) then
    raise("strategy:gather: axis is a whole number from 1, or negative, from the last one, got %s", errors.describe(axis))
  end
  local list, others = local_tensors("strategy:gather", value), strategy:_others()
  for _, t in ipairs(list) do
    if t.rank == 0 then raise("strategy:gather: single numbers have no axis; use reshape {1}") end
    if math.abs(axis) > t.rank then raise("strategy:gather: there is no axis %d in a value of %d dimensions", axis, t.rank) end
  end
  local whole = join(list, axis, replica)
  if not others then return whole end
  return join(others:gather_tensors(whole, "gathers along axis " .. axis), axis, function(i) return others:name_of(i - 1) end)
end

return reduction
