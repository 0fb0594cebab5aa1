/* rescaling.c: Rescaling: float32(x) * scale + offset. */
#include "layers/express.h"
#include "layers/layer.h"

static const flow_argument parameters[] = {
  { "scale", FLOW_NUMBER, NULL, NULL },
  { "offset", FLOW_NUMBER, "0", NULL },
  FLOW_LAYER_COMMON
};

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  double offset = flow_argument_number(layer->arguments, "offset");
  flow_expression e = flow_expression_of(context);
  flow_tensor *y = flow_express_cast(&e, inputs[0], FLOW_FLOAT32);
  y = e_mul(&e, y, flow_express_number(&e, y, flow_argument_number(layer->arguments, "scale")));
  if (offset != 0) y = e_add(&e, y, flow_express_number(&e, y, offset));
  return flow_expression_take(&e, y, out);
}

const flow_layer_class flow_layer_rescaling = {
  .name = "Rescaling", .positional = 2, .parameters = parameters, .min_inputs = 1, .max_inputs = 1, .call = call,
  .doc = "x * scale + offset in float32."
};
