/* unit_normalization.c: UnitNormalization: x / |x| for the L2 norm of each sample over the axes `axis`; where that is 0 the result is 0
 * (keras.ops.normalize: 1 / |x| is at most 1e12). */
#include "layers/express.h"
#include "layers/norm_axes.h"

static const flow_argument parameters[] = { { "axis", FLOW_AXES, "-1", NULL }, FLOW_LAYER_COMMON };

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  flow_attributes reduce;
  flow_signature input = flow_signature_of(inputs[0]);
  FLOW_TRY(flow_norm_axes(layer, &input, &reduce));
  flow_expression e = flow_expression_of(context);
  flow_tensor *x = flow_dtype_is_float(inputs[0]->dtype) ? inputs[0] : flow_express_cast(&e, inputs[0], FLOW_FLOAT32);
  flow_tensor *squares = flow_express(&e, FLOW_OP_sum, e_square(&e, x), NULL, NULL, &reduce);
  /* The limit is inside, since a minimum of 1 / 0 would have a gradient of 0 times infinity. */
  if (squares) squares = e_maximum(&e, squares, flow_express_number(&e, squares, 1e-24));
  return flow_expression_take(&e, e_mul(&e, x, e_rsqrt(&e, squares)), out);
}

const flow_layer_class flow_layer_unit_normalization = {
  .name = "UnitNormalization",
  .positional = 1,
  .parameters = parameters,
  .call = call,
  .supports_masking = 1,
  .doc = "Each sample divided by its L2 norm along axis."
};
