-- batches.lua: the hot loop over tensors: the step's plan runs in C on the rows where they lie, or, in another order, on rows
-- that were gathered into staging tensors in C. Lua only counts; the loop is compiled by LuaJIT and allocates nothing.

local native = require "flow.ffi"
local tensor = require "flow.tensor"

local C = native.C
local context = native.context
local min = math.min
local batches = {}

-- Arrays with equal numbers of rows, fed in batches of `size`. order: a permutation (int64) or nil. The source keeps the tensors
-- alive whose pointers it holds; position is the next batch, counted from 0.
function batches.source(arrays, rows, size, order)
  local self = { arrays = arrays, rows = rows, size = size, order = order, staging = {}, position = 0 }
  for i, array in ipairs(order and arrays or {}) do
    local shape = array.shape
    shape[1] = min(size, rows)
    self.staging[i] = tensor.new(native.dtype(array.dtype), shape)
  end
  self.from = native.pointers(arrays)
  self.into = native.pointers(self.staging)
  self.permutation = order and native.pointer(order) or nil
  return self
end

-- Batches in a pass over all rows; the last one may be smaller.
function batches.count(source)
  return math.ceil(source.rows / source.size)
end

-- Back to the first batch, in a new order if there is one.
function batches.restart(source)
  source.position = 0
  if source.order then native.check(C.flow_tensor_shuffle(source.permutation, C.flow_context_next_seed(context))) end
end

-- Runs batches first .. last - 1 in the order of the rows; see batches.run.
local function loop_in_place(source, instance, seed, step, first, last, after)
  local from, count = source.from, #source.arrays
  local rows, size = source.rows, source.size
  for batch = first, last - 1 do
    local begin = batch * size
    local n = min(size, rows - begin)
    C.flow_instance_scalars(instance, seed, step + batch - first, begin)
    local status = tonumber(C.flow_instance_run_rows(context, instance, from, count, begin, n))
    if status ~= 0 or C.flow_instance_stop_wished(instance) ~= 0 then return status, batch - first end
    if after and after(batch - first, n) then return 0, batch - first + 1 end
  end
  return 0, last - first
end

-- The same in the order of the permutation. The first two arrays, x and y, are gathered without an inner
-- loop or call: LuaJIT would begin with compiling that, and give up on it, before it tries the loop over batches.
local function loop_gathered(source, instance, seed, step, first, last, after)
  local from, into, count, permutation = source.from, source.into, #source.arrays, source.permutation
  local rows, size = source.rows, source.size
  for batch = first, last - 1 do
    local begin = batch * size
    local n = min(size, rows - begin)
    local status = tonumber(C.flow_tensor_gather_rows(from[0], permutation, begin, n, into[0]))
    if count > 1 and status == 0 then status = tonumber(C.flow_tensor_gather_rows(from[1], permutation, begin, n, into[1])) end
    for i = 2, count - 1 do
      if status == 0 then status = tonumber(C.flow_tensor_gather_rows(from[i], permutation, begin, n, into[i])) end
    end
    if status ~= 0 then return status, batch - first end
    C.flow_instance_scalars(instance, seed, step + batch - first, begin)
    status = tonumber(C.flow_instance_run_rows(context, instance, into, count, 0, n))
    if status ~= 0 or C.flow_instance_stop_wished(instance) ~= 0 then return status, batch - first end
    if after and after(batch - first, n) then return 0, batch - first + 1 end
  end
  return 0, last - first
end

-- Runs `count` batches from the source's position. step: of steps.lua; number: of the first step, for the random ops.
-- after(batch, rows), if given, is called behind each batch, counted from 0, and stops the loop by returning true.
-- Returns a status and the number of batches that ran; fewer also if a worker wished to stop.
function batches.run(source, step, seed, number, count, after)
  step.running = step.running + 1
  local loop = source.order and loop_gathered or loop_in_place
  local ok, status, done = pcall(loop, source, step.instance, seed, number, source.position, source.position + count, after)
  step.running = step.running - 1
  if not ok then error(status, 0) end
  source.position = source.position + done
  return status, done
end

return batches
