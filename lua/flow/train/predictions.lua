-- predictions.lua: puts the result of predict together from the outputs of its batches. Outputs stay on the device until there are enough
-- of them to be worth a wait; then they are copied to the host in one piece.
--
-- An object belongs to one call of predict: the loop puts the outputs of a batch into `outputs`, an array of new references, and calls
-- add(rows), which takes them over; results() joins all. With callbacks that get the outputs of each execution, take() is called after
-- each. If the number of rows is known, outputs are copied into one tensor of that size as they come; else pieces are kept and joined at
-- the end.

local native = require "flow.ffi"
local errors = require "flow.errors"
local devices = require "flow.devices"
local tensor = require "flow.tensor"
local rows_of = require "flow.tensor.rows"
local ops = require "flow.tensor.ops"
local steps = require "flow.train.steps"
local training = require "flow.train.compile"
local workers = require "flow.distribute.model_workers"
local named_data = require "flow.model.named_data"

local C, raise = native.C, errors.raise
local predictions = {}

local PIECE_BYTES, PIECE_BATCHES = 2 ^ 24, 256      -- that a device keeps at most

local Predictions = {}
Predictions.__index = Predictions

-- total: rows in all, or nil if unknown. watched: the results of each execution are fetched by take().
function predictions.new(model, total, watched)
  return setmetatable({ model = model, total = total, outputs = native.out("flow_tensor", steps.MOST_OUTPUTS),
                        gathers = workers.of(model) ~= nil, watched = watched,
                        waiting = {}, batches = 0, bytes = 0,           -- of each output, parts that are where they were computed
                        taken = 0, rows = 0,                            -- rows that came to the host; rows in all
                        pieces = {} }, Predictions)                     -- of each output, tensors on the host
end

-- Bytes of a tensor's elements.
local function bytes_of(t)
  return t.size * C.flow_dtype_size(native.dtype(t.dtype))
end

local function refuse(self, output, shape)
  raise("predict: output %d of \"%s\" has the shape {%s}, which is not one row for each row of a batch, so batches cannot be put "
    .. "together: call the model, model(x), or predict_on_batch", output, self.model.name, table.concat(shape, ", "))
end

-- Adds what is in self.outputs, from a batch of this many rows. Where the rows of all are known, each output has these.
function Predictions:add(rows)
  local count = 0
  while count < steps.MOST_OUTPUTS and self.outputs[count] ~= nil do
    local part = native.tensor(self.outputs[count])
    count = count + 1
    if self.total and not self.gathers and (part.rank == 0 or part.shape[1] ~= rows) then refuse(self, count, part.shape) end
    if self.gathers then part = workers.gather_rows(self.model, tensor.on_host(part)) end
    self.waiting[count] = self.waiting[count] or {}
    table.insert(self.waiting[count], part)
    self.bytes = self.bytes + bytes_of(part)
  end
  self.rows, self.batches = self.rows + rows, self.batches + 1
  if not self.watched and self:is_enough() then self:take() end
end

-- Whether to copy waiting outputs to the host now; those that are on the host need no wait.
function Predictions:is_enough()
  return self.model._device < 0 or self.gathers or self.bytes >= PIECE_BYTES or self.batches >= PIECE_BATCHES
end

-- Copies the rows of a tensor into another one, from its row `first` on, counted from 0.
local function copy_rows(to, first, from)
  local rows = rows_of(to, first, from.shape[1])
  native.check(C.flow_tensor_copy(native.pointer(rows), native.pointer(from)))
end

-- Appends rows of an output, a tensor on the host. Where they are all that there will be, the tensor itself is kept.
local function append(self, output, part)
  local pieces, shape = self.pieces[output] or {}, part.shape
  if #shape == 0 or self.total and self.taken + shape[1] > self.total then refuse(self, output, shape) end
  self.pieces[output] = pieces
  if not self.total or shape[1] == self.total then
    pieces[#pieces + 1] = part
    return
  end
  if not pieces[1] then
    shape[1] = self.total
    pieces[1] = tensor.new(native.dtype(part.dtype), shape)
  end
  copy_rows(pieces[1], self.taken, part)
end

-- Joins the parts of one output. Unknown sizes may differ from batch to batch.
local function join(parts)
  for i = 2, #parts do
    local before, shape = parts[i - 1].shape, parts[i].shape
    for axis = 2, #shape do
      if before[axis] ~= shape[axis] then
        raise("predict: an output of one batch has shape {%s}, of a later one {%s}, so they are not rows of one tensor: predict batches " ..
          "of one size together, or each by predict_on_batch", table.concat(before, ", "), table.concat(shape, ", "))
      end
    end
  end
  return #parts == 1 and parts[1] or ops.concat(parts, 1)
end

-- The tensors of all rows, as pointers, if each output has one to which all batches so far were copied; else nil.
local function whole_results(self)
  if not self.total or self.gathers or self.watched or self.model._device >= 0 or self.batches > 0 then return nil end
  local list = {}
  for i, pieces in ipairs(self.pieces) do
    if #pieces > 1 or pieces[1].shape[1] ~= self.total then return nil end
    list[i] = pieces[1]
  end
  return list[1] and native.pointers(list)
end

-- Runs the batches that are left in a few calls of the library, which puts rows where they belong. Only if all batches before were added,
-- and results are on the host at their whole size; else returns false. rest: step (of steps.lua), its number, arrays, size of a batch, the
-- first batch that is left, counted from 0, the count of all, watch (of batch_watch.lua, or nil).
function Predictions:run_rest(rest)
  local step, batch, size, watch = rest.step, rest.batch, rest.size, rest.watch
  local results = not step.eager and whole_results(self)
  if not results then return false end
  local on_host = {}
  for i, array in ipairs(rest.arrays) do on_host[i] = tensor.on_host(array) end
  local inputs, input_count = native.pointers(on_host)
  C.flow_instance_scalars(step.instance, training.seed(self.model), rest.number, 0)
  while batch < rest.count do
    local first, stop = batch * size, math.min(watch and batch + watch.every() or rest.count, rest.count)
    local rows = math.min(stop * size, self.total) - first
    native.check(C.flow_instance_predict_rows(native.context, step.instance, inputs, input_count, first, rows, size, results))
    self.rows = self.rows + rows
    if watch then watch.after(stop - 1, rows) end
    batch = stop
  end
  self.taken = self.rows
  return true
end

-- Copies waiting outputs to the host and returns them, by output.
function Predictions:take()
  local list = {}
  for i, parts in ipairs(self.waiting) do
    list[i] = tensor.on_host(#parts > 1 and devices.within(self.model._device, join, parts) or parts[1])
    append(self, i, list[i])
  end
  self.taken, self.waiting, self.batches, self.bytes = self.rows, {}, 0, 0
  return named_data.results(self.model, list)
end

-- All rows: a tensor, a list of them for several outputs, or a table by the names of the outputs.
function Predictions:results()
  if self.batches > 0 then self:take() end
  local list = {}
  for i, pieces in ipairs(self.pieces) do list[i] = join(pieces) end
  return named_data.results(self.model, list)
end

return predictions
