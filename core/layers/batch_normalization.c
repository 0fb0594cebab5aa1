/* batch_normalization.c: BatchNormalization (Ioffe and Szegedy 2015): (x - mean) / sqrt(variance + epsilon) * gamma + beta
 * over all axes but one. In training with the batch's mean and biased variance, which also move the moving averages; else,
 * and always when the layer is frozen, with the moving averages. Where replicas train together each takes the mean and variance of its own
 * part of the batch, as in Keras, unless they are `synchronized`. With `renorm` training also normalizes by averages, which a batch that
 * is small or has few classes needs (Ioffe 2017): they are kept apart from the ones for prediction, since they follow faster. */
#include <math.h>

#include "graph/context.h"
#include "autodiff/apply.h"
#include "layers/express.h"
#include "layers/norm_axes.h"
#include "layers/policy.h"

static const flow_argument parameters[] = {
  { "axis", FLOW_INTEGER, "-1", NULL },
  { "momentum", FLOW_NUMBER, "0.99", NULL },
  { "epsilon", FLOW_NUMBER, "0.001", NULL },
  { "center", FLOW_BOOLEAN, "true", NULL },
  { "scale", FLOW_BOOLEAN, "true", NULL },
  { "beta_initializer", FLOW_INITIALIZER, "zeros", NULL },
  { "gamma_initializer", FLOW_INITIALIZER, "ones", NULL },
  { "moving_mean_initializer", FLOW_INITIALIZER, "zeros", NULL },
  { "moving_variance_initializer", FLOW_INITIALIZER, "ones", NULL },
  { "beta_regularizer", FLOW_REGULARIZER, "null", NULL },
  { "gamma_regularizer", FLOW_REGULARIZER, "null", NULL },
  { "beta_constraint", FLOW_CONSTRAINT, "null", NULL },
  { "gamma_constraint", FLOW_CONSTRAINT, "null", NULL },
  { "renorm", FLOW_BOOLEAN, "false", NULL },
  { "renorm_clipping", FLOW_NAMED, "null", "rmin|rmax|dmax" },
  { "renorm_momentum", FLOW_NUMBER, "0.99", NULL },
  { "synchronized", FLOW_BOOLEAN, "false", NULL },
  FLOW_LAYER_COMMON
};

/* Indices of the variables, in Keras' order; -1: not there. */
typedef struct variable_indices {
  int gamma, beta, mean, variance, deviation, renorm_mean, renorm_deviation;
} variable_indices;

static int renormalizes(const flow_layer *layer)
{
  return flow_argument_boolean(layer->arguments, "renorm");
}

/* The arguments decide which variables there are; they do not change after the layer is made. */
static variable_indices indices_of(const flow_layer *layer)
{
  int next = 0;
  variable_indices indices = { -1, -1, -1, -1, -1, -1, -1 };
  if (flow_argument_boolean(layer->arguments, "scale")) indices.gamma = next++;
  if (flow_argument_boolean(layer->arguments, "center")) indices.beta = next++;
  indices.mean = next++;
  indices.variance = next++;
  if (!renormalizes(layer)) return indices;
  indices.deviation = next++;
  indices.renorm_mean = next++;
  indices.renorm_deviation = next;
  return indices;
}

static const char RMIN[] = "renorm_clipping.rmin", RMAX[] = "renorm_clipping.rmax", DMAX[] = "renorm_clipping.dmax";

static double limit(const flow_layer *layer, const char *name, double otherwise)
{
  return flow_argument_is_null(layer->arguments, name) ? otherwise : flow_argument_number(layer->arguments, name);
}

static flow_status check_momentum(const flow_layer *layer, const char *name)
{
  double momentum = flow_argument_number(layer->arguments, name);
  if (momentum >= 0 && momentum <= 1) return FLOW_OK;
  return flow_layer_fail(layer, "%s must be between 0 and 1, found %.15g", name, momentum);
}

/* Keras' config has an empty renorm_clipping where there are no limits, and null without renorm. */
static flow_status check(flow_layer *layer)
{
  if (renormalizes(layer) && flow_argument_is_null(layer->arguments, "renorm_clipping"))
    FLOW_TRY(flow_arguments_set_numbers(layer->arguments, "renorm_clipping", NULL, 0));
  FLOW_TRY(check_momentum(layer, "momentum"));
  FLOW_TRY(check_momentum(layer, "renorm_momentum"));
  double rmin = limit(layer, RMIN, -INFINITY), rmax = limit(layer, RMAX, INFINITY), dmax = limit(layer, DMAX, INFINITY);
  if (rmax < rmin)
    return flow_layer_fail(layer, "renorm_clipping has rmin %.15g and rmax %.15g: rmax must not be the smaller one", rmin, rmax);
  if (dmax < 0) return flow_layer_fail(layer, "renorm_clipping has dmax %.15g: it must not be negative", dmax);
  return flow_layer_check_epsilon(layer);
}

/* The size of the normalized axis; *axis counts from 0. Also of every call: the batch cannot be the axis. */
static flow_status check_input(const flow_layer *layer, const flow_signature *input, int *axis, int64_t *size)
{
  FLOW_TRY(flow_layer_axis(layer, "axis", input->rank, axis));
  *size = input->dims[*axis];
  if (*axis == 0 || *size <= 0)
    return flow_layer_fail(layer, "the normalized axis of the input %s must have a known size and not be the batch",
                           flow_shape_text(input->rank, input->dims));
  return flow_layer_check_built(layer, input, *axis);
}

/* A moving standard deviation begins as the root of the first moving variance. */
static flow_status add_deviation(flow_context *context, flow_layer *layer, int index, const char *suffix, int64_t size)
{
  flow_tensor *variance, *deviation = NULL;
  FLOW_TRY(flow_layer_initialize(context, layer, "moving_variance_initializer", 1, &size, &variance));
  flow_expression e = flow_expression_of(context);
  flow_status status = flow_expression_take(&e, flow_express(&e, FLOW_OP_sqrt, variance, NULL, NULL, NULL), &deviation);
  if (status == FLOW_OK) status = flow_layer_adopt(context, layer, index, suffix, NULL, deviation, 0);
  flow_tensor_release(deviation);
  flow_tensor_release(variance);
  return status;
}

/* Variables of one number for each channel; the moving ones are averaged over replicas when they are read. */
static flow_status build(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs)
{
  (void)count;
  int axis;
  int64_t size;
  variable_indices indices = indices_of(layer);
  FLOW_TRY(check_input(layer, inputs, &axis, &size));
  if (indices.gamma >= 0) FLOW_TRY(flow_layer_add_variable(context, layer, indices.gamma, "gamma", "gamma_initializer", 1, &size, 1));
  if (indices.beta >= 0) FLOW_TRY(flow_layer_add_variable(context, layer, indices.beta, "beta", "beta_initializer", 1, &size, 1));
  FLOW_TRY(flow_layer_add_variable(context, layer, indices.mean, "moving_mean", "moving_mean_initializer", 1, &size, 0));
  FLOW_TRY(flow_layer_add_variable(context, layer, indices.variance, "moving_variance", "moving_variance_initializer", 1, &size, 0));
  if (indices.deviation < 0) return FLOW_OK;
  FLOW_TRY(add_deviation(context, layer, indices.deviation, "moving_stddev", size));
  FLOW_TRY(flow_layer_add_variable(context, layer, indices.renorm_mean, "renorm_mean", "moving_mean_initializer", 1, &size, 0));
  return add_deviation(context, layer, indices.renorm_deviation, "renorm_stddev", size);
}

/* gamma or beta, or the number that stands for it. */
static flow_tensor *parameter(flow_expression *e, const flow_layer *layer, int index, double otherwise, int64_t size)
{
  if (index >= 0) return flow_express_variable(e, layer->variables[index]);
  flow_tensor *constant = NULL;
  flow_status status = flow_tensor_new(flow_policy_variable_dtype(layer), 1, &size, &constant);
  if (status == FLOW_OK) status = flow_tensor_fill(constant, otherwise);
  return flow_express_keep(e, status, constant);
}

/* moving * momentum + batch * (1 - momentum) */
static flow_tensor *moved(flow_expression *e, flow_variable *moving, flow_tensor *batch, double momentum)
{
  flow_tensor *old = flow_express_variable(e, moving);
  flow_tensor *kept = e_mul(e, old, flow_express_number(e, old, momentum));
  return e_add(e, kept, e_mul(e, batch, flow_express_number(e, old, 1 - momentum)));
}

static void assign(flow_expression *e, flow_variable *variable, flow_tensor *value)
{
  if (e->status == FLOW_OK) e->status = flow_variable_assign(e->context, variable, value);
}

/* sqrt(variance + epsilon) */
static flow_tensor *deviation_of(flow_expression *e, const flow_layer *layer, flow_tensor *variance)
{
  double epsilon = flow_argument_number(layer->arguments, "epsilon");
  return flow_express(e, FLOW_OP_sqrt, e_add(e, variance, flow_express_number(e, variance, epsilon)), NULL, NULL, NULL);
}

/* Moves the averages towards a batch's mean and variance, an effect of the step. With renorm the deviation is what is averaged, as in the
 * paper, and prediction's variance follows from it. */
static void move_averages(flow_expression *e, const flow_layer *layer, flow_tensor *mean, flow_tensor *variance)
{
  variable_indices indices = indices_of(layer);
  flow_variable *const *variables = layer->variables;
  double momentum = flow_argument_number(layer->arguments, "momentum");
  assign(e, variables[indices.mean], moved(e, variables[indices.mean], mean, momentum));
  if (!renormalizes(layer)) {
    assign(e, variables[indices.variance], moved(e, variables[indices.variance], variance, momentum));
    return;
  }
  double renorm_momentum = flow_argument_number(layer->arguments, "renorm_momentum");
  double epsilon = flow_argument_number(layer->arguments, "epsilon");
  flow_tensor *batch = deviation_of(e, layer, variance);
  assign(e, variables[indices.renorm_mean], moved(e, variables[indices.renorm_mean], mean, renorm_momentum));
  assign(e, variables[indices.renorm_deviation], moved(e, variables[indices.renorm_deviation], batch, renorm_momentum));
  flow_tensor *deviation = moved(e, variables[indices.deviation], batch, momentum);
  assign(e, variables[indices.deviation], deviation);
  assign(e, variables[indices.variance], e_relu(e, e_sub(e, e_square(e, deviation), flow_express_number(e, deviation, epsilon))));
}

/* What a batch's normalized values are multiplied by and what is added then. */
typedef struct transform {
  flow_tensor *scale, *shift;
} transform;

static flow_tensor *without_gradient(flow_expression *e, flow_tensor *x)
{
  return flow_express(e, FLOW_OP_stop_gradient, x, NULL, NULL, NULL);
}

/* gamma and beta; with renorm those of (normalized * r + d) * gamma + beta, where r = deviation / average deviation and d = (mean - average
 * mean) / average deviation, both clipped and constants for gradients. Before the averages move. */
static transform transform_of(flow_expression *e, const flow_layer *layer, flow_tensor *mean, flow_tensor *variance, int64_t size)
{
  variable_indices indices = indices_of(layer);
  transform result = { parameter(e, layer, indices.gamma, 1, size), parameter(e, layer, indices.beta, 0, size) };
  if (!renormalizes(layer)) return result;
  double epsilon = flow_argument_number(layer->arguments, "epsilon");
  double rmin = limit(layer, RMIN, -INFINITY), rmax = limit(layer, RMAX, INFINITY), dmax = limit(layer, DMAX, INFINITY);
  flow_tensor *average = flow_express_variable(e, layer->variables[indices.renorm_mean]);
  flow_tensor *deviation = flow_express_variable(e, layer->variables[indices.renorm_deviation]);
  deviation = e_maximum(e, deviation, flow_express_number(e, deviation, sqrt(epsilon))); /* not 0 in the first steps */
  flow_tensor *r = e_div(e, deviation_of(e, layer, variance), deviation), *d = e_div(e, e_sub(e, mean, average), deviation);
  if (rmin > -INFINITY) r = e_maximum(e, r, flow_express_number(e, r, rmin));
  if (rmax < INFINITY) r = e_minimum(e, r, flow_express_number(e, r, rmax));
  if (dmax < INFINITY) d = e_minimum(e, e_maximum(e, d, flow_express_number(e, d, -dmax)), flow_express_number(e, d, dmax));
  r = without_gradient(e, r);
  d = without_gradient(e, d);
  return (transform){ e_mul(e, r, result.scale), e_add(e, e_mul(e, d, result.scale), result.shift) };
}

/* By the op, with the moving averages as effects of the step. It takes gamma and beta, which are not known before with renorm. */
static flow_tensor *normalize_by_batch(flow_expression *e, const flow_layer *layer, flow_tensor *x, int64_t size)
{
  variable_indices indices = indices_of(layer);
  int later = renormalizes(layer);
  flow_attributes attributes = { .normalization = { .epsilon = flow_argument_number(layer->arguments, "epsilon"), .axis = -1 } };
  flow_tensor *inputs[3] = { x, parameter(e, layer, later ? -1 : indices.gamma, 1, size),
                             parameter(e, layer, later ? -1 : indices.beta, 0, size) };
  flow_tensor *outputs[3];      /* y, mean, variance */
  flow_express_all(e, FLOW_OP_batch_norm, inputs, 3, &attributes, outputs);
  flow_tensor *y = outputs[0];
  if (later) {
    transform by = transform_of(e, layer, outputs[1], outputs[2], size);
    y = e_add(e, e_mul(e, y, by.scale), by.shift);
  }
  move_averages(e, layer, outputs[1], outputs[2]);
  return y;
}

/* A communication of the step: all replicas must come by here in the same order. */
static flow_tensor *sum_over_replicas(flow_expression *e, flow_tensor *x)
{
  flow_tensor *total = NULL;
  if (e->status != FLOW_OK) return NULL;
  flow_status status = flow_sum_over_replicas(e->context, x, &total);
  return flow_express_keep(e, status, total);
}

/* (x - mean) / sqrt(variance + epsilon), transformed, of a batch's own mean and variance {size}, which move the averages. centred:
 * x - mean. The channels are the last axis, so that {size} broadcasts. */
static flow_tensor *normalize_with(flow_expression *e, const flow_layer *layer, flow_tensor *centred, flow_tensor *mean,
                                   flow_tensor *variance, int64_t size)
{
  double epsilon = flow_argument_number(layer->arguments, "epsilon");
  transform by = transform_of(e, layer, mean, variance, size);
  flow_tensor *shifted = e_add(e, variance, flow_express_number(e, variance, epsilon));
  flow_tensor *factor = e_mul(e, flow_express(e, FLOW_OP_rsqrt, shifted, NULL, NULL, NULL), by.scale);
  move_averages(e, layer, mean, variance);
  return e_add(e, e_mul(e, centred, factor), by.shift);
}

/* With the mean and variance of what a mask, which broadcasts to x, keeps. Keras adds 1e-7 to their number. */
static flow_tensor *normalize_masked(flow_expression *e, const flow_layer *layer, flow_tensor *x, flow_tensor *mask, int rank, int64_t size)
{
  flow_attributes all_but_last = { .reduce = { .count = rank - 1 } };
  for (int i = 0; i < rank - 1; i++) all_but_last.reduce.axes[i] = i;
  flow_tensor *zero = flow_express_number(e, x, 0);
  flow_tensor *kept = flow_express_cast(e, flow_express_broadcast_like(e, mask, x), x->dtype);
  flow_tensor *count = flow_express(e, FLOW_OP_sum, kept, NULL, NULL, &all_but_last);
  count = e_add(e, count, flow_express_number(e, x, 1e-7));
  flow_tensor *mean = e_div(e, flow_express(e, FLOW_OP_sum, e_where(e, mask, x, zero), NULL, NULL, &all_but_last), count);
  flow_tensor *centred = e_sub(e, x, mean);
  flow_tensor *squares = flow_express(e, FLOW_OP_sum, e_square(e, e_where(e, mask, centred, zero)), NULL, NULL, &all_but_last);
  return normalize_with(e, layer, centred, mean, e_div(e, squares, count), size);
}

/* The same with the mean and variance of the whole batch, over all replicas, in two passes: the mean first. The parts of replicas may
 * differ in size, so that element counts are summed, too; where no replica has an element, a division by 0 gives 0. */
static flow_tensor *normalize_together(flow_expression *e, const flow_layer *layer, flow_tensor *x, int rank, int64_t size)
{
  flow_attributes all_but_last = { .reduce = { .count = rank - 1 } };
  for (int i = 0; i < rank - 1; i++) all_but_last.reduce.axes[i] = i;
  flow_tensor *count = sum_over_replicas(e, flow_express(e, FLOW_OP_element_count, x, NULL, NULL, &all_but_last));
  flow_tensor *total = sum_over_replicas(e, flow_express(e, FLOW_OP_sum, x, NULL, NULL, &all_but_last));
  flow_tensor *mean = flow_express(e, FLOW_OP_divide_no_nan, total, count, NULL, NULL);
  flow_tensor *centred = e_sub(e, x, mean);
  flow_tensor *squares = sum_over_replicas(e, flow_express(e, FLOW_OP_sum, e_square(e, centred), NULL, NULL, &all_but_last));
  flow_tensor *variance = flow_express(e, FLOW_OP_divide_no_nan, squares, count, NULL, NULL);
  return normalize_with(e, layer, centred, mean, variance, size);
}

/* With one replica, or eagerly, the batch is whole anyway. */
static int synchronizes(const flow_context *context, const flow_layer *layer)
{
  const flow_graph *graph = flow_context_trace(context);
  return graph && graph->replicas > 1 && flow_argument_boolean(layer->arguments, "synchronized");
}

/* Also in a layer that is frozen: it then behaves as in prediction, and its averages stay. */
static flow_tensor *normalize_by_averages(flow_expression *e, const flow_layer *layer, flow_tensor *x)
{
  variable_indices indices = indices_of(layer);
  flow_tensor *mean = flow_express_variable(e, layer->variables[indices.mean]);
  flow_tensor *variance = flow_express_variable(e, layer->variables[indices.variance]);
  flow_tensor *shifted = e_add(e, variance, flow_express_number(e, variance, flow_argument_number(layer->arguments, "epsilon")));
  flow_tensor *factor = flow_express(e, FLOW_OP_rsqrt, shifted, NULL, NULL, NULL);
  if (indices.gamma >= 0) factor = e_mul(e, flow_express_variable(e, layer->variables[indices.gamma]), factor);
  /* x * factor + shift, with everything but x apart: a plan can move both into the convolution before. */
  flow_tensor *shift = e_mul(e, mean, factor);
  if (indices.beta >= 0) shift = e_sub(e, flow_express_variable(e, layer->variables[indices.beta]), shift);
  else shift = e_neg(e, shift);
  return e_add(e, e_mul(e, x, factor), shift);
}

/* x with axis `from` moved to place `to`; the other axes keep their order. */
static flow_tensor *move_axis(flow_expression *e, flow_tensor *x, int rank, int from, int to)
{
  flow_attributes attributes = { .transpose = { .rank = rank } };
  int next = 0;
  for (int i = 0; i < rank; i++) {
    if (next == from) next++;
    attributes.transpose.axes[i] = i == to ? from : next++;
  }
  return flow_express(e, FLOW_OP_transpose, x, NULL, NULL, &attributes);
}

enum { INPUTS, MASK };
static const char *const input_names[] = { "inputs", "mask", NULL };
static const flow_argument no_options[] = { FLOW_ARGUMENTS_END };

/* The mask with an axis for the last one of x, and then moved as x is. */
static flow_tensor *mask_like(flow_expression *e, flow_tensor *mask, flow_tensor *x, int axis)
{
  int64_t dims[FLOW_MAX_RANK];
  for (int i = 0; i < mask->rank; i++) dims[i] = mask->shape[i];
  dims[mask->rank] = 1;
  mask = flow_express_reshape(e, flow_express_cast(e, mask, FLOW_BOOL), x->rank, dims);
  return axis == x->rank - 1 ? mask : move_axis(e, flow_express_broadcast_like(e, mask, x), x->rank, axis, x->rank - 1);
}

/* Statistics of the batch while it is trained, moving averages otherwise, also where the layer itself is frozen, as in Keras. Of the
 * batch: with a mask, over all replicas, or, the usual case, by one op. Another axis than the last is moved there and back. */
static flow_status call(flow_context *context, flow_layer *layer, const flow_named_call *call, flow_tensor **out)
{
  flow_tensor *x = call->inputs[INPUTS], *mask = call->inputs[MASK];
  flow_signature input = flow_signature_of(x);
  int axis, last = input.rank - 1, training = call->training;
  int64_t size;
  FLOW_TRY(check_input(layer, &input, &axis, &size));
  if (mask && mask->rank != last)
    return flow_layer_fail(layer, "mask %s of the input %s: it must have one dimension less", flow_tensor_shape_text(mask),
                           flow_tensor_shape_text(x));
  flow_expression e = flow_expression_of(context);
  if (mask && training && layer->trainable) mask = mask_like(&e, mask, x, axis);
  if (axis != last) x = move_axis(&e, x, input.rank, axis, last);
  flow_tensor *y;
  if (!training || !layer->trainable) y = normalize_by_averages(&e, layer, x);
  else if (mask) y = normalize_masked(&e, layer, x, mask, input.rank, size);
  else if (synchronizes(context, layer)) y = normalize_together(&e, layer, x, input.rank, size);
  else y = normalize_by_batch(&e, layer, x, size);
  if (axis != last) y = move_axis(&e, y, input.rank, last, axis);
  return flow_expression_take(&e, y, out);
}

const flow_layer_class flow_layer_batch_normalization = {
  .name = "BatchNormalization",
  .positional = 17,
  .parameters = parameters,
  .input_names = input_names,
  .options = no_options,
  .build = build,
  .call_named = call,
  .check = check,
  .full_precision = 1,
  .supports_masking = 1,
  .doc = "Shifts and scales each channel to mean 0 and variance 1, then by the learned beta and gamma."
};
