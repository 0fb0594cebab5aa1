/* norm_axes.c: see norm_axes.h. An axis is refused if it is the batch, since the samples of a batch have nothing to do with each other,
 * or if it is named twice; bit i of `seen` stands for axis i, of which there are at most FLOW_MAX_RANK. */
#include "layers/norm_axes.h"
#include "tensor/axis.h"

flow_status flow_norm_axes(const flow_layer *layer, const flow_signature *input, flow_attributes *reduce)
{
  const double *axes;
  int count = flow_argument_list(layer->arguments, "axis", &axes);
  unsigned seen = 1;                     /* the batch's: its samples have nothing to do with each other */
  *reduce = (flow_attributes){ .reduce = { .keepdims = 1 } };
  for (int i = 0; i < count; i++) {
    int axis = flow_axis_of(axes[i], input->rank);
    if (axis < 0 || axis >= input->rank || (seen >> axis & 1))
      return flow_layer_fail(layer,
                             "axis %d (counted from 1) of the input %s cannot be normalized: expected each axis once, and not "
                             "the batch",
                             flow_axis_number(flow_axis_given(axes[i])), flow_shape_text(input->rank, input->dims));
    seen |= 1u << axis;
    reduce->reduce.axes[reduce->reduce.count++] = axis;
  }
  return count > 0 ? FLOW_OK : flow_layer_fail(layer, "axis is empty, expected one axis or more");
}

flow_status flow_norm_shape(const flow_layer *layer, const flow_signature *input, flow_attributes *reduce, int64_t dims[FLOW_MAX_RANK])
{
  FLOW_TRY(flow_norm_axes(layer, input, reduce));
  for (int i = 0; i < input->rank; i++) dims[i] = 1;
  for (int i = 0; i < reduce->reduce.count; i++) {
    int axis = reduce->reduce.axes[i];
    if (input->dims[axis] < 1)
      return flow_layer_fail(layer, "axis %d (counted from 1) of the input %s must have a known size", flow_axis_number(axis),
                             flow_shape_text(input->rank, input->dims));
    FLOW_TRY(flow_layer_check_built(layer, input, axis));
    dims[axis] = input->dims[axis];
  }
  return FLOW_OK;
}

/* The last axes, which are side by side in memory, have an op. */
static int are_last(const flow_attributes *reduce, int rank)
{
  for (int i = 0; i < reduce->reduce.count; i++)
    if (reduce->reduce.axes[i] != rank - reduce->reduce.count + i) return 0;
  return 1;
}

flow_tensor *flow_norm_express(flow_expression *e, const flow_layer *layer, flow_tensor *x, const flow_attributes *reduce, int uncentered)
{
  double epsilon = flow_argument_number(layer->arguments, "epsilon");
  if (!x) return NULL;
  if (are_last(reduce, x->rank)) {
    flow_attributes attributes = { .normalization = { .epsilon = epsilon, .axis = -reduce->reduce.count, .uncentered = uncentered } };
    flow_tensor *results[2];
    flow_express_all(e, FLOW_OP_normalize, &x, 1, &attributes, results);
    return results[0];
  }
  if (!uncentered) x = e_sub(e, x, flow_express_mean_over(e, x, reduce));
  flow_tensor *variance = x ? flow_express_mean_over(e, e_square(e, x), reduce) : NULL;
  if (variance) variance = e_add(e, variance, flow_express_number(e, variance, epsilon));
  return e_mul(e, x, flow_express(e, FLOW_OP_rsqrt, variance, NULL, NULL, NULL));
}

flow_status flow_layer_check_epsilon(flow_layer *layer)
{
  double epsilon = flow_argument_number(layer->arguments, "epsilon");
  return epsilon >= 0 ? FLOW_OK : flow_layer_fail(layer, "epsilon must be 0 or greater, found %.15g", epsilon);
}
