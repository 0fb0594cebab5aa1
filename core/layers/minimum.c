/* minimum.c: Minimum: the smallest of several inputs, broadcast per sample as in Keras; what a mask leaves out of an input does not take
 * part (merge.h). Of equal values the gradient goes to the earlier input. */
#include "layers/merge.h"

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)training;
  return flow_merge_call(context, layer, inputs, count, FLOW_OP_minimum, "compared", out);
}

const flow_layer_class flow_layer_minimum = {
  .name = "Minimum", FLOW_MERGE_LAYER, .doc = "The smallest of a list of inputs, element by element."
};
