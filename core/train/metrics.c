/* metrics.c: Keras' metrics that are means of values. A loss is a metric, too: records of this file come first, then those of losses.c
 * under numbers from OWN on. A formula gives one value for each sample, or a bool, which counts as 0 or 1; the training loop averages
 * them, with weights, over an epoch. keras/src/metrics/accuracy_metrics.py. */
#include "train/metrics.h"
#include "tensor/tensor.h"
#include "train/loss_formulas.h"

#include <strings.h>

/* Along the last axis, from 0, int64. */
static flow_tensor *position_of_largest(flow_expression *e, flow_tensor *x)
{
  if (e->status != FLOW_OK) return NULL;
  flow_attributes last = { .reduce = { .count = 1, .axes = { x->rank - 1 } } };
  return flow_express(e, FLOW_OP_argmax, x, NULL, NULL, &last);
}

/* y_pred > threshold is the label 1. */
static flow_tensor *binary_accuracy(flow_expression *e, const flow_arguments *options, flow_tensor *y_true, flow_tensor *y_pred)
{
  y_pred = flow_express_float(e, y_pred);
  y_true = flow_express_float(e, y_true);
  if (!flow_express_fit(e, &y_true, &y_pred)) return NULL;
  flow_tensor *label = e_gt(e, y_pred, flow_express_number(e, y_pred, flow_argument_number(options, "threshold")));
  return e_eq(e, y_true, flow_express_float(e, label));
}

/* Integer labels {...} or {..., 1} against the largest of y_pred {..., classes}; a float that is not a whole number is not a class. */
static flow_tensor *sparse_categorical_accuracy(flow_expression *e, const flow_arguments *options, flow_tensor *y_true, flow_tensor *y_pred)
{
  (void)options;
  if (!flow_express_label_fit(e, &y_true, y_pred, "")) return NULL;
  flow_tensor *found = position_of_largest(e, y_pred);
  if (flow_dtype_is_float(y_true->dtype)) return e_eq(e, flow_express_float(e, y_true), flow_express_float(e, found));
  return e_eq(e, flow_express_cast(e, y_true, FLOW_INT64), found);
}

/* One-hot labels: the largest of y_true against the largest of y_pred. */
static flow_tensor *categorical_accuracy(flow_expression *e, const flow_arguments *options, flow_tensor *y_true, flow_tensor *y_pred)
{
  (void)options;
  if (!flow_shape_equal(y_true->rank, y_true->shape, y_pred->rank, y_pred->shape) || y_pred->rank == 0)
    return flow_express_fail(e, "y_true %s and y_pred %s must have one shape; for integer labels use sparse_categorical_accuracy",
                             flow_tensor_shape_text(y_true), flow_tensor_shape_text(y_pred));
  return e_eq(e, position_of_largest(e, y_true), position_of_largest(e, y_pred));
}

/* Keras' choice by shapes: one output: binary; labels of a smaller rank or {..., 1}: sparse; else one-hot. */
static flow_tensor *accuracy(flow_expression *e, const flow_arguments *options, flow_tensor *y_true, flow_tensor *y_pred)
{
  int one_output = y_pred->rank < 2 || y_pred->shape[y_pred->rank - 1] == 1;
  if (one_output) return binary_accuracy(e, options, y_true, y_pred);
  int sparse = y_true->rank < y_pred->rank || y_true->shape[y_true->rank - 1] == 1;
  return sparse ? sparse_categorical_accuracy(e, options, y_true, y_pred) : categorical_accuracy(e, options, y_true, y_pred);
}

/* {0, 1, ... count - 1} */
static flow_tensor *positions(flow_expression *e, int64_t count)
{
  flow_tensor *made = NULL;
  if (e->status != FLOW_OK) return NULL;
  flow_status status = flow_tensor_new(FLOW_INT64, 1, &count, &made);
  for (int64_t i = 0; status == FLOW_OK && i < count; i++) ((int64_t *)flow_tensor_elements(made))[i] = i;
  return flow_express_keep(e, status, made);
}

/* Whether fewer than k scores are larger than that of the label, so that ties count as hits (TensorFlow's in_top_k). A label that is not a
 * class and a score that is not finite are misses. */
static flow_tensor *is_in_top(flow_expression *e, const flow_arguments *options, flow_tensor *labels, flow_tensor *scores)
{
  if (e->status != FLOW_OK) return NULL;
  int64_t k = flow_argument_integer(options, "k");
  if (k < 1) return flow_express_fail(e, "k is a whole number from 1, got %lld", (long long)k);
  int64_t dims[FLOW_MAX_RANK] = { 0 };
  for (int i = 0; i < labels->rank; i++) dims[i] = labels->shape[i];
  dims[labels->rank] = 1;
  flow_attributes last = { .reduce = { .count = 1, .axes = { scores->rank - 1 } } };
  scores = flow_express_float(e, scores);
  labels = flow_express_reshape(e, flow_express_cast(e, flow_express_indices(e, labels), FLOW_INT64), labels->rank + 1, dims);
  flow_tensor *is_label = e_eq(e, labels, positions(e, e->status == FLOW_OK ? scores->shape[scores->rank - 1] : 0));
  flow_tensor *own = flow_express_sum(e, e_where(e, is_label, scores, flow_express_number(e, scores, 0)), -1, 1);
  flow_tensor *larger = flow_express_sum(e, flow_express_cast(e, e_gt(e, scores, own), FLOW_INT64), -1, 0);
  flow_tensor *valid = flow_express(e, FLOW_OP_any, flow_express(e, FLOW_OP_logical_and, is_label,
                                    flow_express(e, FLOW_OP_is_finite, own, NULL, NULL, NULL), NULL, NULL), NULL, NULL, &last);
  flow_tensor *near = e_gt(e, flow_express_number(e, larger, (double)k), larger);
  return flow_express(e, FLOW_OP_logical_and, valid, near, NULL, NULL);
}

/* Whether the label is one of the first k of ids {..., n}, which begin with the class of the highest score. */
static flow_tensor *is_in_sorted(flow_expression *e, const flow_arguments *options, flow_tensor *labels, flow_tensor *ids)
{
  if (e->status != FLOW_OK) return NULL;
  int64_t k = flow_argument_integer(options, "k"), dims[FLOW_MAX_RANK] = { 0 };
  if (k < 1) return flow_express_fail(e, "k is a whole number from 1, got %lld", (long long)k);
  for (int i = 0; i < labels->rank; i++) dims[i] = labels->shape[i];
  dims[labels->rank] = 1;
  flow_attributes last = { .reduce = { .count = 1, .axes = { ids->rank - 1 } } };
  if (!flow_dtype_is_float(ids->dtype)) labels = flow_express_indices(e, labels);
  labels = flow_express_reshape(e, flow_express_cast(e, labels, ids->dtype), labels->rank + 1, dims);
  flow_tensor *place = positions(e, ids->shape[ids->rank - 1]), *is_first = e_gt(e, flow_express_number(e, place, (double)k), place);
  return flow_express(e, FLOW_OP_any, flow_express(e, FLOW_OP_logical_and, e_eq(e, labels, ids), is_first, NULL, NULL), NULL, NULL, &last);
}

/* Integer labels {...} or {..., 1}, scores {..., classes}, or, from_sorted_ids, classes. */
static flow_tensor *sparse_top_k(flow_expression *e, const flow_arguments *options, flow_tensor *y_true, flow_tensor *y_pred)
{
  if (flow_argument_boolean(options, "from_sorted_ids")) {
    if (!flow_express_label_fit(e, &y_true, y_pred, "")) return NULL;
    return is_in_sorted(e, options, y_true, y_pred);
  }
  if (!flow_express_label_fit(e, &y_true, y_pred, "; for one-hot labels use top_k_categorical_accuracy")) return NULL;
  return is_in_top(e, options, y_true, y_pred);
}

/* One-hot labels, scores of the same shape. */
static flow_tensor *top_k(flow_expression *e, const flow_arguments *options, flow_tensor *y_true, flow_tensor *y_pred)
{
  if (!flow_shape_equal(y_true->rank, y_true->shape, y_pred->rank, y_pred->shape) || y_pred->rank == 0)
    return flow_express_fail(e, "y_true %s and y_pred %s must have one shape; for integer labels use sparse_top_k_categorical_accuracy",
                             flow_tensor_shape_text(y_true), flow_tensor_shape_text(y_pred));
  return is_in_top(e, options, position_of_largest(e, y_true), y_pred);
}

/* With the axis kept as 1, so that it broadcasts against x. */
static flow_tensor *mean_along(flow_expression *e, flow_tensor *x, int axis)
{
  flow_attributes along = { .reduce = { .count = 1, .keepdims = 1, .axes = { axis } } };
  return flow_express_mean_over(e, x, &along);
}

/* Both as floats, and the axis; 0 after a failure. */
static int correlated(flow_expression *e, const flow_arguments *options, flow_tensor **y_true, flow_tensor **y_pred, int *axis)
{
  *y_pred = flow_express_float(e, *y_pred);
  *y_true = flow_express_float(e, *y_true);
  if (!flow_express_fit(e, y_true, y_pred)) return 0;
  *axis = flow_express_axis(e, options, *y_pred);
  return e->status == FLOW_OK;
}

/* The mean of the products of both, each without its mean and divided by its standard deviation (keras/src/metrics/correlation_metrics.py,
 * as is the next). */
static flow_tensor *pearson_correlation(flow_expression *e, const flow_arguments *options, flow_tensor *y_true, flow_tensor *y_pred)
{
  int axis;
  if (!correlated(e, options, &y_true, &y_pred, &axis)) return NULL;
  flow_tensor *both[2] = { e_sub(e, y_true, mean_along(e, y_true, axis)), e_sub(e, y_pred, mean_along(e, y_pred, axis)) };
  for (int i = 0; i < 2; i++) both[i] = e_div(e, both[i], e_sqrt(e, mean_along(e, e_square(e, both[i]), axis)));
  return flow_express_mean(e, e_mul(e, both[0], both[1]), axis);
}

/* The mean of 2 (y - m_p) (p - m_p) / (var y + var p + (m_y - m_p)^2 + 1e-7). */
static flow_tensor *concordance_correlation(flow_expression *e, const flow_arguments *options, flow_tensor *y_true, flow_tensor *y_pred)
{
  int axis;
  if (!correlated(e, options, &y_true, &y_pred, &axis)) return NULL;
  flow_tensor *mean_true = mean_along(e, y_true, axis), *mean_pred = mean_along(e, y_pred, axis), *off = e_sub(e, y_pred, mean_pred);
  flow_tensor *variances = e_add(e, mean_along(e, e_square(e, e_sub(e, y_true, mean_true)), axis), mean_along(e, e_square(e, off), axis));
  flow_tensor *norm = e_add(e, variances, e_square(e, e_sub(e, mean_true, mean_pred)));
  flow_tensor *covariance = e_mul(e, e_sub(e, y_true, mean_pred), off);
  covariance = e_add(e, covariance, covariance);
  if (e->status != FLOW_OK) return NULL;
  return flow_express_mean(e, e_div(e, covariance, e_add(e, norm, flow_express_number(e, norm, 1e-7))), axis);
}

/* ---- table ------------------------------------------------------------------------------------------------------------------ */

static const flow_argument no_options[] = { FLOW_ARGUMENTS_END };
static const flow_argument threshold_options[] = { { "threshold", FLOW_NUMBER, "0.5", NULL }, FLOW_ARGUMENTS_END };
static const flow_argument k_options[] = { { "k", FLOW_INTEGER, "5", NULL }, FLOW_ARGUMENTS_END };
static const flow_argument sparse_k_options[] = {
  { "k", FLOW_INTEGER, "5", NULL }, { "from_sorted_ids", FLOW_BOOLEAN, "false", NULL }, FLOW_ARGUMENTS_END
};
static const flow_argument axis_options[] = { { "axis", FLOW_INTEGER, "-1", NULL }, FLOW_ARGUMENTS_END };

static const flow_metric records[] = {
  { "accuracy", NULL, "acc", threshold_options, accuracy },
  { "binary_accuracy", "BinaryAccuracy", NULL, threshold_options, binary_accuracy },
  { "sparse_categorical_accuracy", "SparseCategoricalAccuracy", NULL, no_options, sparse_categorical_accuracy },
  { "categorical_accuracy", "CategoricalAccuracy", NULL, no_options, categorical_accuracy },
  { "top_k_categorical_accuracy", "TopKCategoricalAccuracy", NULL, k_options, top_k },
  { "sparse_top_k_categorical_accuracy", "SparseTopKCategoricalAccuracy", NULL, sparse_k_options, sparse_top_k },
  { "cosine_similarity", "CosineSimilarity", NULL, axis_options, flow_metric_cosine_similarity },
  { "logcosh", "LogCoshError", "log_cosh_error", no_options, flow_loss_log_cosh },
  { "pearson_correlation", "PearsonCorrelation", NULL, axis_options, pearson_correlation },
  { "concordance_correlation", "ConcordanceCorrelation", NULL, axis_options, concordance_correlation },
};
enum { OWN = sizeof records / sizeof *records };

/* Those of this file and all losses. */
int flow_metric_total(void) { return OWN + flow_loss_total(); }

/* index: 0 to flow_metric_total() - 1, not checked. */
const flow_metric *flow_metric_record(int index) { return index < OWN ? &records[index] : flow_loss_record(index - OWN); }

/* Numbers from OWN on are those of losses. */
int flow_metric_lookup(const char *name)
{
  if (strcasecmp(name, "accuracy") == 0 || strcasecmp(name, "acc") == 0) return 0;
  for (int i = 0; i < OWN; i++)
    if (flow_loss_is_named(&records[i], name)) return i;
  int loss = flow_loss_lookup(name);
  return loss < 0 ? -1 : OWN + loss;
}

/* Bools become 0 and 1. */
flow_status flow_metric_run(flow_context *context, const flow_metric *metric, const flow_arguments *options, flow_tensor *y_true,
                            flow_tensor *y_pred, flow_tensor **out)
{
  flow_tensor *values;
  FLOW_TRY(flow_loss_run(context, metric, options, y_true, y_pred, &values));
  flow_expression e = flow_expression_of(context);
  flow_tensor *result = flow_express_cast(&e, flow_express_keep(&e, FLOW_OK, values), FLOW_FLOAT32);
  return flow_expression_take(&e, result, out);
}
