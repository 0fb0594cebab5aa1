-- timeseries.lua: flow.timeseries_dataset_from_array: windows over rows of data, as keras.utils has them.
--
-- Rows are gathered by a traced map: `first`, the row at which a window begins, counted from 0, plus `offsets`, counted from 1 as flow.take
-- takes positions. Rules are those of keras/src/utils/timeseries_dataset_utils.py.

local errors = require "flow.errors"
local signature = require "flow.signature"
local tensor = require "flow.tensor"
local ops = require "flow.tensor.ops"
local random = require "flow.tensor.random"
local Dataset = require("flow.data").Dataset

local raise = errors.raise
local WHAT = "timeseries_dataset_from_array"

-- The rows of data from start to before stop, counted from 0.
local function rows_of(data, start, stop)
  data = tensor.on_host(ops.operand(data, nil, WHAT))
  local ranges = { { start + 1, stop } }
  for axis = 2, #data.shape do ranges[axis] = {} end
  return data[ranges]:contiguous()
end

-- Raises unless a value is from `least` to below `most`.
local function check_below(name, value, least, most)
  if value < least or value >= most then
    raise("%s: %s is a whole number from %d to below the %d rows of the data, got %g", WHAT, name, least, most, value)
  end
end

-- Windows of sequence_length rows, sampling_rate rows from one to the next, which begin sequence_stride rows after each other; target i
-- goes with the window that begins at row i. Rows from start_index to before end_index, both counted from 0, take part. Batches, in order
-- or, with shuffle, in a new one in each pass; batch_size = false: single windows.
signature.takes("data: data, targets?: data, sequence_length: count, { sequence_stride: count = 1, sampling_rate: count = 1, "
  .. "batch_size: count|boolean = 128, shuffle: boolean = false, seed?: whole, start_index?: whole, end_index?: count; }")
local from_array = signature.guard("flow." .. WHAT, function(data, targets, length, options)
  data = ops.operand(data, nil, WHAT)
  if data.rank == 0 then raise("%s: data is a single number, expected rows", WHAT) end
  local count = data.shape[1]
  local start, stop = options.start_index or 0, options.end_index or count
  check_below("start_index", start, 0, count)
  if options.end_index then check_below("end_index", stop, start + 1, count) end
  check_below("sampling_rate", options.sampling_rate, 1, count)
  check_below("sequence_stride", options.sequence_stride, 1, count)
  local rate, windows = options.sampling_rate, stop - start - (length - 1) * options.sampling_rate
  if targets then
    targets = ops.operand(targets, nil, WHAT)
    if targets.rank == 0 then raise("%s: targets is a single number, expected a row for each window", WHAT) end
    windows = math.min(windows, targets.shape[1])
  end
  if windows < 1 then
    raise("%s: %d rows hold no window of %d rows, %d apart", WHAT, stop - start, length, rate)
  end
  if targets then
    local last = start + windows - 1 - (windows - 1) % options.sequence_stride
    if targets.shape[1] <= last then
      raise("%s: targets has %d rows, expected row %d, counted from 0, for the last window", WHAT, targets.shape[1], last)
    end
    targets = rows_of(targets, start, math.min(stop, targets.shape[1]))
  end
  data = rows_of(data, start, stop)
  local starts = tensor.arange(0, windows, options.sequence_stride, { dtype = "int64", device = "cpu" })
  if options.shuffle then
    local order = random.permutation(starts.size, { seed = options.seed })
    starts = ops.take(starts, order, 1)
  end
  local offsets = tensor.arange(1, 1 + length * rate, rate, { dtype = "int64", device = "cpu" })
  local dataset = Dataset.from_tensor_slices { starts }:map(function(first)
    local window = ops.take(data, offsets + first, 1)
    if not targets then return window end
    return window, ops.take(targets, first + 1, 1)
  end, { num_parallel_calls = -1 })
  local size = options.batch_size
  if options.shuffle then dataset = dataset:shuffle(size and size * 8 or 1024, { seed = options.seed }) end
  return size and dataset:batch(size) or dataset
end, signature.pop())

return { from_array = from_array }
