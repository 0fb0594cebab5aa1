/* up_sampling2d.c: UpSampling2D: images size times as high and wide, in the dtype of the input; "nearest" repeats rows and columns. */
#include <string.h>

#include "layers/images.h"

static const flow_argument parameters[] = {
  { "size", FLOW_PAIR, "2,2", ">0" },
  FLOW_IMAGE_DATA_FORMAT,
  { "interpolation", FLOW_TEXT, "nearest", "nearest|bilinear|bicubic|lanczos3|lanczos5" },
  FLOW_LAYER_COMMON
};

/* Products are checked against int32, which the op's attributes have. */
static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  flow_signature input = flow_signature_of(inputs[0]);
  int32_t size[2];
  int64_t height, width;
  flow_argument_pair(layer->arguments, "size", size);
  FLOW_TRY(flow_layer_check_rank(layer, &input, 4, "{batch, height, width, channels}",
                                 input.rank < 4 ? "did you mean to put it before Flatten?" : NULL));
  FLOW_TRY(flow_images_check(layer, inputs[0]));
  if (__builtin_mul_overflow(input.dims[1], size[0], &height) || __builtin_mul_overflow(input.dims[2], size[1], &width) ||
      height > INT32_MAX || width > INT32_MAX)
    return flow_layer_fail(layer, "the input %s %d times as high and %d times as wide is too large", flow_tensor_shape_text(inputs[0]),
                           size[0], size[1]);
  flow_expression e = flow_expression_of(context);
  int interpolation = flow_images_interpolation(flow_argument_text(layer->arguments, "interpolation"));
  flow_tensor *y = flow_images_resize(&e, flow_images_batch(&e, inputs[0], 1), height, width, interpolation, 0);
  return flow_expression_take(&e, y ? flow_images_in_dtype(&e, y, inputs[0]->dtype) : NULL, out);
}

const flow_layer_class flow_layer_up_sampling2d = {
  .name = "UpSampling2D", .positional = 3, .parameters = parameters, .call = call, .doc = "Images size times as high and wide."
};
