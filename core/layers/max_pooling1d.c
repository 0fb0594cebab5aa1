/* max_pooling1d.c: MaxPooling1D: the largest value of each window of steps; padding never wins. {batch, steps, features} to {batch, new
 * steps, features}: the op over images, on images of one row (pooling.c). */
#include "layers/pooling.h"

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  return flow_pooling_call(context, layer, FLOW_OP_max_pool, inputs[0], out);
}

const flow_layer_class flow_layer_max_pooling1d = {
  .name = "MaxPooling1D",
  .alias = "MaxPool1D",
  .positional = 4,
  .parameters = flow_pooling_steps_parameters,
  .call = call,
  .check = flow_pooling_check,
  .doc = "The largest value of each window of steps."
};
