/* global_average_pooling2d.c: GlobalAveragePooling2D: the mean over height and width. */
#include "layers/express.h"
#include "layers/layer.h"

static const flow_argument parameters[] = {
  { "data_format", FLOW_TEXT, "channels_last", "channels_last|!channels_first" },
  { "keepdims", FLOW_BOOLEAN, "false", NULL },
  FLOW_LAYER_COMMON
};

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  flow_signature input = flow_signature_of(inputs[0]);
  FLOW_TRY(flow_layer_check_rank(layer, &input, 4, "{batch, height, width, channels}",
                                 input.rank < 4 ? "did you mean to put it before Flatten?" : NULL));
  int keepdims = flow_argument_boolean(layer->arguments, "keepdims");
  flow_attributes attributes = { .reduce = { .count = 2, .keepdims = keepdims, .axes = { 1, 2 } } };
  return flow_mean(context, inputs[0], &attributes, out);
}

const flow_layer_class flow_layer_global_average_pooling2d = {
  .name = "GlobalAveragePooling2D", .alias = "GlobalAvgPool2D", .positional = 2, .parameters = parameters, .min_inputs = 1, .max_inputs = 1,
  .call = call,
  .doc = "The mean of each channel over height and width."
};
