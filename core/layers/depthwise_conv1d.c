/* depthwise_conv1d.c: DepthwiseConv1D: every channel of sequences is convolved with its own depth_multiplier kernels; kernel {steps,
 * channels, multiplier}, bias {channels * multiplier}. */
#include "layers/convolution.h"

static const flow_argument parameters[] = {
  FLOW_CONVOLUTION_STEPS("valid|same"),
  { "depth_multiplier", FLOW_INTEGER, "1", ">0" },
  FLOW_LAYER_DATA_FORMAT,
  { "dilation_rate", FLOW_SINGLE, "1", ">0" },
  FLOW_LAYER_KERNEL_AND_BIAS("depthwise")
};

const flow_layer_class flow_layer_depthwise_conv1d = {
  .name = "DepthwiseConv1D",
  .positional = 15,
  .parameters = parameters,
  .build = flow_depthwise_convolution_build,
  .call = flow_depthwise_convolution_call,
  .check = flow_depthwise_convolution_check,
  .quantizes = 1u << FLOW_QUANTIZED,
  .doc = "activation(every channel of sequences convolved with its own depth_multiplier kernels + bias)."
};
