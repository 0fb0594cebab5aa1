/* average.c: Average: the mean of several inputs, broadcast per sample as in Keras: their sum (merge.h), divided by their number. */
#include "layers/merge.h"

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)training;
  flow_tensor *sum;
  FLOW_TRY(flow_merge_call(context, layer, inputs, count, FLOW_OP_add, "averaged", &sum));
  flow_expression e = flow_expression_of(context);
  sum = flow_express_keep(&e, FLOW_OK, sum);
  return flow_expression_take(&e, e_div(&e, sum, flow_express_number(&e, sum, count)), out);
}

const flow_layer_class flow_layer_average = {
  .name = "Average", FLOW_MERGE_LAYER, .doc = "The mean of a list of inputs, element by element."
};
