-- quantization.lua: model:quantize(calibration): predictions in int8 after training in float32.
--
--   model:quantize(dataset)      Dense, Conv1D, Conv2D and DepthwiseConv layers in int8: inputs by the ranges that they have while the
--                                model predicts this data, kernels by the largest weight of each output
--   model:quantize("int8")       as in Keras: Dense, EinsumDense, the projections of attentions and Embedding, without data: the range of
--                                each row of the input is found at each call
--
-- BatchNormalization and activations after them are part of the same op (core/plan/passes/fuse_quantized.c); everything else is float32.
--
-- find_ranges sets the layers to CALIBRATING, in which they note the least and the largest value of their inputs, and predicts the data
-- eagerly; then each layer that was called gets its range and the mode QUANTIZED (layers/quantization.lua).

local errors = require "flow.errors"
local native = require "flow.ffi"
local object = require "flow.object"
local quantization = require "flow.layers.quantization"
local Feed = require "flow.train.feed"

local raise = errors.raise

-- Whether filters, as Keras' quantize takes them, let a layer through: a pattern of its name, a list of such, or a function of the layer.
local function passes(layer, filters)
  if filters == nil then return true end
  if type(filters) == "function" then return filters(layer) and true or false end
  if type(filters) == "string" then return layer.name:find(filters) ~= nil end
  if type(filters) ~= "table" then
    raise("quantize: filters is a pattern of layers' names, a list of patterns or a function, got %s", errors.describe(filters))
  end
  for _, pattern in ipairs(filters) do
    if type(pattern) ~= "string" then raise("quantize: filters has %s among the patterns", errors.describe(pattern)) end
    if layer.name:find(pattern) then return true end
  end
  return false
end

-- The layers of a model that can be quantized, that wanted(layer) and filters let through; raises if there are none.
local function candidates(model, filters, wanted, by_row)
  local list = {}
  for _, layer in ipairs(quantization.layers(model)) do
    if quantization.can(layer, by_row) and wanted(layer) and passes(layer, filters) then list[#list + 1] = layer end
  end
  if #list == 0 then
    raise("quantize: %s has no layer that can be quantized%s", object.title(model), filters and " and passes filters" or "")
  end
  return list
end

-- Runs the model in floats and returns the ranges of the layers' inputs; false: the layer was not called. Changes nothing.
local function find_ranges(model, layers, calibration, options)
  local before, ranges = {}, {}
  for i, layer in ipairs(layers) do before[i] = { quantization.get(layer) } end
  local function start()
    for _, layer in ipairs(layers) do quantization.set(layer, "CALIBRATING") end
    rawset(model, "_runs_eagerly", true)
  end
  local function stop()
    rawset(model, "_runs_eagerly", nil)
    for i, layer in ipairs(layers) do
      local _, low, high = quantization.get(layer)
      ranges[i] = (low < 0 or high > 0) and { low, high }
      quantization.set(layer, unpack(before[i]))
    end
  end
  native.between(start, stop, function()
    model:predict(calibration, { batch_size = options.batch_size, steps = options.steps, verbose = 0 })
  end)
  return ranges
end

-- Model:quantize. options: filters, batch_size and steps, the last two for predict. Raises before anything changes, except that a model
-- that was not built is built.
return function(model, calibration, options)
  if type(calibration) == "string" then
    if calibration ~= "int8" then
      raise("quantize: the mode %q is not supported: \"int8\", or data for calibration, such as a few batches of what the model was " ..
        "trained on", calibration)
    end
    local function in_keras(layer) return quantization.BY_ROW[layer._record_name] ~= nil end
    for _, layer in ipairs(candidates(model, options.filters, in_keras, true)) do quantization.by_row(layer) end
    return
  end
  local placed = model._placement
  if placed and placed.count > 1 then
    raise("quantize: %s is trained on %d replicas: save it, and quantize what flow.load_model gives outside of the strategy's scope",
      object.title(model), placed.count)
  end
  if not rawget(model, "_built") then      -- by a first batch, of which a data set tells the size
    model:predict(calibration, { batch_size = not Feed.is(calibration) and 1 or nil, steps = 1, verbose = 0 })
  end
  local layers = candidates(model, options.filters, function(layer) return quantization.BY_ROW[layer._record_name] ~= "only" end)
  local ranges = find_ranges(model, layers, calibration, options)
  for i, layer in ipairs(layers) do
    if ranges[i] then quantization.set(layer, "QUANTIZED", unpack(ranges[i])) end
  end
end
