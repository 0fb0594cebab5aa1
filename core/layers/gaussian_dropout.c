/* gaussian_dropout.c: GaussianDropout (Srivastava et al. 2014): in training, multiplies by normal noise of mean 1 whose variance is that of
 * the mask of Dropout, rate / (1 - rate). Keras 3: keras/src/layers/regularization/gaussian_dropout.py. */
#include <math.h>

#include "layers/noise.h"

static const flow_argument parameters[] = {
  { "rate", FLOW_NUMBER, NULL, NULL },
  { "seed", FLOW_INTEGER, "null", NULL },
  FLOW_LAYER_COMMON
};

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count;
  double rate = flow_argument_number(layer->arguments, "rate");
  flow_expression e = flow_expression_of(context);
  flow_tensor *x = inputs[0], *noise;
  if (!training || rate == 0) return flow_expression_take(&e, x, out);
  FLOW_TRY(flow_layer_normal_noise(&e, layer, sqrt(rate / (1 - rate)), &x, &noise));
  return flow_expression_take(&e, noise ? e_mul(&e, x, e_add(&e, noise, flow_express_number(&e, x, 1))) : NULL, out);
}

const flow_layer_class flow_layer_gaussian_dropout = {
  .name = "GaussianDropout",
  .positional = 2,
  .parameters = parameters,
  .call = call,
  .check = flow_layer_check_noise_rate,
  .supports_masking = 1,
  .doc = "In training, multiplies by normal noise of mean 1 and variance rate / (1 - rate)."
};
