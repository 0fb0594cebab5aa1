-- confusion_counts.lua: the counts of right and wrong decisions that confusion_metrics.lua and auc.lua keep, at each of their thresholds:
-- y_true is 0 or 1, y_pred a probability, and what is above a threshold counts as 1. Semantics are those of
-- keras/src/metrics/metrics_utils.py.

local errors = require "flow.errors"
local object = require "flow.object"
local signature = require "flow.signature"
local tensor = require "flow.tensor"
local ops = require "flow.tensor.ops"
local losses = require "flow.train.losses"
local symbolic = require "flow.layers.symbolic"

local raise = errors.raise
local counts = {}

counts.KINDS = { "true_positives", "false_positives", "true_negatives", "false_negatives" }
local OUT_OF_PLACE = -1e10      -- of predictions that are not among the top k: below all thresholds, and the limit where there are none

function counts.divide(a, b)
  return b == 0 and 0 or a / b
end

-- The whole list of a state as Lua numbers; of one with labels, {thresholds, labels}, a list for each threshold.
function counts.values_of(variable)
  local list = variable:totable()
  return type(list) == "table" and list or { list }
end

-- A class of metrics with that constructor: make(class, ...) -> a metric. parameters: their names, of which this many have positions.
-- defaults: { name = text }, or nil.
function counts.define(metrics, name, parameters, positional, make, defaults)
  local class = object.class(name, metrics.Metric)
  signature.of_record(class, "flow.metrics." .. name, parameters, positional, function(...) return make(class, ...) end, nil,
    function(i) return defaults and defaults[parameters[i + 1]] end)
  -- What is compared, as a list, and what the constructor got.
  function class.fields.thresholds(self) return self.limits:reshape { -1 }:totable() end
  function class.fields.init_thresholds(self) return self:get_config().thresholds end
  return class
end

---- options -------------------------------------------------------------------------------------------------------------------

-- The option thresholds: nil or false, a number or a list of numbers from 0 to 1.
function counts.read_thresholds(what, value, default)
  local list = type(value) == "table" and value or { value or default or 0.5 }
  for i, entry in ipairs(list) do
    if type(entry) ~= "number" or value and not (entry >= 0 and entry <= 1) then
      raise("%s: entry %d of thresholds is %s, expected a number from 0 to 1", what, i, errors.describe(entry))
    end
  end
  if #list == 0 then raise("%s: thresholds is empty", what) end
  return list
end

-- An option that is nil, or false, or a whole number from `least`.
function counts.read_whole(what, name, value, least)
  if not value then return nil end
  if type(value) ~= "number" or value < least or value ~= math.floor(value) then
    raise("%s: %s is a whole number from %d, got %s", what, name, least, errors.describe(value))
  end
  return value
end

-- Where the option top_k is given and thresholds is not, whatever is among the top k counts as 1.
function counts.default_limit(top_k)
  return top_k and OUT_OF_PLACE
end

-- Adds thresholds, a list, and counts of these kinds to a metric. labels: the number of them that are counted apart, or nil.
function counts.prepare(self, thresholds, kinds, labels)
  rawset(self, "limits", labels and tensor.tensor { thresholds }:reshape { 1, #thresholds, 1 } or tensor.tensor { thresholds })
  for _, kind in ipairs(kinds) do
    rawset(self, kind, self:add_variable { name = kind, shape = labels and { #thresholds, labels } or { #thresholds } })
  end
  return self
end

---- counting ------------------------------------------------------------------------------------------------------------------

-- y_true and y_pred in one shape, as float32, which has the digits of thresholds, and a weight for each value, or nil.
local function aligned(self, y_true, y_pred, weights)
  y_true, y_pred = ops.operand(y_true, "float32", "y_true"):to "float32", ops.operand(y_pred, "float32", "y_pred"):to "float32"
  if y_true.rank == y_pred.rank + 1 and y_true.shape[y_true.rank] == 1 then y_true = y_true:squeeze(-1) end
  if y_pred.rank == y_true.rank + 1 and y_pred.shape[y_pred.rank] == 1 then y_pred = y_pred:squeeze(-1) end
  local same = y_true.rank == y_pred.rank
  for axis = 2, y_pred.rank do same = same and y_true.shape[axis] == y_pred.shape[axis] end
  if not same then
    raise("%s: y_true has the shape %s, y_pred %s: expected a 0 or 1 for each value; flow.one_hot makes these of labels of several " ..
      "classes", object.title(self), symbolic.shape_text(y_true.shape), symbolic.shape_text(y_pred.shape))
  end
  if weights ~= nil then weights = losses.align_weights(weights, y_pred, true) * ops.ones_like(y_pred) end
  return y_true, y_pred, weights
end

-- The predictions with those that are not among the k largest of a row below all thresholds.
local function top_alone(self, y_pred, k)
  local classes = y_pred.shape[y_pred.rank]
  if k > classes then
    raise("%s: top_k is %d, y_pred has the shape %s: %d classes", object.title(self), k, symbolic.shape_text(y_pred.shape), classes)
  end
  local _, indices = ops.top_k(y_pred, k)
  return ops.where(ops.one_hot(indices - 1, classes):sum(-2):gt(0), y_pred, OUT_OF_PLACE)
end

-- The values that are counted, as {values, 1}, or as {rows, 1, labels} where labels are counted apart.
local function prepared(self, y_true, y_pred, weights)
  y_true, y_pred, weights = aligned(self, y_true, y_pred, weights)
  local class, labels, of_labels = rawget(self, "class_id"), rawget(self, "multi_label"), rawget(self, "label_weights")
  if rawget(self, "top_k") then y_pred = top_alone(self, y_pred, self.top_k) end
  if class then
    if y_pred.rank < 2 or class >= y_pred.shape[y_pred.rank] then
      raise("%s: class_id is %d (classes count from 0), y_pred has the shape %s", object.title(self), class,
        symbolic.shape_text(y_pred.shape))
    end
    local function of_class(x) return x:reshape { -1, x.shape[x.rank] }[{ {}, class + 1 }] end
    y_true, y_pred, weights = of_class(y_true), of_class(y_pred), weights and of_class(weights)
  end
  if labels then
    local function apart(x) return x and x:reshape { -1, 1, x.shape[x.rank] } end
    return apart(y_true), apart(y_pred), apart(weights)
  end
  if of_labels then weights = (weights or ops.ones_like(y_pred)) * tensor.tensor(of_labels) end
  return y_true:reshape { -1, 1 }, y_pred:reshape { -1, 1 }, weights and weights:reshape { -1, 1 }
end

-- Updates the counts that the metric has, of the four, for each of its thresholds. It may have class_id, top_k, multi_label and
-- label_weights, a list with a weight for each label.
function counts.update(self, y_true, y_pred, sample_weight)
  y_true, y_pred, sample_weight = prepared(self, y_true, y_pred, sample_weight)
  local one = sample_weight or ops.ones_like(y_true)
  local positive = ops.where(y_true:eq(0), 0, one)
  local negative = one - positive
  local above = y_pred:gt(self.limits):to("float32")
  local below = 1 - above
  local added = { true_positives = { positive, above }, false_positives = { negative, above },
                  true_negatives = { negative, below }, false_negatives = { positive, below } }
  for _, kind in ipairs(counts.KINDS) do
    local state = rawget(self, kind)
    if state then state:assign_add((added[kind][1] * added[kind][2]):sum(1)) end
  end
end

return counts
