/* random_contrast.c: RandomContrast: in training, (x - mean) * f + mean with the mean of each channel of the image and an f drawn
 * for the image from [1 - lower, 1 + upper). As in Keras, a single factor has the lower bound 0: it only strengthens. */
#include "layers/images.h"

static const flow_argument parameters[] = {
  { "factor", FLOW_NUMBERS, NULL, NULL },
  { "value_range", FLOW_NUMBERS, "0,255", NULL },
  { "seed", FLOW_INTEGER, "null", NULL },
  FLOW_LAYER_COMMON
};

/* A record's check(). */
static flow_status check(flow_layer *layer)
{
  double range[2];
  const double *values;
  if (flow_argument_list(layer->arguments, "value_range", &values) != 2 || values[0] > values[1])
    return flow_layer_fail(layer, "value_range must be a list of two numbers, the smaller one first");
  return flow_images_factor(layer, "factor", 0, 1, range);
}

/* Over height and width, kept as axes of one. */
static flow_tensor *mean_of(flow_expression *e, flow_tensor *x)
{
  flow_attributes attributes = { .reduce = { .count = 2, .keepdims = 1, .axes = { 1, 2 } } };
  return flow_express_mean_over(e, x, &attributes);
}

/* (x - mean) factor + mean, with the mean of each image and channel, within value_range. */
static flow_tensor *change_contrast(flow_expression *e, flow_layer *layer, flow_tensor *x)
{
  double range[2];
  const double *values;
  if ((e->status = flow_images_factor(layer, "factor", 0, 1, range)) != FLOW_OK) return NULL;
  flow_argument_list(layer->arguments, "value_range", &values);
  flow_tensor *factor = flow_images_uniform(e, layer, x, 1 - range[0], 1 + range[1]), *mean = mean_of(e, x);
  if (factor) factor = flow_express_reshape(e, factor, 4, (const int64_t[]){ factor->shape[0], 1, 1, 1 });
  flow_tensor *y = e_add(e, e_mul(e, e_sub(e, x, mean), factor), mean);
  y = e_maximum(e, y, flow_express_number(e, x, values[0]));
  return e_minimum(e, y, flow_express_number(e, x, values[1]));
}

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count;
  return flow_images_change_in_training(context, layer, inputs[0], training, change_contrast, out);
}

const flow_layer_class flow_layer_random_contrast = {
  .name = "RandomContrast",
  .positional = 3,
  .parameters = parameters,
  .trains_alone = 1,
  .call = call,
  .check = check,
  .doc = "In training, the contrast of every image changed by a random factor."
};
