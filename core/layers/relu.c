/* relu.c: ReLU with Keras' three options: a cap, a slope below the threshold, and the threshold. */
#include "layers/formula.h"
#include "layers/layer.h"

static const flow_argument parameters[] = {
  { "max_value", FLOW_NUMBER, "null", NULL },
  { "negative_slope", FLOW_NUMBER, "0", NULL },
  { "threshold", FLOW_NUMBER, "0", NULL },
  FLOW_LAYER_COMMON
};

static flow_status check(flow_layer *layer)
{
  static const char *const names[] = { "max_value", "negative_slope", "threshold" };
  for (int i = 0; i < 3; i++) {
    double value = flow_argument_number(layer->arguments, names[i]);
    if (value < 0) return flow_layer_fail(layer, "%s must be 0 or greater, found %.15g", names[i], value);
  }
  return FLOW_OK;
}

/* Keras' order: what lies above the threshold, capped, less slope * (threshold - x) for what lies below it. */
static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  double slope = flow_argument_number(layer->arguments, "negative_slope"), threshold = flow_argument_number(layer->arguments, "threshold");
  flow_formula f = flow_formula_begin(context);
  flow_tensor *x = inputs[0], *y;
  if (threshold == 0) {
    y = flow_formula_op(&f, FLOW_OP_relu, x, NULL, NULL);
  } else {
    flow_tensor *above = flow_formula_number(&f, FLOW_OP_gt, x, threshold);
    y = flow_formula_where(&f, above, x, flow_formula_constant(&f, x, 0));
  }
  if (!flow_argument_is_null(layer->arguments, "max_value"))
    y = flow_formula_number(&f, FLOW_OP_minimum, y, flow_argument_number(layer->arguments, "max_value"));
  if (slope != 0) {
    flow_tensor *below = flow_formula_op(&f, FLOW_OP_neg, x, NULL, NULL);
    if (threshold != 0) below = flow_formula_number(&f, FLOW_OP_add, below, threshold);
    below = flow_formula_op(&f, FLOW_OP_relu, below, NULL, NULL);
    y = flow_formula_op(&f, FLOW_OP_sub, y, flow_formula_number(&f, FLOW_OP_mul, below, slope), NULL);
  }
  return flow_formula_end(&f, y, out);
}

const flow_layer_class flow_layer_relu = {
  .name = "ReLU", .positional = 3, .parameters = parameters, .min_inputs = 1, .max_inputs = 1, .call = call, .check = check,
  .doc = "max(x, 0), with an optional cap, slope below the threshold, and threshold."
};
