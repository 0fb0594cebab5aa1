/* along.c: rules of ops along one axis, along.axis, counted from either end: argsort, cumsum, take_along. argsort has no gradient: its
 * positions are integers. All stay within a row unless the axis is that of the rows (flow_kind_axis). */
#include "ops/expression.h"
#include "ops/rules.h"

/* The dtype stays, also of small integers, whose sums wrap; NumPy widens them. */
flow_status flow_shape_cumsum(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                              flow_signature *outputs)
{
  (void)input_count;
  int axis;
  if (inputs[0].rank == 0) return flow_rule_fail(op, "a single number has no axis; reshape it to {1} first");
  if (inputs[0].dtype == FLOW_BOOL) return flow_rule_fail(op, "the input is bool, expected numbers; cast it first");
  FLOW_TRY(flow_rule_axis(op, attributes->along.axis, &inputs[0], &axis));
  outputs[0] = inputs[0];
  return FLOW_OK;
}

/* int64 positions along along.axis, all of them or the first along.size. */
flow_status flow_shape_argsort(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                               flow_signature *outputs)
{
  (void)input_count;
  int axis;
  if (inputs[0].rank == 0) return flow_rule_fail(op, "a single number has no axis; reshape it to {1} first");
  FLOW_TRY(flow_rule_axis(op, attributes->along.axis, &inputs[0], &axis));
  outputs[0] = inputs[0];
  outputs[0].dtype = FLOW_INT64;
  int64_t size = attributes->along.size, n = inputs[0].dims[axis];
  if (size == 0) return FLOW_OK;
  if (size < 0 || size > n)
    return flow_rule_fail(op, "along.size is %lld, expected 0 or at most the elements of axis %d of shape %s", (long long)size, axis + 1,
                          flow_shape_text(inputs[0].rank, inputs[0].dims));
  outputs[0].dims[axis] = size;
  return FLOW_OK;
}

/* x and integer indices have one shape, but along the axis, whose number goes to *axis, from 0. Values of indices are data, which kernels
 * check. */
static flow_status check_indices(int op, const flow_attributes *attributes, const flow_signature *x, const flow_signature *indices,
                                 int *axis)
{
  if (!flow_dtype_is_integer(indices->dtype))
    return flow_rule_fail(op, "the indices are %s, expected integers", flow_dtype_name(indices->dtype));
  if (x->rank == 0) return flow_rule_fail(op, "a single number has no axis; reshape it to {1} first");
  FLOW_TRY(flow_rule_axis(op, attributes->along.axis, x, axis));
  int fits = x->rank == indices->rank;
  for (int i = 0; fits && i < x->rank; i++) fits = i == *axis || x->dims[i] == indices->dims[i];
  if (fits) return FLOW_OK;
  return flow_rule_fail(op, "the indices have shape %s, expected that of the elements, %s, but along axis %d",
                        flow_shape_text(indices->rank, indices->dims), flow_shape_text(x->rank, x->dims), *axis + 1);
}

/* x and integer indices that differ along along.axis at most: elements of x, as many as indices. */
flow_status flow_shape_take_along(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                  flow_signature *outputs)
{
  (void)input_count;
  int axis;
  FLOW_TRY(check_indices(op, attributes, &inputs[0], &inputs[1], &axis));
  if (inputs[0].dims[axis] < 0 && inputs[0].dims[axis] != inputs[1].dims[axis])
    return flow_rule_fail(op, "the number of rows is not known while tracing, so that rows cannot be taken from %s",
                          flow_shape_text(inputs[0].rank, inputs[0].dims));
  outputs[0] = inputs[1];
  outputs[0].dtype = inputs[0].dtype;
  return FLOW_OK;
}

/* g and indices of one shape: the gradient of x, along.size long along the axis. */
flow_status flow_shape_take_along_gradient(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                           flow_signature *outputs)
{
  (void)input_count;
  int axis;
  flow_extent extent;
  FLOW_TRY(flow_rule_float(op, "the gradient", &inputs[0]));
  FLOW_TRY(check_indices(op, attributes, &inputs[0], &inputs[1], &axis));
  FLOW_TRY(flow_rule_dims(op, "the gradient", &inputs[0], inputs[1].rank, inputs[1].dims));
  outputs[0] = inputs[0];
  outputs[0].dims[axis] = attributes->along.size; /* negative along the rows of a trace; flow_apply refuses that outside of one */
  return flow_rule_extent(op, outputs[0].rank, outputs[0].dims, &extent);
}

/* Softmax and others along one axis: across rows only if that is axis 0, counted from either end. */
flow_batch_kind flow_kind_axis(const flow_attributes *attributes, const flow_signature *inputs, int input_count)
{
  (void)input_count;
  int axis = attributes->axis.axis;
  return axis == 0 || axis == -inputs[0].rank ? FLOW_WHOLE : FLOW_MAP;
}

/* Element i is in the sums from its own on: the gradient is summed from the other end. */
flow_status flow_gradient_cumsum(flow_gradient_step *step)
{
  if (step->output_gradients[0] == NULL || !step->needed[0] || !flow_dtype_is_float(step->inputs[0]->dtype)) return FLOW_OK;
  flow_attributes back = *step->attributes;
  back.along.reverse = !back.along.reverse;
  return flow_gradient_by(step, 0, FLOW_OP_cumsum, step->output_gradients[0], NULL, NULL, &back);
}

/* Adds each element of g to where it was taken from; `size` is that of the axis, which g does not have. */
flow_status flow_gradient_take_along(flow_gradient_step *step)
{
  const flow_tensor *x = step->inputs[0];
  if (step->output_gradients[0] == NULL || !step->needed[0] || !flow_dtype_is_float(x->dtype)) return FLOW_OK;
  flow_attributes back = *step->attributes;
  back.along.size = x->shape[back.along.axis < 0 ? back.along.axis + x->rank : back.along.axis];
  return flow_gradient_by(step, 0, FLOW_OP_take_along_gradient, step->output_gradients[0], step->inputs[1], NULL, &back);
}

/* It adds up what was taken, so what comes back is taken again. */
flow_status flow_gradient_take_along_gradient(flow_gradient_step *step)
{
  if (step->output_gradients[0] == NULL || !step->needed[0]) return FLOW_OK;
  return flow_gradient_by(step, 0, FLOW_OP_take_along, step->output_gradients[0], step->inputs[1], NULL, step->attributes);
}
