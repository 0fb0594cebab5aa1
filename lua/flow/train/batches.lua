-- batches.lua: the hot loop over tensors. The step's plan runs in C for one batch after another, without copying rows unless they are
-- shuffled, until an observer is due (batch_watch.lua).

local native = require "flow.ffi"
local tensor = require "flow.tensor"
local view_rows = require "flow.tensor.rows"
local resident = require "flow.train.device_data"

local C = native.C
local context = native.context
local min = math.min
local batches = {}

-- Arrays with equal numbers of rows, fed in batches of `size`, or in one if they have fewer. order: a permutation (int64) or nil. The
-- source keeps the tensors alive whose pointers it holds; position is the next batch, counted from 0.
function batches.source(arrays, rows, size, order)
  return { arrays = arrays, rows = rows, size = min(size, rows), order = order, from = native.pointers(arrays), position = 0,
           permutation = order and native.pointer(order) or nil, order_there = nil }
end

-- Copies the source's arrays to the device of its model, if it has one and they fit.
function batches.keep_on_device(source, model)
  local list = { unpack(source.arrays) }
  list[#list + 1] = source.order
  local there = resident.tensors(model, list)
  if not there then return end
  if source.order then source.order_there = table.remove(there) end
  source.arrays, source.from = there, native.pointers(there)
  source.permutation = source.order and native.pointer(source.order_there) or nil
end

-- Call this after writing to the permutation.
local function send_order(source)
  if source.order_there then native.check(C.flow_tensor_copy(source.permutation, native.pointer(source.order))) end
end

-- Replaces the permutation.
function batches.reorder(source, order)
  native.check(C.flow_tensor_copy(native.pointer(source.order), native.pointer(order)))
  send_order(source)
end

-- Batches in a pass over all rows; the last one may be smaller.
function batches.count(source)
  return math.ceil(source.rows / source.size)
end

-- Goes back to the first batch, and draws a new order if there is one.
function batches.restart(source)
  source.position = 0
  if not source.order then return end
  native.check(C.flow_tensor_shuffle(native.pointer(source.order), C.flow_context_next_seed(context)))
  send_order(source)
end

local done = native.array("double", 1)

-- Runs batches first .. last - 1; see batches.run. Returns a status and how many ran, also after a failure. Each call of the library runs
-- as many batches as the watch allows, and tells in `done` how many it finished.
local function loop(source, instance, seed, step, first, last, watch)
  local from, count, permutation = source.from, #source.arrays, source.permutation
  local batch = first
  while batch < last do
    local begin, stop = batch * source.size, min(watch and batch + watch.every() or last, last) * source.size
    local rows = min(stop, source.rows) - begin
    C.flow_instance_scalars(instance, seed, step + batch - first, 0)
    local status = tonumber(C.flow_instance_run_batches(context, instance, from, count, permutation, begin, rows, source.size, done))
    batch = batch + done[0]
    if status ~= 0 or C.flow_instance_stop_agreed(instance) ~= 0 then return status, batch - first end
    if watch and watch.after(batch - first - 1, rows) then break end
  end
  return 0, batch - first
end

-- The rows of a batch, as separate tensors where an order picks them.
local function rows_of(source, begin, rows)
  local list = {}
  for i, array in ipairs(source.arrays) do
    if source.permutation then
      local shape = array.shape
      shape[1] = rows
      list[i] = tensor.new(native.dtype(array.dtype), shape)
      native.check(C.flow_tensor_gather_rows(source.from[i - 1], source.permutation, begin, rows, native.pointer(list[i])))
    else
      list[i] = view_rows(array, begin, rows)
    end
  end
  return list
end

-- The same with a step that runs eagerly.
local function eager_loop(source, eager, first, last, watch)
  for batch = first, last - 1 do
    if native.interrupted() then return C.FLOW_INTERRUPTED, batch - first end
    local begin = batch * source.size
    local rows = min(source.size, source.rows - begin)
    eager(rows_of(source, begin, rows))
    if watch and watch.after(batch - first, rows) then return 0, batch - first + 1 end
  end
  return 0, last - first
end

-- Runs `count` batches from the source's position. step: of steps.lua; number: of the first step, for the random ops; watch: of
-- batch_watch.lua, or nil. Returns a status and the number of batches that ran; fewer also if a worker asked for a stop.
function batches.run(source, step, seed, number, count, watch)
  step.running = step.running + 1
  local first = source.position
  local ok, status, ran
  if step.eager then ok, status, ran = pcall(eager_loop, source, step.eager, first, first + count, watch)
  else ok, status, ran = pcall(loop, source, step.instance, seed, number, first, first + count, watch) end
  step.running = step.running - 1
  if not ok then error(status, 0) end
  source.position = first + ran
  return status, ran
end

return batches
