/* group_normalization.c: GroupNormalization (Wu and He 2018): the channels of each sample in groups, each with mean 0 and variance 1 over
 * all its values, then scaled and shifted by channel. */
#include "autodiff/composites.h"
#include "layers/express.h"
#include "layers/norm_axes.h"
#include "layers/policy.h"

static const flow_argument parameters[] = {
  { "groups", FLOW_INTEGER, "32", NULL },
  { "axis", FLOW_INTEGER, "-1", NULL },
  { "epsilon", FLOW_NUMBER, "0.001", NULL },
  { "center", FLOW_BOOLEAN, "true", NULL },
  { "scale", FLOW_BOOLEAN, "true", NULL },
  { "beta_initializer", FLOW_INITIALIZER, "zeros", NULL },
  { "gamma_initializer", FLOW_INITIALIZER, "ones", NULL },
  { "beta_regularizer", FLOW_REGULARIZER, "null", NULL },
  { "gamma_regularizer", FLOW_REGULARIZER, "null", NULL },
  { "beta_constraint", FLOW_CONSTRAINT, "null", NULL },
  { "gamma_constraint", FLOW_CONSTRAINT, "null", NULL },
  FLOW_LAYER_COMMON
};

/* A record's check(). */
static flow_status check(flow_layer *layer)
{
  int64_t groups = flow_argument_integer(layer->arguments, "groups");
  if (groups < 1 && groups != -1)
    return flow_layer_fail(layer, "groups must be greater than 0, or -1 for one channel each, found %lld", (long long)groups);
  return flow_layer_check_epsilon(layer);
}

/* The axis from 0, its size and the number of groups. */
static flow_status groups_of(const flow_layer *layer, const flow_signature *input, int *axis, int64_t *size, int64_t *groups)
{
  FLOW_TRY(flow_layer_axis(layer, "axis", input->rank, axis));
  *size = input->dims[*axis];
  *groups = flow_argument_integer(layer->arguments, "groups");
  if (*groups == -1) *groups = *size;
  if (*axis == 0 || *size < 1 || input->rank == FLOW_MAX_RANK)
    return flow_layer_fail(layer, "axis %d (counted from 1) of the input %s must have a known size and not be the batch, of at most %d "
                           "dimensions", *axis + 1, flow_shape_text(input->rank, input->dims), FLOW_MAX_RANK - 1);
  if (*size % *groups != 0)
    return flow_layer_fail(layer, "%lld channels cannot be divided into %lld groups", (long long)*size, (long long)*groups);
  return flow_layer_check_built(layer, input, *axis);
}

/* gamma and beta have one number for each channel, not for each group. */
static flow_status build(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs)
{
  (void)count;
  int axis, next = 0;
  int64_t size, groups;
  FLOW_TRY(groups_of(layer, inputs, &axis, &size, &groups));
  if (flow_argument_boolean(layer->arguments, "scale"))
    FLOW_TRY(flow_layer_add_variable(context, layer, next++, "gamma", "gamma_initializer", 1, &size, 1));
  if (flow_argument_boolean(layer->arguments, "center"))
    FLOW_TRY(flow_layer_add_variable(context, layer, next, "beta", "beta_initializer", 1, &size, 1));
  return FLOW_OK;
}

/* The mean over the values of each group, for each of its channels: {rows, 1, .., channels, .., 1}. First over positions, so that the rows
 * that are added have all channels; then over the channels of a group, which are few. */
static flow_tensor *group_mean(flow_expression *e, flow_tensor *x, int axis, int64_t groups, const flow_attributes *positions)
{
  if (positions->reduce.count > 0) x = flow_express_mean_over(e, x, positions);
  if (!x) return NULL;
  const int64_t by_group[3] = { x->shape[0], groups, x->shape[axis] / groups };
  const flow_attributes channels = { .reduce = { .keepdims = 1, .count = 1, .axes = { 2 } } };
  flow_tensor *grouped = flow_express_reshape(e, x, 3, by_group), *mean = flow_express_mean_over(e, grouped, &channels);
  return mean ? flow_express_reshape(e, flow_express_broadcast_like(e, mean, grouped), x->rank, x->shape) : NULL;
}

/* Mean and variance of each group of a sample (Wu and He 2018, equation 7). In float32 whatever the dtype. */
static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  flow_tensor *x = inputs[0];
  flow_signature input = flow_signature_of(x);
  int axis, next = 0;
  int64_t size, groups, by_channel[FLOW_MAX_RANK];
  FLOW_TRY(groups_of(layer, &input, &axis, &size, &groups));
  flow_attributes positions = { .reduce = { .keepdims = 1 } };      /* all axes but the batch and the channels */
  for (int i = 0; i < input.rank; i++) {
    by_channel[i] = i == axis ? size : 1;
    if (i > 0 && i != axis) positions.reduce.axes[positions.reduce.count++] = i;
  }
  flow_expression e = flow_expression_of(context);
  x = flow_express_cast(&e, x, flow_policy_variable_dtype(layer));
  flow_tensor *centred = e_sub(&e, x, group_mean(&e, x, axis, groups, &positions));
  flow_tensor *variance = group_mean(&e, e_square(&e, centred), axis, groups, &positions);
  if (variance) variance = e_add(&e, variance, flow_express_number(&e, variance, flow_argument_number(layer->arguments, "epsilon")));
  flow_tensor *scale = flow_express(&e, FLOW_OP_rsqrt, variance, NULL, NULL, NULL);
  if (flow_argument_boolean(layer->arguments, "scale"))
    scale = e_mul(&e, scale, flow_express_reshape(&e, flow_express_variable(&e, layer->variables[next++]), input.rank, by_channel));
  flow_tensor *y = e_mul(&e, centred, scale);
  if (flow_argument_boolean(layer->arguments, "center"))
    y = e_add(&e, y, flow_express_reshape(&e, flow_express_variable(&e, layer->variables[next]), input.rank, by_channel));
  return flow_expression_take(&e, y, out);
}

const flow_layer_class flow_layer_group_normalization = {
  .name = "GroupNormalization",
  .positional = 11,
  .parameters = parameters,
  .build = build,
  .call = call,
  .check = check,
  .full_precision = 1,
  .supports_masking = 1,
  .doc = "Groups of channels of each sample with mean 0 and variance 1, then scaled and shifted by channel."
};
