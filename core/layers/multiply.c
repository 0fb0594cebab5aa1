/* multiply.c: Multiply: the product of several inputs, broadcast per sample as in Keras; what a mask leaves out of one of them is 1, and 0
 * where it is left out of all. */
#include "layers/merge.h"

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)training;
  return flow_merge_call(context, layer, inputs, count, FLOW_OP_mul, "multiplied", out);
}

const flow_layer_class flow_layer_multiply = {
  .name = "Multiply", FLOW_MERGE_LAYER, .doc = "The product of a list of inputs, element by element."
};
