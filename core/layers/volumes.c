/* volumes.c: see volumes.h. Plane p of a convolution's window of depth kd meets the planes p, p + stride, p + 2 stride, ... of the padded
 * input. These are cut out by a slice and seen as a batch of n * depth images, so that an op over images does the work for all output
 * depths at once; the results of the window's planes are then added up. */
#include "layers/volumes.h"

#include <string.h>

#include "layers/pooling.h"

const flow_argument flow_volumes_pooling_parameters[] = {
  { "pool_size", FLOW_TRIPLE, "2,2,2", ">0" }, /* AveragePooling3D of Keras has no default */
  { "strides", FLOW_TRIPLE, "null", ">0" },    /* null: pool_size */
  { "padding", FLOW_TEXT, "valid", "valid|same" },
  FLOW_LAYER_DATA_FORMAT,
  FLOW_LAYER_COMMON
};

/* A record's check(). */
flow_status flow_volumes_check_strides(flow_layer *layer)
{
  int32_t stride[3], dilation[3];
  flow_argument_triple(layer->arguments, "strides", stride);
  flow_argument_triple(layer->arguments, "dilation_rate", dilation);
  if ((stride[0] > 1 || stride[1] > 1 || stride[2] > 1) && (dilation[0] > 1 || dilation[1] > 1 || dilation[2] > 1))
    return flow_layer_fail(layer, "strides and dilation_rate cannot both be greater than 1");
  return FLOW_OK;
}

flow_status flow_volumes_check(const flow_layer *layer, const flow_signature *input)
{
  FLOW_TRY(flow_layer_check_rank(layer, input, 5, "{batch, depth, height, width, channels}", NULL));
  if (input->dims[1] >= 0) return FLOW_OK;
  return flow_layer_fail(layer, "the depth of the input %s must be known", flow_shape_text(input->rank, input->dims));
}

/* Depth is padded by an explicit op, since convolutions have two axes; height and width by the convolution itself. window->depth: how
 * many planes the result has. */
flow_status flow_volumes_window(const flow_layer *layer, const flow_signature *input, const char *size, flow_volume_window *window)
{
  int32_t depth_padding[4];
  FLOW_TRY(flow_volumes_check(layer, input));
  flow_argument_triple(layer->arguments, size, window->size);
  flow_argument_triple(layer->arguments, "strides", window->stride);
  for (int i = 0; i < 3; i++) window->dilation[i] = 1;
  if (flow_argument_find(layer->class->parameters, "dilation_rate") >= 0)
    flow_argument_triple(layer->arguments, "dilation_rate", window->dilation);
  flow_signature depth = { .rank = 4, .dims = { -1, input->dims[1], input->dims[1], 1 } }, images = { .rank = 4 };
  for (int i = 0; i < 4; i++) images.dims[i] = i == 0 ? -1 : input->dims[i + 1];
  FLOW_TRY(flow_layer_padding(layer, &depth, (const int32_t[]){ window->size[0], window->size[0] },
                              (const int32_t[]){ window->stride[0], window->stride[0] },
                              (const int32_t[]){ window->dilation[0], window->dilation[0] }, depth_padding));
  FLOW_TRY(flow_layer_padding(layer, &images, window->size + 1, window->stride + 1, window->dilation + 1, window->padding + 2));
  memcpy(window->padding, depth_padding, 2 * sizeof *depth_padding);
  int64_t whole = input->dims[1] + window->padding[0] + window->padding[1];
  int64_t reach = (int64_t)window->dilation[0] * (window->size[0] - 1) + 1;
  window->depth = (whole - reach) / window->stride[0] + 1;
  if (whole < reach)
    return flow_layer_fail(layer, "a window of depth %lld does not fit into the input %s", (long long)reach,
                           flow_shape_text(input->rank, input->dims));
  return FLOW_OK;
}

/* Zeros around the depth: the gradient of a slice writes x into a larger tensor of zeros. */
flow_tensor *flow_volumes_pad(flow_expression *e, flow_tensor *x, int64_t before, int64_t after)
{
  const int64_t all = INT64_MAX / 2;
  if (e->status != FLOW_OK || (before == 0 && after == 0)) return x;
  flow_attributes attributes = { .slice = { .rank = 5, .begin = { 0, before }, .end = { all, before + x->shape[1], all, all, all },
                                            .step = { 1, 1, 1, 1, 1 } } };
  for (int i = 0; i < 5; i++) attributes.slice.dims[i] = x->shape[i] + (i == 1 ? before + after : 0);
  return flow_express(e, FLOW_OP_slice_gradient, x, NULL, NULL, &attributes);
}

/* The planes that plane number `plane` of the window meets, one for each output depth, as a batch of images {n * depth, height, width,
 * channels}. */
static flow_tensor *images_of(flow_expression *e, flow_tensor *x, const flow_volume_window *window, int plane)
{
  const int64_t all = INT64_MAX / 2, begin = (int64_t)plane * window->dilation[0];
  const int64_t end = begin + (window->depth - 1) * window->stride[0] + 1;
  if (e->status != FLOW_OK) return NULL;
  flow_attributes attributes = { .slice = { .rank = 5, .begin = { 0, begin }, .end = { all, end, all, all, all },
                                            .step = { 1, window->stride[0], 1, 1, 1 } } };
  const int64_t dims[] = { x->shape[0] * window->depth, x->shape[2], x->shape[3], x->shape[4] };
  return flow_express_reshape(e, flow_express(e, FLOW_OP_slice, x, NULL, NULL, &attributes), 4, dims);
}

flow_tensor *flow_volumes_of_images(flow_expression *e, flow_tensor *images, int64_t depth)
{
  if (e->status != FLOW_OK) return NULL;
  const int64_t dims[] = { images->shape[0] / depth, depth, images->shape[1], images->shape[2], images->shape[3] };
  return flow_express_reshape(e, images, 5, dims);
}

/* The attributes of a convolution over images. */
static flow_attributes attributes_of_images(const flow_volume_window *window, int64_t groups)
{
  flow_attributes attributes = { .convolution = { .groups = (int32_t)groups } };
  for (int i = 0; i < 2; i++) {
    attributes.convolution.stride[i] = window->stride[1 + i];
    attributes.convolution.dilation[i] = window->dilation[1 + i];
  }
  for (int i = 0; i < 4; i++) attributes.convolution.padding[i] = window->padding[2 + i];
  return attributes;
}

/* The sum so far, or nothing, and the convolution of the images that the plane sees. */
static flow_tensor *add_plane(flow_expression *e, const flow_volume_window *window, int plane, flow_tensor *so_far, flow_tensor *x,
                              flow_tensor *kernel, int64_t groups)
{
  const int64_t all = INT64_MAX / 2;
  const flow_attributes attributes = attributes_of_images(window, groups);
  const flow_attributes slice = { .slice = { .rank = 5, .begin = { plane }, .end = { plane + 1, all, all, all, all },
                                             .step = { 1, 1, 1, 1, 1 } } };
  flow_tensor *images = images_of(e, x, window, plane);
  flow_tensor *own = flow_express_reshape(e, flow_express(e, FLOW_OP_slice, kernel, NULL, NULL, &slice), 4, kernel->shape + 1);
  flow_tensor *y = flow_express_first(e, FLOW_OP_convolution, images, own, &attributes);
  return so_far ? e_add(e, so_far, y) : y;
}

/* The sum over the window's planes of convolutions over images. Each plane has its own expression, so that tensors of earlier planes are
 * freed meanwhile. */
static flow_tensor *sum_planes(flow_expression *e, const flow_volume_window *window, flow_tensor *x, flow_tensor *kernel, int64_t groups)
{
  flow_tensor *so_far = NULL, *next;
  for (int plane = 0; plane < window->size[0] && e->status == FLOW_OK; plane++) {
    flow_expression one = flow_expression_of(e->context);
    e->status = flow_expression_take(&one, add_plane(&one, window, plane, so_far, x, kernel, groups), &next);
    flow_tensor_release(so_far);
    so_far = e->status == FLOW_OK ? next : NULL;
  }
  return flow_express_keep(e, e->status, so_far);
}

enum { MOST_STACKED = 8 }; /* planes of a window whose channels are put one after the other */

/* One convolution, of images whose pixels have the channels of all planes that the window meets. It writes its result once, where a sum
 * reads and writes one for each plane, but each plane of x is copied as often as the window meets it: that pays unless x has many more
 * channels than the result. */
static int stacks_planes(const flow_volume_window *window, const flow_tensor *kernel, int64_t groups)
{
  return groups == 1 && window->size[0] > 1 && window->size[0] <= MOST_STACKED && 2 * kernel->shape[3] <= 3 * kernel->shape[4];
}

static flow_tensor *convolve_stacked(flow_expression *e, const flow_volume_window *window, flow_tensor *x, flow_tensor *kernel)
{
  const flow_attributes attributes = attributes_of_images(window, 1);
  const flow_attributes planes_last = { .transpose = { .rank = 5, .axes = { 1, 2, 0, 3, 4 } } };
  const int64_t *size = kernel->shape, stacked[] = { size[1], size[2], size[0] * size[3], size[4] };
  flow_tensor *planes[MOST_STACKED], *images = NULL;
  for (int plane = 0; plane < window->size[0]; plane++) planes[plane] = images_of(e, x, window, plane);
  if (e->status == FLOW_OK) flow_express_all(e, FLOW_OP_concat, planes, window->size[0], &(flow_attributes){ .axis = { 3 } }, &images);
  kernel = flow_express_reshape(e, flow_express(e, FLOW_OP_transpose, kernel, NULL, NULL, &planes_last), 4, stacked);
  return flow_express_first(e, FLOW_OP_convolution, images, kernel, &attributes);
}

flow_tensor *flow_volumes_convolve(flow_expression *e, const flow_volume_window *window, flow_tensor *x, flow_tensor *kernel,
                                   int64_t groups)
{
  if (e->status != FLOW_OK) return NULL;
  if (stacks_planes(window, kernel, groups)) return convolve_stacked(e, window, x, kernel);
  return sum_planes(e, window, x, kernel, groups);
}

/* x {images, height, width, channels} pooled by windows of these axes of the volume; 3: an axis of one cell. */
static flow_tensor *pool_axes(flow_expression *e, int op, const flow_volume_window *window, const int axes[2], flow_tensor *x)
{
  flow_attributes attributes = { .pool = { .size = { 1, 1 }, .stride = { 1, 1 } } };
  for (int i = 0; i < 2; i++) {
    if (axes[i] == 3) continue;
    attributes.pool.size[i] = window->size[axes[i]];
    attributes.pool.stride[i] = window->stride[axes[i]];
    memcpy(attributes.pool.padding + 2 * i, window->padding + 2 * axes[i], 2 * sizeof(int32_t));
  }
  return x ? flow_pooling_express(e, op, x, &attributes) : NULL;
}

/* First in every plane, as images; then over the depth, where a plane's cells are the channels of one pixel. */
flow_status flow_volumes_pool(flow_context *context, flow_layer *layer, int op, flow_tensor *x, flow_tensor **out)
{
  flow_signature input = flow_signature_of(x);
  flow_volume_window window;
  FLOW_TRY(flow_volumes_window(layer, &input, "pool_size", &window));
  flow_expression e = flow_expression_of(context);
  const int64_t planes[] = { x->shape[0] * x->shape[1], x->shape[2], x->shape[3], x->shape[4] };
  flow_tensor *y = pool_axes(&e, op, &window, (const int[]){ 1, 2 }, flow_express_reshape(&e, x, 4, planes));
  if (e.status != FLOW_OK) return flow_expression_take(&e, NULL, out);
  const int64_t columns[] = { x->shape[0], x->shape[1], 1, y->shape[1] * y->shape[2] * y->shape[3] };
  const int64_t volume[] = { x->shape[0], window.depth, y->shape[1], y->shape[2], y->shape[3] };
  y = pool_axes(&e, op, &window, (const int[]){ 0, 3 }, flow_express_reshape(&e, y, 4, columns));
  return flow_expression_take(&e, flow_express_reshape(&e, y, 5, volume), out);
}

/* margins: before and after each of depth, height and width; FLOW_VOLUME_SIDES has checked that they are not negative. */
flow_status flow_volumes_margins(const flow_layer *layer, const flow_tensor *x, const char *name, int64_t margins[6])
{
  flow_signature input = flow_signature_of(x);
  const double *sides;
  FLOW_TRY(flow_volumes_check(layer, &input));
  if (input.dims[2] < 0 || input.dims[3] < 0)
    return flow_layer_fail(layer, "height and width of the input %s must be known", flow_tensor_shape_text(x));
  int count = flow_argument_list(layer->arguments, name, &sides);
  for (int i = 0; i < 6; i++) margins[i] = i < count ? (int64_t)sides[i] : 0;
  return FLOW_OK;
}
