/* average_pooling2d.c: AveragePooling2D: the mean of each window of an image; padding neither adds nor counts. {batch, height, width,
 * channels}, each channel by itself; pooling.c has all but the op. */
#include "layers/pooling.h"

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  return flow_pooling_call(context, layer, FLOW_OP_average_pool, inputs[0], out);
}

const flow_layer_class flow_layer_average_pooling2d = {
  .name = "AveragePooling2D",
  .alias = "AvgPool2D",
  .positional = 4,
  .parameters = flow_pooling_parameters,
  .call = call,
  .check = flow_pooling_check,
  .doc = "The mean of each window of height and width; padding does not count."
};
