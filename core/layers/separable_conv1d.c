/* separable_conv1d.c: SeparableConv1D: every channel of sequences is convolved with its own depth_multiplier kernels, then all are mixed
 * step by step. Variables: depthwise_kernel {steps, channels, multiplier}, pointwise_kernel {1, channels * multiplier, filters}, bias
 * {filters}. */
#include "layers/convolution.h"

static const flow_argument parameters[] = {
  { "filters", FLOW_INTEGER, NULL, ">0" },
  FLOW_CONVOLUTION_STEPS("valid|same"),
  FLOW_LAYER_DATA_FORMAT,
  { "dilation_rate", FLOW_SINGLE, "1", ">0" },
  FLOW_CONVOLUTION_SEPARABLE
};

const flow_layer_class flow_layer_separable_conv1d = {
  .name = "SeparableConv1D",
  .alias = "SeparableConvolution1D",
  .positional = 19,
  .parameters = parameters,
  .build = flow_separable_convolution_build,
  .call = flow_separable_convolution_call,
  .check = flow_separable_convolution_check,
  .doc = "activation(each channel of sequences convolved by itself, then all mixed step by step, + bias)."
};
