/* separable_conv2d.c: SeparableConv2D: every channel is convolved with depth_multiplier kernels of its own, then a 1 x 1 convolution
 * mixes the results. Variables: depthwise_kernel {kh, kw, channels, multiplier}, pointwise_kernel {1, 1, channels * multiplier,
 * filters}, bias {filters}. */
#include "layers/convolution.h"

static const flow_argument parameters[] = {
  { "filters", FLOW_INTEGER, NULL, NULL },
  FLOW_CONVOLUTION_WINDOW,
  FLOW_LAYER_DATA_FORMAT,
  { "dilation_rate", FLOW_PAIR, "1,1", NULL },
  { "depth_multiplier", FLOW_INTEGER, "1", NULL },
  { "activation", FLOW_ACTIVATION, "linear", NULL },
  { "use_bias", FLOW_BOOLEAN, "true", NULL },
  { "depthwise_initializer", FLOW_INITIALIZER, "glorot_uniform", NULL },
  { "pointwise_initializer", FLOW_INITIALIZER, "glorot_uniform", NULL },
  { "bias_initializer", FLOW_INITIALIZER, "zeros", NULL },
  { "depthwise_regularizer", FLOW_REGULARIZER, "null", NULL },
  { "pointwise_regularizer", FLOW_REGULARIZER, "null", NULL },
  { "bias_regularizer", FLOW_REGULARIZER, "null", NULL },
  { "activity_regularizer", FLOW_ABSENT, "null", NULL },
  { "depthwise_constraint", FLOW_ABSENT, "null", NULL },
  { "pointwise_constraint", FLOW_ABSENT, "null", NULL },
  { "bias_constraint", FLOW_ABSENT, "null", NULL },
  FLOW_LAYER_COMMON
};

enum { DEPTHWISE, POINTWISE, BIAS };

static flow_status check(flow_layer *layer)
{
  static const char *const positive[] = { "filters", "depth_multiplier", NULL };
  FLOW_TRY(flow_layer_check_positive(layer, positive));
  return flow_convolution_check_depthwise(layer, "separable");
}

static flow_status build(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs)
{
  (void)count;
  FLOW_TRY(flow_convolution_check_input(layer, inputs));
  int64_t channels = inputs->dims[3], multiplier = flow_argument_integer(layer->arguments, "depth_multiplier"), middle;
  int64_t filters = flow_argument_integer(layer->arguments, "filters");
  if (channels > INT32_MAX || __builtin_mul_overflow(channels, multiplier, &middle))
    return flow_layer_fail(layer, "%lld channels times depth_multiplier %lld are too many", (long long)channels, (long long)multiplier);
  int32_t window[2];
  flow_argument_pair(layer->arguments, "kernel_size", window);
  const int64_t depthwise[4] = { window[0], window[1], channels, multiplier }, pointwise[4] = { 1, 1, middle, filters };
  FLOW_TRY(flow_layer_add_variable(context, layer, DEPTHWISE, "depthwise_kernel", "depthwise_initializer", 4, depthwise, 1));
  FLOW_TRY(flow_layer_add_variable(context, layer, POINTWISE, "pointwise_kernel", "pointwise_initializer", 4, pointwise, 1));
  return flow_layer_add_bias(context, layer, BIAS, filters);
}

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  flow_signature input = flow_signature_of(inputs[0]);
  flow_attributes depthwise, pointwise = { .convolution = { .groups = 1, .stride = { 1, 1 }, .dilation = { 1, 1 } } };
  int32_t window[2];
  FLOW_TRY(flow_convolution_check_input(layer, &input));
  FLOW_TRY(flow_convolution_attributes(layer, &input, input.dims[3], window, &depthwise));
  flow_expression e = flow_expression_of(context);
  flow_tensor *kernel = flow_express_variable(&e, layer->variables[DEPTHWISE]);
  if (kernel) kernel = flow_express_reshape(&e, kernel, 4, (int64_t[]){ window[0], window[1], 1, kernel->shape[2] * kernel->shape[3] });
  flow_tensor *y = flow_express_first(&e, FLOW_OP_convolution, inputs[0], kernel, &depthwise);
  y = flow_express_first(&e, FLOW_OP_convolution, y, flow_express_variable(&e, layer->variables[POINTWISE]), &pointwise);
  return flow_layer_take(&e, layer, BIAS, y, out);
}

const flow_layer_class flow_layer_separable_conv2d = {
  .name = "SeparableConv2D", .alias = "SeparableConvolution2D", .positional = 12, .parameters = parameters, .min_inputs = 1,
  .max_inputs = 1, .build = build, .call = call, .check = check,
  .doc = "activation(each channel convolved by itself, then all mixed by a 1 x 1 convolution, + bias)."
};
