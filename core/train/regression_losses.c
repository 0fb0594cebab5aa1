/* regression_losses.c: Keras' losses of numbers: distances between y_true and y_pred, and margins between them. All are averages along
 * the last axis, but those that compare whole vectors. Each brings its operands together first (flow_express_pair: floats of one rank,
 * vectors as {batch, 1}) and gives {batch, ...} without the last axis. keras/src/losses/losses.py. */
#include "train/loss_formulas.h"
#include "autodiff/apply.h"

#include <math.h>
#include "graph/context.h"

/* (p - y)^2 */
flow_tensor *flow_loss_mean_squared_error(flow_expression *e, const flow_arguments *options, flow_tensor *y_true, flow_tensor *y_pred)
{
  (void)options;
  if (!flow_express_pair(e, &y_true, &y_pred)) return NULL;
  return flow_express_mean(e, e_square(e, e_sub(e, y_pred, y_true)), -1);
}

/* |p - y| */
flow_tensor *flow_loss_mean_absolute_error(flow_expression *e, const flow_arguments *options, flow_tensor *y_true, flow_tensor *y_pred)
{
  (void)options;
  if (!flow_express_pair(e, &y_true, &y_pred)) return NULL;
  return flow_express_mean(e, e_abs(e, e_sub(e, y_pred, y_true)), -1);
}

/* 100 |y - p| / max(|y|, 1e-7) */
flow_tensor *flow_loss_mean_absolute_percentage_error(flow_expression *e, const flow_arguments *options, flow_tensor *y_true,
                                                   flow_tensor *y_pred)
{
  (void)options;
  if (!flow_express_pair(e, &y_true, &y_pred)) return NULL;
  flow_tensor *size = e_maximum(e, e_abs(e, y_true), flow_express_number(e, y_true, 1e-7));
  flow_tensor *mean = flow_express_mean(e, e_abs(e, e_div(e, e_sub(e, y_true, y_pred), size)), -1);
  return e_mul(e, mean, flow_express_number(e, y_pred, 100));
}

/* (log(1 + p) - log(1 + y))^2, both cut off at 1e-7 */
flow_tensor *flow_loss_mean_squared_logarithmic_error(flow_expression *e, const flow_arguments *options, flow_tensor *y_true,
                                                   flow_tensor *y_pred)
{
  (void)options;
  if (!flow_express_pair(e, &y_true, &y_pred)) return NULL;
  flow_tensor *epsilon = flow_express_number(e, y_pred, 1e-7);
  flow_tensor *a = flow_express(e, FLOW_OP_log1p, e_maximum(e, y_pred, epsilon), NULL, NULL, NULL);
  flow_tensor *b = flow_express(e, FLOW_OP_log1p, e_maximum(e, y_true, epsilon), NULL, NULL, NULL);
  return flow_express_mean(e, e_square(e, e_sub(e, a, b)), -1);
}

/* |d| <= delta: d^2 / 2, else delta |d| - delta^2 / 2 */
flow_tensor *flow_loss_huber(flow_expression *e, const flow_arguments *options, flow_tensor *y_true, flow_tensor *y_pred)
{
  if (!flow_express_pair(e, &y_true, &y_pred)) return NULL;
  double delta = flow_argument_number(options, "delta");
  flow_tensor *size = e_abs(e, e_sub(e, y_pred, y_true)), *limit = flow_express_number(e, y_pred, delta);
  flow_tensor *half = flow_express_number(e, y_pred, 0.5);
  flow_tensor *near = e_mul(e, half, e_square(e, size));
  flow_tensor *far = e_sub(e, e_mul(e, limit, size), flow_express_number(e, y_pred, 0.5 * delta * delta));
  return flow_express_mean(e, e_where(e, e_le(e, size, limit), near, far), -1);
}

/* p - y log(p + 1e-7): the likelihood of counts, except for a term that does not depend on p */
flow_tensor *flow_loss_poisson(flow_expression *e, const flow_arguments *options, flow_tensor *y_true, flow_tensor *y_pred)
{
  (void)options;
  if (!flow_express_pair(e, &y_true, &y_pred)) return NULL;
  flow_tensor *logarithm = e_log(e, e_add(e, y_pred, flow_express_number(e, y_pred, 1e-7)));
  return flow_express_mean(e, e_sub(e, y_pred, e_mul(e, y_true, logarithm)), -1);
}

/* log(cosh(d)) as d + softplus(-2 d) - log 2, which does not overflow */
flow_tensor *flow_loss_log_cosh(flow_expression *e, const flow_arguments *options, flow_tensor *y_true, flow_tensor *y_pred)
{
  (void)options;
  if (!flow_express_pair(e, &y_true, &y_pred)) return NULL;
  flow_tensor *d = e_sub(e, y_pred, y_true);
  flow_tensor *rest = e_softplus(e, e_mul(e, d, flow_express_number(e, d, -2)));
  return flow_express_mean(e, e_sub(e, e_add(e, d, rest), flow_express_number(e, d, log(2))), -1);
}

/* x / sqrt(max(sum x^2, 1e-12)) along the axis */
static flow_tensor *unit_vector(flow_expression *e, flow_tensor *x, int axis)
{
  flow_tensor *square = e_maximum(e, flow_express_sum(e, e_square(e, x), axis, 1), flow_express_number(e, x, 1e-12));
  return e_mul(e, x, flow_express(e, FLOW_OP_rsqrt, square, NULL, NULL, NULL));
}

/* The sum of the products of both as unit vectors: 1 for one direction, -1 for opposite ones. */
flow_tensor *flow_metric_cosine_similarity(flow_expression *e, const flow_arguments *options, flow_tensor *y_true, flow_tensor *y_pred)
{
  if (!flow_express_pair(e, &y_true, &y_pred)) return NULL;
  int axis = flow_express_axis(e, options, y_pred);
  return flow_express_sum(e, e_mul(e, unit_vector(e, y_true, axis), unit_vector(e, y_pred, axis)), axis, 0);
}

/* y, or 2 y - 1 where all labels of the batch are 0 or 1: then they stand for -1 and 1. Replicas that share a batch decide
 * together, so that the result does not depend on their number. */
static flow_tensor *signs_of(flow_expression *e, flow_tensor *y)
{
  flow_tensor *others = flow_express_cast(e, flow_express(e, FLOW_OP_ne, e_square(e, y), y, NULL, NULL), FLOW_FLOAT32), *total = NULL;
  others = flow_express(e, FLOW_OP_sum, others, NULL, NULL, NULL);
  if (e->status != FLOW_OK) return NULL;
  flow_status status = flow_sum_over_replicas(e->context, others, &total);
  others = flow_express_keep(e, status, total);
  flow_tensor *signs = e_sub(e, e_mul(e, y, flow_express_number(e, y, 2)), flow_express_number(e, y, 1));
  return e_where(e, e_eq(e, others, flow_express_number(e, others, 0)), signs, y);
}

/* max(1 - y p, 0) of each element, with y of -1 or 1. */
static flow_tensor *margin(flow_expression *e, flow_tensor *y_true, flow_tensor *y_pred)
{
  flow_tensor *zero = flow_express_number(e, y_true, 0), *one = flow_express_number(e, y_true, 1), *label = signs_of(e, y_true);
  return e_maximum(e, e_sub(e, one, e_mul(e, label, y_pred)), zero);
}

/* max(1 - y p, 0) */
flow_tensor *flow_loss_hinge(flow_expression *e, const flow_arguments *options, flow_tensor *y_true, flow_tensor *y_pred)
{
  (void)options;
  if (!flow_express_pair(e, &y_true, &y_pred)) return NULL;
  return flow_express_mean(e, margin(e, y_true, y_pred), -1);
}

flow_tensor *flow_loss_squared_hinge(flow_expression *e, const flow_arguments *options, flow_tensor *y_true, flow_tensor *y_pred)
{
  (void)options;
  if (!flow_express_pair(e, &y_true, &y_pred)) return NULL;
  return flow_express_mean(e, e_square(e, margin(e, y_true, y_pred)), -1);
}

/* max(the largest score of a wrong class - the score of the right one + 1, 0), of one-hot labels */
flow_tensor *flow_loss_categorical_hinge(flow_expression *e, const flow_arguments *options, flow_tensor *y_true, flow_tensor *y_pred)
{
  (void)options;
  if (!flow_express_pair(e, &y_true, &y_pred)) return NULL;
  flow_attributes last = { .reduce = { .count = 1, .axes = { y_pred->rank - 1 } } };
  flow_tensor *one = flow_express_number(e, y_pred, 1);
  flow_tensor *right = flow_express_sum(e, e_mul(e, y_true, y_pred), -1, 0);
  flow_tensor *wrong = flow_express(e, FLOW_OP_max, e_mul(e, e_sub(e, one, y_true), y_pred), NULL, NULL, &last);
  return e_maximum(e, e_add(e, e_sub(e, wrong, right), one), flow_express_number(e, y_pred, 0));
}
