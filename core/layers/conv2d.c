/* conv2d.c: Conv2D: cross-correlation over height and width; kernel {kh, kw, channels / groups, filters}, bias {filters}. */
#include "layers/convolution.h"

static const flow_argument parameters[] = {
  { "filters", FLOW_INTEGER, NULL, NULL },
  FLOW_CONVOLUTION_WINDOW,
  FLOW_LAYER_DATA_FORMAT,
  { "dilation_rate", FLOW_PAIR, "1,1", NULL },
  { "groups", FLOW_INTEGER, "1", NULL },
  FLOW_LAYER_KERNEL_AND_BIAS("kernel")
};

enum { KERNEL, BIAS };

flow_status flow_plain_convolution_check(flow_layer *layer)
{
  static const char *const positive[] = { "filters", "groups", NULL };
  FLOW_TRY(flow_layer_check_positive(layer, positive));
  int64_t filters = flow_argument_integer(layer->arguments, "filters"), groups = flow_argument_integer(layer->arguments, "groups");
  if (filters % groups != 0)
    return flow_layer_fail(layer, "filters %lld cannot be divided into %lld groups", (long long)filters, (long long)groups);
  return flow_convolution_check(layer);
}

flow_status flow_plain_convolution_build(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs)
{
  (void)count;
  FLOW_TRY(flow_convolution_check_input(layer, inputs));
  int64_t channels = inputs->dims[inputs->rank - 1], groups = flow_argument_integer(layer->arguments, "groups");
  int64_t filters = flow_argument_integer(layer->arguments, "filters");
  if (channels % groups != 0)
    return flow_layer_fail(layer, "%lld input channels cannot be divided into %lld groups", (long long)channels, (long long)groups);
  int32_t window[2];
  flow_argument_pair(layer->arguments, "kernel_size", window);
  const int64_t shape[4] = { window[0], window[1], channels / groups, filters };
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
  .min_inputs = 1,
  .max_inputs = 1,
  .build = flow_plain_convolution_build,
  .call = flow_plain_convolution_call,
  .check = flow_plain_convolution_check,
  .quantizes = 1u << FLOW_QUANTIZED,
  .doc = "activation(cross-correlation of images with filters kernels + bias)."
};
