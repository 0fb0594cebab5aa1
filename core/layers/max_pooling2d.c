/* max_pooling2d.c: MaxPooling2D: the largest value of each window of an image; padding never wins. {batch, height, width, channels},
 * each channel by itself; pooling.c has all but the op. */
#include "layers/pooling.h"

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  return flow_pooling_call(context, layer, FLOW_OP_max_pool, inputs[0], out);
}

const flow_layer_class flow_layer_max_pooling2d = {
  .name = "MaxPooling2D",
  .alias = "MaxPool2D",
  .positional = 4,
  .parameters = flow_pooling_parameters,
  .call = call,
  .check = flow_pooling_check,
  .doc = "The largest value of each window of height and width."
};
