-- batch_losses.lua: losses that are written in Lua, since they compare whole sequences or all samples of a batch: CTC and Circle. Each is
-- { name =, class_name =, parameters = names in Keras' order, defaults = { name = text }, values(options, y_true, y_pred),
-- counted(values) = which values count in a mean; nil: all }. Formulas are those of keras/src/losses/losses.py.

local errors = require "flow.errors"
local tensor = require "flow.tensor"
local ops = require "flow.tensor.ops"
require "flow.tensor.composed"

local raise = errors.raise

local function shape_of(x) return tensor.shape_text(tensor.raw_shape(x)) end

-- Labels {batch, length} from 1, filled up with 0, which is the blank; logits {batch, steps, classes}.
local function ctc(_, y_true, y_pred)
  if y_true.rank ~= 2 or y_pred.rank ~= 3 then
    raise("ctc: y_true has the shape %s, y_pred %s: expected labels {batch, length} and logits {batch, steps, classes}",
      shape_of(y_true), shape_of(y_pred))
  end
  y_true = y_true:to("int32")
  local lengths = y_true:ne(0):to("int32"):sum(2)
  return ops.ctc_loss(y_true, y_pred, lengths, ops.full_like(lengths, tensor.raw_shape(y_pred)[2]), 0)
end

local NEVER = -1e30      -- instead of minus infinity, whose gradients are NaN

local function log_of_sum(values, mask) return ops.logsumexp(ops.where(mask, values, NEVER), 2) end

-- {n, m}: true where a query, of {n, 1}, and a key, of {m, 1}, have the same position.
local function diagonal(queries, keys)
  local function numbers(labels) return ops.cumsum(ops.ones_like(labels), 1) end
  return numbers(queries):eq(numbers(keys):transpose())
end

-- Takes labels {batch} or {batch, 1} and normalized embeddings {batch, features}. They are compared with ref_labels and ref_embeddings if
-- these are given, else with each other (Sun et al., "Circle Loss: A Unified Perspective of Pair Similarity Optimization", 2020).
local function circle(options, y_true, y_pred)
  local references, gamma, margin = options.ref_embeddings or y_pred, options.gamma or 80, options.margin or 0.4
  if y_pred.rank ~= 2 or y_true.rank > 2 or y_true.rank == 2 and y_true.shape[2] ~= 1 then
    raise("circle: y_true has the shape %s, y_pred %s: expected labels {batch} or {batch, 1} and embeddings {batch, features}",
      shape_of(y_true), shape_of(y_pred))
  end
  local queries = y_true:to("int32"):reshape { -1, 1 }
  local keys = options.ref_labels and ops.operand(options.ref_labels, "int32", "ref_labels"):to("int32"):reshape { -1, 1 } or queries
  local distance = ops.maximum(1 - ops.matmul(y_pred, ops.operand(references, y_pred.dtype, "ref_embeddings"):transpose()), 0)
  local positive = queries:eq(keys:transpose())
  local negative = ops.logical_not(positive)
  if options.remove_diagonal ~= false then
    positive = ops.logical_and(positive, ops.logical_not(diagonal(queries, keys)))
  end
  local of_positive = ops.maximum(margin + distance, 0) * (margin - distance) * -gamma
  local of_negative = ops.maximum(1 + margin - distance, 0) * (1 - margin - distance) * gamma
  return ops.softplus(log_of_sum(of_positive, positive) + log_of_sum(of_negative, negative))
end

return {
  { name = "ctc", class_name = "CTC", parameters = { "reduction" }, defaults = {}, values = ctc },
  { name = "circle", class_name = "Circle", parameters = { "gamma", "margin", "remove_diagonal", "reduction" }, values = circle,
    defaults = { gamma = "80", margin = "0.4", remove_diagonal = "true" },
    more = { "ref_labels", "ref_embeddings", "remove_diagonal", "gamma", "margin" }, counted = function(values) return values:gt(0) end },
}
