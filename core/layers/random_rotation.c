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
static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count;
  const double turn = 2 * 3.14159265358979323846;
  double range[2];
  FLOW_TRY(flow_images_factor(layer, "factor", -1, 1, range));
  FLOW_TRY(flow_images_check(layer, inputs[0]));
  flow_expression e = flow_expression_of(context);
  flow_tensor *x = flow_images_batch(&e, inputs[0], 1);
  if (training && x) {
    flow_attributes attributes = flow_images_sampling(layer);
    flow_tensor *angle = flow_images_uniform(&e, layer, x, range[0] * turn, range[1] * turn);
    flow_tensor *cosine = e_cos(&e, angle), *sine = e_sin(&e, angle);
    flow_tensor *column = flow_express_number(&e, x, (double)(x->shape[2] - 1) / 2);
    flow_tensor *row = flow_express_number(&e, x, (double)(x->shape[1] - 1) / 2);
    /* (column, row) - turned (column, row): what keeps the centre where it is. */
    flow_tensor *right = e_add(&e, e_sub(&e, column, e_mul(&e, column, cosine)), e_mul(&e, row, sine));
    flow_tensor *down = e_sub(&e, e_sub(&e, row, e_mul(&e, column, sine)), e_mul(&e, row, cosine));
    flow_tensor *transform[6] = { cosine, e_neg(&e, sine), right, sine, cosine, down };
    x = flow_images_sample(&e, x, transform, &attributes);
  }
  return flow_expression_take(&e, flow_images_like_input(&e, x, inputs[0]), out);
}

const flow_layer_class flow_layer_random_rotation = {
  .name = "RandomRotation",
  .positional = 6,
  .parameters = parameters,
  .min_inputs = 1,
  .max_inputs = 1,
  .trains_alone = 1,
  .call = call,
  .check = check,
  .doc = "In training, every image turned by a random share of a full turn."
};
