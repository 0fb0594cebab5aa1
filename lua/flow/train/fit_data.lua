-- fit_data.lua: reads the arguments of fit, evaluate and predict: tensors or data sets, and fit's options, whose defaults may depend on
-- each other.
--
-- data of arrays is { x = list, y = list, weights = list, rows =, is_x_alone =, of_x = }; of a data set { feed = Feed }. What is read here
-- has been checked against the model only as far as numbers of rows and of components; the step that is traced for it checks shapes.

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local training = require "flow.train.compile"
local progress = require "flow.train.progress"
local Feed = require "flow.train.feed"
local validation_epochs = require "flow.train.validation_epochs"
local datasets = require "flow.distribute.dataset"
local py_dataset = require "flow.data.py_dataset"
local view_rows = require "flow.tensor.rows"

local raise = errors.raise
local fit_data = {}

-- The options that fit keeps, with defaults that depend on other options. rows: of the data, nil of a data set. With steps_per_epoch alone
-- a batch has as many rows as make that number of steps.
local function read_fit_options(options, rows)
  local steps_per_epoch = options.steps_per_epoch
  local size = options.batch_size or steps_per_epoch and rows and math.ceil(rows / steps_per_epoch) or 32
  return {
    batch_size = size, steps_per_epoch = steps_per_epoch, shuffle = options.shuffle, callbacks = options.callbacks,
    epochs = options.epochs, initial_epoch = options.initial_epoch, verbose = progress.verbosity(options.verbose),
    validation_freq = validation_epochs.check(options.validation_freq), validation_steps = options.validation_steps,
    validation_batch_size = options.validation_batch_size or size,
  }
end

local KINDS = { fit = "train", validation_data = "test", evaluate = "test", predict = "predict" }

-- Tensors of one data set: x, y, weights as lists, their number of rows, whether they are x alone, one tensor or inputs by name, and of
-- the latter their structure, if steps get them as they are. what: the call, or "validation_data".
function fit_data.read(model, what, x, y, weights)
  local data = {}
  data.x, data.y, data.weights, data.of_x = training.read_data(model, KINDS[what], x, y, weights)
  if #data.x == 0 then raise("%s: there is no data", what) end
  data.is_x_alone = (native.is_tensor(x) and #data.x == 1 or data.of_x ~= nil) and #data.y == 0 and #data.weights == 0
  data.rows = training.cardinality(data.x, data.y, data.weights)
  if data.rows == 0 then raise("%s: %s: the data has no samples", object.title(model), what) end
  return data
end

-- `count` rows of data from row `first` on, counted from 0, as views.
local function rows_of(data, first, count)
  local part = { rows = count, is_x_alone = data.is_x_alone, of_x = data.of_x }
  for _, name in ipairs { "x", "y", "weights" } do
    part[name] = {}
    for i, t in ipairs(data[name]) do part[name][i] = view_rows(t:contiguous(), first, count) end
  end
  return part
end

-- The last part of the data, taken before shuffling, becomes validation data: returns both parts. share: validation_split, above 0 and
-- below 1.
local function split(data, share)
  if not (share >= 0 and share < 1) then
    raise("fit: validation_split is a number from 0 to below 1, got %s", errors.describe(share))
  end
  local at = math.floor(data.rows * (1 - share))
  if at == 0 or at == data.rows then
    raise("fit: validation_split = %g of %d samples leaves one side empty", share, data.rows)
  end
  return rows_of(data, 0, at), rows_of(data, at, data.rows - at)
end

local INSTEAD = {
  sample_weight = "its elements are x, y, sample_weight",
  batch_size = "its elements are batches already, of the size that ds:batch(n) gave",
  validation_split = "flow.utils.split_dataset(ds) makes two, and validation_data takes the second",
}

-- Checks a call with a Dataset, which has targets and weights and is in batches already.
function fit_data.read_feed(model, kind, what, dataset, y, options, limit)
  if y ~= nil then raise("%s: y is not given with a Dataset: its elements are x, y", what) end
  for _, name in ipairs { "sample_weight", "validation_split", "batch_size" } do
    local value = options[name]
    if value ~= nil and value ~= 0 then raise("%s: %s does not go with a Dataset: %s", what, name, INSTEAD[name]) end
  end
  dataset = datasets.made(dataset, model, what)
  if py_dataset.is(dataset) then dataset = dataset:_dataset(kind == "train" and options.shuffle ~= false) end
  return { feed = Feed.new(model, kind, what, dataset, limit, options.class_weight) }
end

-- The data of validation_data: a data set, or a list of x, y and perhaps weights. limit: validation_steps, or nil.
local function read_validation(model, given, limit)
  if Feed.is(given) then return fit_data.read_feed(model, "test", "validation_data", given, nil, {}, limit) end
  if type(given) ~= "table" or getmetatable(given) or errors.check_list("fit: validation_data", given) < 2 or #given > 3 then
    raise("fit: validation_data is { x, y } or { x, y, sample_weight }, got %s", errors.describe(given))
  end
  return fit_data.read(model, "validation_data", given[1], given[2], given[3])
end

-- Reads fit's options: its data, that of validation or nil, and the rest.
function fit_data.read_fit(self, options)
  local x, y = options.x, options.y
  if Feed.is(x) then
    local how = read_fit_options(options)
    local data = fit_data.read_feed(self, "train", "fit", x, y, options, how.steps_per_epoch)
    return data, options.validation_data and read_validation(self, options.validation_data, how.validation_steps), how
  end
  training.check_sample_weight(options.sample_weight)
  local weights = options.sample_weight
  if options.class_weight then weights = training.class_weights(self, options.class_weight, y, weights) end
  local data, validation, _ = fit_data.read(self, "fit", x, y, weights), nil, nil
  if options.validation_data then
    validation = read_validation(self, options.validation_data, options.validation_steps)
  elseif options.validation_split ~= 0 then
    data, validation = split(data, options.validation_split)
    if options.class_weight then _, validation = split(fit_data.read(self, "fit", x, y), options.validation_split) end      -- for training
  end
  return data, validation, read_fit_options(options, data.rows)
end

return fit_data
