/* conv3d.c: Conv3D: cross-correlation over depth, height and width; kernel {kd, kh, kw, channels / groups, filters}, bias {filters}. It is
 * the sum of the convolutions of the planes of the kernel. */
#include "layers/convolution.h"
#include "layers/volumes.h"

static const flow_argument parameters[] = {
  { "filters", FLOW_INTEGER, NULL, ">0" },
  FLOW_VOLUMES_WINDOW,
  FLOW_LAYER_DATA_FORMAT,
  { "dilation_rate", FLOW_TRIPLE, "1,1,1", ">0" },
  { "groups", FLOW_INTEGER, "1", ">0" },
  FLOW_LAYER_KERNEL_AND_BIAS("kernel")
};

enum { KERNEL, BIAS };

static flow_status check(flow_layer *layer)
{
  FLOW_TRY(flow_convolution_check_groups(layer));
  return flow_volumes_check_strides(layer);
}

static flow_status build(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs)
{
  (void)count;
  FLOW_TRY(flow_layer_check_rank(layer, inputs, 5, "{batch, depth, height, width, channels}", NULL));
  FLOW_TRY(flow_layer_check_channels(layer, inputs, "channels"));
  int64_t channels, filters = flow_argument_integer(layer->arguments, "filters");
  FLOW_TRY(flow_convolution_group_channels(layer, inputs, &channels));
  int32_t size[3];
  flow_argument_triple(layer->arguments, "kernel_size", size);
  const int64_t shape[] = { size[0], size[1], size[2], channels, filters };
  FLOW_TRY(flow_layer_add_variable(context, layer, KERNEL, "kernel", "kernel_initializer", 5, shape, 1));
  return flow_layer_add_bias(context, layer, BIAS, filters);
}

/* The depth is padded before, by zeros, since the op has no padding for it. */
static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  flow_signature input = flow_signature_of(inputs[0]);
  flow_volume_window window;
  FLOW_TRY(flow_volumes_window(layer, &input, "kernel_size", &window));
  FLOW_TRY(flow_layer_check_channels(layer, &input, "channels"));
  flow_expression e = flow_expression_of(context);
  flow_tensor *x = flow_volumes_pad(&e, inputs[0], window.padding[0], window.padding[1]);
  flow_tensor *kernel = flow_express_variable(&e, layer->variables[KERNEL]);
  flow_tensor *y = flow_volumes_convolve(&e, &window, x, kernel, flow_argument_integer(layer->arguments, "groups"));
  if (y) y = flow_layer_end(&e, layer, BIAS, y);
  return flow_expression_take(&e, flow_volumes_of_images(&e, y, window.depth), out);
}

const flow_layer_class flow_layer_conv3d = {
  .name = "Conv3D",
  .alias = "Convolution3D",
  .positional = 16,
  .parameters = parameters,
  .build = build,
  .call = call,
  .check = check,
  .doc = "activation(cross-correlation of volumes with filters kernels + bias)."
};
