/* conv2d.c: Conv2D: cross-correlation over height and width of {batch, height, width, channels}: {batch, new height, new width,
 * filters}; kernel {kh, kw, channels / groups, filters}, bias {filters}. Without padding ("valid") a size becomes floor((size - reach) /
 * stride) + 1, with "same" ceil(size / stride), where the extra cell of an odd padding is at the bottom and the right, as in TensorFlow. */
#include "layers/convolution.h"

static const flow_argument parameters[] = {
  { "filters", FLOW_INTEGER, NULL, ">0" },
  FLOW_CONVOLUTION_WINDOW,
  FLOW_LAYER_DATA_FORMAT,
  { "dilation_rate", FLOW_PAIR, "1,1", ">0" },
  { "groups", FLOW_INTEGER, "1", ">0" },
  FLOW_LAYER_KERNEL_AND_BIAS("kernel")
};

enum { KERNEL, BIAS };

flow_status flow_plain_convolution_check(flow_layer *layer)
{
  FLOW_TRY(flow_convolution_check_groups(layer));
  return flow_convolution_check(layer);
}

/* Of Conv1D and Conv2D. */
flow_status flow_plain_convolution_build(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs)
{
  (void)count;
  FLOW_TRY(flow_convolution_check_input(layer, inputs));
  int64_t channels, filters = flow_argument_integer(layer->arguments, "filters");
  FLOW_TRY(flow_convolution_group_channels(layer, inputs, &channels));
  int32_t window[2];
  flow_argument_pair(layer->arguments, "kernel_size", window);
  const int64_t shape[4] = { window[0], window[1], channels, filters };
  FLOW_TRY(flow_convolution_add_kernel(context, layer, KERNEL, "kernel", "kernel_initializer", shape));
  return flow_layer_add_bias(context, layer, BIAS, filters);
}

flow_status flow_plain_convolution_call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training,
                                        flow_tensor **out)
{
  (void)count; (void)training;
  return flow_convolution_call(context, layer, inputs[0], flow_argument_integer(layer->arguments, "groups"), out);
}

const flow_layer_class flow_layer_conv2d = {
  .name = "Conv2D",
  .alias = "Convolution2D",
  .positional = 16,
  .parameters = parameters,
  .build = flow_plain_convolution_build,
  .call = flow_plain_convolution_call,
  .check = flow_plain_convolution_check,
  .quantizes = 1u << FLOW_QUANTIZED,
  .doc = "activation(cross-correlation of images with filters kernels + bias)."
};
