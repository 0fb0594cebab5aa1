/* resizing.c: Resizing: images in another height and width: distorted, or cut or padded to keep their aspect ratio. Integer
 * images are rounded and saturated back to their dtype. */
#include "layers/images.h"

static const flow_argument parameters[] = {
  { "height", FLOW_INTEGER, NULL, ">0" },
  { "width", FLOW_INTEGER, NULL, ">0" },
  { "interpolation", FLOW_TEXT, "bilinear", "nearest|bilinear|bicubic|lanczos3|lanczos5" },
  { "crop_to_aspect_ratio", FLOW_BOOLEAN, "false", NULL },
  { "pad_to_aspect_ratio", FLOW_BOOLEAN, "false", NULL },
  { "fill_mode", FLOW_TEXT, "constant", "constant" },
  { "fill_value", FLOW_NUMBER, "0", NULL },
  { "antialias", FLOW_BOOLEAN, "false", NULL },
  FLOW_IMAGE_DATA_FORMAT,
  FLOW_LAYER_COMMON
};

/* A record's check(). */
static flow_status check(flow_layer *layer)
{
  if (flow_argument_boolean(layer->arguments, "crop_to_aspect_ratio") && flow_argument_boolean(layer->arguments, "pad_to_aspect_ratio"))
    return flow_layer_fail(layer, "only one of crop_to_aspect_ratio and pad_to_aspect_ratio can be true");
  return FLOW_OK;
}

/* Equal margins of fill_value above and below, or left and right, until the aspect ratio is height : width. */
static flow_tensor *pad_to_aspect(flow_expression *e, flow_tensor *x, int64_t height, int64_t width, double fill)
{
  if (!x) return NULL;
  int64_t tall = (int64_t)((float)(x->shape[2] * height) / (float)width), wide = (int64_t)((float)(x->shape[1] * width) / (float)height);
  int64_t top = tall > x->shape[1] ? (tall - x->shape[1]) / 2 : 0, left = wide > x->shape[2] ? (wide - x->shape[2]) / 2 : 0;
  if (top == 0 && left == 0) return x;
  flow_attributes attributes = { .slice = { .rank = 4, .begin = { 0, top, left, 0 },
                                            .end = { INT64_MAX / 2, top + x->shape[1], left + x->shape[2], INT64_MAX / 2 },
                                            .step = { 1, 1, 1, 1 },
                                            .dims = { x->shape[0], x->shape[1] + 2 * top, x->shape[2] + 2 * left, x->shape[3] } } };
  flow_tensor *padded = flow_express(e, FLOW_OP_slice_gradient, x, NULL, NULL, &attributes);
  if (fill == 0 || !padded) return padded;
  /* Ones in the place of one image's pixels say where the margins are: pixels keep their bits, whatever the fill value is. */
  flow_attributes one_image = { .shape = { .rank = 4, .dims = { 1, x->shape[1], x->shape[2], 1 } } };
  attributes.slice.dims[0] = attributes.slice.dims[3] = 1;
  flow_tensor *ones = flow_express(e, FLOW_OP_broadcast_to, flow_express_number(e, x, 1), NULL, NULL, &one_image);
  flow_tensor *inside = flow_express(e, FLOW_OP_slice_gradient, ones, NULL, NULL, &attributes);
  if (!inside) return NULL;
  return e_where(e, e_gt(e, inside, flow_express_number(e, inside, 0)), padded, flow_express_number(e, padded, fill));
}

/* Crops or pads to the new aspect ratio first, if asked to. */
static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  int64_t height = flow_argument_integer(layer->arguments, "height"), width = flow_argument_integer(layer->arguments, "width");
  int dtype = inputs[0]->dtype, interpolation = flow_images_interpolation(flow_argument_text(layer->arguments, "interpolation"));
  FLOW_TRY(flow_images_check(layer, inputs[0]));
  flow_expression e = flow_expression_of(context);
  flow_tensor *x = flow_images_batch(&e, inputs[0], 1);
  if (flow_argument_boolean(layer->arguments, "crop_to_aspect_ratio")) x = flow_images_crop_to_aspect(&e, x, height, width);
  if (flow_argument_boolean(layer->arguments, "pad_to_aspect_ratio"))
    x = pad_to_aspect(&e, x, height, width, flow_argument_number(layer->arguments, "fill_value"));
  flow_tensor *y = flow_images_resize(&e, x, height, width, interpolation, flow_argument_boolean(layer->arguments, "antialias"));
  if (y) y = flow_images_in_dtype(&e, y, dtype);
  return flow_expression_take(&e, flow_images_like_input(&e, y, inputs[0]), out);
}

const flow_layer_class flow_layer_resizing = {
  .name = "Resizing", .positional = 9, .parameters = parameters, .call = call, .check = check, .doc = "Images in another height and width."
};
