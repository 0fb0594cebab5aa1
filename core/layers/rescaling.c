/* rescaling.c: Rescaling: float32(x) * scale + offset. */
#include "layers/formula.h"
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
  flow_formula f = flow_formula_begin(context);
  flow_tensor *y = flow_formula_cast(&f, inputs[0], FLOW_FLOAT32);
  y = flow_formula_number(&f, FLOW_OP_mul, y, flow_argument_number(layer->arguments, "scale"));
  if (offset != 0) y = flow_formula_number(&f, FLOW_OP_add, y, offset);
  return flow_formula_end(&f, y, out);
}

const flow_layer_class flow_layer_rescaling = {
  .name = "Rescaling", .positional = 2, .parameters = parameters, .min_inputs = 1, .max_inputs = 1, .call = call,
  .doc = "x * scale + offset in float32."
};
