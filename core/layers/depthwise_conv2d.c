/* depthwise_conv2d.c: DepthwiseConv2D: every channel is convolved with its own depth_multiplier kernels: a convolution in as
 * many groups as channels. kernel {kh, kw, channels, multiplier}, bias {channels * multiplier}; output channel
 * c * multiplier + m is channel c under its kernel m. */
#include "layers/convolution.h"

static const flow_argument parameters[] = {
  FLOW_CONVOLUTION_WINDOW,
  { "depth_multiplier", FLOW_INTEGER, "1", ">0" },
  FLOW_LAYER_DATA_FORMAT,
  { "dilation_rate", FLOW_PAIR, "1,1", ">0" },
  FLOW_LAYER_KERNEL_AND_BIAS("depthwise")
};

enum { KERNEL, BIAS };

flow_status flow_depthwise_convolution_check(flow_layer *layer)
{
  return flow_convolution_check_depthwise(layer, "depthwise");
}

/* The product of channels and multiplier is checked here, since the bias and the op's groups count on it. */
flow_status flow_depthwise_convolution_build(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs)
{
  (void)count;
  FLOW_TRY(flow_convolution_check_input(layer, inputs));
  int64_t channels = inputs->dims[inputs->rank - 1], multiplier = flow_argument_integer(layer->arguments, "depth_multiplier"), filters;
  if (channels > INT32_MAX || __builtin_mul_overflow(channels, multiplier, &filters))
    return flow_layer_fail(layer, "%lld channels times depth_multiplier %lld are too many", (long long)channels, (long long)multiplier);
  int32_t window[2];
  flow_argument_pair(layer->arguments, "kernel_size", window);
  const int64_t shape[4] = { window[0], window[1], channels, multiplier };
  FLOW_TRY(flow_convolution_add_kernel(context, layer, KERNEL, "kernel", "depthwise_initializer", shape));
  return flow_layer_add_bias(context, layer, BIAS, filters);
}

/* One group for each channel that the layer was built for; a call with others is refused by the check of the input. */
flow_status flow_depthwise_convolution_call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training,
                                            flow_tensor **out)
{
  (void)count; (void)training;
  return flow_convolution_call(context, layer, inputs[0], layer->build_shape[layer->build_rank - 1], out);
}

const flow_layer_class flow_layer_depthwise_conv2d = {
  .name = "DepthwiseConv2D",
  .positional = 15,
  .parameters = parameters,
  .build = flow_depthwise_convolution_build,
  .call = flow_depthwise_convolution_call,
  .check = flow_depthwise_convolution_check,
  .quantizes = 1u << FLOW_QUANTIZED,
  .doc = "activation(every channel convolved with its own depth_multiplier kernels + bias)."
};
