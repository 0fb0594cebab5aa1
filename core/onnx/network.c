/* network.c: matrix products, convolutions, poolings, resizing. */
#include "onnx/onnx.h"

/* ---- matrix products ------------------------------------------------------------------------------------------------------- */

/* A factor of a matrix product, its last two axes exchanged if the op says so: ONNX' MatMul has no such attributes. */
static const char *factor(flow_onnx *x, const flow_node *node, int input, int transposed)
{
  const char *name = flow_onnx_input(x, node, input, FLOW_CHANNELS_LAST);
  int rank = flow_onnx_signature(x, node, input)->rank;
  if (!transposed || rank < 2) return name;
  int64_t axes[FLOW_MAX_RANK];
  for (int i = 0; i < rank; i++) axes[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
  return flow_onnx_transpose(x, name, axes, rank, NULL);
}

FLOW_ONNX_RULE(matmul)
{
  const char *a = factor(x, node, 0, node->attributes.matmul.transpose_a), *b = factor(x, node, 1, node->attributes.matmul.transpose_b);
  flow_onnx_emit(x, type, flow_onnx_result(x, node, 0, FLOW_CHANNELS_LAST), a, b, NULL);
}

/* ---- convolutions and poolings ---------------------------------------------------------------------------------------------- */

/* Attributes of Conv, ConvTranspose, MaxPool and AveragePool. AveragePool does not count padded cells, which is its default. */
static void window_attributes(flow_onnx *x, const int32_t size[2], const int32_t stride[2], const int32_t padding[4])
{
  int64_t sizes[2] = { size[0], size[1] }, strides[2] = { stride[0], stride[1] };
  /* here top, bottom, left, right; there all begins, all ends */
  int64_t pads[4] = { padding[0], padding[2], padding[1], padding[3] };
  flow_onnx_integers(x, "kernel_shape", sizes, 2);
  flow_onnx_integers(x, "strides", strides, 2);
  flow_onnx_integers(x, "pads", pads, 4);
}

/* Kernels {height, width, channels, filters} as {filters, channels, height, width}: rewritten in the file where they are known. */
static const char *kernel_of(flow_onnx *x, const flow_node *node, int input)
{
  static const int64_t axes[4] = { 3, 2, 0, 1 };
  flow_tensor *kernel = flow_onnx_static(x, node, input), *view = NULL, *copy = NULL;
  if (!kernel) return flow_onnx_transpose(x, flow_onnx_input(x, node, input, FLOW_CHANNELS_LAST), axes, 4, NULL);
  int64_t dims[4], strides[4], own[4];
  flow_contiguous_strides(4, kernel->shape, own);
  for (int i = 0; i < 4; i++) {
    dims[i] = kernel->shape[axes[i]];
    strides[i] = own[axes[i]];
  }
  if (x->status == FLOW_OK) x->status = flow_tensor_view(kernel, 4, dims, strides, 0, &view);
  if (x->status != FLOW_OK || !flow_onnx_keep(x, view)) return NULL;
  x->status = flow_tensor_new_uninitialized(kernel->dtype, 4, dims, &copy);
  if (x->status != FLOW_OK || !flow_onnx_keep(x, copy)) return NULL;
  x->status = flow_tensor_copy(copy, view);
  return flow_onnx_tensor(x, copy, NULL);
}

FLOW_ONNX_RULE(convolution)
{
  const flow_signature *kernel = flow_onnx_signature(x, node, 1);
  int32_t size[2] = { (int32_t)kernel->dims[0], (int32_t)kernel->dims[1] };
  int64_t dilations[2] = { node->attributes.convolution.dilation[0], node->attributes.convolution.dilation[1] };
  if (node->attributes.convolution.pool[0] || node->attributes.convolution.activation || node->attributes.convolution.input_scale != 0) {
    flow_onnx_fail(x, FLOW_INTERNAL, "ONNX: a fused convolution cannot be exported");
    return;
  }
  const char *inputs[3] = { flow_onnx_input(x, node, 0, FLOW_CHANNELS_FIRST), kernel_of(x, node, 1), NULL };
  if (node->input_count > 2) inputs[2] = flow_onnx_input(x, node, 2, FLOW_CHANNELS_LAST);
  const char *result = flow_onnx_result(x, node, 0, FLOW_CHANNELS_FIRST);
  flow_onnx_begin(x, type, inputs, node->input_count, result);
  window_attributes(x, size, node->attributes.convolution.stride, node->attributes.convolution.padding);
  flow_onnx_integers(x, "dilations", dilations, 2);
  flow_onnx_integer(x, "group", node->attributes.convolution.groups > 1 ? node->attributes.convolution.groups : 1);
  flow_onnx_end(x);
}

/* The gradient of a convolution with regard to its image, which is what a transposed convolution computes: input 0 is what is spread, of
 * input 1 only the shape counts, input 2 is the kernel. y = stride (x - 1) + the window's reach - padding + output_padding, of which the
 * last is what is missing to the size that the op gives. */
FLOW_ONNX_RULE(convolution_transpose)
{
  const flow_signature *from = flow_onnx_signature(x, node, 0), *kernel = flow_onnx_signature(x, node, 2);
  const int32_t *padding = node->attributes.convolution.padding, *stride = node->attributes.convolution.stride;
  int32_t size[2] = { (int32_t)kernel->dims[0], (int32_t)kernel->dims[1] };
  int64_t dilations[2], missing[2];
  if (node->attributes.convolution.pool[0] || node->attributes.convolution.activation) {
    flow_onnx_fail(x, FLOW_UNSUPPORTED, "the op convolution_gradient has no ONNX form with pooling or an activation");
    return;
  }
  for (int i = 0; i < 2; i++) {
    dilations[i] = node->attributes.convolution.dilation[i] > 1 ? node->attributes.convolution.dilation[i] : 1;
    int64_t reach = dilations[i] * (size[i] - 1) + 1, padded = padding[2 * i] + padding[2 * i + 1];
    missing[i] = node->attributes.convolution.input_size[i] - (stride[i] * (from->dims[i + 1] - 1) + reach - padded);
  }
  const char *inputs[2] = { flow_onnx_input(x, node, 0, FLOW_CHANNELS_FIRST), kernel_of(x, node, 2) };
  const char *result = flow_onnx_result(x, node, 0, FLOW_CHANNELS_FIRST);
  flow_onnx_begin(x, type, inputs, 2, result);
  window_attributes(x, size, stride, padding);
  flow_onnx_integers(x, "dilations", dilations, 2);
  flow_onnx_integers(x, "output_padding", missing, 2);
  flow_onnx_integer(x, "group", node->attributes.convolution.groups > 1 ? node->attributes.convolution.groups : 1);
  flow_onnx_end(x);
}

FLOW_ONNX_RULE(pool)
{
  const char *input = flow_onnx_input(x, node, 0, FLOW_CHANNELS_FIRST), *result = flow_onnx_result(x, node, 0, FLOW_CHANNELS_FIRST);
  flow_onnx_begin(x, type, &input, 1, result);
  window_attributes(x, node->attributes.pool.size, node->attributes.pool.stride, node->attributes.pool.padding);
  flow_onnx_end(x);
}

/* ---- resizing ---------------------------------------------------------------------------------------------------------------- */

/* The weights {to, from} by which positions along an axis are summed: what resizing makes of the unit matrix, image after image. */
static flow_tensor *resize_weights(flow_onnx *x, const flow_node *node, int64_t from, int64_t to)
{
  const int64_t dims[4] = { 1, from, 1, from }, shape[2] = { to, from }, strides[2] = { from, 1 };
  flow_attributes attributes = node->attributes;
  flow_tensor *unit = NULL, *resized = NULL, *weights = NULL;
  attributes.resize.size[0] = (int32_t)to;
  attributes.resize.size[1] = 1;
  if (x->status == FLOW_OK) x->status = flow_tensor_new(FLOW_FLOAT32, 4, dims, &unit);
  if (x->status != FLOW_OK || !flow_onnx_keep(x, unit)) return NULL;
  for (int64_t i = 0; i < from; i++) ((float *)unit->data)[i * from + i] = 1;
  x->status = flow_apply(x->context, FLOW_OP_resize, &unit, 1, &attributes, &resized);
  if (x->status != FLOW_OK || !flow_onnx_keep(x, resized)) return NULL;
  x->status = flow_tensor_view(resized, 2, shape, strides, 0, &weights);
  return x->status == FLOW_OK ? flow_onnx_keep(x, weights) : NULL;
}

/* A copy with rows and columns exchanged, which the export keeps. */
static flow_tensor *transposed(flow_onnx *x, flow_tensor *matrix)
{
  flow_tensor *view = NULL, *copy = NULL;
  if (!matrix || x->status != FLOW_OK) return NULL;
  int64_t shape[2] = { matrix->shape[1], matrix->shape[0] }, strides[2] = { 1, matrix->shape[1] };
  x->status = flow_tensor_view(matrix, 2, shape, strides, 0, &view);
  if (x->status != FLOW_OK || !flow_onnx_keep(x, view)) return NULL;
  x->status = flow_tensor_contiguous(view, &copy);
  return x->status == FLOW_OK ? flow_onnx_keep(x, copy) : NULL;
}

/* Resizing is linear along each axis: rows . x . columns, for methods that ONNX lacks or that runtimes compute in other ways. The image is
 * channels first, so that the last two axes are height and width. */
static void resize_by_products(flow_onnx *x, const flow_node *node)
{
  const flow_signature *from = flow_onnx_signature(x, node, 0);
  flow_tensor *rows = resize_weights(x, node, from->dims[1], node->attributes.resize.size[0]);
  flow_tensor *columns = transposed(x, resize_weights(x, node, from->dims[2], node->attributes.resize.size[1]));
  if (x->status != FLOW_OK) return;
  const char *left = flow_onnx_tensor(x, rows, NULL), *right = flow_onnx_tensor(x, columns, NULL);
  const char *narrow = flow_onnx_emit(x, "MatMul", NULL, flow_onnx_input(x, node, 0, FLOW_CHANNELS_FIRST), right, NULL);
  flow_onnx_emit(x, "MatMul", flow_onnx_result(x, node, 0, FLOW_CHANNELS_FIRST), left, narrow, NULL);
}

FLOW_ONNX_RULE(resize)
{
  int interpolation = node->attributes.resize.interpolation;
  if (interpolation != FLOW_NEAREST && (interpolation != FLOW_BILINEAR || node->attributes.resize.antialias)) {
    resize_by_products(x, node);
    return;
  }
  /* Sizes of all axes: with the attribute `axes` ONNX Runtime 1.31 fails when it moves a transposition through. */
  const flow_signature *y = &x->graph->values[node->outputs[0]].signature;
  flow_signature sizes = { .dtype = FLOW_INT64, .rank = 4, .dims = { y->dims[0], y->dims[3], y->dims[1], y->dims[2] } };
  const char *inputs[4] = { flow_onnx_input(x, node, 0, FLOW_CHANNELS_FIRST), NULL, NULL, flow_onnx_shape(x, &sizes) };
  const char *result = flow_onnx_result(x, node, 0, FLOW_CHANNELS_FIRST);
  flow_onnx_begin(x, type, inputs, 4, result);
  flow_onnx_text(x, "mode", interpolation == FLOW_NEAREST ? "nearest" : "linear");
  flow_onnx_text(x, "coordinate_transformation_mode", "half_pixel");
  if (interpolation == FLOW_NEAREST) flow_onnx_text(x, "nearest_mode", "round_prefer_ceil");
  flow_onnx_end(x);
}

/* ---- normalization ----------------------------------------------------------------------------------------------------------- */

/* Step by step, as ONNX' LayerNormalization wants a scale, and the last axes in their order, which channels first lack. Keeping the
 * reduced axes is the default of ReduceMean. */
FLOW_ONNX_RULE(normalize)
{
  flow_onnx_layout layout = flow_onnx_layout_of(x, node);
  int rank = flow_onnx_signature(x, node, 0)->rank, dtype = flow_onnx_signature(x, node, 0)->dtype, count = 0;
  int axis = node->attributes.normalization.axis;
  int64_t axes[FLOW_MAX_RANK];
  for (int i = axis < 0 ? axis + rank : axis; i < rank; i++) axes[count++] = flow_onnx_axis(i, layout);
  const char *over = flow_onnx_list(x, axes, count), *centered = flow_onnx_input(x, node, 0, layout);
  if (!node->attributes.normalization.uncentered)
    centered = flow_onnx_emit(x, "Sub", NULL, centered, flow_onnx_emit(x, type, NULL, centered, over, NULL), NULL);
  const char *variance = flow_onnx_emit(x, type, NULL, flow_onnx_emit(x, "Mul", NULL, centered, centered, NULL), over, NULL);
  variance = flow_onnx_emit(x, "Add", NULL, variance, flow_onnx_number(x, dtype, node->attributes.normalization.epsilon), NULL);
  const char *deviation = flow_onnx_emit(x, "Sqrt", NULL, variance, NULL, NULL);
  flow_onnx_emit(x, "Reciprocal", flow_onnx_result(x, node, 1, layout), deviation, NULL, NULL);
  flow_onnx_emit(x, "Div", flow_onnx_result(x, node, 0, layout), centered, deviation, NULL);
}

const flow_onnx_record flow_onnx_network[] = {
  FLOW_ONNX(matmul, matmul, "MatMul"),
  FLOW_ONNX(convolution, convolution, "Conv"),
  FLOW_ONNX(max_pool, pool, "MaxPool"),
  FLOW_ONNX(average_pool, pool, "AveragePool"),
  FLOW_ONNX(resize, resize, "Resize"),
  FLOW_ONNX(normalize, normalize, "ReduceMean"),
  /* What Conv2DTranspose computes: of the gradients only that of the image, which reads the upstream gradient and the kernel. */
  FLOW_ONNX_READS(convolution_gradient, convolution_transpose, "ConvTranspose", 1u << 0 | 1u << 2),
  { .rule = NULL },
};
