/* global_average_pooling2d.c: GlobalAveragePooling2D: the mean over height and width. */
#include "layers/pooling.h"

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  flow_attributes attributes;
  FLOW_TRY(flow_pooling_global(layer, inputs[0], &attributes));
  return flow_mean(context, inputs[0], &attributes, out);
}

const flow_layer_class flow_layer_global_average_pooling2d = {
  .name = "GlobalAveragePooling2D",
  .alias = "GlobalAvgPool2D",
  .positional = 2,
  .parameters = flow_pooling_global_parameters,
  .call = call,
  .doc = "The mean of each channel over height and width."
};
