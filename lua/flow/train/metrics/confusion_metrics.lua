-- confusion_metrics.lua: metrics of right and wrong decisions: y_true is 0 or 1, y_pred a probability, and what is above a threshold
-- counts as 1. Formulas are those of keras/src/metrics/confusion_metrics.py and metrics_utils.py.

local errors = require "flow.errors"
local names = require "flow.names"
local object = require "flow.object"
local signature = require "flow.signature"
local tensor = require "flow.tensor"
local ops = require "flow.tensor.ops"
local losses = require "flow.train.losses"
local symbolic = require "flow.layers.symbolic"

local raise = errors.raise

local function divide(a, b)
  return b == 0 and 0 or a / b
end

-- Whole lists of the state as Lua numbers.
local function values_of(variable)
  local list = variable:totable()
  return type(list) == "table" and list or { list }
end

return function(metrics)
  local classes = {}

  -- A class of metrics with that constructor: make(class, ...) -> a metric. parameters: their names, of which this many have positions.
  local function define(name, parameters, positional, make)
    local class = object.class(name, metrics.Metric)
    signature.of_record(class, "flow.metrics." .. name, parameters, positional, function(...) return make(class, ...) end)
    classes[name] = class
    return class
  end

  ---- counting -------------------------------------------------------------------------------------------------------------------

  -- y_true and y_pred as columns {values, 1}, and a weight for each value, or nil.
  local function columns(self, y_true, y_pred, weights)
    y_true, y_pred = ops.operand(y_true, "float32", "y_true"), ops.operand(y_pred, "float32", "y_pred")
    if y_true.rank == y_pred.rank + 1 and y_true.shape[y_true.rank] == 1 then y_true = y_true:squeeze(-1) end
    if y_pred.rank == y_true.rank + 1 and y_pred.shape[y_pred.rank] == 1 then y_pred = y_pred:squeeze(-1) end
    local same = y_true.rank == y_pred.rank
    for axis = 2, y_pred.rank do same = same and y_true.shape[axis] == y_pred.shape[axis] end
    if not same then
      raise("%s: y_true has the shape %s, y_pred %s: expected a 0 or 1 for each value; flow.one_hot makes these of labels of several " ..
        "classes", object.title(self), symbolic.shape_text(y_true.shape), symbolic.shape_text(y_pred.shape))
    end
    if weights ~= nil then weights = losses.align_weights(weights, y_pred, true) * ops.ones_like(y_pred) end
    local class = rawget(self, "class_id")
    if class then
      if y_pred.rank < 2 or class >= y_pred.shape[y_pred.rank] then
        raise("%s: class_id is %d (classes count from 0), y_pred has the shape %s", object.title(self), class,
          symbolic.shape_text(y_pred.shape))
      end
      local function of_class(x) return x:reshape { -1, x.shape[x.rank] }[{ {}, class + 1 }] end
      y_true, y_pred, weights = of_class(y_true), of_class(y_pred), weights and of_class(weights)
    end
    return y_true:reshape { -1, 1 }, y_pred:reshape { -1, 1 }, weights and weights:reshape { -1, 1 }
  end

  local KINDS = { "true_positives", "false_positives", "true_negatives", "false_negatives" }

  -- Updates the counts that the metric has, of the four, for each of its thresholds.
  local function count(self, y_true, y_pred, sample_weight)
    y_true, y_pred, sample_weight = columns(self, y_true, y_pred, sample_weight)
    local one = sample_weight or ops.ones_like(y_true)
    local positive = ops.where(y_true:eq(0), 0, one)
    local negative = one - positive
    local above = y_pred:gt(self.limits):to("float32")
    local below = 1 - above
    local added = { true_positives = { positive, above }, false_positives = { negative, above },
                    true_negatives = { negative, below }, false_negatives = { positive, below } }
    for _, kind in ipairs(KINDS) do
      local state = rawget(self, kind)
      if state then state:assign_add((added[kind][1] * added[kind][2]):sum(1)) end
    end
  end

  -- Adds thresholds, a list, and these counts to a metric.
  local function prepare(self, thresholds, kinds)
    rawset(self, "limits", tensor.tensor { thresholds })
    for _, kind in ipairs(kinds) do rawset(self, kind, self:add_variable { name = kind, shape = { #thresholds } }) end
    return self
  end

  -- The option thresholds: nil, a number or a list of numbers from 0 to 1.
  local function read_thresholds(what, value)
    local list = type(value) == "table" and value or { value or 0.5 }
    for i, entry in ipairs(list) do
      if type(entry) ~= "number" or entry < 0 or entry > 1 then
        raise("%s: entry %d of thresholds is %s, expected a number from 0 to 1", what, i, errors.describe(entry))
      end
    end
    if #list == 0 then raise("%s: thresholds is empty", what) end
    return list
  end

  local function read_class(what, value)
    if value == nil then return nil end
    if type(value) ~= "number" or value < 0 or value ~= math.floor(value) then
      raise("%s: class_id is a whole number from 0, got %s", what, errors.describe(value))
    end
    return value
  end

  -- One number, or a list of them if there are several thresholds.
  local function one_or_list(list)
    return #list == 1 and list[1] or list
  end

  -- A metric of counts at thresholds: result is formula(count, count) of the two kinds.
  local function define_ratio(name, positional, known, kinds, formula)
    local class = define(name, known[2] and { "thresholds", "class_id", "name" } or { "thresholds", "name" }, 1, function(class, ...)
      local options, given = metrics.options(name, positional, known, ...)
      local thresholds, id = read_thresholds(name, options.thresholds), read_class(name, options.class_id)
      given = given or names.auto(name)
      local self = metrics.new(class, given, { config = metrics.config(name, given, options), class_id = id })
      return prepare(self, thresholds, kinds)
    end)
    class.update_state = count
    function class:result()
      local a, b, list = values_of(self[kinds[1]]), kinds[2] and values_of(self[kinds[2]]), {}
      for i = 1, #a do list[i] = formula(a[i], b and b[i]) end
      return one_or_list(list)
    end
  end

  local function share(a, b) return divide(a, a + b) end
  local function itself(a) return a end
  local WITH_CLASS = { "thresholds", "class_id" }

  define_ratio("Precision", { "thresholds" }, WITH_CLASS, { "true_positives", "false_positives" }, share)
  define_ratio("Recall", { "thresholds" }, WITH_CLASS, { "true_positives", "false_negatives" }, share)
  define_ratio("TruePositives", { "thresholds" }, { "thresholds" }, { "true_positives" }, itself)
  define_ratio("TrueNegatives", { "thresholds" }, { "thresholds" }, { "true_negatives" }, itself)
  define_ratio("FalsePositives", { "thresholds" }, { "thresholds" }, { "false_positives" }, itself)
  define_ratio("FalseNegatives", { "thresholds" }, { "thresholds" }, { "false_negatives" }, itself)

  ---- the area under a curve ------------------------------------------------------------------------------------------------------

  local CURVES, SUMMATIONS = { ROC = true, PR = true }, { interpolation = true, minoring = true, majoring = true }

  local function choose(what, name, value, allowed, default)
    if value == nil then return default end
    if not allowed[value] then
      local list = require("flow.names").sorted(allowed)
      raise("%s: %s is one of %s, got %s", what, name, table.concat(list, ", "), errors.describe(value))
    end
    return value
  end

  local MOST_THRESHOLDS = 1000000      -- each takes memory in tables and in counts

  -- Keras' thresholds: evenly spaced, the outer ones just beyond 0 and 1.
  local function spaced(given, inner)
    local list = { -1e-7 }
    for _, limit in ipairs(given or {}) do list[#list + 1] = limit end
    for i = 1, given and 0 or inner do list[i + 1] = i / (inner + 1) end
    list[#list + 1] = 1 + 1e-7
    table.sort(list)
    return list
  end

  local CURVE = { "num_thresholds", "curve", "summation_method", "name", "thresholds", "from_logits", "multi_label" }
  local AUC = define("AUC", CURVE, 4, function(class, ...)
    local options, name = metrics.options("AUC", { unpack(CURVE, 1, 4) }, CURVE, ...)
    local number = options.num_thresholds or 200
    if type(number) ~= "number" or number < 2 or number > MOST_THRESHOLDS or number ~= math.floor(number) then
      raise("AUC: num_thresholds is a whole number from 2 to %d, got %s", MOST_THRESHOLDS, errors.describe(number))
    end
    if options.multi_label then raise("AUC: multi_label = true is not supported: make one metric for each label") end
    local given = options.thresholds and read_thresholds("AUC", options.thresholds)
    name = name or names.auto("AUC")
    local self = metrics.new(class, name, { config = metrics.config("AUC", name, options), from_logits = options.from_logits or false,
      curve = choose("AUC", "curve", options.curve, CURVES, "ROC"),
      summation_method = choose("AUC", "summation_method", options.summation_method, SUMMATIONS, "interpolation") })
    return prepare(self, spaced(given, number - 2), KINDS)
  end)

  function AUC:update_state(y_true, y_pred, sample_weight)
    if self.from_logits then y_pred = ops.sigmoid(ops.operand(y_pred, "float32", "y_pred")) end
    count(self, y_true, y_pred, sample_weight)
  end

  -- Between two points of the precision-recall curve the precision is a ratio of two straight lines (Davis and Goadrich, The
  -- Relationship Between Precision-Recall and ROC Curves, 2006).
  local function interpolated_precision(tp, fp, fn)
    local sum = 0
    for i = 1, #tp - 1 do
      local p, next_p = tp[i] + fp[i], tp[i + 1] + fp[i + 1]
      local step = tp[i] - tp[i + 1]
      local slope = divide(step, math.max(p - next_p, 0))
      local intercept = tp[i + 1] - slope * next_p
      local ratio = p > 0 and next_p > 0 and p / next_p or 1
      sum = sum + divide(slope * (step + intercept * math.log(ratio)), math.max(tp[i + 1] + fn[i + 1], 0))
    end
    return sum
  end

  local HEIGHTS = { interpolation = function(a, b) return (a + b) / 2 end, minoring = math.min, majoring = math.max }

  function AUC:result()
    local tp, fp = values_of(self.true_positives), values_of(self.false_positives)
    local tn, fn = values_of(self.true_negatives), values_of(self.false_negatives)
    if self.curve == "PR" and self.summation_method == "interpolation" then return interpolated_precision(tp, fp, fn) end
    local x, y, sum, height = {}, {}, 0, HEIGHTS[self.summation_method]
    for i = 1, #tp do
      local recall = divide(tp[i], tp[i] + fn[i])
      if self.curve == "ROC" then x[i], y[i] = divide(fp[i], fp[i] + tn[i]), recall
      else x[i], y[i] = recall, divide(tp[i], tp[i] + fp[i]) end
    end
    for i = 1, #x - 1 do sum = sum + (x[i] - x[i + 1]) * height(y[i], y[i + 1]) end
    return sum
  end

  ---- one rate where another is high enough ---------------------------------------------------------------------------------------

  -- A rate is the first count's share of both.
  local RATES = { specificity = { "true_negatives", "false_positives" }, precision = { "true_positives", "false_positives" } }
  RATES.sensitivity = { "true_positives", "false_negatives" }
  RATES.recall = RATES.sensitivity

  local function rates_of(self, rate)
    local a, b, list = values_of(self[RATES[rate][1]]), values_of(self[RATES[rate][2]]), {}
    for i = 1, #a do list[i] = divide(a[i], a[i] + b[i]) end
    return list
  end

  -- Evenly spaced thresholds from 0 to 1; a single one is in the middle.
  local function even(what, number)
    if type(number) ~= "number" or number < 1 or number > MOST_THRESHOLDS or number ~= math.floor(number) then
      raise("%s: num_thresholds is a whole number from 1 to %d, got %s", what, MOST_THRESHOLDS, errors.describe(number))
    end
    local list = { number == 1 and 0.5 or nil }
    for i = 1, number > 1 and number or 0 do list[i] = (i - 1) / (number - 1) end
    return list
  end

  -- A metric whose result is the largest `sought` among the thresholds at which `least` is at least the number that its option has.
  local function define_at(name, sought, least)
    local known = { least, "num_thresholds", "class_id" }
    local parameters = { least, "num_thresholds", "class_id", "name" }
    local class = define(name, parameters, 4, function(class, ...)
      local options, given = metrics.options(name, parameters, known, ...)
      local value = options[least]
      if type(value) ~= "number" or not (value >= 0 and value <= 1) then
        raise("%s: %s is a number from 0 to 1, got %s", name, least, errors.describe(value))
      end
      options.num_thresholds = options.num_thresholds or 200
      local thresholds, id = even(name, options.num_thresholds), read_class(name, options.class_id)
      given = given or names.auto(name)
      local self = metrics.new(class, given, { config = metrics.config(name, given, options), class_id = id, [least] = value })
      return prepare(self, thresholds, KINDS)
    end)

    -- Predictions below 0 and above 1 count as 0 and 1.
    function class:update_state(y_true, y_pred, sample_weight)
      count(self, y_true, ops.clip(ops.operand(y_pred, "float32", "y_pred"), 0, 1), sample_weight)
    end

    function class:result()
      local rates, best = rates_of(self, sought), 0
      for i, rate in ipairs(rates_of(self, least)) do
        if rate >= self[least] then best = math.max(best, rates[i]) end
      end
      return best
    end
  end

  define_at("SensitivityAtSpecificity", "sensitivity", "specificity")
  define_at("SpecificityAtSensitivity", "specificity", "sensitivity")
  define_at("PrecisionAtRecall", "precision", "recall")
  define_at("RecallAtPrecision", "recall", "precision")

  return classes
end
