/* random_flip.c: RandomFlip: in training, half of the images mirrored. One draw an image decides for both directions, as in
 * Keras: with "horizontal_and_vertical" an image is turned around in both or in none. */
#include "layers/images.h"

#include <string.h>

static const flow_argument parameters[] = {
  { "mode", FLOW_TEXT, "horizontal_and_vertical", "horizontal|vertical|horizontal_and_vertical" },
  { "seed", FLOW_INTEGER, "null", NULL },
  FLOW_IMAGE_DATA_FORMAT,
  FLOW_LAYER_COMMON
};

/* A flip is a transform of the sampling op: x' = -x + (width - 1) where the image's number is at most one half, else x' = x. */
static flow_tensor *flip(flow_expression *e, flow_layer *layer, flow_tensor *x)
{
  const char *mode = flow_argument_text(layer->arguments, "mode");
  int horizontal = strncmp(mode, "horizontal", 10) == 0, vertical = strcmp(mode, "horizontal") != 0;
  flow_attributes attributes = { .sampling = { .interpolation = FLOW_NEAREST, .fill_mode = FLOW_FILL_NEAREST } };
  flow_tensor *u = flow_images_uniform(e, layer, x, 0, 1), *half = flow_express_number(e, x, 0.5);
  flow_tensor *flips = flow_express_cast(e, e_le(e, u, half), FLOW_FLOAT32);
  flow_tensor *one = flow_express_number(e, x, 1), *turned = e_sub(e, one, e_add(e, flips, flips)); /* 1 or -1 */
  flow_tensor *straight = e_add(e, e_mul(e, flips, flow_express_number(e, x, 0)), one), *transform[6] = { NULL };
  transform[0] = horizontal ? turned : straight;
  transform[4] = vertical ? turned : straight;
  if (horizontal) transform[2] = e_mul(e, flips, flow_express_number(e, x, (double)(x->shape[2] - 1)));
  if (vertical) transform[5] = e_mul(e, flips, flow_express_number(e, x, (double)(x->shape[1] - 1)));
  return flow_images_sample(e, x, transform, &attributes);
}

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count;
  return flow_images_change_in_training(context, layer, inputs[0], training, flip, out);
}

const flow_layer_class flow_layer_random_flip = {
  .name = "RandomFlip",
  .positional = 3,
  .parameters = parameters,
  .trains_alone = 1,
  .call = call,
  .doc = "In training, half of the images mirrored."
};
