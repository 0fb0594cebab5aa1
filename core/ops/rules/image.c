/* image.c: rules of what resizes and samples images, linear in the image both, and of random numbers of a sample. */
#include <math.h>

#include "ops/expression.h"
#include "ops/rules.h"

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

enum { MOST_PIXELS = 1 << 24 }; /* along an axis: up to here a float counts them exactly */

/* Sizes must be known: weights and taps are computed from them before any row is there. */
static flow_status check_image(int op, const char *what, const flow_signature *x)
{
  FLOW_TRY(flow_rule_float(op, what, x));
  FLOW_TRY(flow_rule_rank(op, what, x, 4, "{batch, height, width, channels}"));
  for (int axis = 1; axis < 4; axis++) {
    if (x->dims[axis] < 0) {
      return flow_rule_fail(op, "%s is %s: height, width and channels may not depend on the number of rows", what,
                            flow_shape_text(4, x->dims));
    }
  }
  if (x->dims[1] < 1 || x->dims[2] < 1 || x->dims[1] > MOST_PIXELS || x->dims[2] > MOST_PIXELS) {
    return flow_rule_fail(op, "%s is %s, expected a height and width from 1 to %d", what, flow_shape_text(4, x->dims), MOST_PIXELS);
  }
  return FLOW_OK;
}

static flow_status check_size(int op, const char *what, const int32_t size[2])
{
  if (size[0] >= 1 && size[1] >= 1 && size[0] <= MOST_PIXELS && size[1] <= MOST_PIXELS) return FLOW_OK;
  return flow_rule_fail(op, "%s is %d by %d, expected a height and width from 1 to %d", what, size[0], size[1], MOST_PIXELS);
}

/* `last`: the last of flow_interpolation that the op knows. */
static flow_status check_interpolation(int op, int interpolation, int last)
{
  if (interpolation >= FLOW_NEAREST && interpolation <= last) return FLOW_OK;
  return flow_rule_fail(op, "there is no interpolation %d; the numbers are %d to %d", interpolation, FLOW_NEAREST, last);
}

/* x with other height and width. */
static flow_status resized(int op, const flow_signature *x, const int32_t size[2], flow_signature *y)
{
  flow_extent extent;
  *y = *x;
  y->dims[1] = size[0];
  y->dims[2] = size[1];
  return flow_rule_extent(op, 4, y->dims, &extent);
}

/* x {n, h, w, c}: {n, resize.size, c}. */
flow_status flow_shape_resize(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                              flow_signature *outputs)
{
  (void)input_count;
  FLOW_TRY(check_image(op, "the input", &inputs[0]));
  FLOW_TRY(check_size(op, "the new size", attributes->resize.size));
  FLOW_TRY(check_interpolation(op, attributes->resize.interpolation, FLOW_LANCZOS5));
  return resized(op, &inputs[0], attributes->resize.size, &outputs[0]);
}

/* g {n, resize.size, c}: dx {n, resize.input_size, c}. */
flow_status flow_shape_resize_gradient(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                       flow_signature *outputs)
{
  (void)input_count;
  FLOW_TRY(check_image(op, "the gradient", &inputs[0]));
  FLOW_TRY(check_size(op, "the input size", attributes->resize.input_size));
  FLOW_TRY(check_interpolation(op, attributes->resize.interpolation, FLOW_LANCZOS5));
  const int64_t expected[4] = { inputs[0].dims[0], attributes->resize.size[0], attributes->resize.size[1], inputs[0].dims[3] };
  FLOW_TRY(flow_rule_dims(op, "the gradient", &inputs[0], 4, expected));
  return resized(op, &inputs[0], attributes->resize.input_size, &outputs[0]);
}

/* Eight numbers for each image: the transform from output to input pixels (ops.def). */
flow_status flow_shape_sample_image(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                    flow_signature *outputs)
{
  (void)input_count;
  FLOW_TRY(check_image(op, op == FLOW_OP_sample_image ? "the input" : "the gradient", &inputs[0]));
  FLOW_TRY(check_interpolation(op, attributes->sampling.interpolation, FLOW_BILINEAR));
  int mode = attributes->sampling.fill_mode;
  if (mode < FLOW_FILL_REFLECT || mode > FLOW_FILL_NEAREST)
    return flow_rule_fail(op, "there is no fill mode %d; the numbers are %d to %d", mode, FLOW_FILL_REFLECT, FLOW_FILL_NEAREST);
  const int64_t expected[2] = { inputs[0].dims[0], 8 };
  FLOW_TRY(flow_rule_dims(op, "the transforms", &inputs[1], 2, expected));
  outputs[0] = inputs[0];
  return FLOW_OK;
}

/* The input gives the rows only; its values are not read. */
flow_status flow_shape_sample_uniform(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                      flow_signature *outputs)
{
  (void)input_count;
  double low = attributes->random.low, high = attributes->random.high;
  if (inputs[0].rank < 1) return flow_rule_fail(op, "the input is a scalar, expected a batch");
  if (!isfinite(low) || !isfinite(high) || low > high) {
    return flow_rule_fail(op, "the range is %g to %g, expected the lower end first", low, high);
  }
  if (!isfinite(high - low)) return flow_rule_fail(op, "the range %g to %g is wider than a double can count", low, high);
  if (attributes->random.rank != 1 || attributes->random.dims[0] < 1) return flow_rule_fail(op, "expected one or more numbers a sample");
  const int64_t dims[2] = { inputs[0].dims[0], attributes->random.dims[0] };
  return flow_rule_given_shape(op, FLOW_FLOAT32, 2, dims, &outputs[0]);
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

/* The gradient op needs the size of the image, which g does not have. */
flow_status flow_gradient_resize(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0], *x = step->inputs[0];
  if (g == NULL || !step->needed[0]) return FLOW_OK;
  flow_attributes attributes = *step->attributes;
  for (int i = 0; i < 2; i++) attributes.resize.input_size[i] = (int32_t)x->shape[i + 1];
  return flow_gradient_by(step, 0, FLOW_OP_resize_gradient, g, NULL, NULL, &attributes);
}

/* The transpose of the transpose. */
flow_status flow_gradient_resize_gradient(flow_gradient_step *step)
{
  flow_tensor *u = step->output_gradients[0];
  if (u == NULL || !step->needed[0]) return FLOW_OK;
  return flow_gradient_by(step, 0, FLOW_OP_resize, u, NULL, NULL, step->attributes);
}

/* The image's only: the transforms are random numbers, which are not trained. */
flow_status flow_gradient_sample_image(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0];
  if (g == NULL) return FLOW_OK;
  if (step->needed[1]) return flow_fail(FLOW_UNSUPPORTED, "sample_image: gradients of the transforms are not supported");
  if (!step->needed[0]) return FLOW_OK;
  return flow_gradient_by(step, 0, FLOW_OP_sample_image_gradient, g, step->inputs[1], NULL, step->attributes);
}

/* The transpose of the transpose: the image between pixels, with 0 where sample_image has the number that fills. */
flow_status flow_gradient_sample_image_gradient(flow_gradient_step *step)
{
  flow_tensor *u = step->output_gradients[0];
  if (u == NULL) return FLOW_OK;
  if (step->needed[1]) return flow_fail(FLOW_UNSUPPORTED, "sample_image_gradient: gradients of the transforms are not supported");
  if (!step->needed[0]) return FLOW_OK;
  flow_attributes attributes = *step->attributes;
  attributes.sampling.fill_value = 0;
  return flow_gradient_by(step, 0, FLOW_OP_sample_image, u, step->inputs[1], NULL, &attributes);
}
