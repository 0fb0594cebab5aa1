/* average.c: Average: the mean of several inputs, broadcast per sample as in Keras. */
#include "layers/merge.h"

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)training;
  flow_expression e = flow_expression_of(context);
  flow_tensor *result;
  FLOW_TRY(flow_merge(layer, &e, inputs, count, FLOW_OP_add, "averaged", &result));
  if (result) result = e_div(&e, result, flow_express_number(&e, result, count));
  return flow_expression_take(&e, result, out);
}

const flow_layer_class flow_layer_average = {
  .name = "Average", FLOW_MERGE_LAYER, .doc = "The mean of a list of inputs, element by element."
};
