-- compile.lua: compile, and the calls that run one batch: train_on_batch, test_on_batch, predict_on_batch.
-- fit.lua adds the loops over data.
--
-- What compile makes is model._compiled: given = what compile was given, for files; optimizer; losses by output (nil: none), loss_of_each =
-- one loss for all outputs of a model whose number of them is not known, loss_count, loss_weights by output; output_losses, the running
-- losses of outputs; metrics = { metric =, key =, output =, weighted = }; loss_tracker; steps_per_execution, jit_compile, run_eagerly.

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local printed = require "flow.classes.printed"
local models = require "flow.model"
local optimizers = require "flow.train.optimizers"
local losses = require "flow.train.losses"
local metrics = require "flow.train.metrics"
local model_steps = require "flow.train.model_steps"
local steps = require "flow.train.steps"
local tensor = require "flow.tensor"
local ops = require "flow.tensor.ops"
local ownership = require "flow.distribute.ownership"
local workers = require "flow.distribute.model_workers"
local named_data = require "flow.model.named_data"
local host_inputs = require "flow.model.host_inputs"
local structure = require "flow.data.structure"

local C, raise = native.C, errors.raise
local context = native.context
local Model = models.Model
local signature = require "flow.signature"
local takes, takes_named = signature.takes, signature.takes_named
local training = {}

---- compile ---------------------------------------------------------------------------------------------------------------------

-- Whether a value is a plain list with entries, of which some may be nil.
local function is_list(value)
  return type(value) == "table" and not getmetatable(value) and table.maxn(value) > 0
end

-- The number of outputs of a model. For a class with its own call() the list of losses in compile tells it.
local function output_count(model, compiled)
  local names = named_data.names(model, "outputs")
  compiled = compiled or model._compiled
  return names and #names or compiled and is_list(compiled.given.loss) and #compiled.given.loss or 1
end

-- A loss or metric option may be one value (nil is returned), a list by output, in which false stands for none, or a table by output name.
local function per_output(model, compiled, value, what)
  if value == nil then return {} end
  if type(value) ~= "table" or getmetatable(value) then return nil end
  if next(value) == nil then return value end
  if is_list(value) then
    errors.check_list("compile: " .. what, value)
    if #value ~= output_count(model, compiled) then
      raise("%s: compile: %s has %d entries for %d outputs", object.title(model), what, #value, output_count(model, compiled))
    end
    return value
  end
  local of_model, by_position, names = named_data.names(model, "outputs"), {}, {}
  if not of_model then raise("%s: compile: %s by output name needs a functional model", object.title(model), what) end
  for i, name in ipairs(of_model) do names[name] = i end
  for name, entry in pairs(value) do
    local position = names[name]
    if not position then
      raise("%s: compile: %s names the output %q, which it does not have%s", object.title(model), what, tostring(name),
        errors.suggestion(tostring(name), names))
    end
    by_position[position] = entry
  end
  return by_position
end

-- The name under which the loss of an output is reported, as in Keras: that of the output, or, if call() is written in Lua, that of the
-- loss, with a number if several outputs have it.
local function loss_key(model, compiled, output, used)
  local names, entry = named_data.names(model, "outputs"), compiled.given.loss[output]
  local name = names and names[output] or type(entry) == "string" and entry or compiled.losses[output].name
  used[name] = (used[name] or 0) + 1
  return name .. (used[name] > 1 and "_" .. used[name] - 1 or "") .. "_loss"
end

-- Sets losses, their weights and the running losses of outputs. loss: a loss for all outputs, a list by output or a table by name; weights:
-- a list or a table of numbers, or nil; of a model with one output also the number itself.
local function set_losses(model, compiled, loss, weights)
  local count, used = output_count(model, compiled), {}
  local list = per_output(model, compiled, loss, "loss")
  for i = 1, list and 0 or count do compiled.losses[i] = losses.get(loss) end
  for i, entry in pairs(list or {}) do compiled.losses[i] = entry and losses.get(entry) or nil end
  if not list and not named_data.names(model, "outputs") then compiled.loss_of_each = compiled.losses[1] end
  for _ in pairs(compiled.loss_of_each and {} or compiled.losses) do compiled.loss_count = compiled.loss_count + 1 end
  if type(weights) == "number" and count == 1 then weights = { weights } end
  local by_output = per_output(model, compiled, weights, "loss_weights")
  if not by_output then
    raise("%s: compile: loss_weights is %s, got %s", object.title(model), count == 1 and "a number, or a list with one" or
      ("a list of %d numbers, one for each output"):format(count), errors.describe(weights))
  end
  for i, weight in pairs(by_output) do
    if type(weight) ~= "number" then
      raise("%s: compile: entry %d of loss_weights is %s, expected a number", object.title(model), i, errors.describe(weight))
    end
  end
  compiled.loss_weights = by_output
  local is_alone = not compiled.loss_of_each and compiled.loss_count == 1
  for i = 1, count > 1 and not is_alone and count or 0 do      -- as Keras: each output's loss is reported without its weight
    if compiled.losses[i] then
      local key = loss_key(model, compiled, i, used)
      table.insert(compiled.output_losses, { metric = metrics.Mean(key), key = key, output = i })
    end
  end
end

-- The name under which a metric is reported, as in Keras: a weighted one that would have the name of another is "weighted_..." and what has
-- the name of another even so gets a number. prefix: that of its output.
local function metric_key(compiled, prefix, name, weighted)
  local used, key = compiled.metric_keys, prefix .. name
  if used[key] and weighted then key = prefix .. "weighted_" .. name end
  local before = used[key]
  used[key] = (before or 0) + 1
  return before and key .. "_" .. before or key
end

-- One output: a list of metrics. Several outputs: an entry for each, by position or by name, which is a metric or a list of them.
local function add_metrics(model, compiled, what, list, weighted)
  if list == nil then return end
  local several, names = output_count(model, compiled) > 1, named_data.names(model, "outputs")
  local by_name = type(list) == "table" and not getmetatable(list) and not is_list(list) and next(list) ~= nil
  local nested = type(list) == "table" and not getmetatable(list) and type(list[1]) == "table" and not getmetatable(list[1])
  local by_output = { list }
  if several or by_name or nested then
    by_output = per_output(model, compiled, list, what) or raise("%s: compile: %s is a list with an entry for each output, got %s",
      object.title(model), what, errors.describe(list))
  end
  for output = 1, output_count(model, compiled) do
    local entries = by_output[output]
    if type(entries) ~= "table" or getmetatable(entries) then entries = { entries } end
    errors.check_list("compile: " .. what, entries)
    for _, entry in ipairs(entries) do
      local metric = entry and metrics.get(entry)      -- false stands for None
      local key = metric and metric_key(compiled, several and names and names[output] .. "_" or "", metric.name, weighted)
      if metric then
        table.insert(compiled.metrics, { metric = metric, key = key, output = output, weighted = weighted })
        rawset(metric, "_unweighted", not weighted or nil)
      end
    end
  end
end

-- model:compile { optimizer =, loss =, metrics = { "accuracy" } }; positions as in Keras: optimizer, loss, loss_weights, metrics.
takes_named("optimizer = 'rmsprop', loss?: given_data, loss_weights?: given_data, metrics?: given_data, { weighted_metrics?: given, "
  .. "run_eagerly: boolean = false, steps_per_execution: count|'auto' = 1, jit_compile?: boolean|'auto', auto_scale_loss: boolean = true }")
function Model:compile(options)
  ownership.check(self, "compile")
  local per_execution = options.steps_per_execution
  if per_execution == "auto" then per_execution = 1 end      -- a step on its own costs no more here
  local given = { loss = options.loss, loss_weights = options.loss_weights, metrics = options.metrics,
                  weighted_metrics = options.weighted_metrics }
  local compiled = { given = given, losses = {}, loss_count = 0, loss_of_each = false, loss_weights = {}, output_losses = {},
                     metrics = {}, metric_keys = {}, loss_tracker = metrics.Mean("loss"),
                     steps_per_execution = per_execution, jit_compile = options.jit_compile ~= false, run_eagerly = options.run_eagerly }
  compiled.optimizer = optimizers.get(options.optimizer)
  if options.auto_scale_loss and self.dtype_policy.name == "mixed_float16"
    and not object.is(compiled.optimizer, optimizers.LossScaleOptimizer) then
    compiled.optimizer = optimizers.LossScaleOptimizer(compiled.optimizer)
  end
  named_data.declare(self, options.loss, options.metrics, options.weighted_metrics)
  if options.loss ~= nil then set_losses(self, compiled, options.loss, options.loss_weights) end
  add_metrics(self, compiled, "metrics", options.metrics, false)
  add_metrics(self, compiled, "weighted_metrics", options.weighted_metrics, true)
  training.prepare(self)
  steps.clear(self)
  rawset(self, "_compiled", compiled)
  rawset(self, "_train_steps", 0)
end

for _, name in ipairs { "_compiled", "_all_built" } do Model.fields[name] = function() return false end end

-- Makes the tables in which the model keeps its steps.
function training.prepare(model)
  if rawget(model, "_steps") then return end
  rawset(model, "_steps", {})
  rawset(model, "_traces", 0)          -- steps traced so far
  rawset(model, "_trace_states", {})   -- of each, the random state before
  rawset(model, "_exact_steps", {})    -- those that are traced for each number of rows
  rawset(model, "_train_steps", 0)
  rawset(model, "_other_steps", 0)
end

Model._forget_steps = steps.clear

function Model.fields.optimizer(self) return training.compiled(self).optimizer end
function Model.fields.metrics_names(self)
  local list = {}
  for i, entry in ipairs(training.trackers(self)) do list[i] = entry.key end
  return list
end

function Model.fields.run_eagerly(self) return self._compiled and self._compiled.run_eagerly end

-- What compile() gives a model: in a class of the script's own these are fields as any other.
local COMPILED = { optimizer = true, loss = true, metrics = true }
-- Sets run_eagerly; raises for other fields that compile sets. Returns whether the field was set here (object.lua).
function Model:_set_missing(key, value)
  if key == "run_eagerly" then
    if type(value) ~= "boolean" then raise("%s: run_eagerly is true or false, got %s", object.title(self), errors.describe(value)) end
    training.compiled(self).run_eagerly = value
    steps.clear(self)
    return true
  end
  if COMPILED[key] and not rawget(object.class_of(self), "in_lua") then
    raise("%s: its field %q cannot be set: compile { %s = ... } does", object.title(self), key, key)
  end
  return false
end

require("flow.train.as_in_keras").model(Model)

function Model.fields.loss(self) return training.compiled(self).given.loss end
-- Sets all metrics to their beginning, as a new epoch does.
function Model:reset_metrics() training.reset(self) end

-- What compile made. what: the name of a call that may only run in the scope of the model's strategy, or nil.
function training.compiled(model, what)
  if what then ownership.check(model, what) end
  return model_steps.compiled(model)
end

---- results -----------------------------------------------------------------------------------------------------------------------

training.trackers = model_steps.trackers

-- Called when a new epoch, or another pass over data, begins.
function training.reset(model)
  for _, entry in ipairs(training.trackers(model)) do entry.metric:reset_state() end
end

-- { loss =, accuracy = } since the last reset, as the steps of this kind ("train", "test") report it. Waits until the device is idle.
function training.results(model, kind)
  local results = steps.results(model, kind)
  if results then return results end
  results = {}
  for _, entry in ipairs(training.trackers(model)) do results[entry.key] = metrics.number(entry.metric) end
  return results
end

---- data ----------------------------------------------------------------------------------------------------------------------------

-- Makes a list of tensors on the host of a tensor, nested lists of numbers, or a list of tensors (several inputs).
function training.tensors(value, what)
  if value == nil then return {} end
  local first = type(value) == "table" and not getmetatable(value) and value[1]
  if native.is_tensor(first) or (type(first) == "table" and getmetatable(first)) then
    local list = {}
    for i = 1, errors.check_list(what, value) do list[i] = tensor.on_host(ops.operand(value[i], nil, what)) end
    return list
  end
  return { tensor.on_host(ops.operand(value, nil, what)) }
end

-- The rows of a tensor; 0 of a scalar, which training.cardinality refuses.
local function rows_of(t)
  return t.rank > 0 and t.shape[1] or 0
end

-- The structure of inputs by name that a step gets as they are, with its tensors: where a script wrote the step, or call(). Else nil.
local function own_inputs(model, kind, x)
  if not named_data.is(x) or rawget(model, "_host") then return nil end
  if not named_data.is_own(model) and not model_steps.overrides(model, kind .. "_step") then return nil end
  local of_x = structure.of("x", { x })[1]
  local list = structure.components(of_x, x)
  for i, value in ipairs(list) do list[i] = tensor.on_host(ops.operand(value, nil, "x")) end
  return of_x, list
end

-- The arguments of a call as lists of tensors: x and y, which may be given by name, and the sample weights: none, one for all outputs, or
-- one for each, by name or as a list. The last result: see own_inputs.
function training.read_data(model, kind, x, y, weights)
  local of_x, inputs = own_inputs(model, kind, x)
  if not of_x then
    local given = named_data.complete(model, "x", "inputs", x)
    if given ~= nil then model:_meet(given) end
    if given ~= nil and rawget(model, "_host") then given = host_inputs.prepare(model, given) end
    inputs = training.tensors(given, "x")
  end
  local targets = training.tensors(named_data.complete(model, "y", "outputs", y), "y")
  local by_output, names = named_data.order(model, "sample_weight", "outputs", weights)
  for i = 1, names and #names or 0 do      -- an output that is not named counts every sample once
    by_output[i] = by_output[i] or tensor.ones { inputs[1] and inputs[1].shape[1] or 0 }
  end
  local list = training.tensors(by_output, "sample_weight")
  if #list > 1 and #list ~= output_count(model) then
    raise("%s: sample_weight has %d entries for %d outputs", object.title(model), #list, output_count(model))
  end
  return inputs, targets, list, of_x
end

-- Checks that all have the same number of rows, and returns it. The message names them as Keras' does.
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

---- one batch --------------------------------------------------------------------------------------------------------------------------

-- Appends tensors whose elements are side by side, as steps read them.
local function contiguous(list, into)
  for _, t in ipairs(list) do into[#into + 1] = t:contiguous() end
end

-- ", mse": the losses of a model, one of which refused a label.
local function of_losses(model)
  local names = {}
  for _, loss in pairs(model._compiled and model._compiled.losses or {}) do names[#names + 1] = loss.name end
  table.sort(names)
  return #names > 0 and ", " .. table.concat(names, ", ") or ""
end

-- Raises the failure of a step. If it names a row of the batch, the message names the sample of the data: first is the position of the
-- batch's first row in the data, order the permutation of the data, or nil.
function training.fail(model, status, first, order)
  local row = native.error_field(C.FLOW_ERROR_ROW)
  if status ~= C.FLOW_INVALID_ARGUMENT or not row then native.check(status) end      -- which raises
  local text, sample = native.string(C.flow_last_error()), first + row
  if order then sample = tonumber(native.data(order)[sample]) end
  raise("%s%s: %s (sample %d of the data, counted from 1)", object.title(model),
    native.error_field(C.FLOW_ERROR_LABEL) and of_losses(model) or "", text, sample + 1)
end

-- Runs one step on whole tensors, of all their rows at once; returns an array of the outputs of its plan, new references of which the
-- caller takes all, and the step. kind: "train", "test" or "predict"; only a prediction has outputs.
local function run_batch(model, kind, x, y, weights)
  local of_x
  x, y, weights, of_x = training.read_data(model, kind, x, y, weights)
  if #x == 0 then raise("%s: there is no data: x is nil", object.title(model)) end
  local n = training.cardinality(x, y, weights)
  if n == 0 then raise("%s: the data has no samples", object.title(model)) end
  local batch, layout = {}, { x = #x, y = #y, weights = #weights, of_x = of_x }
  contiguous(x, batch)
  contiguous(y, batch)
  contiguous(weights, batch)
  local step, outputs = steps.get(model, kind, batch, layout, n), native.out("flow_tensor", steps.MOST_OUTPUTS)
  if step.eager then
    step.eager(batch, kind == "predict" and outputs or nil)
  else
    local list, count = native.pointers(batch)
    C.flow_instance_scalars(step.instance, training.seed(model), steps.number(model, kind), 0)
    local status = C.flow_instance_run(context, step.instance, list, count, kind == "predict" and outputs or nil)
    if status ~= 0 then training.fail(model, status, 0) end
  end
  steps.finish(model)
  if step.instance and C.flow_instance_stop_agreed(step.instance) ~= 0 then
    native.raise_interrupted("%s: a worker was interrupted", object.title(model))
  end
  steps.count(model, kind, 1)
  return outputs, step
end

-- The key of the model's random ops (dropout), drawn once from the global seed.
training.seed = steps.seed

-- The variables in which stateful layers of a model keep their states between batches.
function training.kept_states(model) return require("flow.layers.recurrent.states").list(model) end

-- One weight per sample.
function training.check_sample_weight(weights)
  if weights == nil or native.is_tensor(weights) then return end
  if type(weights) ~= "table" then raise("sample_weight is a tensor or list with a number per sample, got %s", errors.describe(weights)) end
end

-- Results as return_dict asks for them: a table by name, or, where it is false, a list in Keras' order: the loss, losses of outputs,
-- metrics, then what else a step returned, by its names. Of one result it is that.
function training.asked(model, results, return_dict)
  if return_dict ~= false then return printed(results) end
  local list, others, taken = {}, {}, {}
  for _, entry in ipairs(model_steps.trackers(model)) do
    list[#list + 1] = results[entry.key]
    taken[entry.key] = true
  end
  for name in pairs(results) do others[#others + 1] = not taken[name] and name or nil end
  table.sort(others)
  for _, name in ipairs(others) do list[#list + 1] = results[name] end
  return #list == 1 and list[1] or printed(list)
end

-- The method train_on_batch or test_on_batch. Unlike in a fit, each call resets the metrics first.
local function on_batch(kind)
  takes "x?: data, y?: data, sample_weight?: given, class_weight?: gaps, { return_dict: boolean = true }"
  return function(self, x, y, weights, by_class, options)
    training.compiled(self, kind .. "_on_batch")
    if kind == "train" then ownership.adopt(self, "train_on_batch") end
    if by_class then weights = training.class_weights(self, by_class, y, weights) end
    training.reset(self)
    run_batch(self, kind, x, y, weights)
    return training.asked(self, training.results(self, kind), options.return_dict)
  end
end

-- { loss =, accuracy = } of this batch, or a list with return_dict = false.
Model.train_on_batch = on_batch("train")
Model.test_on_batch = on_batch("test")

-- The first time, and for data that is not one tensor of the sizes of the last call.
local function predict_batch(model, x)
  local outputs, step = run_batch(model, "predict", x)
  local results = {}
  for i = 0, steps.MOST_OUTPUTS - 1 do
    if outputs[i] ~= nil then results[#results + 1] = workers.gather_rows(model, tensor.on_host(native.tensor(outputs[i]))) end
  end
  if native.is_tensor(x) then steps.remember(model, step, x, #results) end
  return named_data.results(model, results)
end

local one_input, some_outputs = native.out("flow_tensor"), native.out("flow_tensor", steps.MOST_OUTPUTS)

-- The outputs for one batch, on the host, in the form in which predict gives them. Calls with one tensor after the other of the same dtype
-- and sizes take the short way of steps.again.
function Model:predict_on_batch(x)
  training.prepare(self)
  local step, count = steps.again(self, x)
  if not step then return predict_batch(self, x) end
  one_input[0] = native.pointer(x)
  C.flow_instance_scalars(step.instance, training.seed(self), steps.number(self, "predict"), 0)
  steps.count(self, "predict", 1)
  local status = C.flow_instance_run(context, step.instance, one_input, 1, some_outputs)
  if status ~= 0 then training.fail(self, status, 0) end
  native.check(status)      -- 0: lets the input go
  local is_named = rawget(self, "_names_of_outputs") or rawget(self, "_names_of_results")
  if count == 1 and not is_named then return native.tensor(some_outputs[0]) end
  local results = {}
  for i = 1, count do results[i] = native.tensor(some_outputs[i - 1]) end
  return named_data.results(self, results)
end

-- Makes the model predict in int8 (quantization.lua). calibration: data, or "int8"; filters: which layers, by name or by a function.
takes "calibration: data, { filters?, batch_size?: whole, steps?: whole }"
function Model:quantize(calibration, options) require "flow.train.quantization"(self, calibration, options) end

-- class_weight as a table of numbers by labels, which are whole numbers; it may have tensors with one number.
local function check_class_weight(by_class)
  if type(by_class) ~= "table" then raise("class_weight is a table { [label] = weight }, got %s", errors.describe(by_class)) end
  local checked = {}
  for label, weight in pairs(by_class) do
    checked[label] = native.is_tensor(weight) and weight.size == 1 and tonumber(weight:item()) or weight
    weight = checked[label]
    if type(label) ~= "number" or type(weight) ~= "number" then
      raise("class_weight is a table { [label] = weight } of numbers, got [%s] = %s", errors.describe(label), errors.describe(weight))
    end
    if label % 1 ~= 0 then
      raise("class_weight: a label is a whole number, got [%s] = %s", errors.describe(label), errors.describe(weight))
    end
  end
  return checked
end

-- Makes sample weights of { [label] = weight }, a float32 tensor with one for each sample; labels that it does not name have weight 1. y:
-- labels, or rows of classes, whose largest counts. Labels are rounded, since they may be floats.
function training.class_weights(model, by_class, y, weights)
  if weights ~= nil then raise("class_weight and sample_weight cannot be given together") end
  by_class = check_class_weight(by_class)
  y = training.tensors(named_data.complete(model, "y", "outputs", y), "y")
  if #y ~= 1 then raise("class_weight works with one output, this data has %d targets", #y) end
  local labels = y[1]
  if labels.rank == 2 and labels.shape[2] > 1 then labels = labels:classes() end
  labels = labels:reshape { -1 }:totable()
  for i = 1, #labels do labels[i] = by_class[math.floor(labels[i] + 0.5)] or 1 end
  return ops.operand(labels, "float32", "class_weight")
end

-- The same as a traced computation, for batches of labels whose rows are not known: a function y -> weights.
function training.class_weight_function(by_class)
  by_class = check_class_weight(by_class)
  local labels, weights = {}, {}
  for label in pairs(by_class) do labels[#labels + 1] = label end
  table.sort(labels)      -- so that the plan is the same in every process, which restoring a position needs
  for i, label in ipairs(labels) do weights[i] = by_class[label] end
  if #labels == 0 then labels, weights = { 0 }, { 1 } end
  labels, weights = ops.operand { labels }, ops.operand { weights }
  return function(y)
    if y.rank > 2 then raise("class_weight works with a label or a row of classes per sample, y has the shape %s", y.shape) end
    if y.rank == 2 and y.shape[2] > 1 then y = y:classes() end
    y = ops.floor(y:cast("float32"):reshape { -1, 1 } + 0.5)
    local is_class = y:eq(labels)
    return ops.sum(ops.where(is_class, weights, 0), 2) + ops.where(ops.any(is_class, 2), 0.0, 1.0)
  end
end

return training
