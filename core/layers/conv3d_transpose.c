/* conv3d_transpose.c: Conv3DTranspose: the transpose of a convolution, which makes volumes larger: every voxel adds a kernel to the output.
 * kernel {kd, kh, kw, filters, channels}, bias {filters}. It is the sum of what the planes of the kernel give, each of which transposes a
 * convolution of images and puts its results at the depths that it reaches. */
#include "layers/convolution.h"
#include "layers/volumes.h"

static const flow_argument parameters[] = {
  { "filters", FLOW_INTEGER, NULL, ">0" },
  FLOW_VOLUMES_WINDOW,
  FLOW_LAYER_DATA_FORMAT,
  { "output_padding", FLOW_ABSENT, "null", NULL },
  { "dilation_rate", FLOW_TRIPLE, "1,1,1", ">0" },
  FLOW_LAYER_KERNEL_AND_BIAS("kernel")
};

enum { KERNEL, BIAS };

static flow_status build(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs)
{
  (void)count;
  FLOW_TRY(flow_layer_check_rank(layer, inputs, 5, "{batch, depth, height, width, channels}", NULL));
  FLOW_TRY(flow_layer_check_channels(layer, inputs, "channels"));
  int64_t filters = flow_argument_integer(layer->arguments, "filters");
  int32_t size[3];
  flow_argument_triple(layer->arguments, "kernel_size", size);
  const int64_t shape[] = { size[0], size[1], size[2], filters, inputs->dims[4] };
  FLOW_TRY(flow_layer_add_variable(context, layer, KERNEL, "kernel", "kernel_initializer", 5, shape, 1));
  return flow_layer_add_bias(context, layer, BIAS, filters);
}

/* *output: the shape of the result, the batch as the input's. `text` is one of eight buffers of this thread (flow_shape_text). */
static flow_status shape_output(const flow_layer *layer, const flow_signature *input, flow_signature *output)
{
  int32_t size[3], stride[3], dilation[3];
  const char *text = flow_shape_text(input->rank, input->dims);
  FLOW_TRY(flow_volumes_check(layer, input));
  flow_argument_triple(layer->arguments, "kernel_size", size);
  flow_argument_triple(layer->arguments, "strides", stride);
  flow_argument_triple(layer->arguments, "dilation_rate", dilation);
  *output = (flow_signature){ .dtype = FLOW_FLOAT32, .rank = 5, .dims = { input->dims[0] } };
  output->dims[4] = flow_argument_integer(layer->arguments, "filters");
  for (int i = 0; i < 3; i++) {
    if (input->dims[1 + i] < 1) return flow_layer_fail(layer, "depth, height and width of the input %s must be known and positive", text);
    output->dims[1 + i] = flow_convolution_transposed_length(layer, input->dims[1 + i], size[i], stride[i], dilation[i]);
    if (output->dims[1 + i] < 0) return flow_layer_fail(layer, "the output of the input %s would be too large", text);
  }
  return FLOW_OK;
}

/* What plane `plane` of the kernel makes of images {n depth, h, w, channels}: {n depth, height, width, filters}. */
static flow_tensor *transpose_images(flow_expression *e, flow_layer *layer, const flow_signature *output, const flow_volume_window *window,
                                     int plane, flow_tensor *images)
{
  const int64_t all = INT64_MAX / 2;
  flow_attributes attributes = { .convolution = { .groups = 1 } };
  for (int i = 0; i < 2; i++) {
    attributes.convolution.stride[i] = window->stride[1 + i];
    attributes.convolution.dilation[i] = window->dilation[1 + i];
    attributes.convolution.input_size[i] = (int32_t)output->dims[2 + i];
  }
  for (int i = 0; i < 4; i++) attributes.convolution.padding[i] = window->padding[2 + i];
  flow_attributes slice = { .slice = { .rank = 5, .begin = { plane }, .end = { plane + 1, all, all, all, all },
                                       .step = { 1, 1, 1, 1, 1 } } };
  flow_tensor *kernel = flow_express_variable(e, layer->variables[KERNEL]);
  if (!kernel) return NULL;
  kernel = flow_express_reshape(e, flow_express(e, FLOW_OP_slice, kernel, NULL, NULL, &slice), 4, kernel->shape + 1);
  return flow_convolution_transpose(e, images, kernel, &attributes);
}

/* y {n, depth, height, width, filters} at the depths of the output that plane `plane` takes its planes to; those outside are left out.
 * NULL without a failure: none is inside. */
static flow_tensor *put_planes(flow_expression *e, const flow_signature *output, const flow_volume_window *window, int plane,
                               flow_tensor *y)
{
  const int64_t all = INT64_MAX / 2, stride = window->stride[0], shift = (int64_t)plane * window->dilation[0] - window->padding[0];
  if (!y) return NULL;
  int64_t first = shift < 0 ? (-shift + stride - 1) / stride : 0, last = y->shape[1] - 1, room = output->dims[1] - 1 - shift;
  if (room < 0 || first > last) return NULL;
  if (room / stride < last) last = room / stride;
  if (first > last) return NULL;
  flow_attributes part = { .slice = { .rank = 5, .begin = { 0, first }, .end = { all, last + 1, all, all, all },
                                      .step = { 1, 1, 1, 1, 1 } } };
  flow_attributes place = { .slice = { .rank = 5, .begin = { 0, first * stride + shift },
                                       .end = { all, last * stride + shift + 1, all, all, all }, .step = { 1, stride, 1, 1, 1 } } };
  for (int i = 0; i < 5; i++) place.slice.dims[i] = i == 1 ? output->dims[1] : y->shape[i];
  y = flow_express(e, FLOW_OP_slice, y, NULL, NULL, &part);
  return flow_express(e, FLOW_OP_slice_gradient, y, NULL, NULL, &place);
}

/* One plane of the kernel after the other, each with its own expression, so that what earlier ones made is freed. */
static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  flow_signature input = flow_signature_of(inputs[0]), output;
  flow_volume_window window;
  flow_tensor *sum = NULL, *x = inputs[0];
  flow_status status = FLOW_OK;
  FLOW_TRY(shape_output(layer, &input, &output));
  FLOW_TRY(flow_layer_check_channels(layer, &input, "channels"));
  FLOW_TRY(flow_volumes_window(layer, &output, "kernel_size", &window));
  for (int plane = 0; plane < window.size[0] && status == FLOW_OK; plane++) {
    flow_expression e = flow_expression_of(context);
    const int64_t dims[] = { x->shape[0] * x->shape[1], x->shape[2], x->shape[3], x->shape[4] };
    flow_tensor *y = transpose_images(&e, layer, &output, &window, plane, flow_express_reshape(&e, x, 4, dims));
    flow_tensor *next = put_planes(&e, &output, &window, plane, flow_volumes_of_images(&e, y, x->shape[1]));
    if (e.status == FLOW_OK && sum) next = next ? e_add(&e, sum, next) : sum;
    status = next ? flow_expression_take(&e, next, &next) : flow_expression_end(&e);
    flow_tensor_release(sum);
    sum = status == FLOW_OK ? next : NULL;
  }
  FLOW_TRY(status);
  flow_expression e = flow_expression_of(context);
  if (sum) {
    sum = flow_express_keep(&e, FLOW_OK, sum);
  } else { /* every plane puts its results outside, as dilated ones of an even number can with "same" padding: zeros are left */
    flow_attributes shape = { .shape = { .rank = 5,
                                         .dims = { x->shape[0], output.dims[1], output.dims[2], output.dims[3], output.dims[4] } } };
    flow_tensor *zero = flow_express_number(&e, x, 0);
    sum = flow_express(&e, FLOW_OP_broadcast_to, zero, NULL, NULL, &shape);
  }
  return flow_expression_take(&e, flow_layer_end(&e, layer, BIAS, sum), out);
}

const flow_layer_class flow_layer_conv3d_transpose = {
  .name = "Conv3DTranspose",
  .alias = "Convolution3DTranspose",
  .positional = 16,
  .parameters = parameters,
  .build = build,
  .call = call,
  .check = flow_volumes_check_strides,
  .doc = "activation(transposed convolution of volumes with filters kernels + bias): larger volumes."
};
