/* elu.c: ELU (Clevert, Unterthiner and Hochreiter 2015): x, or alpha * (e^x - 1) where x is negative; whole numbers as float32. It is
 * written as the sum of the two branches, each of which is 0 where the other counts. */
#include "layers/express.h"
#include "layers/layer.h"

static const flow_argument parameters[] = {
  { "alpha", FLOW_NUMBER, "1", NULL },
  FLOW_LAYER_COMMON
};

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  flow_expression e = flow_expression_of(context);
  flow_tensor *x = flow_dtype_is_float(inputs[0]->dtype) ? inputs[0] : flow_express_cast(&e, inputs[0], FLOW_FLOAT32);
  if (!x) return flow_expression_take(&e, NULL, out);
  flow_tensor *alpha = flow_express_number(&e, x, flow_argument_number(layer->arguments, "alpha"));
  flow_tensor *below = e_mul(&e, e_expm1(&e, e_minimum(&e, x, flow_express_number(&e, x, 0))), alpha);      /* at 0 the gradient is alpha */
  return flow_expression_take(&e, e_add(&e, e_relu(&e, x), below), out);
}

const flow_layer_class flow_layer_elu = {
  .name = "ELU",
  .positional = 1,
  .parameters = parameters,
  .call = call,
  .supports_masking = 1,
  .doc = "x, or alpha * (e^x - 1) where x is negative."
};
