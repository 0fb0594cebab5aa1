-- auc.lua: AUC, the area under a curve of two rates over thresholds. Formulas are those of keras/src/metrics/confusion_metrics.py.
--
-- The four counts at each threshold are the state (confusion_counts.lua). The first threshold is below 0 and the last above 1, so the curve
-- has both ends. With multi_label counts are kept for each label, {thresholds, labels}; their number is known from num_labels, or from the
-- first update, until which the metric has no variables.

local errors = require "flow.errors"
local names = require "flow.names"
local object = require "flow.object"
local ops = require "flow.tensor.ops"
local symbolic = require "flow.layers.symbolic"
local counts = require "flow.train.metrics.confusion_counts"

local raise, divide, values_of = errors.raise, counts.divide, counts.values_of
-- By the names that Keras takes, those that its files have.
local CURVES = { ROC = "ROC", PR = "PR", PRGAIN = "PRGAIN", roc = "ROC", pr = "PR", prgain = "PRGAIN" }
local SUMMATIONS = { interpolation = "interpolation", minoring = "minoring", majoring = "majoring",
                     Interpolation = "interpolation", Minoring = "minoring", Majoring = "majoring" }
local MOST_THRESHOLDS = 1000000      -- each takes memory in tables and in counts

-- An option that is one of some names, as files have it, or nil; raises for another value.
local function choose(name, value, allowed)
  if value == nil then return nil end
  if not allowed[value] then
    local listed = {}
    for _, standard in pairs(allowed) do listed[standard] = true end
    raise("AUC: %s is one of %s, got %s", name, table.concat(names.sorted(listed), ", "), errors.describe(value))
  end
  return allowed[value]
end

-- Keras' thresholds, sorted: `inner` evenly spaced ones, or those in the list `given`, and the outer ones just beyond 0 and 1.
local function spaced(given, inner)
  local list = { -1e-7 }
  for _, limit in ipairs(given or {}) do list[#list + 1] = limit end
  for i = 1, given and 0 or inner do list[i + 1] = i / (inner + 1) end
  list[#list + 1] = 1 + 1e-7
  table.sort(list)
  return list
end

-- Raises unless num_labels and label_weights fit each other.
local function check_labels(options)
  local weights = options.label_weights
  counts.read_whole("AUC", "num_labels", options.num_labels, 1)
  if options.num_labels and not options.multi_label then raise("AUC: num_labels is for multi_label = true") end
  if not weights then return end
  for i = 1, errors.check_list("AUC: label_weights", weights) do
    if type(weights[i]) ~= "number" or not (weights[i] >= 0) then
      raise("AUC: entry %d of label_weights is %s, expected a number from 0", i, errors.describe(weights[i]))
    end
  end
  if options.num_labels and #weights ~= options.num_labels then
    raise("AUC: label_weights has %d entries for %d labels", #weights, options.num_labels)
  end
end

-- Between two points of the precision-recall curve the precision is a ratio of two straight lines (Davis and Goadrich, The
-- Relationship Between Precision-Recall and ROC Curves, 2006), so the area under it is the integral of that: slope * (dTP + intercept *
-- log(P[i] / P[i + 1])) / (TP + FN), with P = TP + FP. Lists over the thresholds, which grow.
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

-- Gains of recall and precision (Flach and Kull, Precision-Recall-Gain Curves, 2015), both 0 for a prediction that is always positive. As
-- in Keras a recall below that has no gain, and where nothing is found the gains are 0 and 1.
local function gains(tp, fp, tn, fn)
  if tp == 0 then return 0, 1 end
  local factor = divide(tp + fn, tn + fp)
  return math.max(1 - factor * fn / tp, 0), 1 - factor * fp / tp
end

local HEIGHTS = { interpolation = function(a, b) return (a + b) / 2 end, minoring = math.min, majoring = math.max }

-- The area, of the four counts, a list over the thresholds each: x falls from threshold to threshold, so each strip is x[i] - x[i + 1]
-- wide.
local function area(self, tp, fp, tn, fn)
  if self.curve == "PR" and self.summation_method == "interpolation" then return interpolated_precision(tp, fp, fn) end
  local x, y, sum, height = {}, {}, 0, HEIGHTS[self.summation_method]
  for i = 1, #tp do
    local recall = divide(tp[i], tp[i] + fn[i])
    if self.curve == "PRGAIN" then x[i], y[i] = gains(tp[i], fp[i], tn[i], fn[i])
    elseif self.curve == "ROC" then x[i], y[i] = divide(fp[i], fp[i] + tn[i]), recall
    else x[i], y[i] = recall, divide(tp[i], tp[i] + fp[i]) end
  end
  for i = 1, #x - 1 do sum = sum + (x[i] - x[i + 1]) * height(y[i], y[i + 1]) end
  return sum
end

-- Raises unless y_pred is {samples, labels} with the labels that are expected. The first update tells their number where num_labels was not
-- given, and makes the variables then.
local function check_rows(self, y_pred)
  local found, expected = y_pred.shape[y_pred.rank], rawget(self, "_labels") or self.label_weights and #self.label_weights
  if y_pred.rank ~= 2 or expected and found ~= expected then
    raise("%s: y_pred has the shape %s: expected {samples, %s}", object.title(self), symbolic.shape_text(y_pred.shape),
      expected or "labels")
  end
  if self.multi_label and not rawget(self, "_labels") then
    rawset(self, "_labels", found)
    counts.prepare(self, self._thresholds, counts.KINDS, found)
  end
end

return function(metrics)
  local KNOWN = { "num_thresholds", "curve", "summation_method", "name", "thresholds", "multi_label", "num_labels", "label_weights",
                  "from_logits" }
  local AUC = counts.define(metrics, "AUC", KNOWN, 4, function(class, ...)
    local options, name = metrics.options("AUC", { unpack(KNOWN, 1, 4) }, KNOWN, ...)
    local number, labels = options.num_thresholds or 200, options.multi_label and options.num_labels
    if type(number) ~= "number" or number < 2 or number > MOST_THRESHOLDS or number ~= math.floor(number) then
      raise("AUC: num_thresholds is a whole number from 2 to %d, got %s", MOST_THRESHOLDS, errors.describe(number))
    end
    check_labels(options)
    local thresholds = spaced(options.thresholds and counts.read_thresholds("AUC", options.thresholds), number - 2)
    name = name or names.auto("AUC")
    options.curve = choose("curve", options.curve, CURVES)
    options.summation_method = choose("summation_method", options.summation_method, SUMMATIONS)
    local self = metrics.new(class, name, { config = metrics.config("AUC", name, options), from_logits = options.from_logits or false,
      curve = options.curve or "ROC", multi_label = options.multi_label or false,
      label_weights = options.label_weights or false, _labels = labels or nil, _thresholds = thresholds,
      summation_method = options.summation_method or "interpolation" })
    return options.multi_label and not labels and self or counts.prepare(self, thresholds, counts.KINDS, labels or nil)
  end, { num_thresholds = "200", curve = "ROC", summation_method = "interpolation", multi_label = "false", from_logits = "false" })
  function AUC.fields.thresholds(self)
    local list = {}      -- not by unpack, which takes some 8000 values at most
    for i, threshold in ipairs(self._thresholds) do list[i] = threshold end
    return list
  end
  function AUC.fields.num_thresholds(self) return #self._thresholds end

  -- y_true is 0 or 1 for each value, y_pred a probability, or a logit with from_logits; weights are one for each sample or value.
  function AUC:update_state(y_true, y_pred, sample_weight)
    y_pred = ops.operand(y_pred, "float32", "y_pred")
    if self.from_logits then y_pred = ops.sigmoid(y_pred) end
    if self.multi_label or self.label_weights then check_rows(self, y_pred) end
    counts.update(self, y_true, y_pred, sample_weight)
  end

  -- With multi_label the mean of the labels' areas, weighted by label_weights; 0 before the first update has told their number.
  function AUC:result()
    local lists = {}
    if not rawget(self, "true_positives") then return 0 end
    for i, kind in ipairs(counts.KINDS) do lists[i] = values_of(self[kind]) end
    local tp, fp, tn, fn = unpack(lists)
    if not self.multi_label then return area(self, tp, fp, tn, fn) end
    local sum, total = 0, 0
    for label = 1, self._labels do
      local function of(list)
        local column = {}
        for i = 1, #list do column[i] = list[i][label] end
        return column
      end
      local weight = self.label_weights and self.label_weights[label] or 1
      sum, total = sum + weight * area(self, of(tp), of(fp), of(tn), of(fn)), total + weight
    end
    return divide(sum, total)
  end

  return { AUC = AUC }
end
