/* images.c: see images.h. Layers take one image {height, width, channels} or a batch; flow_images_batch makes a batch of one of the
 * former, and flow_images_like_input takes the axis away at the end. Random transforms are a matrix for each image, made of ops over {n,
 * 1}, and one op that samples under it (sample_image), so that they can be traced and run on devices. */
#include "layers/images.h"

#include <math.h>
#include <string.h>

flow_status flow_images_check(const flow_layer *layer, const flow_tensor *input)
{
  const char *text = flow_tensor_shape_text(input);
  if (input->rank != 3 && input->rank != 4)
    return flow_layer_fail(layer, "input has %d dimension%s %s, expected {height, width, channels} or {batch, height, width, channels}",
                           input->rank, input->rank == 1 ? "" : "s", text);
  for (int axis = input->rank - 3; axis < input->rank; axis++) {
    if (input->shape[axis] < 1)
      return flow_layer_fail(layer, "height, width and channels of the input %s must be known and positive", text);
  }
  return FLOW_OK;
}

flow_tensor *flow_images_batch(flow_expression *e, flow_tensor *input, int as_float)
{
  const int64_t *shape = input->shape;
  if (input->rank == 3) input = flow_express_reshape(e, input, 4, (const int64_t[]){ 1, shape[0], shape[1], shape[2] });
  return as_float && input && input->dtype != FLOW_FLOAT32 ? flow_express_cast(e, input, FLOW_FLOAT32) : input;
}

flow_tensor *flow_images_like_input(flow_expression *e, flow_tensor *result, const flow_tensor *input)
{
  return input->rank == 3 && result ? flow_express_reshape(e, result, 3, result->shape + 1) : result;
}

/* ---- parts and sizes ------------------------------------------------------------------------------------------------------------ */

/* The part lies within the image: callers have worked it out from its size. */
flow_tensor *flow_images_crop(flow_expression *e, flow_tensor *x, int64_t top, int64_t left, int64_t height, int64_t width)
{
  if (!x || (x->shape[1] == height && x->shape[2] == width)) return x;
  flow_attributes attributes = { .slice = { .rank = 4, .begin = { 0, top, left, 0 },
                                            .end = { INT64_MAX / 2, top + height, left + width, INT64_MAX / 2 }, .step = { 1, 1, 1, 1 } } };
  return flow_express(e, FLOW_OP_slice, x, NULL, NULL, &attributes);
}

static int64_t between(int64_t value, int64_t least, int64_t most) { return value < least ? least : value > most ? most : value; }

/* The largest part in the middle with the ratio height : width, computed in float32, as Keras does it, so that sizes are the same. */
flow_tensor *flow_images_crop_to_aspect(flow_expression *e, flow_tensor *x, int64_t height, int64_t width)
{
  if (!x) return NULL;
  int64_t crop_height = between((int64_t)((float)(x->shape[2] * height) / (float)width), 1, x->shape[1]);
  int64_t crop_width = between((int64_t)((float)(x->shape[1] * width) / (float)height), 1, x->shape[2]);
  return flow_images_crop(e, x, (x->shape[1] - crop_height) / 2, (x->shape[2] - crop_width) / 2, crop_height, crop_width);
}

/* Ends, since the name is one of the list. */
int flow_images_interpolation(const char *name)
{
  static const char *const names[] = { [FLOW_NEAREST] = "nearest", [FLOW_BILINEAR] = "bilinear", [FLOW_BICUBIC] = "bicubic",
                                       [FLOW_AREA] = "area", [FLOW_LANCZOS3] = "lanczos3", [FLOW_LANCZOS5] = "lanczos5" };
  int interpolation = 0;
  while (strcmp(names[interpolation], name) != 0) interpolation++;
  return interpolation;
}

/* height and width are at most INT32_MAX. x itself if it has that size. */
flow_tensor *flow_images_resize(flow_expression *e, flow_tensor *x, int64_t height, int64_t width, int interpolation, int antialias)
{
  if (!x || (x->shape[1] == height && x->shape[2] == width)) return x;
  flow_attributes attributes = { .resize = { .size = { (int32_t)height, (int32_t)width }, .interpolation = interpolation,
                                             .antialias = antialias } };
  return flow_express(e, FLOW_OP_resize, x, NULL, NULL, &attributes);
}

/* Integers are rounded, since a cast would cut them off; it saturates. */
flow_tensor *flow_images_in_dtype(flow_expression *e, flow_tensor *x, int dtype)
{
  if (!flow_dtype_is_float(dtype)) x = flow_express(e, FLOW_OP_round, x, NULL, NULL, NULL);
  return flow_express_cast(e, x, dtype);
}

/* ---- random transforms ------------------------------------------------------------------------------------------------------------ */

/* One number for each image of the batch. */
flow_tensor *flow_images_uniform(flow_expression *e, flow_layer *layer, flow_tensor *x, double low, double high)
{
  flow_layer_draws draws = flow_express_draw(e, layer);
  flow_attributes attributes = { .random = { .rank = 1, .dims = { 1 }, .low = low, .high = high } };
  attributes.random.stream = draws.stream;
  attributes.random.seed = draws.seed;
  attributes.random.own_seed = draws.own_seed;
  return flow_express(e, FLOW_OP_sample_uniform, x, NULL, NULL, &attributes);
}

/* transform: the first six of the eight coefficients of a projective transform, each {n, 1}; NULL: 0. */
flow_tensor *flow_images_sample(flow_expression *e, flow_tensor *x, flow_tensor *const transform[6], const flow_attributes *attributes)
{
  flow_tensor *columns[8] = { NULL }, *zero = NULL, *joined = NULL;
  for (int i = 0; i < 6; i++) {
    columns[i] = transform[i];
    if (!zero && columns[i]) zero = e_mul(e, columns[i], flow_express_number(e, columns[i], 0));
  }
  for (int i = 0; i < 8; i++) {
    if (!columns[i]) columns[i] = zero;
  }
  flow_attributes axis = { .axis = { 1 } };
  if (e->status == FLOW_OK) flow_express_all(e, FLOW_OP_concat, columns, 8, &axis, &joined);
  return flow_express(e, FLOW_OP_sample_image, x, joined, NULL, attributes);
}

flow_status flow_images_change_in_training(flow_context *context, flow_layer *layer, flow_tensor *input, int training,
                                           flow_images_change change, flow_tensor **out)
{
  FLOW_TRY(flow_images_check(layer, input));
  flow_expression e = flow_expression_of(context);
  flow_tensor *x = flow_images_batch(&e, input, 1);
  if (training && x) x = change(&e, layer, x);
  return flow_expression_take(&e, flow_images_like_input(&e, x, input), out);
}

flow_attributes flow_images_sampling(const flow_layer *layer)
{
  static const char *const modes[] = { "reflect", "wrap", "constant", "nearest" };
  flow_attributes attributes = { .sampling = { .fill_value = flow_argument_number(layer->arguments, "fill_value") } };
  const char *mode = flow_argument_text(layer->arguments, "fill_mode");
  while (strcmp(modes[attributes.sampling.fill_mode], mode) != 0) attributes.sampling.fill_mode++;
  int bilinear = strcmp(flow_argument_text(layer->arguments, "interpolation"), "bilinear") == 0;
  attributes.sampling.interpolation = bilinear ? FLOW_BILINEAR : FLOW_NEAREST;
  return attributes;
}

/* A record's check(), and once more in each call, which gives the range; both numbers are finite then. */
flow_status flow_images_factor(const flow_layer *layer, const char *name, double least, double most, double range[2])
{
  const double *values;
  int count = flow_argument_list(layer->arguments, name, &values);
  if (count == 1) {
    range[1] = fabs(values[0]);
    range[0] = -range[1] > least ? -range[1] : least;
  } else if (count == 2) {
    range[0] = fmin(values[0], values[1]);
    range[1] = fmax(values[0], values[1]);
  }
  int wrong = count < 1 || count > 2;
  for (int i = 0; i < count && !wrong; i++) wrong = !(values[i] >= least && values[i] <= most);
  if (wrong) return flow_layer_fail(layer, "%s must be a number or a list of two numbers from %g to %g", name, least, most);
  return FLOW_OK;
}
