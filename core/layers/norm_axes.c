/* norm_axes.c: see norm_axes.h. */
#include "layers/norm_axes.h"
#include "tensor/axis.h"

flow_status flow_norm_axes(const flow_layer *layer, const flow_signature *input, flow_attributes *reduce)
{
  const double *axes;
  int count = flow_argument_list(layer->arguments, "axis", &axes);
  unsigned seen = 1;                     /* the batch's: its samples have nothing to do with each other */
  *reduce = (flow_attributes){ .reduce = { .keepdims = 1 } };
  for (int i = 0; i < count; i++) {
    int axis = (int)axes[i] < 0 ? (int)axes[i] + input->rank : (int)axes[i];
    if (axis < 0 || axis >= input->rank || (seen >> axis & 1))
      return flow_layer_fail(layer, "axis %d (counted from 1) of the input %s cannot be normalized: expected each axis once, and not "
                             "the batch", flow_axis_number((int)axes[i]), flow_shape_text(input->rank, input->dims));
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

flow_status flow_layer_check_epsilon(flow_layer *layer)
{
  double epsilon = flow_argument_number(layer->arguments, "epsilon");
  return epsilon >= 0 ? FLOW_OK : flow_layer_fail(layer, "epsilon must be 0 or greater, found %.15g", epsilon);
}
