/* leaky_relu.c: LeakyReLU: x, or negative_slope * x where x is negative. */
#include "layers/express.h"
#include "layers/layer.h"

static const flow_argument parameters[] = {
  { "negative_slope", FLOW_NUMBER, "0.3", NULL },
  FLOW_LAYER_COMMON
};

static flow_status check(flow_layer *layer)
{
  double slope = flow_argument_number(layer->arguments, "negative_slope");
  return slope >= 0 ? FLOW_OK : flow_layer_fail(layer, "negative_slope must be 0 or greater, found %.15g", slope);
}

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  flow_expression e = flow_expression_of(context);
  flow_tensor *x = flow_dtype_is_float(inputs[0]->dtype) ? inputs[0] : flow_express_cast(&e, inputs[0], FLOW_FLOAT32);
  if (!x) return flow_expression_take(&e, NULL, out);
  const double slope = flow_argument_number(layer->arguments, "negative_slope");
  return flow_expression_take(&e, flow_express_leaky_relu(&e, x, flow_express_number(&e, x, slope), slope), out);
}

const flow_layer_class flow_layer_leaky_relu = {
  .name = "LeakyReLU",
  .positional = 1,
  .parameters = parameters,
  .call = call,
  .check = check,
  .supports_masking = 1,
  .doc = "x, or negative_slope * x where x is negative."
};
