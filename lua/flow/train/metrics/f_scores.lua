-- f_scores.lua: FBetaScore and F1Score: the weighted harmonic mean of precision and recall, of one-hot or multi-label classes. Formulas are
-- those of keras/src/metrics/f_score_metrics.py.
--
-- State: true_positives, false_positives, false_negatives and intermediate_weights (how often each class is true), scalars for average =
-- "micro", else one number for each class. They are made by the first update, which tells the number of classes.

local errors = require "flow.errors"
local object = require "flow.object"
local signature = require "flow.signature"
local ops = require "flow.tensor.ops"
local losses = require "flow.train.losses"
local symbolic = require "flow.layers.symbolic"

local raise = errors.raise
local EPSILON = 1e-7
local AVERAGES = { micro = true, macro = true, weighted = true }

return function(metrics)
  local FBetaScore = object.class("FBetaScore", metrics.Metric)
  local F1Score = object.class("F1Score", FBetaScore)
  local SUMS = { "true_positives", "false_positives", "false_negatives", "intermediate_weights" }

  -- A metric of one of both classes; options: those that a file holds. Raises for options that Keras refuses, too.
  local function make(class, options, name, beta)
    local what, average, threshold = class.name, options.average, options.threshold
    if average and not AVERAGES[average] then
      raise("%s: average is micro, macro, weighted or nil: a number for each class, got %s", what, errors.describe(average))
    end
    if type(beta) ~= "number" or not (beta > 0) then raise("%s: beta is a number above 0, got %s", what, errors.describe(beta)) end
    if threshold and (type(threshold) ~= "number" or not (threshold > 0 and threshold <= 1)) then
      raise("%s: threshold is a number above 0 and up to 1, got %s", what, errors.describe(threshold))
    end
    return metrics.new(class, name, { config = metrics.config(what, name, options), average = average or false, beta = beta,
                                      threshold = threshold or false })
  end

  signature.takes "average?, beta?, threshold?, name?, { dtype? }"
  signature.constructor(FBetaScore, "flow.metrics.FBetaScore", function(average, beta, threshold, name)
    metrics.check_name("FBetaScore", name)
    return make(FBetaScore, { average = average, beta = beta, threshold = threshold }, name or "fbeta_score", beta == nil and 1 or beta)
  end)
  signature.takes "average?, threshold?, name?, { dtype? }"
  signature.constructor(F1Score, "flow.metrics.F1Score", function(average, threshold, name)
    metrics.check_name("F1Score", name)
    return make(F1Score, { average = average, threshold = threshold }, name or "f1_score", 1)
  end)

  -- The counts: sums over the classes, or one for each class; the first update tells their number.
  local function build(self, y_true, y_pred)
    local classes = y_pred.shape[2]
    if y_true.rank ~= 2 or y_pred.rank ~= 2 or y_true.shape[2] ~= classes then
      raise("%s: y_true has the shape %s, y_pred %s: expected {samples, classes} of both; flow.one_hot makes these of labels",
        object.title(self), symbolic.shape_text(y_true.shape), symbolic.shape_text(y_pred.shape))
    end
    if rawget(self, "true_positives") then return end
    for _, name in ipairs(SUMS) do
      rawset(self, name, self:add_variable { name = name, shape = self.average == "micro" and {} or { classes } })
    end
  end

  -- 1 where a class counts as predicted: above the threshold, or, without one, the largest of a sample that is not 0.
  local function decide(self, y_pred)
    if self.threshold then return y_pred:gt(self.threshold):to("float32") end
    return ops.logical_and(y_pred:ge(y_pred:max(-1, true)), y_pred:abs():gt(1e-9)):to("float32")
  end

  -- y_true and y_pred are {samples, classes}; weights are one for each sample, or for each value.
  function FBetaScore:update_state(y_true, y_pred, sample_weight)
    y_true, y_pred = ops.operand(y_true, "float32", "y_true"):to("float32"), ops.operand(y_pred, "float32", "y_pred"):to("float32")
    build(self, y_true, y_pred)
    local predicted = decide(self, y_pred)
    if sample_weight ~= nil then sample_weight = losses.align_weights(sample_weight, y_pred) end
    local function add(sum, values)
      if sample_weight then values = values * sample_weight end
      if self.average == "micro" then sum:assign_add(values:sum()) else sum:assign_add(values:sum(1)) end
    end
    add(self.true_positives, predicted * y_true)
    add(self.false_positives, predicted * (1 - y_true))
    add(self.false_negatives, (1 - predicted) * y_true)
    add(self.intermediate_weights, y_true)
  end

  -- A number, or, without average, a list with a number for each class; 0 before the first update.
  function FBetaScore:result()
    if not rawget(self, "true_positives") then return 0 end
    local tp, fp, fn = self.true_positives:value(), self.false_positives:value(), self.false_negatives:value()
    local precision, recall, square = tp / (tp + fp + EPSILON), tp / (tp + fn + EPSILON), self.beta * self.beta
    local scores = precision * recall / (precision * square + recall + EPSILON) * (1 + square)
    if not self.average then return scores:totable() end
    if self.average ~= "weighted" then return scores:mean():item() end
    local counts = self.intermediate_weights:value()
    return (scores * (counts / (counts:sum() + EPSILON))):sum():item()
  end

  return { FBetaScore = FBetaScore, F1Score = F1Score }
end
