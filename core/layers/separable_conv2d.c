/* separable_conv2d.c: SeparableConv2D: every channel is convolved with depth_multiplier kernels of its own, then a 1 x 1 convolution
 * mixes the results. Variables: depthwise_kernel {kh, kw, channels, multiplier}, pointwise_kernel {1, 1, channels * multiplier,
 * filters}, bias {filters}. */
#include "layers/convolution.h"

static const flow_argument parameters[] = {
  { "filters", FLOW_INTEGER, NULL, NULL },
  { "kernel_size", FLOW_PAIR, NULL, NULL },
  { "strides", FLOW_PAIR, "1,1", NULL },
  { "padding", FLOW_TEXT, "valid", "valid|same" },
  { "data_format", FLOW_TEXT, "channels_last", "channels_last|!channels_first" },
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
  FLOW_TRY(flow_convolution_check(layer));
  int32_t stride[2];
  flow_argument_pair(layer->arguments, "strides", stride);
  if (stride[0] == stride[1]) return FLOW_OK;   /* as DepthwiseConv2D: TensorFlow wants them equal */
  return flow_layer_fail(layer, "strides {%d, %d} of a separable convolution must be equal", stride[0], stride[1]);
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
  if (!flow_argument_boolean(layer->arguments, "use_bias")) return FLOW_OK;
  return flow_layer_add_variable(context, layer, BIAS, "bias", "bias_initializer", 1, &filters, 1);
}

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  flow_signature input = flow_signature_of(inputs[0]);
  flow_attributes depthwise = { .convolution = { .groups = 1 } };
  flow_attributes pointwise = { .convolution = { .groups = 1, .stride = { 1, 1 }, .dilation = { 1, 1 } } };
  int32_t window[2];
  FLOW_TRY(flow_convolution_check_input(layer, &input));
  depthwise.convolution.groups = (int32_t)input.dims[3];
  flow_argument_pair(layer->arguments, "kernel_size", window);
  flow_argument_pair(layer->arguments, "strides", depthwise.convolution.stride);
  flow_argument_pair(layer->arguments, "dilation_rate", depthwise.convolution.dilation);
  FLOW_TRY(flow_layer_padding(layer, &input, window, depthwise.convolution.stride, depthwise.convolution.dilation,
                              depthwise.convolution.padding));
  flow_expression e = flow_expression_of(context);
  flow_tensor *kernel = flow_express_variable(&e, layer->variables[DEPTHWISE]);
  if (kernel) kernel = flow_express_reshape(&e, kernel, 4, (int64_t[]){ window[0], window[1], 1, kernel->shape[2] * kernel->shape[3] });
  flow_tensor *y = flow_express_first(&e, FLOW_OP_convolution, inputs[0], kernel, &depthwise);
  y = flow_express_first(&e, FLOW_OP_convolution, y, flow_express_variable(&e, layer->variables[POINTWISE]), &pointwise);
  if (layer->variables[BIAS]) y = e_add(&e, y, flow_express_variable(&e, layer->variables[BIAS]));
  return flow_expression_take(&e, flow_express_activation(&e, flow_argument_text(layer->arguments, "activation"), y), out);
}

const flow_layer_class flow_layer_separable_conv2d = {
  .name = "SeparableConv2D", .alias = "SeparableConvolution2D", .positional = 12, .parameters = parameters, .min_inputs = 1,
  .max_inputs = 1, .build = build, .call = call, .check = check,
  .doc = "activation(each channel convolved by itself, then all mixed by a 1 x 1 convolution, + bias)."
};
