/* normalize.c: rules of normalize, its gradient and layer_norm: each sample normalized over its last axes (Ba, Kiros and Hinton: Layer
 * Normalization, 2016; uncentered, Zhang and Sennrich: Root Mean Square Layer Normalization, 2019).
 *
 * With r = 1 / sqrt(variance + epsilon) and y = (x - mean) r, means over the n normalized elements:
 *
 *   dy/dx applied to g    r (g - mean(g) - y mean(g y))      symmetric: its own transpose
 *   dr/dx applied to h    -h r^2 y / n
 *
 * Both are written in y and r, so that x need not be kept. Uncentered, y = x r with r = 1 / sqrt(mean(x^2) + epsilon), mean(g) is left out
 * and the rest holds as it stands. */
#include "ops/expression.h"
#include "ops/rules.h"

/* The first normalized axis; those from it on have sizes that are numbers. */
static flow_status check_normalized(int op, const flow_attributes *attributes, const char *what, const flow_signature *x, int *axis)
{
  FLOW_TRY(flow_rule_float(op, what, x));
  FLOW_TRY(flow_rule_axis(op, attributes->normalization.axis, x, axis));
  FLOW_TRY(flow_rule_known(op, what, x, *axis));
  double epsilon = attributes->normalization.epsilon;
  return epsilon >= 0 ? FLOW_OK : flow_rule_fail(op, "epsilon is %g, expected 0 or more", epsilon);
}

/* The shape of r: that of x, with 1 for the normalized axes. */
static flow_signature with_ones(const flow_signature *x, int axis)
{
  flow_signature ones = *x;
  for (int i = axis; i < x->rank; i++) ones.dims[i] = 1;
  return ones;
}

/* x: y of its shape, r with size 1 for the normalized axes. */
flow_status flow_shape_normalize(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                 flow_signature *outputs)
{
  (void)input_count;
  int axis;
  FLOW_TRY(check_normalized(op, attributes, "the input", &inputs[0], &axis));
  outputs[0] = inputs[0];
  outputs[1] = with_ones(&inputs[0], axis);
  return FLOW_OK;
}

/* g and y of one shape, r as above: dx of that shape. */
flow_status flow_shape_normalize_gradient(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                          flow_signature *outputs)
{
  (void)input_count;
  const flow_signature *g = &inputs[0], *y = &inputs[1], *r = &inputs[2];
  int axis;
  FLOW_TRY(check_normalized(op, attributes, "y", y, &axis));
  FLOW_TRY(flow_rule_same_dtype(op, "the gradient", y->dtype, g));
  FLOW_TRY(flow_rule_dims(op, "the gradient", g, y->rank, y->dims));
  flow_signature ones = with_ones(y, axis);
  FLOW_TRY(flow_rule_same_dtype(op, "r", y->dtype, r));
  FLOW_TRY(flow_rule_dims(op, "r", r, ones.rank, ones.dims));
  outputs[0] = *y;
  return FLOW_OK;
}

/* A parameter has the sizes of the normalized axes, after any number of axes of size 1. */
static flow_status check_parameter(int op, const char *what, const flow_signature *x, int axis, const flow_signature *parameter)
{
  int more = parameter->rank - (x->rank - axis); /* axes before those */
  FLOW_TRY(flow_rule_same_dtype(op, what, x->dtype, parameter));
  int fits = more >= 0 && parameter->rank <= x->rank;
  for (int i = 0; fits && i < parameter->rank; i++) fits = parameter->dims[i] == (i < more ? 1 : x->dims[axis + i - more]);
  return fits ? FLOW_OK : flow_rule_dims(op, what, parameter, x->rank - axis, x->dims + axis);
}

/* x, gamma and perhaps beta: y. */
flow_status flow_shape_layer_norm(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                  flow_signature *outputs)
{
  int axis;
  FLOW_TRY(check_normalized(op, attributes, "the input", &inputs[0], &axis));
  for (int i = 1; i < input_count; i++) FLOW_TRY(check_parameter(op, i == 1 ? "gamma" : "beta", &inputs[0], axis, &inputs[i]));
  outputs[0] = inputs[0];
  return FLOW_OK;
}

/* Across rows only if all axes are normalized. */
flow_batch_kind flow_kind_normalize(const flow_attributes *attributes, const flow_signature *inputs, int input_count)
{
  (void)input_count;
  int axis = attributes->normalization.axis;
  return axis == 0 || axis == -inputs[0].rank ? FLOW_WHOLE : FLOW_MAP;
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

/* What the formulas sum over: the attributes of a sum over the normalized axes, which it keeps as 1, and how many elements that are. */
typedef struct normalized {
  flow_attributes over;
  double count;
} normalized;

/* The attributes of sums over the normalized axes, which stay with size 1, and how many elements such a sum has. */
static normalized normalized_of(const flow_gradient_step *step, const flow_tensor *y)
{
  int axis = step->attributes->normalization.axis;
  normalized n = { .over = { .reduce = { .keepdims = 1 } }, .count = 1 };
  for (int i = axis < 0 ? axis + y->rank : axis; i < y->rank; i++) {
    n.over.reduce.axes[n.over.reduce.count++] = i;
    n.count *= (double)y->shape[i];
  }
  return n;
}

static flow_tensor *sum_of(flow_expression *e, const normalized *n, flow_tensor *x)
{
  return flow_express(e, FLOW_OP_sum, x, NULL, NULL, &n->over);
}

static flow_tensor *times(flow_expression *e, flow_tensor *x, double number)
{
  return e_mul(e, x, flow_express_number(e, x, number));
}

/* Both outputs may have a gradient, g that of y and h that of r; see the head for the formulas. */
flow_status flow_gradient_normalize(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0], *h = step->output_gradients[1], *y = step->outputs[0], *r = step->outputs[1];
  if (!step->needed[0] || (g == NULL && h == NULL)) return FLOW_OK;
  flow_expression e = flow_gradient_expression(step);
  normalized n = normalized_of(step, y);
  flow_tensor *by_y = g ? flow_express(&e, FLOW_OP_normalize_gradient, g, y, r, step->attributes) : NULL, *by_r = NULL;
  if (h) by_r = e_mul(&e, y, times(&e, e_mul(&e, h, e_square(&e, r)), -1 / n.count));
  return flow_expression_take(&e, by_y && by_r ? e_add(&e, by_y, by_r) : by_y ? by_y : by_r, &step->input_gradients[0]);
}

/* z = r (g - mean(g) - y mean(g y)); u arrives. For g the same again; for y: -r (u mean(g y) + g mean(u y)); for r: sum(u z) / r. */
flow_status flow_gradient_normalize_gradient(flow_gradient_step *step)
{
  flow_tensor *u = step->output_gradients[0], *g = step->inputs[0], *y = step->inputs[1], *r = step->inputs[2];
  if (u == NULL) return FLOW_OK;
  flow_expression e = flow_gradient_expression(step);
  normalized n = normalized_of(step, y);
  flow_tensor *results[3] = { NULL, NULL, NULL };
  if (step->needed[0]) results[0] = flow_express(&e, FLOW_OP_normalize_gradient, u, y, r, step->attributes);
  if (step->needed[1]) {
    flow_tensor *crossed = e_add(&e, e_mul(&e, u, sum_of(&e, &n, e_mul(&e, g, y))), e_mul(&e, g, sum_of(&e, &n, e_mul(&e, u, y))));
    results[1] = e_mul(&e, times(&e, r, -1 / n.count), crossed);
  }
  if (step->needed[2]) results[2] = e_div(&e, sum_of(&e, &n, e_mul(&e, u, step->outputs[0])), r);
  return flow_expression_give(&e, step, results);
}
