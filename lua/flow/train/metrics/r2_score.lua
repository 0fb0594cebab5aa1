-- r2_score.lua: R2Score: the share of the variance of y_true that predictions explain. Formulas are those of
-- keras/src/metrics/regression_metrics.py.
--
-- State, sums over all samples so far: num_samples, the number of values of y_true, as Keras counts them; and for each output sum and
-- squared_sum of y_true, residual (squares of y_true - y_pred) and count, all weighted. The score of an output is 1 - residual /
-- (squared_sum - sum^2 / count).

local errors = require "flow.errors"
local json = require "flow.json"
local log = require "flow.log"
local object = require "flow.object"
local signature = require "flow.signature"
local tensor = require "flow.tensor"
local ops = require "flow.tensor.ops"
local losses = require "flow.train.losses"

local raise = errors.raise
local AGGREGATIONS = { uniform_average = true, variance_weighted_average = true, [false] = true }
local SUMS = { "squared_sum", "sum", "residual", "count" }

return function(metrics)
  local R2Score = object.class("R2Score", metrics.Metric)

  signature.takes "class_aggregation = 'uniform_average', num_regressors: whole = 0, name?: text, { dtype? }"
  signature.constructor(R2Score, "flow.metrics.R2Score", function(aggregation, regressors, name)
    if aggregation == json.null then aggregation = false end      -- as files hold it
    if not AGGREGATIONS[aggregation] then
      raise("R2Score: class_aggregation is uniform_average, variance_weighted_average or false: a number for each output, got %s",
        errors.describe(aggregation))
    end
    name = name or "r2_score"
    local config = { class_aggregation = aggregation or json.null, num_regressors = regressors }
    local self = metrics.new(R2Score, name, { config = metrics.config("R2Score", name, config), class_aggregation = aggregation,
                                              num_regressors = regressors })
    rawset(self, "num_samples", self:add_variable { name = "num_samples" })
    return self
  end)

  -- A sum for each output; the first update tells their number.
  local function build(self, y_true, y_pred)
    local expected, found = tensor.raw_shape(y_pred), tensor.raw_shape(y_true)
    if #expected ~= 2 or #found ~= 2 or expected[2] ~= found[2] then
      raise("%s: y_true has the shape %s, y_pred %s: expected {samples, outputs} of both", object.title(self), tensor.shape_text(found),
        tensor.shape_text(expected))
    end
    if rawget(self, "sum") then return end
    for _, name in ipairs(SUMS) do rawset(self, name, self:add_variable { name = name, shape = { expected[2] } }) end
  end

  function R2Score:update_state(y_true, y_pred, sample_weight)
    -- The sums are float64, in which squares of float32 are exact: the variance of equal numbers is 0.
    y_true, y_pred = losses.same_rank(ops.operand(y_true, "float32", "y_true"):to("float32"):to("float64"),
      ops.operand(y_pred, "float32", "y_pred"):to("float32"):to("float64"))
    build(self, y_true, y_pred)
    local ones = ops.ones_like(y_true)
    sample_weight = sample_weight == nil and ones or losses.align_weights(sample_weight, y_true) * ones
    self.sum:assign_add((y_true * sample_weight):sum(1))
    self.squared_sum:assign_add((ops.square(y_true) * sample_weight):sum(1))
    self.residual:assign_add((ops.square(y_true - y_pred) * sample_weight):sum(1))
    self.count:assign_add(sample_weight:sum(1))
    self.num_samples:assign_add(ones:sum())
  end

  -- 1 - (1 - score) (n - 1) / (n - p - 1), where there are p regressors of n samples and more samples than that.
  local function adjusted(self, score)
    local n, p = self.num_samples:value():item(), self.num_regressors
    if p == 0 then return score end
    if p < n - 1 then return 1 - (1 - score) * ((n - 1) / (n - p - 1)) end
    if not rawget(self, "_warned") then
      log.warning("%s: %d samples are too few for %d regressors: the score is not adjusted", object.title(self), n, p)
      rawset(self, "_warned", true)
    end
    return score
  end

  -- A number, or, without class_aggregation, a list with a number for each output; 0 before the first update.
  function R2Score:result()
    if not rawget(self, "sum") then return 0 end
    local sum = self.sum:value()
    local total = self.squared_sum:value() - sum * sum / self.count:value()
    local scores = 1 - self.residual:value() / total
    scores = ops.where(scores:abs():eq(math.huge), 0, scores)
    if self.class_aggregation == "uniform_average" then scores = scores:mean()
    elseif self.class_aggregation then scores = (total * scores):sum() / total:sum() end
    local result = adjusted(self, scores)
    return self.class_aggregation and result:item() or result:totable()
  end

  return { R2Score = R2Score }
end
