/* center_crop.c: CenterCrop: the middle of every image; of an image that is smaller, the middle part of the same aspect ratio,
 * enlarged. */
#include "layers/images.h"

static const flow_argument parameters[] = {
  { "height", FLOW_INTEGER, NULL, ">0" }, { "width", FLOW_INTEGER, NULL, ">0" }, FLOW_IMAGE_DATA_FORMAT, FLOW_LAYER_COMMON
};

/* An odd row or column that is left over is at the bottom or the right, as in Keras. */
static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  int64_t height = flow_argument_integer(layer->arguments, "height"), width = flow_argument_integer(layer->arguments, "width");
  FLOW_TRY(flow_images_check(layer, inputs[0]));
  flow_expression e = flow_expression_of(context);
  flow_tensor *x = flow_images_batch(&e, inputs[0], 1), *y;
  if (x && x->shape[1] >= height && x->shape[2] >= width) {
    y = flow_images_crop(&e, x, (x->shape[1] - height) / 2, (x->shape[2] - width) / 2, height, width);
  } else {
    y = flow_images_crop_to_aspect(&e, x, height, width);
    y = flow_images_resize(&e, y, height, width, FLOW_BILINEAR, 0);
  }
  return flow_expression_take(&e, flow_images_like_input(&e, y, inputs[0]), out);
}

const flow_layer_class flow_layer_center_crop = {
  .name = "CenterCrop",
  .positional = 3,
  .parameters = parameters,
  .call = call,
  .doc = "The middle of every image, height by width; smaller images are enlarged."
};
