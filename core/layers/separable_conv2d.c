/* separable_conv2d.c: SeparableConv2D: every channel is convolved with its own depth_multiplier kernels, then a 1 x 1 convolution
 * mixes the results. Variables: depthwise_kernel {kh, kw, channels, multiplier}, pointwise_kernel {1, 1, channels * multiplier,
 * filters}, bias {filters}. */
#include "layers/convolution.h"

static const flow_argument parameters[] = {
  { "filters", FLOW_INTEGER, NULL, ">0" },
  FLOW_CONVOLUTION_WINDOW,
  FLOW_LAYER_DATA_FORMAT,
  { "dilation_rate", FLOW_PAIR, "1,1", ">0" },
  FLOW_CONVOLUTION_SEPARABLE
};

enum { DEPTHWISE, POINTWISE, BIAS };

flow_status flow_separable_convolution_check(flow_layer *layer)
{
  return flow_convolution_check_depthwise(layer, "separable");
}

/* middle: the channels between the two convolutions. */
flow_status flow_separable_convolution_build(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs)
{
  (void)count;
  FLOW_TRY(flow_convolution_check_input(layer, inputs));
  int64_t channels = inputs->dims[inputs->rank - 1], multiplier = flow_argument_integer(layer->arguments, "depth_multiplier"), middle;
  int64_t filters = flow_argument_integer(layer->arguments, "filters");
  if (channels > INT32_MAX || __builtin_mul_overflow(channels, multiplier, &middle))
    return flow_layer_fail(layer, "%lld channels times depth_multiplier %lld are too many", (long long)channels, (long long)multiplier);
  int32_t window[2];
  flow_argument_pair(layer->arguments, "kernel_size", window);
  const int64_t depthwise[4] = { window[0], window[1], channels, multiplier }, pointwise[4] = { 1, 1, middle, filters };
  FLOW_TRY(flow_convolution_add_kernel(context, layer, DEPTHWISE, "depthwise_kernel", "depthwise_initializer", depthwise));
  FLOW_TRY(flow_convolution_add_kernel(context, layer, POINTWISE, "pointwise_kernel", "pointwise_initializer", pointwise));
  return flow_layer_add_bias(context, layer, BIAS, filters);
}

/* Two ops: the depthwise one has strides, padding and dilation, the pointwise one none. Bias and activation come after the second only. */
flow_status flow_separable_convolution_call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training,
                                            flow_tensor **out)
{
  (void)count; (void)training;
  static const int32_t cell[2] = { 1, 1 };
  flow_signature input = flow_signature_of(inputs[0]), image = flow_sequences_signature(&input);
  flow_attributes depthwise, pointwise = { .convolution = { .groups = 1, .stride = { 1, 1 }, .dilation = { 1, 1 } } };
  int32_t window[2];
  FLOW_TRY(flow_convolution_check_input(layer, &input));
  FLOW_TRY(flow_convolution_attributes(layer, &image, image.dims[3], window, &depthwise));
  flow_expression e = flow_expression_of(context);
  flow_tensor *kernel = flow_convolution_kernel(&e, layer, DEPTHWISE, window, 1);
  flow_tensor *y = flow_express_first(&e, FLOW_OP_convolution, flow_sequences_to_images(&e, inputs[0]), kernel, &depthwise);
  kernel = y ? flow_convolution_kernel(&e, layer, POINTWISE, cell, y->shape[3]) : NULL;
  y = flow_express_first(&e, FLOW_OP_convolution, y, kernel, &pointwise);
  return flow_expression_take(&e, flow_sequences_like_input(&e, flow_layer_end(&e, layer, BIAS, y), inputs[0]), out);
}

const flow_layer_class flow_layer_separable_conv2d = {
  .name = "SeparableConv2D",
  .alias = "SeparableConvolution2D",
  .positional = 19,
  .parameters = parameters,
  .build = flow_separable_convolution_build,
  .call = flow_separable_convolution_call,
  .check = flow_separable_convolution_check,
  .doc = "activation(each channel convolved by itself, then all mixed by a 1 x 1 convolution, + bias)."
};
