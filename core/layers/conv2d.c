/* conv2d.c: Conv2D: cross-correlation over height and width; kernel {kh, kw, channels / groups, filters}, bias {filters}. */
#include "layers/express.h"
#include "layers/layer.h"

static const flow_argument parameters[] = {
  { "filters", FLOW_INTEGER, NULL, NULL },
  { "kernel_size", FLOW_PAIR, NULL, NULL },
  { "strides", FLOW_PAIR, "1,1", NULL },
  { "padding", FLOW_TEXT, "valid", "valid|same" },
  { "data_format", FLOW_TEXT, "channels_last", "channels_last|!channels_first" },
  { "dilation_rate", FLOW_PAIR, "1,1", NULL },
  { "groups", FLOW_INTEGER, "1", NULL },
  { "activation", FLOW_ACTIVATION, "linear", NULL },
  { "use_bias", FLOW_BOOLEAN, "true", NULL },
  { "kernel_initializer", FLOW_INITIALIZER, "glorot_uniform", NULL },
  { "bias_initializer", FLOW_INITIALIZER, "zeros", NULL },
  { "kernel_regularizer", FLOW_ABSENT, "null", NULL },
  { "bias_regularizer", FLOW_ABSENT, "null", NULL },
  { "activity_regularizer", FLOW_ABSENT, "null", NULL },
  { "kernel_constraint", FLOW_ABSENT, "null", NULL },
  { "bias_constraint", FLOW_ABSENT, "null", NULL },
  FLOW_LAYER_COMMON
};

enum { KERNEL, BIAS };

static flow_status check(flow_layer *layer)
{
  static const char *const positive[] = { "filters", "kernel_size", "strides", "dilation_rate", "groups", NULL };
  FLOW_TRY(flow_layer_check_positive(layer, positive));
  int64_t filters = flow_argument_integer(layer->arguments, "filters"), groups = flow_argument_integer(layer->arguments, "groups");
  if (filters % groups != 0)
    return flow_layer_fail(layer, "filters %lld cannot be divided into %lld groups", (long long)filters, (long long)groups);
  int32_t stride[2], dilation[2];
  flow_argument_pair(layer->arguments, "strides", stride);
  flow_argument_pair(layer->arguments, "dilation_rate", dilation);
  if ((stride[0] > 1 || stride[1] > 1) && (dilation[0] > 1 || dilation[1] > 1))
    return flow_layer_fail(layer, "strides {%d, %d} and dilation_rate {%d, %d} cannot both be greater than 1", stride[0], stride[1],
                           dilation[0], dilation[1]);
  return FLOW_OK;
}

static flow_status check_input(const flow_layer *layer, const flow_signature *input)
{
  const char *hint = input->rank == 3 ? "an image without channels? Put Reshape before it" : "did you mean to put it before Flatten?";
  FLOW_TRY(flow_layer_check_rank(layer, input, 4, "{batch, height, width, channels}", input->rank < 4 ? hint : NULL));
  return flow_layer_check_channels(layer, input, "channels");
}

static flow_status build(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs)
{
  (void)count;
  FLOW_TRY(check_input(layer, inputs));
  int64_t channels = inputs->dims[3], groups = flow_argument_integer(layer->arguments, "groups");
  int64_t filters = flow_argument_integer(layer->arguments, "filters");
  if (channels % groups != 0)
    return flow_layer_fail(layer, "%lld input channels cannot be divided into %lld groups", (long long)channels, (long long)groups);
  int32_t window[2];
  flow_argument_pair(layer->arguments, "kernel_size", window);
  int64_t shape[4] = { window[0], window[1], channels / groups, filters };
  FLOW_TRY(flow_layer_add_variable(context, layer, KERNEL, "kernel", "kernel_initializer", 4, shape, 1));
  if (!flow_argument_boolean(layer->arguments, "use_bias")) return FLOW_OK;
  return flow_layer_add_variable(context, layer, BIAS, "bias", "bias_initializer", 1, &filters, 1);
}

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  flow_signature input = flow_signature_of(inputs[0]);
  flow_attributes attributes = { .convolution = { .groups = (int32_t)flow_argument_integer(layer->arguments, "groups") } };
  int32_t window[2];
  FLOW_TRY(check_input(layer, &input));
  flow_argument_pair(layer->arguments, "kernel_size", window);
  flow_argument_pair(layer->arguments, "strides", attributes.convolution.stride);
  flow_argument_pair(layer->arguments, "dilation_rate", attributes.convolution.dilation);
  FLOW_TRY(flow_layer_padding(layer, &input, window, attributes.convolution.stride, attributes.convolution.dilation,
                              attributes.convolution.padding));
  flow_expression e = flow_expression_of(context);
  flow_tensor *y = flow_express_first(&e, FLOW_OP_convolution, inputs[0], flow_express_variable(&e, layer->variables[KERNEL]), &attributes);
  if (layer->variables[BIAS]) y = e_add(&e, y, flow_express_variable(&e, layer->variables[BIAS]));
  return flow_expression_take(&e, flow_express_activation(&e, flow_argument_text(layer->arguments, "activation"), y), out);
}

const flow_layer_class flow_layer_conv2d = {
  .name = "Conv2D", .alias = "Convolution2D", .positional = 11, .parameters = parameters, .min_inputs = 1, .max_inputs = 1,
  .build = build, .call = call, .check = check,
  .doc = "activation(cross-correlation of images with filters kernels + bias)."
};
