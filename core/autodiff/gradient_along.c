/* gradient_along.c: derivatives of ops along one axis. */
#include "autodiff/apply.h"
#include "autodiff/gradients.h"
#include "ops/rules.h"

/* Element i is in the sums from its own on: the gradient is summed from the other end. */
flow_status flow_gradient_cumsum(flow_gradient_step *step)
{
  if (step->output_gradients[0] == NULL || !step->needed[0] || !flow_dtype_is_float(step->inputs[0]->dtype)) return FLOW_OK;
  flow_attributes back = *step->attributes;
  back.along.reverse = !back.along.reverse;
  return flow_apply1(step->context, FLOW_OP_cumsum, step->output_gradients[0], NULL, NULL, &back, &step->input_gradients[0]);
}

/* Adds each element of g to where it was taken from; `size` is that of the axis, which g does not have. */
flow_status flow_gradient_take_along(flow_gradient_step *step)
{
  const flow_tensor *x = step->inputs[0];
  if (step->output_gradients[0] == NULL || !step->needed[0] || !flow_dtype_is_float(x->dtype)) return FLOW_OK;
  flow_attributes back = *step->attributes;
  back.along.size = x->shape[back.along.axis < 0 ? back.along.axis + x->rank : back.along.axis];
  return flow_apply1(step->context, FLOW_OP_take_along_gradient, step->output_gradients[0], step->inputs[1], NULL, &back,
                     &step->input_gradients[0]);
}

flow_status flow_gradient_take_along_gradient(flow_gradient_step *step)
{
  if (step->output_gradients[0] == NULL || !step->needed[0]) return FLOW_OK;
  return flow_apply1(step->context, FLOW_OP_take_along, step->output_gradients[0], step->inputs[1], NULL, step->attributes,
                     &step->input_gradients[0]);
}
