/* layer_normalization.c: LayerNormalization (Ba, Kiros and Hinton 2016): (x - mean) / sqrt(variance + epsilon) * gamma + beta with
 * the mean and the biased variance of each sample over the axes `axis`. */
#include "layers/express.h"
#include "layers/norm_axes.h"

static const flow_argument parameters[] = {
  { "axis", FLOW_SHAPE, "-1", NULL },
  { "epsilon", FLOW_NUMBER, "0.001", NULL },
  { "center", FLOW_BOOLEAN, "true", NULL },
  { "scale", FLOW_BOOLEAN, "true", NULL },
  { "rms_scaling", FLOW_BOOLEAN, "false", NULL }, /* Keras writes it into files, and warns if it is set */
  { "beta_initializer", FLOW_INITIALIZER, "zeros", NULL },
  { "gamma_initializer", FLOW_INITIALIZER, "ones", NULL },
  { "beta_regularizer", FLOW_REGULARIZER, "null", NULL },
  { "gamma_regularizer", FLOW_REGULARIZER, "null", NULL },
  { "beta_constraint", FLOW_CONSTRAINT, "null", NULL },
  { "gamma_constraint", FLOW_CONSTRAINT, "null", NULL },
  FLOW_LAYER_COMMON
};

static flow_status check(flow_layer *layer)
{
  FLOW_TRY(flow_layer_check_epsilon(layer));
  if (flow_argument_boolean(layer->arguments, "rms_scaling"))
    return flow_fail(FLOW_UNSUPPORTED, "%s \"%s\": rms_scaling = true is not supported; leave it out", layer->class->name, layer->name);
  return FLOW_OK;
}

/* gamma and beta have the sizes of the normalized axes, in the order of the sorted axes. */
static flow_status build(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs)
{
  (void)count;
  flow_attributes reduce;
  int64_t dims[FLOW_MAX_RANK], shape[FLOW_MAX_RANK];
  int rank = 0, next = 0;
  FLOW_TRY(flow_layer_sort_axes(layer));
  FLOW_TRY(flow_norm_shape(layer, inputs, &reduce, dims));
  for (; rank < reduce.reduce.count; rank++) shape[rank] = dims[reduce.reduce.axes[rank]];
  if (flow_argument_boolean(layer->arguments, "scale"))
    FLOW_TRY(flow_layer_add_variable(context, layer, next++, "gamma", "gamma_initializer", rank, shape, 1));
  if (flow_argument_boolean(layer->arguments, "center"))
    FLOW_TRY(flow_layer_add_variable(context, layer, next, "beta", "beta_initializer", rank, shape, 1));
  return FLOW_OK;
}

/* (x - mean) / sqrt(variance + epsilon) over the normalized axes, then scale and center by variables of their shape (Ba et al. 2016). */
static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  flow_signature input = flow_signature_of(inputs[0]);
  flow_attributes reduce;
  int64_t dims[FLOW_MAX_RANK];
  int next = 0;
  FLOW_TRY(flow_norm_shape(layer, &input, &reduce, dims));
  flow_expression e = flow_expression_of(context);
  flow_tensor *x = flow_dtype_is_float(input.dtype) ? inputs[0] : flow_express_cast(&e, inputs[0], FLOW_FLOAT32);
  flow_tensor *y = flow_norm_express(&e, layer, x, &reduce, 0);
  if (flow_argument_boolean(layer->arguments, "scale"))
    y = e_mul(&e, y, flow_express_reshape(&e, flow_express_variable(&e, layer->variables[next++]), input.rank, dims));
  if (flow_argument_boolean(layer->arguments, "center"))
    y = e_add(&e, y, flow_express_reshape(&e, flow_express_variable(&e, layer->variables[next]), input.rank, dims));
  return flow_expression_take(&e, y, out);
}

const flow_layer_class flow_layer_layer_normalization = {
  .name = "LayerNormalization",
  .positional = 4,
  .parameters = parameters,
  .build = build,
  .call = call,
  .check = check,
  .supports_masking = 1,
  .doc = "Each sample with mean 0 and variance 1 along axis, then scaled and shifted."
};
