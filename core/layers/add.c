/* add.c: Add: the sum of several inputs, broadcast per sample as in Keras. Inputs are added from the first to the last, so that the bits
 * of the sum follow from their order. */
#include "layers/merge.h"

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)training;
  return flow_merge_call(context, layer, inputs, count, FLOW_OP_add, "added", out);
}

const flow_layer_class flow_layer_add = { .name = "Add", FLOW_MERGE_LAYER, .doc = "The sum of a list of inputs." };
