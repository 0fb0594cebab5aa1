/* conv1d.c: Conv1D: cross-correlation over the steps of sequences {batch, steps, channels}: {batch, new steps, filters}; kernel {steps,
 * channels / groups, filters}, bias {filters}. Padding "causal" is on the left only: a step sees itself and those before it. The
 * functions are Conv2D's (conv2d.c), on images of one row. */
#include "layers/convolution.h"

static const flow_argument parameters[] = {
  { "filters", FLOW_INTEGER, NULL, ">0" },     FLOW_CONVOLUTION_STEPS("valid|same|causal"), FLOW_LAYER_DATA_FORMAT,
  { "dilation_rate", FLOW_SINGLE, "1", ">0" }, { "groups", FLOW_INTEGER, "1", ">0" },       FLOW_LAYER_KERNEL_AND_BIAS("kernel")
};

const flow_layer_class flow_layer_conv1d = {
  .name = "Conv1D",
  .alias = "Convolution1D",
  .positional = 16,
  .parameters = parameters,
  .build = flow_plain_convolution_build,
  .call = flow_plain_convolution_call,
  .check = flow_plain_convolution_check,
  .quantizes = 1u << FLOW_QUANTIZED,
  .doc = "activation(cross-correlation of sequences with filters kernels + bias)."
};
