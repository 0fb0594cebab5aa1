/* global_max_pooling2d.c: GlobalMaxPooling2D: the largest value over height and width. */
#include "layers/pooling.h"
#include "autodiff/apply.h"

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  flow_attributes attributes;
  FLOW_TRY(flow_pooling_global(layer, inputs[0], &attributes));
  return flow_apply1(context, FLOW_OP_max, inputs[0], NULL, NULL, &attributes, out);
}

const flow_layer_class flow_layer_global_max_pooling2d = {
  .name = "GlobalMaxPooling2D",
  .alias = "GlobalMaxPool2D",
  .positional = 2,
  .parameters = flow_pooling_global_parameters,
  .call = call,
  .doc = "The largest value of each channel over height and width."
};
