/* network.c: rules of normalization, softmax, losses and dropout. Most of these ops have their own gradient op, whose kernel shares work
 * with the forward one. */
#include "ops/expression.h"
#include "ops/rules.h"

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

/* The input of batch_norm and its gradient: channels last, of a number that is known. */
static flow_status check_batch_norm(int op, const flow_attributes *attributes, const flow_signature *x)
{
  FLOW_TRY(flow_rule_float(op, "the input", x));
  if (x->rank < 2) {
    return flow_rule_fail(op, "the input is %s, expected two or more dimensions {batch, ..., channels}", flow_shape_text(x->rank, x->dims));
  }
  if (x->dims[x->rank - 1] < 0) {
    return flow_rule_fail(op, "the channels of the input %s depend on the number of rows", flow_shape_text(x->rank, x->dims));
  }
  double epsilon = attributes->normalization.epsilon;
  if (!(epsilon >= 0)) return flow_rule_fail(op, "epsilon is %g, expected 0 or more", epsilon);
  return FLOW_OK;
}

/* A parameter or statistic: one value a channel, in the dtype of x. */
static flow_status check_per_channel(int op, const char *what, const flow_signature *x, const flow_signature *parameter)
{
  FLOW_TRY(flow_rule_same_dtype(op, what, x->dtype, parameter));
  return flow_rule_dims(op, what, parameter, 1, &x->dims[x->rank - 1]);
}

/* x {batch, ..., c}, gamma {c}, beta {c} and perhaps a residual of x's shape: y, mean {c} and variance {c}. */
flow_status flow_shape_batch_norm(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                  flow_signature *outputs)
{
  const flow_signature *x = &inputs[0];
  FLOW_TRY(check_batch_norm(op, attributes, x));
  FLOW_TRY(check_per_channel(op, "gamma", x, &inputs[1]));
  FLOW_TRY(check_per_channel(op, "beta", x, &inputs[2]));
  if (input_count > 3) {
    FLOW_TRY(flow_rule_same_dtype(op, "what is added", x->dtype, &inputs[3]));
    FLOW_TRY(flow_rule_dims(op, "what is added", &inputs[3], x->rank, x->dims));
  }
  outputs[0] = *x;
  outputs[1] = outputs[2] = inputs[1];
  return FLOW_OK;
}

/* g and x {batch, ..., c}, gamma, mean, variance {c}: dx, dgamma, dbeta. */
flow_status flow_shape_batch_norm_gradient(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                           flow_signature *outputs)
{
  (void)input_count;
  const flow_signature *g = &inputs[0], *x = &inputs[1];
  FLOW_TRY(check_batch_norm(op, attributes, x));
  FLOW_TRY(flow_rule_same_dtype(op, "the gradient", x->dtype, g));
  FLOW_TRY(flow_rule_dims(op, "the gradient", g, x->rank, x->dims));
  FLOW_TRY(check_per_channel(op, "gamma", x, &inputs[2]));
  FLOW_TRY(check_per_channel(op, "the mean", x, &inputs[3]));
  FLOW_TRY(check_per_channel(op, "the variance", x, &inputs[4]));
  outputs[0] = *x;
  outputs[1] = outputs[2] = inputs[2];
  return FLOW_OK;
}

/* Floats of any shape with an axis axis.axis: the same shape. */
flow_status flow_shape_softmax(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                               flow_signature *outputs)
{
  (void)input_count;
  int axis;
  FLOW_TRY(flow_rule_float(op, "the input", &inputs[0]));
  FLOW_TRY(flow_rule_axis(op, attributes->axis.axis, &inputs[0], &axis));
  outputs[0] = inputs[0];
  return FLOW_OK;
}

/* logits {..., classes} and integer labels {...}; *values is one float per label. */
static flow_status cross_entropy_values(int op, const flow_signature *logits, const flow_signature *labels, flow_signature *values)
{
  FLOW_TRY(flow_rule_float(op, "the logits", logits));
  if (!flow_dtype_is_integer(labels->dtype)) {
    return flow_rule_fail(op, "the labels are %s, expected integers: the number of each sample's class", flow_dtype_name(labels->dtype));
  }
  if (logits->rank == 0 || logits->dims[logits->rank - 1] < 1) {
    return flow_rule_fail(op, "the logits are %s, expected {..., classes} with one class or more",
                          flow_shape_text(logits->rank, logits->dims));
  }
  FLOW_TRY(flow_rule_dims(op, "the labels", labels, logits->rank - 1, logits->dims));
  *values = *labels;
  values->dtype = logits->dtype;
  return FLOW_OK;
}

/* logits {..., classes}, labels {...}: a float for each label. */
flow_status flow_shape_sparse_cross_entropy(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                            flow_signature *outputs)
{
  (void)attributes;
  (void)input_count;
  return cross_entropy_values(op, &inputs[0], &inputs[1], &outputs[0]);
}

/* g {...}, logits {..., classes}, labels {...}: the gradient of the logits. */
flow_status flow_shape_sparse_cross_entropy_gradient(int op, const flow_attributes *attributes, const flow_signature *inputs,
                                                     int input_count, flow_signature *outputs)
{
  (void)attributes;
  (void)input_count;
  const flow_signature *g = &inputs[0], *logits = &inputs[1];
  flow_signature values;
  FLOW_TRY(cross_entropy_values(op, logits, &inputs[2], &values));
  FLOW_TRY(flow_rule_same_dtype(op, "the gradient", logits->dtype, g));
  FLOW_TRY(flow_rule_dims(op, "the gradient", g, values.rank, values.dims));
  outputs[0] = *logits;
  return FLOW_OK;
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

/* y = x * mask, and the attributes key the mask. */
flow_status flow_gradient_dropout(flow_gradient_step *step)
{
  if (!step->needed[0] || step->output_gradients[0] == NULL) return FLOW_OK;
  return flow_gradient_by(step, 0, FLOW_OP_dropout, step->output_gradients[0], NULL, NULL, step->attributes);
}

/* The axes of a normalized tensor that its statistics sum over: all but the channels. */
static flow_attributes all_but_channels(const flow_tensor *x)
{
  flow_attributes attributes = { .reduce = { .count = x->rank - 1 } };
  for (int i = 0; i < x->rank - 1; i++) attributes.reduce.axes[i] = i;
  return attributes;
}

/* How many elements of x a statistic is of, as a scalar of x's dtype. */
static flow_tensor *channel_count(flow_expression *e, flow_tensor *x)
{
  if (!x) return NULL;
  flow_attributes attributes = all_but_channels(x);
  return flow_express_cast(e, flow_express(e, FLOW_OP_element_count, x, NULL, NULL, &attributes), x->dtype);
}

/* E of the functions below: the mean of x over all axes but the channels, {c}. */
static flow_tensor *channel_mean(flow_expression *e, flow_tensor *x)
{
  if (!x) return NULL;
  flow_attributes attributes = all_but_channels(x);
  return e_div(e, flow_express(e, FLOW_OP_sum, x, NULL, NULL, &attributes), channel_count(e, x));
}

/* What flows through mean and variance is there only where moving averages have a gradient, in calls on given values of variables. */
flow_status flow_gradient_batch_norm(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0], *of_mean = step->output_gradients[1], *of_variance = step->output_gradients[2];
  flow_tensor *x = step->inputs[0], *results[3] = { NULL };
  flow_expression e = flow_gradient_expression(step);
  if (g) {
    flow_tensor *operands[5] = { g, x, step->inputs[1], step->outputs[1], step->outputs[2] };
    flow_express_all(&e, FLOW_OP_batch_norm_gradient, operands, 5, step->attributes, results);
  }
  for (int i = 0; i < 3; i++) {
    if (!step->needed[i]) results[i] = NULL;
  }
  if (step->needed[0] && (of_mean || of_variance)) {
    flow_tensor *sum = of_mean;
    if (of_variance) {
      flow_tensor *twice = e_mul(&e, of_variance, flow_express_number(&e, x, 2));
      flow_tensor *spread = e_mul(&e, e_sub(&e, x, step->outputs[1]), twice);
      sum = sum ? e_add(&e, spread, sum) : spread;
    }
    sum = flow_express_broadcast_like(&e, e_div(&e, sum, channel_count(&e, x)), x);
    results[0] = results[0] ? e_add(&e, results[0], sum) : sum;
  }
  return flow_expression_give(&e, step, results);
}

/* x - E(x) - n E(x n), which is what the gradient of a normalization to n makes of x; xn: E(x n). */
static flow_tensor *centered(flow_expression *e, flow_tensor *x, flow_tensor *n, flow_tensor *xn)
{
  return e_sub(e, e_sub(e, x, channel_mean(e, x)), e_mul(e, n, xn));
}

/* With n = (x - mean) r and r = 1 / sqrt(variance + epsilon) the op gives dx = gamma r (g - E(g) - n E(g n)), dgamma = sum(g n) and
 * dbeta = sum(g). For the gradients a, b and c that arrive at these, with P(x) = x - E(x) - n E(x n):
 *
 *   of g       gamma r P(a) + b n + c
 *   of x       b r P(g) - gamma r^2 (n (E(a g) - E(a) E(g) - 3 E(a n) E(g n)) + E(a n) (g - E(g)) + E(g n) (a - E(a)))
 *   of gamma   sum(a r P(g))
 *
 * Mean and variance are results of the same x: what flows through them is in the gradient of x. */
flow_status flow_gradient_batch_norm_gradient(flow_gradient_step *step)
{
  flow_tensor *g = step->inputs[0], *x = step->inputs[1], *gamma = step->inputs[2];
  flow_tensor *a = step->output_gradients[0], *b = step->output_gradients[1], *c = step->output_gradients[2], *results[5] = { NULL };
  flow_expression e = flow_gradient_expression(step);
  flow_tensor *epsilon = flow_express_number(&e, gamma, step->attributes->normalization.epsilon);
  flow_tensor *r = e_rsqrt(&e, e_add(&e, step->inputs[4], epsilon)), *n = e_mul(&e, e_sub(&e, x, step->inputs[3]), r);
  flow_tensor *gn = channel_mean(&e, e_mul(&e, g, n)), *pg = centered(&e, g, n, gn), *scale = e_mul(&e, gamma, r);
  if (a) {
    flow_tensor *an = channel_mean(&e, e_mul(&e, a, n));
    if (step->needed[0]) results[0] = e_mul(&e, scale, centered(&e, a, n, an));
    if (step->needed[1]) {
      flow_tensor *mean_a = channel_mean(&e, a), *mean_g = channel_mean(&e, g), *three = flow_express_number(&e, gamma, 3);
      flow_tensor *both = e_sub(&e, channel_mean(&e, e_mul(&e, a, g)), e_mul(&e, mean_a, mean_g));
      both = e_mul(&e, n, e_sub(&e, both, e_mul(&e, three, e_mul(&e, an, gn))));
      both = e_add(&e, both, e_mul(&e, an, e_sub(&e, g, mean_g)));
      both = e_add(&e, both, e_mul(&e, gn, e_sub(&e, a, mean_a)));
      results[1] = e_neg(&e, e_mul(&e, e_mul(&e, scale, r), both));
    }
    if (step->needed[2]) results[2] = flow_express_sum_to(&e, e_mul(&e, a, e_mul(&e, r, pg)), gamma);
  }
  if (b && step->needed[0]) results[0] = results[0] ? e_add(&e, results[0], e_mul(&e, n, b)) : e_mul(&e, n, b);
  if (b && step->needed[1]) {
    flow_tensor *part = e_mul(&e, pg, e_mul(&e, r, b));
    results[1] = results[1] ? e_add(&e, results[1], part) : part;
  }
  if (c && step->needed[0]) results[0] = results[0] ? e_add(&e, results[0], c) : flow_express_broadcast_like(&e, c, g);
  return flow_expression_give(&e, step, results);
}

/* x summed along one axis, counted from either end; with keepdims it stays as 1. */
static flow_tensor *sum_along(flow_expression *e, flow_tensor *x, int axis, int keepdims)
{
  flow_attributes attributes = { .reduce = { .count = 1, .keepdims = keepdims, .axes = { axis } } };
  return flow_express(e, FLOW_OP_sum, x, NULL, NULL, &attributes);
}

/* The derivative is written in terms of y, so that x need not be kept. */
flow_status flow_gradient_softmax(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0];
  if (g == NULL || !step->needed[0]) return FLOW_OK;
  return flow_gradient_by(step, 0, FLOW_OP_softmax_gradient, g, step->outputs[0], NULL, step->attributes);
}

/* z = (g - sum(g y)) y; u arrives. For g the same again, the matrix is symmetric; for y: u (g - sum(g y)) - g sum(u y). */
flow_status flow_gradient_softmax_gradient(flow_gradient_step *step)
{
  flow_tensor *u = step->output_gradients[0], *g = step->inputs[0], *y = step->inputs[1];
  int axis = step->attributes->axis.axis;
  if (u == NULL) return FLOW_OK;
  flow_expression e = flow_gradient_expression(step);
  flow_tensor *results[2] = { NULL, NULL };
  if (step->needed[0]) results[0] = flow_express(&e, FLOW_OP_softmax_gradient, u, y, NULL, step->attributes);
  if (step->needed[1]) {
    flow_tensor *centred = e_sub(&e, g, sum_along(&e, e_mul(&e, g, y), axis, 1));
    results[1] = e_sub(&e, e_mul(&e, u, centred), e_mul(&e, g, sum_along(&e, e_mul(&e, u, y), axis, 1)));
  }
  return flow_expression_give(&e, step, results);
}

/* y = x - log(sum of e^x): dx = g - softmax(x) * sum of g. */
flow_status flow_gradient_log_softmax(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0];
  if (g == NULL || !step->needed[0]) return FLOW_OK;
  flow_expression e = flow_gradient_expression(step);
  flow_tensor *total = sum_along(&e, g, step->attributes->axis.axis, 1);
  flow_tensor *dx = e_sub(&e, g, e_mul(&e, e_exp(&e, step->outputs[0]), total));
  return flow_expression_take(&e, dx, &step->input_gradients[0]);
}

/* Of the logits only: labels are integers. */
flow_status flow_gradient_sparse_cross_entropy(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0];
  if (g == NULL || !step->needed[0]) return FLOW_OK;
  return flow_gradient_by(step, 0, FLOW_OP_sparse_cross_entropy_gradient, g, step->inputs[0], step->inputs[1], NULL);
}

/* r = g (softmax(z) - onehot); u arrives. For g: sum over classes of u (softmax(z) - onehot); for z: softmax' of u g. */
flow_status flow_gradient_sparse_cross_entropy_gradient(flow_gradient_step *step)
{
  flow_tensor *u = step->output_gradients[0], *g = step->inputs[0], *z = step->inputs[1], *labels = step->inputs[2];
  const flow_attributes last = { .axis = { .axis = -1 } };
  if (u == NULL) return FLOW_OK;
  flow_expression e = flow_gradient_expression(step);
  flow_tensor *results[3] = { NULL, NULL, NULL };
  if (step->needed[0]) {
    flow_tensor *ones = flow_express_broadcast_like(&e, flow_express_number(&e, g, 1), g);
    flow_tensor *slope = flow_express(&e, FLOW_OP_sparse_cross_entropy_gradient, ones, z, labels, NULL);
    results[0] = sum_along(&e, e_mul(&e, u, slope), -1, 0);
  }
  if (step->needed[1]) {
    flow_tensor *y = flow_express(&e, FLOW_OP_softmax, z, NULL, NULL, &last);
    results[1] = flow_express(&e, FLOW_OP_softmax_gradient, e_mul(&e, u, flow_express_insert_axis(&e, g, g->rank)), y, NULL, &last);
  }
  return flow_expression_give(&e, step, results);
}
