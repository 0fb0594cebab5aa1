-- iou_metrics.lua: intersection over union of classes, from a table that counts how often each class was predicted for each true class: IoU
-- and similar metrics. Formulas are those of keras/src/metrics/iou_metrics.py.
--
-- State: total_cm, {classes, classes}; row: the true class, column: the predicted one; float64 sums of weights, which are exact as long as
-- they are whole numbers below 2^53. Fields: _chosen, {1, classes}, how often each class is a target; _whole, see counts_whole.

local errors = require "flow.errors"
local object = require "flow.object"
local names = require "flow.names"
local signature = require "flow.signature"
local tensor = require "flow.tensor"
local ops = require "flow.tensor.ops"
local tools = require "flow.tensor.composed.tools"
local losses = require "flow.train.losses"

local raise = errors.raise
local EPSILON = 1e-7
local MOST_CLASSES = 10000      -- the number of rows and columns of the table

-- What the classes take, in Keras' order.
local CLASS_IDS, SPARSE = "target_class_ids: list", "sparse_y_true: boolean = true, sparse_y_pred: boolean = true, axis: integer = -1"
local COMMON, ONE_HOT = "name?: text, dtype?: string, ignore_class?: integer", "sparse_y_pred: boolean = false, axis: integer = -1"
local TEXTS = {
  IoU = ("num_classes: count, %s, %s, %s"):format(CLASS_IDS, COMMON, SPARSE),
  BinaryIoU = "target_class_ids?, threshold: number = 0.5, name?: text, dtype?: string",
  MeanIoU = ("num_classes: count, %s, %s"):format(COMMON, SPARSE),
  OneHotIoU = ("num_classes: count, %s, %s, %s"):format(CLASS_IDS, COMMON, ONE_HOT),
  OneHotMeanIoU = ("num_classes: count, %s, %s"):format(COMMON, ONE_HOT),
}

-- Whether Keras keeps the state as integers, to which labels and weights are truncated: if dtype is not one of floats.
local function counts_whole(what, dtype)
  if dtype == nil or dtype:find "^u?int%d*$" then return true end
  if dtype:find "^b?float%d+$" then return false end
  raise('%s: dtype is a dtype of integers or floats such as "int32" or "float32", got %q', what, dtype)
end

-- For each class how often it occurs among the ids, as {1, classes}.
local function chosen(what, ids, classes)
  local list = {}
  for class = 1, classes do list[class] = 0 end
  for i = 1, errors.check_list(what .. ": target_class_ids", ids) do
    local id = ids[i]
    if type(id) ~= "number" or id < 0 or id >= classes or id ~= math.floor(id) then
      raise("%s: entry %d of target_class_ids is %s, expected a class from 0 to %d", what, i, errors.describe(id), classes - 1)
    end
    list[id + 1] = list[id + 1] + 1
  end
  if #ids == 0 then raise("%s: target_class_ids is empty", what) end
  return tensor.tensor({ list }, { dtype = "float64" })
end

return function(metrics)
  local IoU = object.class("IoU", metrics.Metric)
  local classes = { IoU = IoU }

  function IoU.fields.dtype(self) return self.config.config.dtype or "int64" end

  -- given: the options by name; config: those that a file holds.
  local function make(class, given, config)
    local what, count = class.name, given.num_classes
    if count > MOST_CLASSES then raise("%s: num_classes is %d, expected a number from 1 to %d", what, count, MOST_CLASSES) end
    local name = given.name or names.auto(what)
    if given.dtype ~= nil then config.dtype = given.dtype end
    local self = metrics.new(class, name, {
      config = metrics.config(what, name, config), num_classes = count, ignore_class = given.ignore_class, axis = given.axis,
      threshold = given.threshold, sparse_y_true = given.sparse_y_true, sparse_y_pred = given.sparse_y_pred,
      target_class_ids = given.target_class_ids,
      _whole = counts_whole(what, given.dtype), _chosen = chosen(what, given.target_class_ids, count),
    })
    rawset(self, "total_cm", self:add_variable { name = "total_confusion_matrix", shape = { count, count } })
    return self
  end

  -- Defines a class whose constructor takes what TEXTS says. complete(given): adds the options that the class does not take.
  local function define(name, complete)
    local class = classes[name] or object.class(name, IoU)
    classes[name] = class
    signature.takes_named(TEXTS[name])
    signature.constructor(class, "flow.metrics." .. name, function(given)
      local config = {}
      for option, value in pairs(given) do config[option] = value end
      config.name, config.dtype = nil, nil
      if config.axis and config.axis > 0 then config.axis = config.axis - 1 end      -- files count axes from 0
      complete(given)
      return make(class, given, config)
    end)
  end

  local function all_classes(given)
    given.target_class_ids = {}
    for class = 0, math.min(given.num_classes, MOST_CLASSES) - 1 do given.target_class_ids[class + 1] = class end
  end

  define("IoU", function() end)
  define("BinaryIoU", function(given)
    given.target_class_ids, given.num_classes = given.target_class_ids or { 0, 1 }, 2
    given.sparse_y_true, given.sparse_y_pred, given.axis = true, true, -1
  end)
  define("MeanIoU", all_classes)
  define("OneHotIoU", function(given) given.sparse_y_true = false end)
  define("OneHotMeanIoU", function(given)
    all_classes(given)
    given.sparse_y_true = false
  end)

  -- Labels, from 0, or the position of the largest score along the axis. NaN is not a class; as an integer it would be class 0.
  local function labels_of(self, values, is_sparse)
    if not is_sparse then return ops.argmax(values, self.axis) - 1 end
    if not self._whole then return values:to "float32" end
    if values.dtype:find "float" then values = ops.where(values:eq(values), values, -1) end
    return values:to "int32"
  end

  -- y_true and y_pred hold a class for each value, or scores if they are not sparse; classes that do not exist, and values whose true
  -- class is ignore_class, are not counted.
  function IoU:update_state(y_true, y_pred, sample_weight)
    y_true = labels_of(self, ops.operand(y_true, nil, "y_true"), self.sparse_y_true)
    y_pred = labels_of(self, ops.operand(y_pred, nil, "y_pred"), self.sparse_y_pred)
    if sample_weight == nil then sample_weight = ops.ones_like(y_true):to("float64")
    else
      sample_weight = ops.operand(sample_weight, "float32", "sample_weight")
      if self._whole then sample_weight = sample_weight:to("int32") end
      sample_weight = (losses.align_weights(sample_weight, y_true) * ops.ones_like(y_true)):to("float64")
    end
    y_true, y_pred, sample_weight = y_true:reshape { -1 }, y_pred:reshape { -1 }, sample_weight:reshape { -1 }
    if tensor.raw_shape(y_true)[1] ~= tensor.raw_shape(y_pred)[1] then
      raise("%s: y_true has %s, y_pred %s: expected a class for each of the same values", object.title(self),
        tensor.shape_text(tensor.raw_shape(y_true)), tensor.shape_text(tensor.raw_shape(y_pred)))
    end
    local count = self.num_classes
    local counted = ops.logical_and(ops.logical_and(y_true:ge(0), y_true:lt(count)), ops.logical_and(y_pred:ge(0), y_pred:lt(count)))
    if rawget(self, "ignore_class") then counted = ops.logical_and(counted, y_true:ne(self.ignore_class)) end
    local cell = ops.where(counted, y_true, 0):to("int64") * count + ops.where(counted, y_pred, 0):to("int64")
    local values = ops.where(counted, sample_weight, 0):expand_dims(-1)
    self.total_cm:assign_add(tools.scatter_rows(values, cell, { count * count, 1 }):reshape { count, count })
  end

  -- The mean over the target classes that occur of true positives / (true positives + false positives + false negatives).
  function IoU:_traced_result()
    local table_of = self.total_cm:value()
    local hits = (table_of * tensor.eye(self.num_classes, { dtype = "float64" })):sum(1, true)
    local union = table_of:sum(1, true) + ops.transpose(table_of):sum(1, true) - hits
    local occurring = union:gt(1e-9):to("float64") * self._chosen
    return ((hits / (union + EPSILON) * occurring):sum() / (occurring:sum() + EPSILON)):to("float32")
  end

  function IoU:result() return self:_traced_result():item() end

  -- What is above the threshold, or on it, is of class 1.
  function classes.BinaryIoU:update_state(y_true, y_pred, sample_weight)
    y_pred = ops.operand(y_pred, "float32", "y_pred"):to("float32"):ge(self.threshold)
    IoU.update_state(self, y_true, y_pred:to("float32"), sample_weight)
  end

  return classes
end
