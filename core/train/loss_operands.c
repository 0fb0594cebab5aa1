/* loss_operands.c: what formulas of losses and metrics do with y_true and y_pred first: dtypes, ranks and shapes that fit, axes, failures.
 * See loss_formulas.h and losses.h. */
#include <stdarg.h>
#include "tensor/axis.h"
#include "train/loss_formulas.h"

/* Only the first failure counts. Returns NULL, so that a formula can end with `return flow_express_fail(...)`. */
flow_tensor *flow_express_fail(flow_expression *e, const char *format, ...)
{
  va_list arguments;
  if (e->status != FLOW_OK) return NULL;
  va_start(arguments, format);
  e->status = flow_fail_list(FLOW_INVALID_ARGUMENT, NULL, format, arguments);
  va_end(arguments);
  return NULL;
}

/* Losses are computed in float32 at least, whatever the policy of the layers is. */
flow_tensor *flow_express_float(flow_expression *e, flow_tensor *x)
{
  if (e->status != FLOW_OK || x->dtype == FLOW_FLOAT64) return x;
  return flow_express_cast(e, x, FLOW_FLOAT32);
}

/* x without its last dimension, which is 1. */
static flow_tensor *squeeze(flow_expression *e, flow_tensor *x)
{
  return e->status == FLOW_OK ? flow_express_reshape(e, x, x->rank - 1, x->shape) : NULL;
}

/* x with a last dimension of 1. Only vectors come here, so that there is room for one more. */
static flow_tensor *expand(flow_expression *e, flow_tensor *x)
{
  int64_t dims[FLOW_MAX_RANK] = { 0 };
  for (int i = 0; i < x->rank; i++) dims[i] = x->shape[i];
  dims[x->rank] = 1;
  return flow_express_reshape(e, x, x->rank + 1, dims);
}

/* The longer one is {..., 1}: a vector is made longer, anything else makes the other one shorter. */
static void align_to(flow_expression *e, flow_tensor **longer, flow_tensor **shorter)
{
  if ((*longer)->shape[(*longer)->rank - 1] != 1) return;
  if ((*shorter)->rank == 1) *shorter = expand(e, *shorter);
  else *longer = squeeze(e, *longer);
}

/* Either may be the longer one; ranks that differ by more are left to the check that follows. */
void flow_express_align(flow_expression *e, flow_tensor **a, flow_tensor **b)
{
  if (e->status != FLOW_OK) return;
  if ((*a)->rank == (*b)->rank + 1) align_to(e, a, b);
  else if ((*b)->rank == (*a)->rank + 1) align_to(e, b, a);
}

/* Whether the shapes broadcast as in NumPy; rows, which are negative, only with as many rows. */
static int broadcasts(const flow_tensor *a, const flow_tensor *b)
{
  for (int i = 1; i <= a->rank && i <= b->rank; i++) {
    int64_t da = a->shape[a->rank - i], db = b->shape[b->rank - i];
    if (da != db && da != 1 && db != 1) return 0;
  }
  return 1;
}

/* Ranks that differ by one are made equal (flow_express_align), then the shapes must broadcast. The message has them as they were given. */
int flow_express_fit(flow_expression *e, flow_tensor **y_true, flow_tensor **y_pred)
{
  const flow_tensor *given_true = *y_true, *given_pred = *y_pred;
  if (e->status != FLOW_OK) return 0;
  flow_express_align(e, y_true, y_pred);
  if (e->status == FLOW_OK && !broadcasts(*y_true, *y_pred))
    flow_express_fail(e, "y_true %s and y_pred %s do not fit: their dimensions, last to first, must be equal or 1",
                      flow_tensor_shape_text(given_true), flow_tensor_shape_text(given_pred));
  return e->status == FLOW_OK;
}

/* Labels have y_pred's shape without the last axis, or with a last axis of 1, which is taken away. */
int flow_express_label_fit(flow_expression *e, flow_tensor **y_true, const flow_tensor *y_pred, const char *advice)
{
  const flow_tensor *given = *y_true;
  int rank = y_pred->rank - 1;
  if (e->status != FLOW_OK) return 0;
  if ((*y_true)->rank == y_pred->rank && rank >= 0 && (*y_true)->shape[rank] == 1) *y_true = squeeze(e, *y_true);
  if (e->status == FLOW_OK && (rank < 0 || !flow_shape_equal((*y_true)->rank, (*y_true)->shape, rank, y_pred->shape)))
    flow_express_fail(e, "y_true %s does not fit y_pred %s: expected integer labels of one dimension less%s%s%s",
                      flow_tensor_shape_text(given), flow_tensor_shape_text(y_pred), rank >= 0 ? ", " : "",
                      rank >= 0 ? flow_shape_text(rank, y_pred->shape) : "", advice);
  return e->status == FLOW_OK;
}

/* Both as floats of one rank. As in Keras, two vectors are one sample: what is taken over the last axis leaves a single value. */
int flow_express_pair(flow_expression *e, flow_tensor **y_true, flow_tensor **y_pred)
{
  *y_pred = flow_express_float(e, *y_pred);
  *y_true = flow_express_float(e, *y_true);
  flow_express_fit(e, y_true, y_pred);
  if (e->status == FLOW_OK && (*y_pred)->rank == 0) flow_express_fail(e, "y_pred is a scalar, expected {batch, ...}");
  return e->status == FLOW_OK;
}

/* Axes of options count from 0, or from the end if negative; a value that is not one of them fails the expression, and 0 is returned. */
int flow_express_axis(flow_expression *e, const flow_arguments *options, const flow_tensor *x)
{
  double given = flow_argument_number(options, "axis");
  if (e->status != FLOW_OK) return 0;
  int axis = flow_axis_of(given, x->rank);
  if (axis < 0 || axis >= x->rank)
    flow_express_fail(e, "axis %d is not one of y_pred %s", flow_axis_number(flow_axis_given(given)), flow_tensor_shape_text(x));
  return axis;
}
