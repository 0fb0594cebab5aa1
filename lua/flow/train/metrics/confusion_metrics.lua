-- confusion_metrics.lua: metrics of right and wrong decisions (confusion_counts.lua): counts, their ratios, and one rate where another is
-- high enough. Formulas are those of keras/src/metrics/confusion_metrics.py and metrics_utils.py.
--
-- A metric keeps those of the four counts that its result needs, one number for each of its thresholds.

local errors = require "flow.errors"
local names = require "flow.names"
local ops = require "flow.tensor.ops"
local counts = require "flow.train.metrics.confusion_counts"

local raise = errors.raise

local divide, values_of = counts.divide, counts.values_of
local MOST_THRESHOLDS = 1000000      -- each takes memory in tables and in counts

return function(metrics)
  local classes = {}

  local function define(name, parameters, positional, make)
    classes[name] = counts.define(metrics, name, parameters, positional, make)
    return classes[name]
  end

  -- One number, or a list of them if there are several thresholds.
  local function one_or_list(list)
    return #list == 1 and list[1] or list
  end

  -- A metric of counts at thresholds: result is formula(count, count) of the two kinds.
  local function define_ratio(name, positional, known, kinds, formula)
    local parameters = { unpack(known) }
    parameters[#parameters + 1] = "name"
    local class = define(name, parameters, 1, function(class, ...)
      local options, given = metrics.options(name, positional, known, ...)
      local top_k = counts.read_whole(name, "top_k", options.top_k, 1)
      local thresholds = counts.read_thresholds(name, options.thresholds, counts.default_limit(top_k))
      local id = counts.read_whole(name, "class_id", options.class_id, 0)
      given = given or names.auto(name)
      local self = metrics.new(class, given, { config = metrics.config(name, given, options), class_id = id, top_k = top_k })
      return counts.prepare(self, thresholds, kinds)
    end)
    class.update_state = counts.update
    if not kinds[2] then function class.fields.accumulator(self) return self[kinds[1]] end end
    function class:result()
      local a, b, list = values_of(self[kinds[1]]), kinds[2] and values_of(self[kinds[2]]), {}
      for i = 1, #a do list[i] = formula(a[i], b and b[i]) end
      return one_or_list(list)
    end
  end

  local function share(a, b) return divide(a, a + b) end
  local function itself(a) return a end
  local WITH_CLASS = { "thresholds", "top_k", "class_id" }

  define_ratio("Precision", { "thresholds" }, WITH_CLASS, { "true_positives", "false_positives" }, share)
  define_ratio("Recall", { "thresholds" }, WITH_CLASS, { "true_positives", "false_negatives" }, share)
  define_ratio("TruePositives", { "thresholds" }, { "thresholds" }, { "true_positives" }, itself)
  define_ratio("TrueNegatives", { "thresholds" }, { "thresholds" }, { "true_negatives" }, itself)
  define_ratio("FalsePositives", { "thresholds" }, { "thresholds" }, { "false_positives" }, itself)
  define_ratio("FalseNegatives", { "thresholds" }, { "thresholds" }, { "false_negatives" }, itself)

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
      local thresholds, id = even(name, options.num_thresholds), counts.read_whole(name, "class_id", options.class_id, 0)
      given = given or names.auto(name)
      local self = metrics.new(class, given, { config = metrics.config(name, given, options), class_id = id, [least] = value })
      return counts.prepare(self, thresholds, counts.KINDS)
    end, { num_thresholds = "200" })
    function class.fields.value(self) return self[least] end

    -- Predictions below 0 and above 1 count as 0 and 1.
    function class:update_state(y_true, y_pred, sample_weight)
      counts.update(self, y_true, ops.clip(ops.operand(y_pred, "float32", "y_pred"), 0, 1), sample_weight)
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
