/* pooling.c: see pooling.h. A window over images is an op (max_pool, average_pool) with `pool` attributes: size, stride, padding; a
 * global one is a reduction over the axes of the positions. Padding "same" is worked out from the input's size, which must be known
 * then. */
#include "layers/pooling.h"

#include <string.h>

#include "ops/rules/pooling.h"

const flow_argument flow_pooling_parameters[] = {
  { "pool_size", FLOW_PAIR, "2,2", ">0" },
  { "strides", FLOW_PAIR, "null", ">0" }, /* null: pool_size */
  { "padding", FLOW_TEXT, "valid", "valid|same" },
  FLOW_LAYER_DATA_FORMAT,
  FLOW_LAYER_COMMON
};

const flow_argument flow_pooling_steps_parameters[] = {
  { "pool_size", FLOW_SINGLE, "2", ">0" },
  { "strides", FLOW_SINGLE, "null", ">0" },
  { "padding", FLOW_TEXT, "valid", "valid|same" },
  FLOW_LAYER_DATA_FORMAT,
  FLOW_LAYER_COMMON
};

const flow_argument flow_pooling_global_parameters[] = {
  FLOW_LAYER_DATA_FORMAT,
  { "keepdims", FLOW_BOOLEAN, "false", NULL },
  FLOW_LAYER_COMMON
};

/* strides becomes pool_size where it is null, as Keras stores it. */
flow_status flow_pooling_check(flow_layer *layer)
{
  const double *size;
  if (!flow_argument_is_null(layer->arguments, "strides")) return FLOW_OK;
  int count = flow_argument_list(layer->arguments, "pool_size", &size);
  return flow_arguments_set_numbers(layer->arguments, "strides", size, count);
}

/* `count` cells more on a side of `axis` of x, as what is at its edge; NULL: none. */
static flow_tensor *more_of_edge(flow_expression *e, flow_tensor *x, int axis, int at_end, int count)
{
  const int64_t all = INT64_MAX / 2, cell = at_end ? x->shape[axis] - 1 : 0;
  flow_attributes edge = { .slice = { .rank = 4, .end = { all, all, all, all }, .step = { 1, 1, 1, 1 } } };
  int64_t dims[4] = { 1, 1, 1, 1 };
  flow_tensor *made = NULL;
  if (e->status != FLOW_OK || count == 0) return NULL;
  edge.slice.begin[axis] = cell;
  edge.slice.end[axis] = cell + 1;
  dims[axis] = count;
  flow_status status = flow_tensor_new(FLOW_FLOAT32, 4, dims, &made);
  float *ones = status == FLOW_OK ? flow_tensor_elements(made) : NULL;
  for (int i = 0; ones && i < count; i++) ones[i] = 1;
  flow_tensor *kept = flow_express_keep(e, status, made);
  if (!kept) return NULL;
  return e_mul(e, flow_express(e, FLOW_OP_slice, x, NULL, NULL, &edge), flow_express_cast(e, kept, x->dtype));
}

/* x with what its windows along `axis` read beyond its ends. A window that reaches beyond an end has the cell at this end, too, so that
 * more of the same change no maximum. */
static flow_tensor *with_edges(flow_expression *e, flow_tensor *x, int axis, const int32_t padding[2])
{
  flow_tensor *parts[3];
  int count = 0;
  flow_tensor *before = more_of_edge(e, x, axis, 0, padding[0]), *after = more_of_edge(e, x, axis, 1, padding[1]);
  if (before) parts[count++] = before;
  parts[count++] = x;
  if (after) parts[count++] = after;
  if (e->status == FLOW_OK && count > 1) flow_express_all(e, FLOW_OP_concat, parts, count, &(flow_attributes){ .axis = { axis } }, &x);
  return x;
}

/* max_pool by a window along one axis that is longer than the op counts positions for: the largest of parts of it, of equal ones the
 * first. */
static flow_tensor *largest_of_parts(flow_expression *e, flow_tensor *x, int axis, const flow_attributes *window)
{
  const int64_t all = INT64_MAX / 2;
  const int32_t *padding = window->pool.padding + 2 * (axis - 1), size = window->pool.size[axis - 1];
  int64_t count;
  flow_tensor *y = NULL;
  e->status = flow_rule_window_count(FLOW_OP_max_pool, axis == 1 ? "height" : "width", x->shape[axis], (int64_t)padding[0] + padding[1],
                                     size, window->pool.stride[axis - 1], &count);
  x = with_edges(e, x, axis, padding);
  for (int32_t begin = 0; begin < size && e->status == FLOW_OK; begin += FLOW_MOST_MAXIMUM_CELLS) {
    flow_attributes part = *window, cells = { .slice = { .rank = 4, .end = { all, all, all, all }, .step = { 1, 1, 1, 1 } } };
    memset(part.pool.padding, 0, sizeof(part.pool.padding));
    part.pool.size[axis - 1] = size - begin < FLOW_MOST_MAXIMUM_CELLS ? size - begin : FLOW_MOST_MAXIMUM_CELLS;
    cells.slice.begin[axis] = begin;
    cells.slice.end[axis] = begin + (count - 1) * window->pool.stride[axis - 1] + part.pool.size[axis - 1];
    flow_tensor *one = flow_express_first(e, FLOW_OP_max_pool, flow_express(e, FLOW_OP_slice, x, NULL, NULL, &cells), NULL, &part);
    y = y && one ? e_maximum(e, y, one) : one;
  }
  return y;
}

flow_tensor *flow_pooling_express(flow_expression *e, int op, flow_tensor *x, const flow_attributes *window)
{
  const int32_t *size = window->pool.size;
  if (e->status != FLOW_OK) return NULL;
  const int is_small = (int64_t)size[0] * size[1] <= FLOW_MOST_MAXIMUM_CELLS;
  if (op != FLOW_OP_max_pool || is_small || x->rank != 4 || x->shape[1] < 1 || x->shape[2] < 1)
    return flow_express_first(e, op, x, NULL, window);
  if (size[0] == 1 || size[1] == 1) return largest_of_parts(e, x, size[0] == 1 ? 2 : 1, window);
  for (int i = 1; i >= 0; i--) { /* the first of equal ones is that of the first row */
    flow_attributes along = { .pool = { .size = { 1, 1 }, .stride = { 1, 1 } } };
    along.pool.size[i] = size[i];
    along.pool.stride[i] = window->pool.stride[i];
    memcpy(along.pool.padding + 2 * i, window->pool.padding + 2 * i, 2 * sizeof(int32_t));
    x = x ? flow_pooling_express(e, op, x, &along) : NULL;
  }
  return x;
}

flow_status flow_pooling_call(flow_context *context, const flow_layer *layer, int op, flow_tensor *x, flow_tensor **out)
{
  static const int32_t no_dilation[2] = { 1, 1 };
  flow_signature input = flow_signature_of(x), image = flow_sequences_signature(&input);
  flow_attributes attributes = { .pool = { .size = { 0 } } };
  FLOW_TRY(flow_sequences_check(layer, &input, flow_layer_is_over_steps(layer, "pool_size")));
  flow_argument_pair(layer->arguments, "pool_size", attributes.pool.size);
  flow_argument_pair(layer->arguments, "strides", attributes.pool.stride);
  FLOW_TRY(flow_layer_padding(layer, &image, attributes.pool.size, attributes.pool.stride, no_dilation, attributes.pool.padding));
  flow_expression e = flow_expression_of(context);
  flow_tensor *images = flow_sequences_to_images(&e, x);
  flow_tensor *y = images ? flow_pooling_express(&e, op, images, &attributes) : NULL;
  return flow_expression_take(&e, flow_sequences_like_input(&e, y, x), out);
}

flow_status flow_pooling_global(const flow_layer *layer, const flow_tensor *x, flow_attributes *reduce)
{
  flow_signature input = flow_signature_of(x);
  FLOW_TRY(flow_sequences_check(layer, &input, 0));
  int keepdims = flow_argument_boolean(layer->arguments, "keepdims");
  *reduce = (flow_attributes){ .reduce = { .count = 2, .keepdims = keepdims, .axes = { 1, 2 } } };
  return FLOW_OK;
}

flow_status flow_pooling_global_volume(const flow_layer *layer, const flow_tensor *x, flow_attributes *reduce)
{
  flow_signature input = flow_signature_of(x);
  FLOW_TRY(flow_layer_check_rank(layer, &input, 5, "{batch, depth, height, width, channels}", NULL));
  int keepdims = flow_argument_boolean(layer->arguments, "keepdims");
  *reduce = (flow_attributes){ .reduce = { .count = 3, .keepdims = keepdims, .axes = { 1, 2, 3 } } };
  return FLOW_OK;
}

flow_status flow_pooling_global_steps(const flow_layer *layer, const flow_tensor *x, flow_attributes *reduce)
{
  flow_signature input = flow_signature_of(x);
  FLOW_TRY(flow_sequences_check(layer, &input, 1));
  int keepdims = flow_argument_boolean(layer->arguments, "keepdims");
  *reduce = (flow_attributes){ .reduce = { .count = 1, .keepdims = keepdims, .axes = { 1 } } };
  return FLOW_OK;
}
