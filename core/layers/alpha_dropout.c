/* alpha_dropout.c: AlphaDropout (Klambauer et al., "Self-normalizing neural networks", 2017): in training, sets values to what selu
 * saturates at, with probability rate, then scales and shifts all, so that mean and variance of what selu gave stay. Keras 3:
 * keras/src/layers/regularization/alpha_dropout.py. */
#include <math.h>

#include "layers/noise.h"

static const flow_argument parameters[] = {
  { "rate", FLOW_NUMBER, NULL, NULL },
  { "noise_shape", FLOW_SIZES, "null", NULL },
  { "seed", FLOW_INTEGER, "null", NULL },
  FLOW_LAYER_COMMON
};

/* Dropped elements become selu's limit at minus infinity; slope and shift keep mean 0 and variance 1 (Klambauer et al. 2017, section 4). */
static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count;
  const double saturated = -1.6732632423543772 * 1.0507009873554805;      /* selu at minus infinity */
  double rate = flow_argument_number(layer->arguments, "rate"), slope = 1 / sqrt((1 - rate) * (1 + rate * saturated * saturated));
  flow_expression e = flow_expression_of(context);
  flow_tensor *x = inputs[0], *mask;
  if (!training || rate == 0) return flow_expression_take(&e, x, out);
  if (!flow_dtype_is_float(x->dtype)) x = flow_express_cast(&e, x, FLOW_FLOAT32);
  if (!x) return flow_expression_take(&e, NULL, out);
  flow_status status = flow_layer_dropout_mask(&e, layer, x, rate, &mask);
  if (status != FLOW_OK) e.status = status;
  if (e.status != FLOW_OK) return flow_expression_take(&e, NULL, out);
  flow_tensor *kept = e_gt(&e, mask, flow_express_number(&e, mask, 0));
  flow_tensor *y = e_mul(&e, e_where(&e, kept, x, flow_express_number(&e, x, saturated)), flow_express_number(&e, x, slope));
  return flow_expression_take(&e, e_add(&e, y, flow_express_number(&e, x, -slope * saturated * rate)), out);
}

const flow_layer_class flow_layer_alpha_dropout = {
  .name = "AlphaDropout",
  .positional = 3,
  .parameters = parameters,
  .call = call,
  .check = flow_layer_check_noise_rate,
  .supports_masking = 1,
  .doc = "In training, sets a share rate of the values to the least value of selu, then restores mean and variance of all."
};
