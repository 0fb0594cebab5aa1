/* gaussian_noise.c: GaussianNoise: in training, adds normal noise of mean 0 and deviation stddev. Each element of each sample has its
 * own number, keyed as noise.h says. Keras 3: keras/src/layers/regularization/gaussian_noise.py. */
#include "layers/noise.h"

static const flow_argument parameters[] = {
  { "stddev", FLOW_NUMBER, NULL, NULL },
  { "seed", FLOW_INTEGER, "null", NULL },
  FLOW_LAYER_COMMON
};

static flow_status check(flow_layer *layer)
{
  double deviation = flow_argument_number(layer->arguments, "stddev");
  if (!(deviation >= 0 && deviation <= 1)) return flow_layer_fail(layer, "stddev must be between 0 and 1, found %.15g", deviation);
  return FLOW_OK;
}

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count;
  double deviation = flow_argument_number(layer->arguments, "stddev");
  flow_expression e = flow_expression_of(context);
  flow_tensor *x = inputs[0], *noise;
  if (!training || deviation == 0) return flow_expression_take(&e, x, out);
  FLOW_TRY(flow_layer_normal_noise(&e, layer, deviation, &x, &noise));
  return flow_expression_take(&e, noise ? e_add(&e, x, noise) : NULL, out);
}

const flow_layer_class flow_layer_gaussian_noise = {
  .name = "GaussianNoise",
  .positional = 2,
  .parameters = parameters,
  .call = call,
  .check = check,
  .supports_masking = 1,
  .doc = "In training, adds normal noise of deviation stddev."
};
