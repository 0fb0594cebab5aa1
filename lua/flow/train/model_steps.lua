-- model_steps.lua: the steps of a model, as methods that a class written in Lua may override, with Keras' names:
--
--   train_step(data), test_step(data)     a table of names with what fit and evaluate report: results of metrics, or numbers (tensors)
--   predict_step(data)                    the outputs: a tensor, or a list of them
--   compute_loss(x, y, y_pred, sample_weight, training), compute_metrics(x, y, y_pred, sample_weight), get_metrics_result()
--
-- data is { x, y } or { x, y, sample_weight } of arrays, the tensor or the table by name itself of fit(x), evaluate(x) and predict(x), and
-- an element of a Dataset as it is; train_on_batch(x) gives { x }, and x in a list does, too, as in Keras. Steps are traced once per
-- signature (steps.lua); with compile { run_eagerly = true } they are called for each batch.

local native = require "flow.ffi"
local errors = require "flow.errors"
local log = require "flow.log"
local object = require "flow.object"
local models = require "flow.model"
local signature = require "flow.signature"
local tape = require "flow.tensor.tape"
local tensor = require "flow.tensor"
local variable = require "flow.tensor.variable"
local ops = require "flow.tensor.ops"
local several = require "flow.layers.several"
local contents = require "flow.layers.classes.contents"
local step_share = require "flow.tensor.step_share"
local metrics = require "flow.train.metrics"
local optimizers = require "flow.train.optimizers"
local named_data = require "flow.model.named_data"
local unpack_data = require("flow.utils").unpack_x_y_sample_weight

local raise = errors.raise
local takes_named = signature.takes_named
local Model = models.Model
local model_steps = {}

-- Whether a model's class, or the model itself, overrides a method of Model.
function model_steps.overrides(model, name)
  return signature.unguarded(model[name]) ~= signature.unguarded(Model[name])
end

-- What compile made.
local function compiled_of(model)
  return model._compiled or raise("%s: You must call `compile()` before using the model.", object.title(model))
end
model_steps.compiled = compiled_of

---- what a model has in its fields -----------------------------------------------------------------------------------------------

-- The objects of a class in the model's fields, also in lists, in the order of the fields' names.
local function assigned(model, class)
  local names, list, seen = {}, {}, {}
  for name in pairs(rawget(model, "_assignments") or {}) do names[#names + 1] = name end
  table.sort(names, function(a, b) return tostring(a) < tostring(b) end)
  for _, name in ipairs(names) do
    for _, value in ipairs(contents.objects(model._assignments[name], class)) do
      if not seen[value] then list[#list + 1] = value end
      seen[value] = true
    end
  end
  return list
end

-- The optimizers of a model: that of compile, and those in its fields.
function Model:_optimizers()
  local compiled, list = self._compiled, {}
  if compiled then list[1] = compiled.optimizer end
  for _, own in ipairs(assigned(self, optimizers.Optimizer)) do
    if own ~= list[1] then list[#list + 1] = own end
  end
  return list
end

-- { metric =, key = } of the loss, losses of outputs and metrics that compile was given; none before compile.
local function compiled_trackers(compiled)
  if not compiled then return {} end
  local list = { { metric = compiled.loss_tracker, key = "loss" } }
  for _, entries in ipairs { compiled.output_losses, compiled.metrics } do
    for _, entry in ipairs(entries) do list[#list + 1] = entry end
  end
  return list
end

-- The metrics in the fields of the layers inside, at any depth, added to a list. A model inside has no part in the training.
local function add_metrics_inside(layer, list, seen)
  for _, child in ipairs(layer._children) do
    if not seen[child] then
      seen[child] = true
      for _, metric in ipairs(object.is(child, Model) and {} or assigned(child, metrics.Metric)) do list[#list + 1] = metric end
      add_metrics_inside(child, list, seen)
    end
  end
  return list
end

-- The running loss, those of outputs, the metrics of compile, those in the model's fields, and in its layers' fields. A class overrides it
-- to say what is reset in every epoch: function GAN:metrics() return { self.loss_tracker } end.
function Model.fields.metrics(self)
  local list = {}
  for i, entry in ipairs(compiled_trackers(self._compiled)) do list[i] = entry.metric end
  for _, metric in ipairs(assigned(self, metrics.Metric)) do list[#list + 1] = metric end
  return add_metrics_inside(self, list, {})
end

-- The same with the names under which they are reported. all: including those that the class leaves out of `metrics`.
function model_steps.trackers(model, all)
  local of_compile, list, keys, seen = compiled_trackers(model._compiled), {}, {}, {}
  for _, entry in ipairs(of_compile) do keys[entry.metric] = entry.key end
  local function add(metric)
    if not object.is(metric, metrics.Metric) then
      raise("%s: metrics has an entry that is %s, expected metrics such as flow.metrics.Mean()", object.title(model),
        errors.describe(metric))
    end
    if not seen[metric] then list[#list + 1] = { metric = metric, key = keys[metric] or metric.name } end
    seen[metric] = true
  end
  local given = model.metrics
  for i = 1, errors.check_list(object.title(model) .. ": metrics", given) do add(given[i]) end
  if all then
    for _, entry in ipairs(of_compile) do add(entry.metric) end
    for _, metric in ipairs(assigned(model, metrics.Metric)) do add(metric) end
  end
  return list
end

---- losses and metrics ------------------------------------------------------------------------------------------------------------------

-- Makes a list of a tensor, of numbers that become one, or of a list of these.
local function as_list(what, value)
  if value == nil then return {} end
  if type(value) ~= "table" or getmetatable(value) then return { ops.operand(value, nil, what) } end
  local list = {}
  for i = 1, errors.check_list(what, value) do list[i] = ops.operand(value[i], nil, what) end
  return list
end

-- Each of them may also be given by the names of the outputs.
local function targets_of(model, given)
  local function list(what) return as_list(what, named_data.order(model, what, "outputs", given[what])) end
  return list "y", list "y_pred", list "sample_weight"
end

-- Targets by output: those of outputs without a loss may be left out, as in Keras.
local function by_output(compiled, targets, outputs)
  if #targets == outputs or #targets ~= compiled.loss_count then return targets end
  local placed, used = {}, 0
  for i = 1, outputs do
    if compiled.losses[i] then
      used = used + 1
      placed[i] = targets[used]
    end
  end
  return placed
end

-- The sample weights of an output, or nil.
local function weights_of(weights, output)
  return weights[#weights == 1 and 1 or output]
end

-- Raises unless there is a target for each output, or for each loss.
local function check_targets(model, compiled, targets, predictions)
  if next(compiled.losses) and #targets ~= #predictions and #targets ~= compiled.loss_count then
    if #targets == 0 then raise("%s: the loss needs targets, y is nil", object.title(model)) end
    raise("%s: %d targets for %d outputs", object.title(model), #targets, #predictions)
  end
  if compiled.loss_of_each and #predictions > 1 and next(compiled.metrics) then
    raise("%s: call() gives %d outputs; for metrics of several outputs compile takes a list of their losses, and for each its metrics",
      object.title(model), #predictions)
  end
end

-- The rows of a batch, which an input tells, in tables by name, too; predictions: of a model without inputs.
local function rows_of(x, predictions)
  if named_data.is(x) then return rows_of(select(2, next(x)), predictions) end
  return metrics.rows(as_list("x", x)[1] or predictions[1])
end

-- The loss that is minimized: the sum over outputs of weight * loss, plus what layers add. One number, with several replicas the mean over
-- the rows of one replica; or, with the reduction "none", the values, whose sum is minimized, as in Keras on TensorFlow: numbers are added
-- to each of the values.
takes_named "x?: data, y?: data, y_pred?: data, sample_weight?, training: boolean = true"
function Model:compute_loss(given)
  local compiled, total = compiled_of(self), nil
  local targets, predictions, weights = targets_of(self, given)
  check_targets(self, compiled, targets, predictions)
  targets = by_output(compiled, targets, #predictions)
  local values = {}
  for i = 1, #predictions do
    local loss = compiled.losses[i] or compiled.loss_of_each
    if loss then
      local value = loss(targets[i], predictions[i], weights_of(weights, i))
      if loss.reduction == "sum" then value = step_share.unweigh(value) end
      values[i] = value
      if compiled.loss_weights[i] then value = value * compiled.loss_weights[i] end
      total = total and total + value or value
    end
  end
  for _, entry in ipairs(compiled.output_losses) do entry.metric:_update_batch(values[entry.output], rows_of(given.x, predictions)) end
  for _, penalty in ipairs(self.losses) do total = total and total + penalty or penalty end
  return total or raise("No loss to compute. Provide a `loss` argument in `compile()`.")
end

-- Updates the metrics that compile was given, and returns the results of all.
takes_named "x?: data, y?: data, y_pred?: data, sample_weight?"
function Model:compute_metrics(given)
  local targets, predictions, weights = targets_of(self, given)
  targets = by_output(compiled_of(self), targets, #predictions)
  for _, entry in ipairs(compiled_of(self).metrics) do
    local target = targets[entry.output]
    if target == nil and not model_steps.overrides(self, "compute_loss") then      -- which may take fewer targets than there are outputs
      raise("%s: the metric %s has no targets", object.title(self), entry.key)
    end
    if target ~= nil then
      entry.metric:update_state(target, predictions[entry.output], entry.weighted and weights_of(weights, entry.output) or nil)
    end
  end
  return self:get_metrics_result()
end

-- The results of the model's metrics by their names.
function Model:get_metrics_result()
  local results = {}
  for _, entry in ipairs(model_steps.trackers(self)) do results[entry.key] = entry.metric:result() end
  return results
end

---- the steps ---------------------------------------------------------------------------------------------------------------------------

-- One training step, which a class may override. The gradients are those of the scaled loss; the optimizer divides them by the scale.
function Model:train_step(data)
  local x, y, weights = unpack_data(data)
  local recorder, optimizer, predictions = tape.GradientTape(), self.optimizer, nil
  local loss, target = recorder:record(function()
    predictions = several.gathered(self(x, { training = true }))
    local total = self:compute_loss(x, y, predictions, weights, true)
    return total, optimizer:scale_loss(total)
  end)
  local variables = self.trainable_variables
  if #variables == 0 then
    log.warning("%s: no layer has trainable variables: losses and metrics are computed, nothing is trained", object.title(self))
  else
    optimizer:apply_gradients(recorder:gradient(target, variables), variables)
  end
  recorder:close()
  compiled_of(self).loss_tracker:_update_batch(loss, rows_of(x))
  return self:compute_metrics(x, y, predictions, weights)
end

function Model:test_step(data)
  local x, y, weights = unpack_data(data)
  local predictions = several.gathered(self(x, { training = false }))
  local loss = self:compute_loss(x, y, predictions, weights, false)
  compiled_of(self).loss_tracker:_update_batch(loss, rows_of(x))
  return self:compute_metrics(x, y, predictions, weights)
end

function Model:predict_step(data)
  return several.gathered(self((unpack_data(data)), { training = false }))
end

---- what steps return -----------------------------------------------------------------------------------------------------------------

-- The variable that keeps a number which a traced step returned, for reading after the step: by model, kind and name.
local function kept(model, kind, name)
  local all = rawget(model, "_returned") or {}
  rawset(model, "_returned", all)
  local key = kind .. " " .. name
  all[key] = all[key] or variable.Variable(0, { name = model.name .. "/" .. name, trainable = false })
  return all[key]
end

-- A result of a step as a number: the mean if it has several, as Keras shows it.
local function as_number(value)
  return #tensor.raw_shape(value) > 0 and value:to("float32"):mean() or value
end

-- One result as { key =, metric = } or { key =, variable = } or { key =, value = }.
local function entry_of(model, kind, name, value)
  local metric = metrics.pending(value)
  if metric then return { key = name, metric = metric } end
  if variable.is_variable(value) then value = variable.read(value) end
  if type(value) == "number" then return { key = name, value = value } end
  if not native.is_tensor(value) then
    raise("%s: %s_step: \"%s\" is %s, expected a number: a tensor or the result of a metric", object.title(model), kind, name,
      errors.describe(value))
  end
  value = as_number(value)
  if not step_share.in_step() then return { key = name, value = value } end
  local keeper = kept(model, kind, name)
  keeper:assign(step_share.mean(value:to("float32")))
  return { key = name, variable = keeper }
end

-- The results that a step of this kind returned, as a list; nested tables are flattened, as in Keras.
function model_steps.entries(model, kind, returned)
  local list = {}
  local function add(results)
    if type(results) ~= "table" or getmetatable(results) or table.maxn(results) > 0 then
      raise("%s: %s_step returns a table of names with numbers, such as { loss = loss }, got %s", object.title(model), kind,
        errors.describe(results))
    end
    local names = {}
    for name in pairs(results) do names[#names + 1] = name end
    table.sort(names, function(a, b) return tostring(a) < tostring(b) end)
    for _, name in ipairs(names) do
      local value = results[name]
      if type(value) == "table" and not getmetatable(value) and not variable.is_variable(value) then add(value)
      else list[#list + 1] = entry_of(model, kind, tostring(name), value) end
    end
  end
  add(returned)
  return list
end

-- The present number of such an entry.
function model_steps.number(entry)
  if entry.metric then return metrics.number(entry.metric) end
  if entry.variable then return native.C.flow_variable_number(entry.variable.handle) end
  return native.is_tensor(entry.value) and entry.value:item() or entry.value
end

return model_steps
