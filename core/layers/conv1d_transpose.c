/* conv1d_transpose.c: Conv1DTranspose: the transpose of a convolution, which makes sequences longer: every step adds a kernel to the
 * output. kernel {steps, filters, channels}, bias {filters}. */
#include "layers/convolution.h"

static const flow_argument parameters[] = { { "filters", FLOW_INTEGER, NULL, ">0" },         FLOW_CONVOLUTION_STEPS("valid|same"),
                                            { "output_padding", FLOW_ABSENT, "null", NULL }, FLOW_LAYER_DATA_FORMAT,
                                            { "dilation_rate", FLOW_SINGLE, "1", ">0" },     FLOW_LAYER_KERNEL_AND_BIAS("kernel") };

const flow_layer_class flow_layer_conv1d_transpose = {
  .name = "Conv1DTranspose",
  .alias = "Convolution1DTranspose",
  .positional = 16,
  .parameters = parameters,
  .build = flow_transposed_convolution_build,
  .call = flow_transposed_convolution_call,
  .check = flow_convolution_check,
  .doc = "activation(transposed convolution of sequences with filters kernels + bias): longer sequences."
};
