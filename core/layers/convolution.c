/* convolution.c: see convolution.h. */
#include "layers/convolution.h"
#include "layers/quantization.h"

enum { KERNEL, BIAS };

flow_status flow_convolution_check(flow_layer *layer)
{
  static const char *const positive[] = { "kernel_size", "strides", "dilation_rate", NULL };
  FLOW_TRY(flow_layer_check_positive(layer, positive));
  int32_t stride[2], dilation[2];
  flow_argument_pair(layer->arguments, "strides", stride);
  flow_argument_pair(layer->arguments, "dilation_rate", dilation);
  if ((stride[0] > 1 || stride[1] > 1) && (dilation[0] > 1 || dilation[1] > 1))
    return flow_layer_fail(layer, "strides {%d, %d} and dilation_rate {%d, %d} cannot both be greater than 1", stride[0], stride[1],
                           dilation[0], dilation[1]);
  return FLOW_OK;
}

flow_status flow_convolution_check_depthwise(flow_layer *layer, const char *kind)
{
  int32_t stride[2];
  FLOW_TRY(flow_convolution_check(layer));
  flow_argument_pair(layer->arguments, "strides", stride);
  if (stride[0] == stride[1] || flow_layer_is_over_steps(layer, "strides")) return FLOW_OK;
  return flow_layer_fail(layer, "strides {%d, %d} of a %s convolution must be equal", stride[0], stride[1], kind);
}

flow_status flow_convolution_check_input(const flow_layer *layer, const flow_signature *input)
{
  int steps = flow_layer_is_over_steps(layer, "kernel_size");
  if (!steps && input->rank == 3)
    return flow_layer_check_rank(layer, input, 4, "{batch, height, width, channels}", "an image without channels? Put Reshape before it");
  FLOW_TRY(flow_sequences_check(layer, input, steps));
  return flow_layer_check_channels(layer, input, "channels");
}

flow_status flow_convolution_add_kernel(flow_context *context, flow_layer *layer, int index, const char *name, const char *initializer,
                                        const int64_t kernel[4])
{
  int steps = flow_layer_is_over_steps(layer, "kernel_size");
  return flow_layer_add_variable(context, layer, index, name, initializer, 4 - steps, kernel + steps, 1);
}

flow_tensor *flow_convolution_kernel(flow_expression *e, const flow_layer *layer, int index, const int32_t window[2], int64_t channels)
{
  flow_tensor *kernel = flow_express_variable(e, layer->variables[index]);
  if (!kernel || (kernel->rank == 4 && kernel->shape[2] == channels)) return kernel;
  int64_t filters = flow_shape_size(kernel->rank, kernel->shape) / (window[0] * window[1] * channels);
  return flow_express_reshape(e, kernel, 4, (int64_t[]){ window[0], window[1], channels, filters });
}

flow_status flow_convolution_attributes(const flow_layer *layer, const flow_signature *image, int64_t groups, int32_t window[2],
                                        flow_attributes *attributes)
{
  *attributes = (flow_attributes){ .convolution = { .groups = (int32_t)groups } };
  flow_argument_pair(layer->arguments, "kernel_size", window);
  flow_argument_pair(layer->arguments, "strides", attributes->convolution.stride);
  flow_argument_pair(layer->arguments, "dilation_rate", attributes->convolution.dilation);
  return flow_layer_padding(layer, image, window, attributes->convolution.stride, attributes->convolution.dilation,
                            attributes->convolution.padding);
}

flow_status flow_convolution_call(flow_context *context, flow_layer *layer, flow_tensor *x, int64_t groups, flow_tensor **out)
{
  flow_signature input = flow_signature_of(x), image = flow_sequences_signature(&input);
  flow_attributes attributes;
  int32_t window[2];
  FLOW_TRY(flow_convolution_check_input(layer, &input));
  FLOW_TRY(flow_convolution_attributes(layer, &image, groups, window, &attributes));
  FLOW_TRY(flow_quantization_observe(context, layer, x));
  flow_expression e = flow_expression_of(context);
  flow_tensor *kernel = flow_convolution_kernel(&e, layer, KERNEL, window, image.dims[3] / groups);
  flow_tensor *images = flow_sequences_to_images(&e, x);
  flow_tensor *y;
  if (flow_quantization_applies(layer, images, kernel)) y = flow_quantization_convolve(&e, layer, images, kernel, &attributes);
  else y = flow_express_first(&e, FLOW_OP_convolution, images, kernel, &attributes);
  return flow_expression_take(&e, flow_sequences_like_input(&e, flow_layer_end(&e, layer, BIAS, y), x), out);
}
