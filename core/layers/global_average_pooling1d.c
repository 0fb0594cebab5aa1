/* global_average_pooling1d.c: GlobalAveragePooling1D: the mean over the steps of a sequence, {batch, steps, features}. */
#include "layers/pooling.h"

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  flow_attributes attributes;
  FLOW_TRY(flow_pooling_global_steps(layer, inputs[0], &attributes));
  return flow_mean(context, inputs[0], &attributes, out);
}

const flow_layer_class flow_layer_global_average_pooling1d = {
  .name = "GlobalAveragePooling1D", .alias = "GlobalAvgPool1D", .positional = 2, .parameters = flow_pooling_global_parameters,
  .min_inputs = 1, .max_inputs = 1, .call = call,
  .doc = "The mean of each feature over the steps."
};
