/* relu.c: ReLU with Keras' three options: a cap, a slope below the threshold, and the threshold. */
#include "layers/express.h"
#include "layers/layer.h"

static const flow_argument parameters[] = {
  { "max_value", FLOW_NUMBER, "null", NULL },
  { "negative_slope", FLOW_NUMBER, "0", NULL },
  { "threshold", FLOW_NUMBER, "0", NULL },
  FLOW_LAYER_COMMON
};

/* null counts as 0 here: flow_argument_number of null. */
static flow_status check(flow_layer *layer)
{
  static const char *const names[] = { "max_value", "negative_slope", "threshold" };
  for (int i = 0; i < 3; i++) {
    double value = flow_argument_number(layer->arguments, names[i]);
    if (value < 0) return flow_layer_fail(layer, "%s must be 0 or greater, found %.15g", names[i], value);
  }
  return FLOW_OK;
}

/* Keras' order: what is above the threshold, capped, less slope * (threshold - x) for what is below it. Where branches meet, gradients
 * are Keras': of a slope alone as of LeakyReLU, of a cap of 6 alone as of relu6, 0 at the cap; at other caps 1. */
static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  double slope = flow_argument_number(layer->arguments, "negative_slope"), threshold = flow_argument_number(layer->arguments, "threshold");
  flow_expression e = flow_expression_of(context);
  flow_tensor *x = inputs[0];
  if (!flow_dtype_is_float(x->dtype)) x = flow_express_cast(&e, x, FLOW_FLOAT32);
  flow_tensor *y = threshold == 0 ? e_relu(&e, x)
                                  : e_where(&e, e_gt(&e, x, flow_express_number(&e, x, threshold)), x, flow_express_number(&e, x, 0));
  int capped = !flow_argument_is_null(layer->arguments, "max_value");
  double most = capped ? flow_argument_number(layer->arguments, "max_value") : 0;
  if (capped && most == 6 && threshold == 0) y = e_minimum(&e, flow_express_number(&e, x, most), y);
  else if (capped) y = e_minimum(&e, y, flow_express_number(&e, x, most));
  if (slope != 0 && !capped && threshold == 0) {
    flow_tensor *below = e_minimum(&e, x, flow_express_number(&e, x, 0));
    y = e_add(&e, y, e_mul(&e, below, flow_express_number(&e, x, slope)));
  } else if (slope != 0) {
    flow_tensor *below = e_relu(&e, e_sub(&e, flow_express_number(&e, x, threshold), x));
    y = e_sub(&e, y, e_mul(&e, below, flow_express_number(&e, x, slope)));
  }
  return flow_expression_take(&e, y, out);
}

const flow_layer_class flow_layer_relu = {
  .name = "ReLU",
  .positional = 3,
  .parameters = parameters,
  .call = call,
  .check = check,
  .supports_masking = 1,
  .doc = "max(x, 0), with an optional cap, slope below the threshold, and threshold."
};
