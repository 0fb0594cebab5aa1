/* normalization.c: Normalization: (x - mean) / standard deviation with a mean and a variance that are given, or that adapt()
 * takes from data and the layer keeps as variables. Each position of the axes `axis` has its own; an empty list: one for all.
 * invert = true undoes it: x * standard deviation + mean. */
#include "graph/variable.h"
#include "layers/express.h"
#include "layers/layer.h"
#include "tensor/axis.h"
#include "layers/policy.h"

static const flow_argument parameters[] = {
  { "axis", FLOW_SHAPE, "-1", NULL },
  { "mean", FLOW_NUMBERS, "null", NULL },
  { "variance", FLOW_NUMBERS, "null", NULL },
  { "invert", FLOW_BOOLEAN, "false", NULL },
  FLOW_LAYER_COMMON
};

static const char *const read_by_build[] = { "mean", "variance", NULL };

enum { MEAN, VARIANCE, COUNT };      /* variables, in Keras' order; count is not used, as in Keras */

/* A record's check(): both numbers or none, and as many of both. */
static flow_status check(flow_layer *layer)
{
  const double *values;
  int has_mean = !flow_argument_is_null(layer->arguments, "mean"), has_variance = !flow_argument_is_null(layer->arguments, "variance");
  if (has_mean != has_variance) return flow_layer_fail(layer, "mean and variance must both be given, or neither");
  int means = flow_argument_list(layer->arguments, "mean", &values), variances = flow_argument_list(layer->arguments, "variance", &values);
  if (means != variances) return flow_layer_fail(layer, "mean has %d values and variance %d, expected as many", means, variances);
  return FLOW_OK;
}

/* kept: a bit for each axis of the input that has its own values; dims: the input's shape with 1 for the others. The axes must have
 * known sizes; the batch may be one of them. */
static flow_status kept_axes(const flow_layer *layer, const flow_signature *input, unsigned *kept, int64_t dims[FLOW_MAX_RANK])
{
  const double *axes;
  int count = flow_argument_list(layer->arguments, "axis", &axes);
  const char *text = flow_shape_text(input->rank, input->dims);
  *kept = 0;
  for (int i = 0; i < count; i++) {
    int axis = flow_axis_of(axes[i], input->rank);
    if (axis < 0 || axis >= input->rank)
      return flow_layer_fail(layer, "the input %s has no axis %d (counted from 1)", text, flow_axis_number(flow_axis_given(axes[i])));
    if (input->dims[axis] < 0) return flow_layer_fail(layer, "axis %d of the input %s must have a known size", axis + 1, text);
    *kept |= 1u << axis;
  }
  for (int axis = 0; axis < input->rank; axis++) dims[axis] = *kept >> axis & 1 ? input->dims[axis] : 1;
  /* One image where the layer was built for batches: the axes that count from the end are the same ones. */
  int shift = layer->built ? layer->build_rank - input->rank : 0, fits = 1;
  for (int i = 0; i < count; i++) fits &= shift == 0 || axes[i] < 0;
  for (int axis = 0; axis < input->rank && layer->built && fits; axis++) {
    int built = axis + shift;
    fits = !(*kept >> axis & 1) || built == 0 || (built > 0 && input->dims[axis] == layer->build_shape[built]);
  }
  return fits ? FLOW_OK : flow_layer_fail_built(layer, input);
}

/* Keras keeps a counter that nothing reads any more; files have it. */
static flow_status add_count(flow_layer *layer)
{
  flow_tensor *zero;
  FLOW_TRY(flow_tensor_new(FLOW_INT32, 0, NULL, &zero));
  flow_status status = flow_variable_named(zero, 0, FLOW_MIRRORED, &layer->variables[COUNT], "%s/count", layer->name);
  flow_tensor_release(zero);
  layer->variable_count += status == FLOW_OK;
  return status;
}

/* Without given numbers: variables for what adapt() finds, which begin as 0 and 1 and so change nothing. */
static flow_status build(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs)
{
  (void)count;
  unsigned kept;
  int rank = 0;
  int64_t dims[FLOW_MAX_RANK], shape[FLOW_MAX_RANK];
  FLOW_TRY(kept_axes(layer, inputs, &kept, dims));
  if (!flow_argument_is_null(layer->arguments, "mean")) return FLOW_OK;
  for (int axis = 0; axis < inputs->rank; axis++) {
    if (kept >> axis & 1) shape[rank++] = dims[axis];
  }
  FLOW_TRY(flow_layer_add_variable(context, layer, MEAN, "mean", "zeros", rank, shape, 0));
  FLOW_TRY(flow_layer_add_variable(context, layer, VARIANCE, "variance", "ones", rank, shape, 0));
  return add_count(layer);
}

/* The numbers of an argument in a shape that broadcasts against the input: one for all, one for each position of the last kept
 * axis, or one for each position of all of them. */
static flow_tensor *constant(flow_expression *e, const flow_layer *layer, const char *name, int rank, const int64_t *dims, unsigned kept)
{
  const double *values;
  int count = flow_argument_list(layer->arguments, name, &values), last = -1;
  int64_t shape[FLOW_MAX_RANK];
  for (int axis = 0; axis < rank; axis++) {
    shape[axis] = count == 1 ? 1 : dims[axis];
    if (kept >> axis & 1) last = axis;
  }
  if (count > 1 && last >= 0 && count == dims[last]) {
    for (int axis = 0; axis < last; axis++) shape[axis] = 1;
  }
  flow_tensor *tensor = NULL;
  flow_status status = count == flow_shape_size(rank, shape)
                           ? flow_tensor_new(flow_policy_variable_dtype(layer), rank, shape, &tensor)
                           : flow_layer_fail(layer, "%s has %d values, which do not fit the axes of shape %s", name, count,
                                             flow_shape_text(rank, dims));
  if (status == FLOW_OK) status = flow_tensor_write(tensor, values, count);
  return flow_express_keep(e, status, tensor);
}

/* (x - mean) / max(deviation, epsilon), or back with `invert`; mean and variance from adapt or from the arguments. */
static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  const double epsilon = 1e-7;
  unsigned kept;
  int64_t dims[FLOW_MAX_RANK];
  flow_signature input = flow_signature_of(inputs[0]);
  FLOW_TRY(kept_axes(layer, &input, &kept, dims));
  flow_expression e = flow_expression_of(context);
  flow_tensor *x = flow_express_cast(&e, inputs[0], flow_policy_variable_dtype(layer)), *mean, *variance;
  if (flow_argument_is_null(layer->arguments, "mean")) {
    mean = flow_express_reshape(&e, flow_express_variable(&e, layer->variables[MEAN]), input.rank, dims);
    variance = flow_express_reshape(&e, flow_express_variable(&e, layer->variables[VARIANCE]), input.rank, dims);
  } else {
    mean = constant(&e, layer, "mean", input.rank, dims, kept);
    variance = constant(&e, layer, "variance", input.rank, dims, kept);
  }
  flow_tensor *deviation = flow_express(&e, FLOW_OP_sqrt, variance, NULL, NULL, NULL);
  if (deviation) deviation = e_maximum(&e, deviation, flow_express_number(&e, deviation, epsilon));
  flow_tensor *y = flow_argument_boolean(layer->arguments, "invert") ? e_add(&e, mean, e_mul(&e, x, deviation))
                                                                    : e_div(&e, e_sub(&e, x, mean), deviation);
  return flow_expression_take(&e, y, out);
}

const flow_layer_class flow_layer_normalization = {
  .name = "Normalization",
  .positional = 4,
  .parameters = parameters,
  .build = build,
  .call = call,
  .check = check,
  .read_by_build = read_by_build,
  .supports_masking = 1,
  .doc = "(x - mean) / standard deviation, of given numbers or of data that the layer adapted to."
};
