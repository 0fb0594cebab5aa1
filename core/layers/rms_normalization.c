/* rms_normalization.c: RMSNormalization (Zhang and Sennrich 2019): x / sqrt(mean of x^2 over the axes + epsilon) * scale. The variable
 * scale has the sizes of the normalized axes. It computes in float32 whatever the policy is. */
#include "layers/express.h"
#include "layers/norm_axes.h"
#include "layers/policy.h"

static const flow_argument parameters[] = {
  { "axis", FLOW_SHAPE, "-1", NULL },
  { "epsilon", FLOW_NUMBER, "1e-06", NULL },
  FLOW_LAYER_COMMON
};

static flow_status build(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs)
{
  (void)count;
  flow_attributes reduce;
  int64_t dims[FLOW_MAX_RANK], shape[FLOW_MAX_RANK];
  int rank = 0;
  FLOW_TRY(flow_layer_sort_axes(layer));
  FLOW_TRY(flow_norm_shape(layer, inputs, &reduce, dims));
  for (; rank < reduce.reduce.count; rank++) shape[rank] = dims[reduce.reduce.axes[rank]];
  return flow_layer_add_variable(context, layer, 0, "scale", "ones", rank, shape, 1);
}

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  flow_signature input = flow_signature_of(inputs[0]);
  flow_attributes reduce;
  int64_t dims[FLOW_MAX_RANK];
  FLOW_TRY(flow_norm_shape(layer, &input, &reduce, dims));
  flow_expression e = flow_expression_of(context);
  flow_tensor *y = flow_norm_express(&e, layer, flow_express_cast(&e, inputs[0], flow_policy_variable_dtype(layer)), &reduce, 1);
  y = e_mul(&e, y, flow_express_reshape(&e, flow_express_variable(&e, layer->variables[0]), input.rank, dims));
  return flow_expression_take(&e, y, out);
}

const flow_layer_class flow_layer_rms_normalization = {
  .name = "RMSNormalization",
  .positional = 2,
  .parameters = parameters,
  .build = build,
  .call = call,
  .check = flow_layer_check_epsilon,
  .full_precision = 1,
  .doc = "Each sample divided by the root of the mean of its squares along axis, then scaled."
};
