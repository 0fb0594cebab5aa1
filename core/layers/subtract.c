/* subtract.c: Subtract: the first of two inputs less the second, broadcast per sample as in Keras. A list of exactly two. */
#include "layers/merge.h"

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)training;
  return flow_merge_call(context, layer, inputs, count, FLOW_OP_sub, "subtracted", out);
}

const flow_layer_class flow_layer_subtract = {
  .name = "Subtract", .positional = 0, .parameters = flow_merge_parameters, .min_inputs = 2, .max_inputs = 2, .call = call,
  .supports_masking = 1, .compute_mask = flow_merge_masks,
  .doc = "The first of two inputs less the second."
};
