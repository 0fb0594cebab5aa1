/* conv2d_transpose.c: Conv2DTranspose: the transpose of a convolution, which makes images larger: every pixel adds a kernel to the
 * output. kernel {kh, kw, filters, channels}, bias {filters}. It is the gradient of the convolution that leads back from the output
 * to the input, by the same op. */
#include "layers/convolution.h"

static const flow_argument parameters[] = { { "filters", FLOW_INTEGER, NULL, ">0" },         FLOW_CONVOLUTION_WINDOW,
                                            { "output_padding", FLOW_ABSENT, "null", NULL }, FLOW_LAYER_DATA_FORMAT,
                                            { "dilation_rate", FLOW_PAIR, "1,1", ">0" },     FLOW_LAYER_KERNEL_AND_BIAS("kernel") };

enum { KERNEL, BIAS };

/* The kernel has filters before channels: it is that of the convolution from the output, which has `filters` channels, back to the
 * input. */
flow_status flow_transposed_convolution_build(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs)
{
  (void)count;
  FLOW_TRY(flow_convolution_check_input(layer, inputs));
  int64_t filters = flow_argument_integer(layer->arguments, "filters");
  int32_t window[2];
  flow_argument_pair(layer->arguments, "kernel_size", window);
  const int64_t shape[4] = { window[0], window[1], filters, inputs->dims[inputs->rank - 1] };
  FLOW_TRY(flow_convolution_add_kernel(context, layer, KERNEL, "kernel", "kernel_initializer", shape));
  return flow_layer_add_bias(context, layer, BIAS, filters);
}

/* Height and width of the output. */
static flow_status output_size(const flow_layer *layer, const flow_signature *input, const flow_attributes *attributes, int64_t size[2])
{
  int32_t window[2];
  flow_argument_pair(layer->arguments, "kernel_size", window);
  for (int i = 0; i < 2; i++) {
    if (input->dims[1 + i] < 1)
      return flow_layer_fail(layer, "height and width of the input %s must be known and positive",
                             flow_shape_text(input->rank, input->dims));
    size[i] = flow_convolution_transposed_length(layer, input->dims[1 + i], window[i], attributes->convolution.stride[i],
                                                 attributes->convolution.dilation[i]);
    if (size[i] < 0)
      return flow_layer_fail(layer, "the output of the input %s would be too large", flow_shape_text(input->rank, input->dims));
  }
  return FLOW_OK;
}

/* Padding is that of the convolution over the output, whose size is therefore worked out first. */
flow_status flow_transposed_convolution_call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training,
                                             flow_tensor **out)
{
  (void)count; (void)training;
  flow_tensor *x = inputs[0];
  flow_signature input = flow_signature_of(x), images = flow_sequences_signature(&input);
  flow_attributes attributes = { .convolution = { .groups = 1 } };
  int32_t window[2];
  int64_t size[2];
  FLOW_TRY(flow_convolution_check_input(layer, &input));
  flow_argument_pair(layer->arguments, "kernel_size", window);
  flow_argument_pair(layer->arguments, "strides", attributes.convolution.stride);
  flow_argument_pair(layer->arguments, "dilation_rate", attributes.convolution.dilation);
  FLOW_TRY(output_size(layer, &images, &attributes, size));
  int64_t filters = flow_argument_integer(layer->arguments, "filters");
  flow_signature output = { .dtype = FLOW_FLOAT32, .rank = 4, .dims = { x->shape[0], size[0], size[1], filters } };
  FLOW_TRY(flow_layer_padding(layer, &output, window, attributes.convolution.stride, attributes.convolution.dilation,
                              attributes.convolution.padding));
  for (int i = 0; i < 2; i++) attributes.convolution.input_size[i] = (int32_t)size[i];
  flow_expression e = flow_expression_of(context);
  flow_tensor *kernel = flow_convolution_kernel(&e, layer, KERNEL, window, filters);
  flow_tensor *y = flow_convolution_transpose(&e, flow_sequences_to_images(&e, x), kernel, &attributes);
  return flow_expression_take(&e, flow_sequences_like_input(&e, flow_layer_end(&e, layer, BIAS, y), inputs[0]), out);
}

const flow_layer_class flow_layer_conv2d_transpose = {
  .name = "Conv2DTranspose",
  .alias = "Convolution2DTranspose",
  .positional = 16,
  .parameters = parameters,
  .build = flow_transposed_convolution_build,
  .call = flow_transposed_convolution_call,
  .check = flow_convolution_check,
  .doc = "activation(transposed convolution of images with filters kernels + bias): larger images."
};
