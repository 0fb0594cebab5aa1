/* gradient_image.c: gradient rules of what resizes and samples images: both are linear in the image. */
#include "ops/rules.h"
#include "autodiff/gradients.h"
#include "autodiff/apply.h"

/* The gradient op needs the size of the image, which g does not have. */
flow_status flow_gradient_resize(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0], *x = step->inputs[0];
  if (g == NULL || !step->needed[0]) return FLOW_OK;
  flow_attributes attributes = *step->attributes;
  for (int i = 0; i < 2; i++) attributes.resize.input_size[i] = (int32_t)x->shape[i + 1];
  return flow_apply1(step->context, FLOW_OP_resize_gradient, g, NULL, NULL, &attributes, &step->input_gradients[0]);
}

/* The transpose of the transpose. */
flow_status flow_gradient_resize_gradient(flow_gradient_step *step)
{
  flow_tensor *u = step->output_gradients[0];
  if (u == NULL || !step->needed[0]) return FLOW_OK;
  return flow_apply1(step->context, FLOW_OP_resize, u, NULL, NULL, step->attributes, &step->input_gradients[0]);
}

/* The image's only: the transforms are random numbers, which are not trained. */
flow_status flow_gradient_sample_image(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0];
  if (g == NULL) return FLOW_OK;
  if (step->needed[1]) return flow_fail(FLOW_UNSUPPORTED, "sample_image: gradients of the transforms are not supported");
  if (!step->needed[0]) return FLOW_OK;
  return flow_apply1(step->context, FLOW_OP_sample_image_gradient, g, step->inputs[1], NULL, step->attributes, &step->input_gradients[0]);
}
