-- fit.lua: the loops over data: fit, evaluate, predict. What one batch does is in steps.lua, the hot loop in batches.lua.

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local models = require "flow.model"
local training = require "flow.training"
local steps = require "flow.steps"
local batches = require "flow.batches"
local callbacks = require "flow.callbacks"
local progress = require "flow.progress"
local log = require "flow.log"
local tensor = require "flow.tensor"
local arguments = require "flow.arguments"

local C, raise = native.C, errors.raise
local context = native.context
local Model = models.Model

---- options ---------------------------------------------------------------------------------------------------------------------

-- Keras' signatures in positional order after the data.
local FIT = { "batch_size", "epochs", "verbose", "callbacks", "validation_split", "validation_data", "shuffle", "class_weight",
              "sample_weight", "initial_epoch", "steps_per_epoch", "validation_steps", "validation_batch_size", "validation_freq" }
local EVALUATE = { "batch_size", "verbose", "sample_weight", "steps", "callbacks", "return_dict" }
local PREDICT = { "batch_size", "verbose", "steps", "callbacks" }

-- x, y and options out of f(x, y, { ... }), f(data, { ... }) or positions in Keras' order.
local function read_call(what, parameters, x, y, ...)
  local known, positional = {}, select("#", ...)
  for _, name in ipairs(parameters) do known[name] = true end
  local options = {}
  if positional == 0 and arguments.is_options(y) then
    options, y = y, nil
  elseif positional > 0 then
    options = arguments.named(what, parameters, #parameters, ...)
  end
  errors.check_options(what, options, known)
  if x == nil then raise("%s: there is no data: x is nil", what) end
  return y, options
end

local function positive(what, name, value, default)
  if value == nil then return default end
  if type(value) ~= "number" or value < 1 or value ~= math.floor(value) then
    raise("%s: %s is a whole number from 1, got %s", what, name, errors.describe(value))
  end
  return value
end

---- data ------------------------------------------------------------------------------------------------------------------------------

-- Tensors of one data set: x, y, weights as lists and their number of rows.
local function read_data(model, what, x, y, weights)
  local data = { x = training.tensors(x, "x"), y = training.tensors(y, "y"), weights = training.tensors(weights, "sample_weight") }
  if #data.x == 0 then raise("%s: there is no data", what) end
  data.rows = training.cardinality(data.x, data.y, data.weights)
  if data.rows == 0 then raise("%s: %s: the data has no samples", object.title(model), what) end
  return data
end

local function rows_of(data, first, count)
  local part = { rows = count }
  for _, name in ipairs { "x", "y", "weights" } do
    part[name] = {}
    for i, t in ipairs(data[name]) do part[name][i] = training.rows(t:contiguous(), first, count) end
  end
  return part
end

-- The last part of the data, taken before shuffling, becomes validation data.
local function split(data, share)
  if type(share) ~= "number" or share < 0 or share >= 1 then
    raise("fit: validation_split is a number from 0 to below 1, got %s", errors.describe(share))
  end
  local at = math.floor(data.rows * (1 - share))
  if at == 0 or at == data.rows then
    raise("fit: validation_split = %g of %d samples leaves one side empty", share, data.rows)
  end
  return rows_of(data, 0, at), rows_of(data, at, data.rows - at)
end

local function flat(data)
  local list = {}
  for _, name in ipairs { "x", "y", "weights" } do
    for _, t in ipairs(data[name]) do list[#list + 1] = t:contiguous() end
  end
  return list, { x = #data.x, y = #data.y, weights = #data.weights }
end

---- loops -----------------------------------------------------------------------------------------------------------------------------

local function failed(status, model)
  if status == C.FLOW_INTERRUPTED then
    native.clear_interrupt()
    rawset(model, "stop_training", true)
    return true
  end
  native.check(status)
end

-- One pass of a test step; results land in the model's metrics.
local function test_pass(model, data, size, limit, list, bar)
  local arrays, layout = flat(data)
  local source = batches.source(arrays, data.rows, size)
  local step = steps.get(model, "test", arrays, layout, math.min(size, data.rows))
  local count = math.min(limit or math.huge, batches.count(source))
  training.reset(model)
  list:call("on_test_begin", {})
  local watch = list:has("on_test_batch_begin") or list:has("on_test_batch_end")
  local after
  if watch or (bar and bar.verbose == 1) then
    after = function(batch, rows)
      if watch then
        list:call("on_test_batch_end", batch, training.results(model))
        if batch + 1 < count then list:call("on_test_batch_begin", batch + 1, {}) end
      end
      if bar then
        bar:advance(1, rows)
        if bar:due() then bar:draw(training.results(model)) end
      end
      return native.interrupted()
    end
    list:call("on_test_batch_begin", 0, {})
  end
  local status, done = batches.run(source, step.instance, training.seed(model), 0, 0, count, after)
  if status ~= 0 then failed(status, model) end
  if bar and not after then bar:advance(done, data.rows) end
  list:call("on_test_end", training.results(model))
end

-- One epoch of training; returns whether training shall stop.
local function train_epoch(model, loop)
  local list, bar, source, step = loop.list, loop.bar, loop.source, loop.step
  local watch = list:has("on_train_batch_begin") or list:has("on_train_batch_end")
  local after
  if watch or bar.verbose == 1 then
    after = function(batch, rows)
      if watch then
        list:call("on_train_batch_end", batch, training.results(model))
        if batch + 1 < loop.count and not model.stop_training then list:call("on_train_batch_begin", batch + 1, {}) end
      end
      bar:advance(1, rows)
      if bar:due() then bar:draw(training.results(model)) end
      return model.stop_training
    end
    if watch then list:call("on_train_batch_begin", 0, {}) end
  end
  local status, done = batches.run(source, step.instance, training.seed(model), model._train_steps, 0, loop.count, after)
  rawset(model, "_train_steps", model._train_steps + done)
  if not after then bar:advance(done, math.min(done * source.size, source.rows)) end
  if status ~= 0 then failed(status, model) end
end

local function validate_now(frequency, epoch)
  if type(frequency) == "table" then
    for _, wanted in ipairs(frequency) do
      if wanted == epoch + 1 then return true end
    end
    return false
  end
  return (epoch + 1) % (frequency or 1) == 0
end

local function run_fit(model, data, validation, options)
  local size = positive("fit", "batch_size", options.batch_size, options.steps_per_epoch and math.ceil(data.rows / options.steps_per_epoch) or 32)
  local epochs = positive("fit", "epochs", options.epochs, 1)
  local limit = positive("fit", "steps_per_epoch", options.steps_per_epoch)
  local initial = options.initial_epoch or 0
  local verbose = progress.verbosity(options.verbose)
  local shuffle = options.shuffle ~= false
  local order = shuffle and tensor.arange(data.rows, { dtype = "int64" }) or nil
  local arrays, layout = flat(data)
  local source = batches.source(arrays, data.rows, size, order)
  local loop = { source = source, count = math.min(limit or math.huge, batches.count(source)) }
  loop.step = steps.get(model, "train", arrays, layout, math.min(size, data.rows))
  loop.list = callbacks.list(options.callbacks, model, { epochs = epochs, steps = loop.count, verbose = verbose })
  local history = loop.list:find(callbacks.History) or callbacks.History()
  if not loop.list:find(callbacks.History) then loop.list:add(history, model) end
  rawset(model, "history", history)
  rawset(model, "stop_training", false)

  loop.list:call("on_train_begin", {})
  for epoch = initial, epochs - 1 do
    training.reset(model)
    loop.list:call("on_epoch_begin", epoch, {})
    if verbose > 0 and epochs > 1 then log.print("%s", ("Epoch %d/%d\n"):format(epoch + 1, epochs)) end
    if order then native.check(C.flow_tensor_shuffle(native.pointer(order), C.flow_context_next_seed(context))) end
    loop.bar = progress.new(verbose, loop.count)
    train_epoch(model, loop)
    local logs = training.results(model)
    if validation and validate_now(options.validation_freq, epoch) and not native.interrupted() then
      test_pass(model, validation, positive("fit", "validation_batch_size", options.validation_batch_size, size), options.validation_steps, loop.list)
      training.results(model, "val_", logs)
    end
    loop.bar:finish(logs)
    loop.list:call("on_epoch_end", epoch, logs)
    if model.stop_training then break end
  end
  loop.list:call("on_train_end", {})
  return history
end

---- the calls -------------------------------------------------------------------------------------------------------------------------

Model.fields.stop_training = function() return false end

-- model:fit(x, y, { epochs = 3, ... }) -> History. Options are Keras'; see FIT above.
function Model:fit(x, y, ...)
  local options
  y, options = read_call("fit", FIT, x, y, ...)
  training.compiled(self)
  local weights = options.sample_weight
  if options.class_weight then weights = training.class_weights(options.class_weight, y, weights) end
  local data, validation = read_data(self, "fit", x, y, weights), nil
  if options.validation_data then
    local v = options.validation_data
    if type(v) ~= "table" or #v < 2 then raise("fit: validation_data is { x, y } or { x, y, sample_weight }, got %s", errors.describe(v)) end
    validation = read_data(self, "validation_data", v[1], v[2], v[3])
  elseif options.validation_split and options.validation_split > 0 then
    data, validation = split(data, options.validation_split)
  end
  return native.defer_interrupts(run_fit, self, data, validation, options)
end

-- model:evaluate(x, y, { ... }) -> { loss =, accuracy = }
function Model:evaluate(x, y, ...)
  local options
  y, options = read_call("evaluate", EVALUATE, x, y, ...)
  training.compiled(self)
  local data = read_data(self, "evaluate", x, y, options.sample_weight)
  local size = positive("evaluate", "batch_size", options.batch_size, 32)
  local limit = positive("evaluate", "steps", options.steps)
  local list = callbacks.list(options.callbacks, self, { steps = limit })
  local bar = progress.new(progress.verbosity(options.verbose), math.min(limit or math.huge, math.ceil(data.rows / size)))
  return native.defer_interrupts(function()
    test_pass(self, data, size, limit, list, bar)
    local results = training.results(self)
    bar:finish(results)
    return results
  end)
end

local function run_predict(self, data, size, limit, list, bar)
  local arrays, layout = flat(data)
  local step = steps.get(self, "predict", arrays, layout, math.min(size, data.rows))
  local count = math.min(limit or math.huge, math.ceil(data.rows / size))
  local total, results = math.min(data.rows, count * size), {}
  list:call("on_predict_begin", {})
  for batch = 0, count - 1 do
    local first = batch * size
    local n = math.min(size, data.rows - first)
    local views = {}
    for i, array in ipairs(arrays) do views[i] = training.rows(array, first, n) end
    list:call("on_predict_batch_begin", batch, {})
    C.flow_instance_scalars(step.instance, training.seed(self), 0, first)
    local pointers, inputs = native.pointers(views)
    local outputs = native.out("flow_tensor", 16)
    native.try(C.flow_instance_run, context, step.instance, pointers, inputs, outputs)
    for i = 0, 15 do
      if outputs[i] ~= nil then
        local part = native.tensor(outputs[i])
        if not results[i + 1] then
          local shape = part.shape
          shape[1] = total
          results[i + 1] = tensor.new(native.dtype(part.dtype), shape)
        end
        native.check(C.flow_tensor_copy(native.pointer(training.rows(results[i + 1], first, n)), native.pointer(part)))
      end
    end
    list:call("on_predict_batch_end", batch, {})
    bar:advance(1, n)
    if bar:due() then bar:draw() end
  end
  list:call("on_predict_end", {})
  bar:finish()
  return #results == 1 and results[1] or results
end

-- model:predict(x, { batch_size = 32 }) -> a tensor, or a list of them for several outputs.
function Model:predict(x, ...)
  local _, options
  if arguments.is_options((...)) or select("#", ...) == 0 then _, options = read_call("predict", PREDICT, x, ...)
  else _, options = read_call("predict", PREDICT, x, nil, ...) end
  if not self._steps then
    rawset(self, "_steps", {})
    rawset(self, "_train_steps", 0)
  end
  local data = read_data(self, "predict", x)
  local size = positive("predict", "batch_size", options.batch_size, 32)
  local limit = positive("predict", "steps", options.steps)
  local list = callbacks.list(options.callbacks, self, {})
  local bar = progress.new(progress.verbosity(options.verbose), math.min(limit or math.huge, math.ceil(data.rows / size)))
  return run_predict(self, data, size, limit, list, bar)
end
