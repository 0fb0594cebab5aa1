-- metrics.lua: flow.metrics: what is measured while a model trains, kept in variables so that plans update them.
--
--   Mean, Sum                     of values
--   metrics of the library's table (every loss is one of them): running means of values per sample
--   FILES                         Precision, IoU, R2Score and others, whose state is more than a mean, loaded when they are needed
--   Metric:extend("Name")         written in Lua: init(), update_state(y_true, y_pred, sample_weight), result()

local native = require "flow.ffi"
local errors = require "flow.errors"
local names = require "flow.names"
local object = require "flow.object"
local arguments = require "flow.arguments"
local signature = require "flow.signature"
local variable = require "flow.tensor.variable"
local tensor = require "flow.tensor"
local ops = require "flow.tensor.ops"
local losses = require "flow.train.losses"
local extend = require "flow.user_class"
local extended = require "flow.extended"
local option_fields = require "flow.classes.option_fields"
local step_share = require "flow.tensor.step_share"
local scopes = require "flow.scopes"

local C, raise = native.C, errors.raise
local takes = signature.takes
local context = native.context

local by_name
local metrics = signature.module("flow.metrics", {}, function(_, name) return by_name(name) end)
local internal = signature.internal(metrics)
local classes
signature.names_of(metrics, function()
  local list = names.of_records(C.flow_metric_name, C.flow_metric_find)
  for _, name in ipairs(classes) do list[#list + 1] = name end
  return list
end)
local Metric = object.class("Metric")
local Sum = object.class("Sum", Metric)
local Mean = object.class("Mean", Metric)
local MeanOfValues = object.class("MeanOfValues", Mean)
local out = native.out("flow_tensor")
local element_count = C.flow_op_find("element_count")

-- The number of rows of a batch, or of elements of a tensor, a float32 scalar.
local function count(x, rows_only)
  local attributes = native.attributes()
  if rows_only then attributes.reduce.count = 1 end      -- axis 0
  local inputs = native.pointers { x }
  native.try(C.flow_apply, context, element_count, inputs, 1, attributes, out)
  return native.tensor(out[0])
end
function internal.rows(x) return count(x, true) end

---- all metrics -----------------------------------------------------------------------------------------------------------------

-- The value of result() while a step of a model is traced. A step returns it, and the metric's result is read after the step has run. In
-- formulas it is a tensor: the result so far.
local Pending = {}
Pending.__tensor = function(self)
  local value = self.metric:_traced_result()
  if native.is_tensor(value) or variable.is_variable(value) then return ops.operand(value) end
  raise("%s: its result is not known while the step is traced: return it as it is", object.title(self.metric))
end
for _, name in ipairs { "add", "sub", "mul", "div", "pow", "mod" } do Pending["__" .. name] = ops[name] end
Pending.__unm = function(a) return ops.neg(a) end      -- Lua gives the operand twice
Pending.__tostring = function(self) return "the result of " .. object.title(self.metric) end
Pending.__index = function(self, key)
  local method = native.methods[key]
  if not method then return Pending.__tensor(self)[key] end
  return function(_, ...) return method(Pending.__tensor(self), ...) end
end

-- The metric that such a value stands for, or nil.
function internal.pending(value)
  return type(value) == "table" and getmetatable(value) == Pending and rawget(value, "metric") or nil
end

-- Makes a metric. Its field config is its description in files, { class_name =, config = }; without it, it cannot be saved.
function internal.new(class, name, fields)
  local self = object.new(class, fields or {})
  rawset(self, "name", name)
  rawset(self, "variables", {})
  rawset(self, "result", function(metric, ...)
    if ... ~= nil or not object.is(metric, Metric) then return Metric.result(metric, ...) end      -- which says how it is called
    if step_share.in_step() then return setmetatable({ metric = metric }, Pending) end
    return object.class_of(metric).result(metric)
  end)
  return self
end

-- Its result as a tensor of a trace.
function Metric:_traced_result() return object.class_of(self).result(self) end

-- Adds a variable of the metric's state: { name =, shape = {}, initializer = "zeros", dtype = "float64" }. Its value is the sum over the
-- replicas of a strategy.
takes "{ name: string = 'variable', shape: list = nil, initializer?, dtype = 'float64' }"
function Metric:add_variable(options)
  local what, shape = object.title(self) .. ": add_variable", options.shape or {}
  local initial = options.initializer and require "flow.layers.initial_value" (what, options.initializer, shape, options.dtype)
    or tensor.zeros(shape, { dtype = options.dtype })
  local made = variable.Variable(initial, { name = self.name .. "/" .. options.name, trainable = false,
                                            sync = "SUM_ON_READ" })
  self.variables[#self.variables + 1] = made
  rawset(self, "_initial", rawget(self, "_initial") or {})
  self._initial[#self.variables] = initial
  return made
end
Metric.add_weight = Metric.add_variable

-- The state before the first update.
function Metric:reset_state()
  for i, v in ipairs(self.variables) do v:assign(self._initial[i]) end
end

-- What update_state() is given may end with { sample_weight = w }, which is an empty table without a w. In a step of a model the metrics
-- that compile was given as `metrics`, which are _unweighted, take no weights: in Keras a step updates all of them as one.
local function weight_of(value)
  if type(value) ~= "table" or getmetatable(value) or value[1] ~= nil then return value end
  local name = next(value)
  if name == "sample_weight" and next(value, name) == nil then return value.sample_weight end
  if name ~= nil then return value end
end

rawset(Metric, "wraps", { update_state = function(update)
  return function(self, y_true, y_pred, sample_weight, ...)
    if sample_weight == nil then y_pred = weight_of(y_pred) end
    sample_weight = weight_of(sample_weight)
    if sample_weight ~= nil and rawget(self, "_unweighted") and scopes.own().model_step then sample_weight = nil end
    return update(self, y_true, y_pred, sample_weight, ...)
  end
end })

-- Updates the state and returns the result.
function Metric:_call(...)
  self:update_state(...)
  return self:result()
end

for name, text in pairs { update_state = "y_true, y_pred, sample_weight", result = "" } do
  takes(text)
  Metric[name] = function(self) raise("%s has no %s(): a class that extends Metric defines it", object.title(self), name) end
end

local NOT_IN_CONFIG = { dtype = true }

-- The arguments of its constructor, as in Keras' config: axes from 0. A class written in Lua adds its own arguments.
function Metric:get_config()
  local config = { name = self.name }
  for key, value in pairs(rawget(self, "config") and self.config.config or {}) do config[key] = value end
  return option_fields.complete(self, config, NOT_IN_CONFIG)
end
option_fields.install(Metric, Metric.get_config)
function Metric.fields.dtype(self)
  local config = rawget(self, "config")
  return config and config.config.dtype or "float32"
end

require "flow.train.metrics.stateless_calls" (Metric, metrics)

-- What result() gives, as a number.
function internal.number(metric)
  local value = metric:result()
  if type(value) == "number" then return value end
  if native.is_tensor(value) or variable.is_variable(value) then
    if value.size == 1 then return value:item() end
  end
  raise("%s: result() gives %s, expected one number%s", object.title(metric), type(value) == "table" and not variable.is_variable(value)
    and ("a list of %d"):format(#value) or errors.describe(value),
    type(value) == "function" and ": of a variable, it or self.name:value()" or "")
end

local COMMON = { name = true, dtype = true }      -- what every class takes

-- A class of metrics written in Lua; its init() makes the variables, or, where it extends a class of the library, calls that one's.
function Metric.extend(parent, class_name)
  if extended.base(parent) ~= Metric then
    return extended.class(parent, class_name, COMMON, function(class) return object.new(class) end)
  end
  return extend(parent, class_name, function(class, name) return metrics.new(class, name) end)
end

---- sums and means --------------------------------------------------------------------------------------------------------------

-- Reduces values to one for each sample, with weights or nil, as Keras does: values are reduced ("mean" or "sum") to the rank of the
-- weights, which broadcast to them; then all axes after the first are reduced.
local function samplewise(values, weights, reduce, what)
  if values.dtype ~= "float32" then values = values:to("float32") end
  local function later_axes(t, from)
    local axes = {}
    for axis = from, t.rank do axes[#axes + 1] = axis end
    return axes
  end
  if weights ~= nil then
    values, weights = losses.same_rank(values, ops.operand(weights, "float32", "sample_weight"):to("float32"))
    if weights.rank < values.rank then values = ops[reduce](values, later_axes(values, weights.rank + 1)) end
    local shape = tensor.shape_text(tensor.raw_shape(values))
    local given = tensor.shape_text(tensor.raw_shape(weights))
    if weights.rank > values.rank then raise("%s: sample_weight %s has more dimensions than the values %s", what, given, shape) end
    weights = weights * ops.ones_like(values)
    if tensor.shape_text(tensor.raw_shape(weights)) ~= shape then
      raise("%s: sample_weight %s does not broadcast to the values %s", what, given, shape)
    end
    values = values * weights
    if weights.rank > 1 then weights = ops[reduce](weights, later_axes(weights, 2)) end
  end
  if values.rank > 1 then values = ops[reduce](values, later_axes(values, 2)) end
  return values, weights
end

local function new_sum(class, name, fields)
  local self = metrics.new(class, name, fields)
  rawset(self, "total", self:add_variable { name = "total" })
  return self
end

local function new_mean(class, name, fields)
  local self = new_sum(class, name, fields)
  rawset(self, "count", self:add_variable { name = "count" })
  return self
end

function Sum:update_state(values, sample_weight)
  values = ops.operand(values, "float32", self.name)
  if values.rank == 0 then values = step_share.weigh(values) end
  self.total:assign_add((samplewise(values, sample_weight, "sum", object.title(self))):sum())
end
function Sum:result() return C.flow_variable_number(self.total.handle) end
function Sum:_traced_result() return variable.read(self.total):to("float32") end

-- total += sum(values * weights), count += sum(weights) or the number of samples. A number counts once for all replicas that share a step.
local function accumulate(self, values, weights)
  local number = values.rank == 0 and weights == nil      -- outside of shared steps it is weighed by 1
  values, weights = samplewise(values, weights, "mean", object.title(self))
  self.total:assign_add(number and step_share.weigh(values) or values:sum())
  self.count:assign_add(number and step_share.weigh(ops.operand(1)) or weights and weights:sum() or count(values))
end

function Mean:update_state(values, sample_weight)
  values = ops.operand(values, "float32", self.name)
  if values.rank == 0 and sample_weight ~= nil and step_share.of() then
    return self:_update_batch(values, ops.operand(sample_weight, "float32", "sample_weight"))
  end
  accumulate(self, values, sample_weight)
end

-- The loss of a batch, or the mean of its values, weighted by its rows.
function Mean:_update_batch(value, rows)
  if value.rank > 0 then value = value:to("float32"):mean() end
  self.total:assign_add(step_share.without_rows(value * rows, 0))
  self.count:assign_add(rows)
end

-- The mean so far as a number; 0 before the first update.
function Mean:result()
  local n = C.flow_variable_number(self.count.handle)
  return n == 0 and 0 or C.flow_variable_number(self.total.handle) / n
end

function Mean:_traced_result()
  local n = variable.read(self.count)
  return ops.where(n:eq(0), 0, variable.read(self.total) / n):to("float32")
end

-- Values whose label is ignore_class are 0. In Keras, they count as long as there are neither weights nor a mask of the predictions.
function MeanOfValues:update_state(y_true, y_pred, sample_weight)
  local weights, ignored = losses.mask_weights(y_pred, sample_weight), rawget(self, "ignore_class")
  if not ignored then return accumulate(self, self:values(y_true, y_pred), weights) end
  local values, valid = losses.without_label(ignored, self._class_axis, ops.operand(y_true, nil, "y_true"), function(labels)
    return self:values(labels, y_pred)
  end)
  if weights ~= nil then weights = losses.align_weights(weights, values) * valid:to("float32") end
  accumulate(self, values, weights)
end

local function values_of(index, options, y_true, y_pred)
  y_true, y_pred = ops.operand(y_true, nil, "y_true"), ops.operand(y_pred, nil, "y_pred")
  native.try(C.flow_metric_values, context, index, options, native.pointer(y_true), native.pointer(y_pred), out)
  return native.tensor(out[0])
end

function MeanOfValues:values(y_true, y_pred)
  return values_of(self.index, self.options, y_true, y_pred)
end

-- The options of the records besides the name. reduction is one of losses only.
local function options_of(index)
  local list, i = {}, 0
  while C.flow_metric_argument(index, i) ~= nil do
    local name = native.string(C.flow_metric_argument(index, i))
    if name ~= "reduction" then list[#list + 1] = name end
    i = i + 1
  end
  return list
end

-- The defaults of a record's options: { name = text }.
local function defaults_of(index)
  local found, i = {}, 0
  while C.flow_metric_argument(index, i) ~= nil do
    found[native.string(C.flow_metric_argument(index, i))] = C.flow_metric_argument_default(index, i)
    i = i + 1
  end
  return found
end

-- The parameters of a class in Keras' order.
local function parameters_of(index)
  local known = options_of(index)
  if known[1] == "k" then return { "k", "name", "dtype", unpack(known, 2) } end
  return { "name", "dtype", unpack(known) }
end

function internal.check_name(class_name, name)
  if name ~= nil and type(name) ~= "string" then raise("%s: name is a string, got %s", class_name, errors.describe(name)) end
  return name
end

-- Reads the options of a metric from its constructor's arguments; the second result is its name or nil.
function internal.options(class_name, positional, known, ...)
  local all = { name = true, dtype = true }
  for _, option in ipairs(known) do all[option] = true end
  local named = errors.check_options(class_name, arguments.named(class_name, positional, positional.count or #positional, ...), all)
  local name = metrics.check_name(class_name, named.name)
  named.name, named.dtype = nil, nil
  return named, name
end

-- Its description in files.
function internal.config(class_name, name, options)
  local config = { name = name }
  for option, value in pairs(options) do config[option] = value end
  return { class_name = class_name, config = config }
end

-- A metric of the library's table. class: its class, or the name of one.
local function make(class, index, name, ...)
  class = type(class) == "string" and object.class(class, MeanOfValues) or class
  local class_name, record = class.name, native.string(C.flow_metric_name(index))
  local known = options_of(index)
  local named, given = metrics.options(class_name, parameters_of(index), known, ...)
  name = given or name or record
  local axis, ignored = named.axis or -1, named.ignore_class
  if ignored ~= nil and type(ignored) ~= "number" then
    raise("%s: ignore_class is a label, a number, got %s", class_name, errors.describe(ignored))
  end
  named.axis = arguments.zero_based(class_name, "axis", named.axis)      -- records and files count them from 0
  local config = metrics.config(class_name, name, named)
  named.ignore_class = nil
  return new_mean(class, name, { index = index, options = arguments.native(class_name, named), _class_axis = axis, ignore_class = ignored,
                                 config = config })
end

-- y_true and y_pred in the dtype of y_pred, or in this one, and of one rank.
local function pair(self, y_true, y_pred, dtype)
  y_true, y_pred = ops.operand(y_true, dtype, "y_true"), ops.operand(y_pred, dtype, "y_pred")
  dtype = dtype or y_pred.dtype
  return losses.same_rank(y_true:to(dtype), y_pred:to(dtype), object.title(self))
end

-- Squares are averaged; the result is the root. As in Keras, a mask of the predictions does not count.
local RootMeanSquaredError = object.class("RootMeanSquaredError", MeanOfValues)
function RootMeanSquaredError:update_state(y_true, y_pred, sample_weight)
  y_true, y_pred = pair(self, y_true, y_pred, "float32")
  accumulate(self, ops.square(y_pred - y_true), sample_weight)
end
function RootMeanSquaredError:result() return math.sqrt(Mean.result(self)) end

-- How often y_pred equals y_true. For "accuracy" in compile() the shapes choose the metric.
local Accuracy = object.class("Accuracy", MeanOfValues)
function Accuracy:values(y_true, y_pred) return ops.eq(pair(self, y_true, y_pred)) end

for class, default in pairs { [RootMeanSquaredError] = "root_mean_squared_error", [Accuracy] = "accuracy" } do
  takes(("name = '%s', { dtype? }"):format(default))
  signature.constructor(class, "flow.metrics." .. class.name, function(name)
    metrics.check_name(class.name, name)
    return new_mean(class, name, { config = metrics.config(class.name, name, {}) })
  end)
end

for class, new in pairs { [Mean] = new_mean, [Sum] = new_sum } do
  takes "name?, { dtype? }"
  signature.constructor(class, "flow.metrics." .. class.name, function(name)
    name = metrics.check_name(class.name, name) or names.auto(class.name)
    return new(class, name, { config = metrics.config(class.name, name, {}) })
  end)
end

---- by name ---------------------------------------------------------------------------------------------------------------------

metrics.Metric, metrics.Mean, metrics.Sum = Metric, Mean, Sum
metrics.RootMeanSquaredError, metrics.Accuracy = RootMeanSquaredError, Accuracy
-- The classes that have their own files.
local FILES = {
  auc = [[AUC]],
  confusion_metrics = [[Precision Recall TruePositives TrueNegatives FalsePositives FalseNegatives SensitivityAtSpecificity
    SpecificityAtSensitivity PrecisionAtRecall RecallAtPrecision]],
  f_scores = "F1Score FBetaScore",
  iou_metrics = "IoU BinaryIoU MeanIoU OneHotIoU OneHotMeanIoU",
  r2_score = "R2Score",
}
local file_of = {}
classes = { "RootMeanSquaredError" }
for file, list in pairs(FILES) do
  for name in list:gmatch "%S+" do classes[#classes + 1], file_of[name] = name, file end
end
table.sort(classes)

-- The class of this name from its file; nil: no file has it.
local function from_file(name)
  if not file_of[name] then return nil end
  for key, class in pairs(require("flow.train.metrics." .. file_of[name])(metrics)) do rawset(metrics, key, class) end
  return rawget(metrics, name)
end

-- The class of that name, or of that name in snake case.
local function class_named(text)
  for _, name in ipairs(classes) do
    if text == name or text == names.snake(name) then return metrics[name] end
  end
end

local function all_names()
  local list, index = {}, 0
  for _, name in ipairs(classes) do list[#list + 1] = names.snake(name) end
  while C.flow_metric_name(index) ~= nil do
    list[#list + 1] = native.string(C.flow_metric_name(index))
    index = index + 1
  end
  table.sort(list)
  for i = #list, 2, -1 do
    if list[i] == list[i - 1] then table.remove(list, i) end      -- a loss and a metric of one name
  end
  return list
end

-- The mean of fn(y_true, y_pred), which returns values for each sample; what else is given by name is a table, fn(y_true, y_pred, options).
-- It cannot be saved.
local MeanMetricWrapper = object.class("MeanMetricWrapper", MeanOfValues)
function MeanMetricWrapper:values(y_true, y_pred)
  local values = self._fn(ops.operand(y_true, nil, "y_true"), ops.operand(y_pred, nil, "y_pred"), self._fn_options or nil)
  if values == nil then raise("%s: its function returned nil, expected a value for each sample", object.title(self)) end
  return ops.operand(values, nil, object.title(self))
end

takes("fn: callable, name?: text, { dtype?, options of fn }", true)
signature.constructor(MeanMetricWrapper, "flow.metrics.MeanMetricWrapper", function(...)
  local given = arguments.named("MeanMetricWrapper", { "fn", "name", "dtype" }, 3, ...)
  local fn, name = given.fn, metrics.check_name("MeanMetricWrapper", given.name)
  signature.check_callable("MeanMetricWrapper: fn", fn)
  given.fn, given.name, given.dtype = nil, nil, nil
  local fields = { _fn = fn, _fn_options = next(given) ~= nil and given or false }
  return new_mean(MeanMetricWrapper, name or names.auto("MeanMetricWrapper"), fields)
end)
metrics.MeanMetricWrapper = MeanMetricWrapper

-- The metric that compile() was given: an object, a name (kept as the key in History), or a function.
function metrics.get(value)
  if object.is(value, Metric) then return value end
  value = losses.name_of_function(value) or value      -- metrics.binary_accuracy is "binary_accuracy"
  if type(value) == "table" and not getmetatable(value) and type(value.class_name) == "string" then return metrics.deserialize(value) end
  if type(value) == "string" then
    local class = class_named(value)
    if class then return class { name = value } end
    local index = C.flow_metric_find(value)
    if index >= 0 then return make(value, index, value) end
    raise("there is no metric %q%s", value, errors.choices(value, all_names()))
  end
  if type(value) == "function" then
    local name = names.of_function(value) or "metric"
    return new_mean(object.class("Metric function", MeanMetricWrapper), name, { _fn = value, _fn_options = false })
  end
  raise("a metric is an object, a name or a function(y_true, y_pred), got %s", errors.describe(value))
end

-- flow.metrics.BinaryAccuracy(...) makes a metric; flow.metrics.binary_accuracy(y_true, y_pred) gives values per sample.
function by_name(name)
  local class = from_file(name)
  if class then return class end
  local index = type(name) == "string" and C.flow_metric_find(name) or -1
  if index < 0 then raise("flow.metrics has no %q%s", tostring(name), errors.suggestion(tostring(name), classes)) end
  local title = "flow.metrics." .. name
  local found
  if name:find("^%u") and name ~= name:upper() then
    local parameters, defaults = parameters_of(index), defaults_of(index)
    found = object.class(name, MeanOfValues)
    signature.of_record(found, title, parameters, #parameters, function(...) return make(found, index, nil, ...) end, nil,
      function(i) return defaults[parameters[i + 1]] end)
  elseif C.flow_loss_find(name) >= 0 and native.string(C.flow_metric_name(index)) == "sparse_categorical_crossentropy" then
    found = losses[name]      -- in Keras the metric's function is the loss's
  else
    found = losses.function_of(title, options_of(index), function(options, y_true, y_pred)
      return values_of(index, options and arguments.native(name, options), y_true, y_pred)
    end, native.string(C.flow_metric_name(index)))
  end
  rawset(metrics, name, found)
  return found
end

return metrics
