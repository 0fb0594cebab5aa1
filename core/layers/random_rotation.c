/* random_rotation.c: RandomRotation: in training, every image turned about its centre by an angle drawn for it. */
#include "layers/images.h"

static const flow_argument parameters[] = {
  { "factor", FLOW_NUMBERS, NULL, NULL },
  FLOW_IMAGE_SAMPLING,
  FLOW_LAYER_COMMON
};

static flow_status check(flow_layer *layer)
{
  double range[2];
  return flow_images_factor(layer, "factor", -1, 1, range);
}

/* An angle for each image, in turns; the transform leads from pixels of the result to pixels of the image, around its centre. */
static flow_tensor *rotate(flow_expression *e, flow_layer *layer, flow_tensor *x)
{
  const double turn = 2 * 3.14159265358979323846;
  double range[2];
  if ((e->status = flow_images_factor(layer, "factor", -1, 1, range)) != FLOW_OK) return NULL;
  flow_attributes attributes = flow_images_sampling(layer);
  flow_tensor *angle = flow_images_uniform(e, layer, x, range[0] * turn, range[1] * turn);
  flow_tensor *cosine = e_cos(e, angle), *sine = e_sin(e, angle);
  flow_tensor *column = flow_express_number(e, x, (double)(x->shape[2] - 1) / 2);
  flow_tensor *row = flow_express_number(e, x, (double)(x->shape[1] - 1) / 2);
  /* (column, row) - turned (column, row): what keeps the centre where it is. */
  flow_tensor *right = e_add(e, e_sub(e, column, e_mul(e, column, cosine)), e_mul(e, row, sine));
  flow_tensor *down = e_sub(e, e_sub(e, row, e_mul(e, column, sine)), e_mul(e, row, cosine));
  flow_tensor *transform[6] = { cosine, e_neg(e, sine), right, sine, cosine, down };
  return flow_images_sample(e, x, transform, &attributes);
}

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count;
  return flow_images_change_in_training(context, layer, inputs[0], training, rotate, out);
}

const flow_layer_class flow_layer_random_rotation = {
  .name = "RandomRotation",
  .positional = 6,
  .parameters = parameters,
  .trains_alone = 1,
  .call = call,
  .check = check,
  .doc = "In training, every image turned by a random share of a full turn."
};
