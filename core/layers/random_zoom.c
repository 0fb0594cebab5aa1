/* random_zoom.c: RandomZoom: in training, every image seen from nearer (a negative factor) or farther (a positive one), in height
 * and width alike unless width_factor is given. */
#include "layers/images.h"

static const flow_argument parameters[] = {
  { "height_factor", FLOW_NUMBERS, NULL, NULL },
  { "width_factor", FLOW_NUMBERS, "null", NULL },
  FLOW_IMAGE_SAMPLING,
  FLOW_LAYER_COMMON
};

/* Factors are in (-1, 1]: at -1 an image would be one point. */
static flow_status factor_of(const flow_layer *layer, const char *name, double range[2])
{
  FLOW_TRY(flow_images_factor(layer, name, -1, 1, range));
  if (range[0] > -1) return FLOW_OK;
  return flow_layer_fail(layer, "%s must be greater than -1, found %g", name, range[0]);
}

/* A record's check(). */
static flow_status check(flow_layer *layer)
{
  double range[2];
  FLOW_TRY(factor_of(layer, "height_factor", range));
  return flow_argument_is_null(layer->arguments, "width_factor") ? FLOW_OK : factor_of(layer, "width_factor", range);
}

/* size - 1 pixels are between the first and the last: what keeps the middle where it is. */
static flow_tensor *offset(flow_expression *e, flow_tensor *zoom, int64_t size)
{
  flow_tensor *middle = flow_express_number(e, zoom, (double)(size - 1) / 2);
  return e_sub(e, middle, e_mul(e, middle, zoom));
}

/* Factors for height and width, the same one where width_factor is not given; above 1 the image becomes smaller. */
static flow_tensor *zoom(flow_expression *e, flow_layer *layer, flow_tensor *x)
{
  double height[2], width[2];
  int same = flow_argument_is_null(layer->arguments, "width_factor");
  if ((e->status = factor_of(layer, "height_factor", height)) != FLOW_OK) return NULL;
  if (!same && (e->status = factor_of(layer, "width_factor", width)) != FLOW_OK) return NULL;
  flow_attributes attributes = flow_images_sampling(layer);
  flow_tensor *rows = flow_images_uniform(e, layer, x, 1 + height[0], 1 + height[1]);
  flow_tensor *columns = same ? rows : flow_images_uniform(e, layer, x, 1 + width[0], 1 + width[1]);
  if (e->status != FLOW_OK) return NULL;
  flow_tensor *right = offset(e, columns, x->shape[2]), *down = offset(e, rows, x->shape[1]);
  flow_tensor *transform[6] = { columns, NULL, right, NULL, rows, down };
  return flow_images_sample(e, x, transform, &attributes);
}

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count;
  return flow_images_change_in_training(context, layer, inputs[0], training, zoom, out);
}

const flow_layer_class flow_layer_random_zoom = {
  .name = "RandomZoom",
  .positional = 7,
  .parameters = parameters,
  .trains_alone = 1,
  .call = call,
  .check = check,
  .doc = "In training, every image seen from nearer or farther."
};
