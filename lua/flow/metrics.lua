-- metrics.lua: flow.metrics: running means of values per sample, kept in variables so that plans update them.

local native = require "flow.ffi"
local errors = require "flow.errors"
local names = require "flow.names"
local object = require "flow.object"
local arguments = require "flow.arguments"
local variable = require "flow.variable"
local tensor = require "flow.tensor"
local ops = require "flow.ops"
local losses = require "flow.losses"

local C, raise = native.C, errors.raise
local context, held = native.context, native.held

local metrics = {}
local Metric = object.class("Metric")
local Mean = object.class("Mean", Metric)
local out = native.out("flow_tensor")
local element_count = C.flow_op_find("element_count")

-- How many rows a batch has, or how many elements a tensor, as a float32 scalar that holds in traces too.
local function count(x, rows_only)
  local attributes = native.attributes()
  if rows_only then attributes.reduce.count = 1 end      -- axis 0
  local inputs = native.pointers { x }
  native.try(C.flow_apply, context, element_count, inputs, 1, attributes, out)
  held[1] = x
  return native.tensor(out[0])
end
function metrics.rows(x) return count(x, true) end

local function counter(name)
  return variable.Variable(tensor.zeros({}, { dtype = "float64" }), { name = name, trainable = false, sync = "SUM_ON_READ" })
end

local function new(class, name, fields)
  local self = object.new(class, fields or {})
  rawset(self, "name", name)
  rawset(self, "total", counter(name .. "/total"))
  rawset(self, "count", counter(name .. "/count"))
  return self
end

-- total += sum(values * weights), count += sum(weights) or the number of values.
local function accumulate(self, values, weights)
  if values.dtype ~= "float32" then values = values:to("float32") end
  if weights ~= nil then
    weights = losses.align_weights(weights, values)
    self.total:assign_add((values * weights):sum())
    self.count:assign_add(weights:sum())
  else
    self.total:assign_add(values:sum())
    self.count:assign_add(count(values))
  end
end

function Metric:update_state(y_true, y_pred, weights)
  accumulate(self, self:values(y_true, y_pred), weights)
end

function Mean:update_state(values, weights)
  accumulate(self, ops.operand(values, "float32", self.name), weights)
end

-- The loss of a batch, weighted by its rows. all_rows: of several replicas, of whose loss `value` is the part of one.
function Mean:update_batch(value, rows, all_rows)
  self.total:assign_add(value * (all_rows or rows))
  self.count:assign_add(rows)
end

-- The mean so far as a number; 0 before the first update.
function Metric:result()
  local n = C.flow_variable_number(self.count.handle)
  return n == 0 and 0 or C.flow_variable_number(self.total.handle) / n
end

function Metric:reset_state()
  self.total:assign(0)
  self.count:assign(0)
end

function Metric.fields.variables(self) return { self.total, self.count } end

function Metric:values(y_true, y_pred)
  y_true, y_pred = ops.operand(y_true, nil, "y_true"), ops.operand(y_pred, nil, "y_pred")
  native.try(C.flow_metric_values, context, self.index, self.options, native.pointer(y_true), native.pointer(y_pred), out)
  held[1], held[2] = y_true, y_pred
  return native.tensor(out[0])
end

local function make(class_name, index, name, ...)
  local record = native.string(C.flow_metric_name(index))
  local threshold = (record == "accuracy" or record == "binary_accuracy") or nil
  local named = errors.check_options(class_name, arguments.named(class_name, {}, 0, ...), { name = true, threshold = threshold })
  name, named.name = named.name or name or record, nil
  local config = { name = name }
  for option, value in pairs(named) do config[option] = value end
  return new(object.class(class_name, Metric), name, { index = index, options = arguments.native(class_name, named),
                                                       config = { class_name = class_name, config = config } })
end

local NAMES = { "accuracy", "sparse_categorical_accuracy", "categorical_accuracy", "binary_accuracy", "mean_squared_error",
                "mean_absolute_error" }

-- The metric that compile() was given: an object, a name (kept as the key in History), or a function.
function metrics.get(value)
  if object.is(value, Metric) then return value end
  if type(value) == "string" then
    local index = C.flow_metric_find(value)
    if index >= 0 then return make(value, index, value) end
    raise("there is no metric %q%s There are accuracy, sparse_categorical_accuracy, categorical_accuracy, binary_accuracy, mse and mae",
      value, (errors.suggestion(value, NAMES):gsub("^$", ".")))
  end
  if type(value) == "function" then
    local class = object.class("Metric function", Metric)
    function class.values(_, y_true, y_pred) return value(y_true, y_pred) end
    return new(class, "metric")
  end
  raise("a metric is an object, a name or a function(y_true, y_pred), got %s", errors.describe(value))
end

getmetatable(Mean).__call = function(_, options)
  if type(options) == "string" then options = { name = options } end
  return new(Mean, errors.check_options("Mean", options, { name = true }).name or names.auto("Mean"))
end

metrics.Metric = Metric
metrics.Mean = Mean

return setmetatable(metrics, {
  __index = function(_, name)
    local index = type(name) == "string" and C.flow_metric_find(name) or -1
    if index < 0 then raise("flow.metrics has no %q", tostring(name)) end
    return function(...) return make(name, index, nil, ...) end
  end,
})
