-- training.lua: compile, and the calls that run one batch: train_on_batch, test_on_batch, predict_on_batch.
-- fit.lua adds the loops over data.

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local models = require "flow.model"
local optimizers = require "flow.optimizers"
local losses = require "flow.losses"
local metrics = require "flow.metrics"
local steps = require "flow.steps"
local ops = require "flow.ops"
local arguments = require "flow.arguments"

local C, raise = native.C, errors.raise
local context = native.context
local Model = models.Model
local training = {}

---- compile ---------------------------------------------------------------------------------------------------------------------

local COMPILE = { "optimizer", "loss", "loss_weights", "metrics", "weighted_metrics", "run_eagerly", "steps_per_execution", "jit_compile",
                  "auto_scale_loss" }
local known = {}
for _, name in ipairs(COMPILE) do known[name] = true end

-- A loss or metric option may be one value, a list by output, or a table by output name.
local function per_output(model, value, what)
  if value == nil then return {} end
  if type(value) ~= "table" or getmetatable(value) then return nil end
  if value[1] ~= nil or next(value) == nil then return value end
  local outputs, by_position = rawget(model, "outputs"), {}
  if not outputs then raise("%s: compile: %s by output name needs a functional model", object.title(model), what) end
  local names = {}
  for i, output in ipairs(outputs) do names[output.layer.name] = i end
  for name, entry in pairs(value) do
    local position = names[name]
    if not position then raise("%s: compile: %s names the output %q%s", object.title(model), what, tostring(name), errors.suggestion(tostring(name), names)) end
    by_position[position] = entry
  end
  return by_position
end

local function set_losses(model, compiled, loss, weights)
  local outputs = rawget(model, "outputs")
  local count = outputs and #outputs or 1
  local list = per_output(model, loss, "loss")
  for i = 1, list and 0 or count do compiled.losses[i] = losses.get(loss) end
  for i, entry in pairs(list or {}) do compiled.losses[i] = losses.get(entry) end
  local by_output = per_output(model, weights, "loss_weights")
  if not by_output then raise("%s: compile: loss_weights is a list, got %s", object.title(model), errors.describe(weights)) end
  compiled.loss_weights = by_output
end

local function add_metrics(model, compiled, list, weighted)
  local outputs = rawget(model, "outputs")
  local several = outputs and #outputs > 1
  if list == nil then return end
  if type(list) ~= "table" or getmetatable(list) then list = { list } end
  local named = list[1] == nil and next(list) ~= nil
  local nested = not named and type(list[1]) == "table" and getmetatable(list[1]) == nil
  local by_output = (named or nested) and per_output(model, list, "metrics") or { list }
  for output, entries in pairs(by_output) do
    if type(entries) ~= "table" or getmetatable(entries) then entries = { entries } end
    for _, entry in ipairs(entries) do
      local metric = metrics.get(entry)
      local key = several and outputs[output].layer.name .. "_" .. metric.name or metric.name
      compiled.metrics[#compiled.metrics + 1] = { metric = metric, key = key, output = output, weighted = weighted }
    end
  end
end

-- model:compile { optimizer =, loss =, metrics = { "accuracy" } }; positions as in Keras: optimizer, loss, loss_weights, metrics.
function Model:compile(...)
  local options = errors.check_options("compile", arguments.named("compile", COMPILE, 4, ...), known)
  if options.run_eagerly then raise("compile: run_eagerly = true is not supported: call the model in a GradientTape instead") end
  local compiled = { losses = {}, loss_weights = {}, metrics = {}, loss_tracker = metrics.Mean("loss") }
  compiled.optimizer = optimizers.get(options.optimizer or "adam")
  if options.loss ~= nil then set_losses(self, compiled, options.loss, options.loss_weights) end
  add_metrics(self, compiled, options.metrics, false)
  add_metrics(self, compiled, options.weighted_metrics, true)
  rawset(self, "_compiled", compiled)
  rawset(self, "_steps", {})
  rawset(self, "_train_steps", 0)
end

for _, name in ipairs { "_compiled", "_steps", "_all_built" } do Model.fields[name] = function() return false end end

function Model.fields.optimizer(self) return training.compiled(self).optimizer end
function Model.fields.metrics_names(self)
  local list = { "loss" }
  for _, entry in ipairs(training.compiled(self).metrics) do list[#list + 1] = entry.key end
  return list
end

function training.compiled(model)
  return model._compiled or raise("%s: You must call `compile()` before using the model.", object.title(model))
end

---- results -----------------------------------------------------------------------------------------------------------------------

function training.reset(model)
  model._compiled.loss_tracker:reset_state()
  for _, entry in ipairs(model._compiled.metrics) do entry.metric:reset_state() end
end

-- { loss =, accuracy = } of what ran since the last reset; keys get the prefix.
function training.results(model, prefix, into)
  into = into or {}
  into[(prefix or "") .. "loss"] = model._compiled.loss_tracker:result()
  for _, entry in ipairs(model._compiled.metrics) do into[(prefix or "") .. entry.key] = entry.metric:result() end
  return into
end

---- data ----------------------------------------------------------------------------------------------------------------------------

-- A list of tensors out of a tensor, nested lists of numbers, or a list of tensors (several inputs).
function training.tensors(value, what)
  if value == nil then return {} end
  if type(value) == "table" and not getmetatable(value) and (native.is_tensor(value[1]) or (type(value[1]) == "table" and getmetatable(value[1]))) then
    local list = {}
    for i = 1, #value do list[i] = ops.operand(value[i], nil, what) end
    return list
  end
  return { ops.operand(value, nil, what) }
end

local function rows_of(t)
  return t.rank > 0 and t.shape[1] or 0
end

-- Checks that all have the same number of rows and returns it; names as Keras does.
function training.cardinality(x, y, weights)
  local n, same, parts = rows_of(x[1]), true, {}
  for _, part in ipairs { { "x", x }, { "y", y }, { "sample_weight", weights } } do
    local sizes = {}
    for i, t in ipairs(part[2]) do
      sizes[i] = rows_of(t)
      same = same and sizes[i] == n
      if t.rank == 0 then raise("%s is a single number, expected one row per sample", part[1]) end
    end
    if #sizes > 0 then parts[#parts + 1] = part[1] .. " sizes: " .. table.concat(sizes, ", ") end
  end
  if not same then
    raise("Data cardinality is ambiguous. Make sure all arrays contain the same number of samples. %s", table.concat(parts, "; "))
  end
  return n
end

local out = native.out("flow_tensor")

-- Rows first+1 .. first+count of t as a view.
function training.rows(t, first, count)
  local shape = t.shape
  local dims, rank = native.dims(shape)
  local strides, stride = native.dims(shape), 1
  for i = rank - 1, 0, -1 do
    strides[i] = stride
    stride = stride * dims[i]
  end
  dims[0] = count
  native.check(C.flow_tensor_view(native.pointer(t), rank, dims, strides, first * tonumber(strides[0]), out))
  return native.tensor(out[0])
end

---- one batch --------------------------------------------------------------------------------------------------------------------------

local function contiguous(list, into)
  for _, t in ipairs(list) do into[#into + 1] = t:contiguous() end
end

-- Runs one step on whole tensors; returns the outputs of its plan.
local function run_batch(model, kind, x, y, weights)
  x, y, weights = training.tensors(x, "x"), training.tensors(y, "y"), training.tensors(weights, "sample_weight")
  if #x == 0 then raise("%s: there is no data: x is nil", object.title(model)) end
  local n = training.cardinality(x, y, weights)
  local batch, layout = {}, { x = #x, y = #y, weights = #weights }
  contiguous(x, batch)
  contiguous(y, batch)
  contiguous(weights, batch)
  local step = steps.get(model, kind, batch, layout, n)
  local list, count = native.pointers(batch)
  C.flow_instance_scalars(step.instance, training.seed(model), model._train_steps, 0)
  local outputs = native.out("flow_tensor", 16)
  native.try(C.flow_instance_run, context, step.instance, list, count, kind == "predict" and outputs or nil)
  if kind == "train" then rawset(model, "_train_steps", model._train_steps + 1) end
  return outputs
end

-- Key of the model's random ops (dropout): drawn once from the global seed.
function training.seed(model)
  if not rawget(model, "_seed") then rawset(model, "_seed", C.flow_context_next_seed(context)) end
  return model._seed
end

local BATCH = { sample_weight = true, class_weight = true, return_dict = true }

local function on_batch(kind)
  return function(self, x, y, options, more)
    training.compiled(self)
    if options ~= nil and not arguments.is_options(options) then options = { sample_weight = options, class_weight = more } end
    options = errors.check_options(kind .. "_on_batch", options, BATCH)
    local weights = options.sample_weight
    if options.class_weight then weights = training.class_weights(options.class_weight, y, weights) end
    training.reset(self)
    run_batch(self, kind, x, y, weights)
    return training.results(self)
  end
end

-- { loss =, accuracy = } of this batch.
Model.train_on_batch = on_batch("train")
Model.test_on_batch = on_batch("test")

function Model:predict_on_batch(x)
  if not self._steps then rawset(self, "_steps", {}) end
  if not rawget(self, "_train_steps") then rawset(self, "_train_steps", 0) end
  local outputs, results = run_batch(self, "predict", x), {}
  for i = 0, 15 do
    if outputs[i] ~= nil then results[#results + 1] = native.tensor(outputs[i]) end
  end
  return #results == 1 and results[1] or results
end

-- Sample weights out of { [label] = weight }; labels that are not named count 1.
function training.class_weights(by_class, y, weights)
  if weights ~= nil then raise("class_weight and sample_weight cannot be given together") end
  if type(by_class) ~= "table" then raise("class_weight is a table { [label] = weight }, got %s", errors.describe(by_class)) end
  y = training.tensors(y, "y")
  if #y ~= 1 then raise("class_weight works with one output, this data has %d targets", #y) end
  local labels = y[1]
  if labels.rank == 2 and labels.shape[2] > 1 then labels = labels:classes() end
  labels = labels:reshape { -1 }:totable()
  local list = {}
  for i = 1, #labels do list[i] = by_class[math.floor(labels[i] + 0.5)] or 1 end
  return ops.operand(list, "float32", "class_weight")
end

return training
