/* convolution.c: see convolution.h. A layer over steps keeps its kernel without a height, as Keras' files do, and puts the axis in for
 * the op: flow_convolution_add_kernel takes it away, flow_convolution_kernel brings it back. Arguments of type FLOW_SINGLE are read as
 * {1, n} by flow_argument_pair, so that sequences are images of one row everywhere below. */
#include "layers/convolution.h"

#include <string.h>

#include "layers/quantization.h"

enum { KERNEL, BIAS };

/* A record's check(): as in Keras, strides and dilation exclude each other. */
flow_status flow_convolution_check(flow_layer *layer)
{
  int32_t stride[2], dilation[2];
  flow_argument_pair(layer->arguments, "strides", stride);
  flow_argument_pair(layer->arguments, "dilation_rate", dilation);
  if ((stride[0] > 1 || stride[1] > 1) && (dilation[0] > 1 || dilation[1] > 1))
    return flow_layer_fail(layer, "strides {%d, %d} and dilation_rate {%d, %d} cannot both be greater than 1", stride[0], stride[1],
                           dilation[0], dilation[1]);
  return FLOW_OK;
}

/* kind: the word for the message, "depthwise" or "separable". TensorFlow, whose op Keras uses, has one stride for both axes. */
flow_status flow_convolution_check_depthwise(flow_layer *layer, const char *kind)
{
  int32_t stride[2];
  FLOW_TRY(flow_convolution_check(layer));
  flow_argument_pair(layer->arguments, "strides", stride);
  if (stride[0] == stride[1] || flow_layer_is_over_steps(layer, "strides")) return FLOW_OK;
  return flow_layer_fail(layer, "strides {%d, %d} of a %s convolution must be equal", stride[0], stride[1], kind);
}

/* A record's check() or a part of one; groups is greater than 0 by then. */
flow_status flow_convolution_check_groups(const flow_layer *layer)
{
  int64_t filters = flow_argument_integer(layer->arguments, "filters"), groups = flow_argument_integer(layer->arguments, "groups");
  if (filters % groups == 0) return FLOW_OK;
  return flow_layer_fail(layer, "filters %lld cannot be divided into %lld groups", (long long)filters, (long long)groups);
}

/* *channels: how many input channels a kernel of one group reads. */
flow_status flow_convolution_group_channels(const flow_layer *layer, const flow_signature *input, int64_t *channels)
{
  int64_t all = input->dims[input->rank - 1], groups = flow_argument_integer(layer->arguments, "groups");
  *channels = all / groups;
  if (all % groups == 0) return FLOW_OK;
  return flow_layer_fail(layer, "%lld input channels cannot be divided into %lld groups", (long long)all, (long long)groups);
}

/* An image without its channels is the usual mistake, so it has its own hint. */
flow_status flow_convolution_check_input(const flow_layer *layer, const flow_signature *input)
{
  int steps = flow_layer_is_over_steps(layer, "kernel_size");
  if (!steps && input->rank == 3)
    return flow_layer_check_rank(layer, input, 4, "{batch, height, width, channels}", "an image without channels? Put Reshape before it");
  FLOW_TRY(flow_sequences_check(layer, input, steps));
  return flow_layer_check_channels(layer, input, "channels");
}

/* kernel {height, width, channels, filters}; over steps the height is 1 and the variable does not have it. */
flow_status flow_convolution_add_kernel(flow_context *context, flow_layer *layer, int index, const char *name, const char *initializer,
                                        const int64_t kernel[4])
{
  int steps = flow_layer_is_over_steps(layer, "kernel_size");
  return flow_layer_add_variable(context, layer, index, name, initializer, 4 - steps, kernel + steps, 1);
}

/* Also of a depthwise kernel {kh, kw, c, m}, with channels 1: {kh, kw, 1, c * m} has the same elements in the same order, and is what
 * the op wants for a group for each channel. window and channels are at least 1. */
flow_tensor *flow_convolution_kernel(flow_expression *e, const flow_layer *layer, int index, const int32_t window[2], int64_t channels)
{
  flow_tensor *kernel = flow_express_variable(e, layer->variables[index]);
  if (!kernel || (kernel->rank == 4 && kernel->shape[2] == channels)) return kernel;
  int64_t filters = flow_shape_size(kernel->rank, kernel->shape) / ((int64_t)window[0] * window[1] * channels);
  return flow_express_reshape(e, kernel, 4, (int64_t[]){ window[0], window[1], channels, filters });
}

/* Padding "same" follows from the size of the image, so that height and width must be known then. */
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

/* A layer that is quantized computes the product in bytes (quantization.h); the bias and the activation are the same for both. While it
 * calibrates, x is looked at first. */
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

/* ---- transposed ---------------------------------------------------------------------------------------------------- */

/* All are at least 1. reach: how many cells a dilated kernel extends over; it is below 2^62, since both factors are below 2^31. */
int64_t flow_convolution_transposed_length(const flow_layer *layer, int64_t length, int64_t kernel, int64_t stride, int64_t dilation)
{
  int64_t reach = dilation * (kernel - 1) + 1, result;
  int same = strcmp(flow_argument_text(layer->arguments, "padding"), "same") == 0;
  if (__builtin_mul_overflow(length, stride, &result) || result > INT32_MAX || reach > INT32_MAX) return -1;
  if (!same && reach > stride) result += reach - stride; /* no overflow: both are below 2^31 */
  return result <= INT32_MAX ? result : -1;
}

/* The op convolution_gradient takes (g, x, w, y, index) and gives dx first: g is the layer's input, of x only the shape is read, and y and
 * index are read only where a pooling is fused. */
flow_tensor *flow_convolution_transpose(flow_expression *e, flow_tensor *x, flow_tensor *kernel, const flow_attributes *attributes)
{
  const int32_t *size = attributes->convolution.input_size;
  const int64_t none = 0;
  flow_tensor *outputs[3] = { NULL }, *index = NULL;
  if (!x || !kernel) return NULL;
  flow_attributes shape = { .shape = { .rank = 4, .dims = { x->shape[0], size[0], size[1], kernel->shape[2] } } };
  if (x->dtype != kernel->dtype) x = flow_express_cast(e, x, kernel->dtype);
  flow_tensor *image = flow_express(e, FLOW_OP_broadcast_to, flow_express_number(e, kernel, 0), NULL, NULL, &shape);
  flow_status status = flow_tensor_new(FLOW_UINT8, 1, &none, &index);
  index = flow_express_keep(e, status, index);
  if (e->status == FLOW_OK)
    flow_express_all(e, FLOW_OP_convolution_gradient, (flow_tensor *[]){ x, image, kernel, x, index }, 5, attributes, outputs);
  return outputs[0];
}
