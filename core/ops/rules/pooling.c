/* pooling.c: rules of pools: windows, shapes, gradients. */
#include "ops/rules/pooling.h"

#include "base/memory.h"
#include "ops/rules.h"

/* ---- windows ----------------------------------------------------------------------------------------------------- */

/* The wording "Computed output size would be negative" is Keras', so that users find it. */
flow_status flow_rule_window_count(int op, const char *axis, int64_t size, int64_t padding, int64_t reach, int64_t stride, int64_t *out)
{
  int64_t room;
  if (__builtin_add_overflow(size, padding, &room)) return flow_rule_fail(op, "the padded %s overflows", axis);
  if (room < reach) {
    return flow_rule_fail(op,
                          "Computed output size would be negative: the %s of the input is %lld (%lld with padding), "
                          "a window spans %lld",
                          axis, (long long)size, (long long)room, (long long)reach);
  }
  *out = (room - reach) / stride + 1;
  return FLOW_OK;
}

static flow_status check_window(int op, const int32_t size[2], const int32_t stride[2])
{
  if (size[0] >= 1 && size[1] >= 1 && stride[0] >= 1 && stride[1] >= 1) return FLOW_OK;
  return flow_rule_fail(op, "pool size is {%d, %d} with strides {%d, %d}, expected 1 or more", size[0], size[1], stride[0], stride[1]);
}

flow_status flow_rule_maximum_window(int op, const int32_t size[2], const int32_t stride[2])
{
  FLOW_TRY(check_window(op, size, stride));
  if ((int64_t)size[0] * size[1] > FLOW_MOST_MAXIMUM_CELLS) {
    return flow_rule_fail(op, "a pool of {%d, %d} covers %lld cells, at most %d are possible; for whole images reduce with max", size[0],
                          size[1], (long long)size[0] * size[1], FLOW_MOST_MAXIMUM_CELLS);
  }
  return FLOW_OK;
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

/* Height and width after pooling. Padding narrower than the window: so each window holds a real cell. */
static flow_status pooled_size(int op, const flow_attributes *attributes, const int64_t size[2], int64_t out[2])
{
  static const char *const axes[2] = { "height", "width" };
  for (int i = 0; i < 2; i++) {
    int32_t before = attributes->pool.padding[2 * i], after = attributes->pool.padding[2 * i + 1], window = attributes->pool.size[i];
    if (before < 0 || after < 0 || before >= window || after >= window) {
      return flow_rule_fail(op, "padding %d and %d of the %s, expected from 0 to less than the window's %d", before, after, axes[i],
                            window);
    }
    if (size[i] < 1) {
      return flow_rule_fail(op, "Computed output size would be negative: the %s of the input is %lld", axes[i], (long long)size[i]);
    }
    FLOW_TRY(flow_rule_window_count(op, axes[i], size[i], (int64_t)before + after, window, attributes->pool.stride[i], &out[i]));
  }
  return FLOW_OK;
}

/* *y: x {n, h, w, c} pooled; stride and window have been checked. */
static flow_status pooled(int op, const flow_attributes *attributes, const flow_signature *x, flow_signature *y)
{
  FLOW_TRY(flow_rule_rank(op, "the input", x, 4, "{batch, height, width, channels}"));
  FLOW_TRY(flow_rule_known(op, "the input", x, 1));
  *y = *x;
  FLOW_TRY(pooled_size(op, attributes, &x->dims[1], &y->dims[1]));
  flow_extent extent;
  return flow_rule_extent(op, 4, y->dims, &extent);
}

/* *dx: the shape before pooling, of which g is the gradient after it. pool.input_size is the height and width before it, which must pool to
 * those of g. */
static flow_status unpooled(int op, const flow_attributes *attributes, const flow_signature *g, flow_signature *dx)
{
  int64_t size[2] = { attributes->pool.input_size[0], attributes->pool.input_size[1] };
  FLOW_TRY(flow_rule_float(op, "the gradient", g));
  FLOW_TRY(flow_rule_rank(op, "the gradient", g, 4, "{batch, height, width, channels}"));
  flow_signature expected = *g;
  FLOW_TRY(pooled_size(op, attributes, size, &expected.dims[1]));
  FLOW_TRY(flow_rule_dims(op, "the gradient", g, 4, expected.dims));
  *dx = *g;
  dx->dims[1] = size[0];
  dx->dims[2] = size[1];
  return FLOW_OK;
}

/* x {n, h, w, c}: y, and in uint8 which cell of each window was its maximum. Integers are allowed: a maximum is one of the elements. */
flow_status flow_shape_max_pool(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                flow_signature *outputs)
{
  (void)input_count;
  FLOW_TRY(flow_rule_maximum_window(op, attributes->pool.size, attributes->pool.stride));
  FLOW_TRY(pooled(op, attributes, &inputs[0], &outputs[0]));
  outputs[1] = outputs[0];
  outputs[1].dtype = FLOW_UINT8;
  return FLOW_OK;
}

/* g and index of one shape: dx {n, pool.input_size, c}. */
flow_status flow_shape_max_pool_gradient(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                         flow_signature *outputs)
{
  (void)input_count;
  const flow_signature *g = &inputs[0];
  FLOW_TRY(flow_rule_maximum_window(op, attributes->pool.size, attributes->pool.stride));
  FLOW_TRY(flow_rule_same_dtype(op, "the index", FLOW_UINT8, &inputs[1]));
  FLOW_TRY(flow_rule_dims(op, "the index", &inputs[1], g->rank, g->dims));
  return unpooled(op, attributes, g, &outputs[0]);
}

/* x {n, h, w, c}: the same with fewer rows and columns. Floats only: the mean of integers is not an integer. */
flow_status flow_shape_average_pool(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                    flow_signature *outputs)
{
  (void)input_count;
  FLOW_TRY(flow_rule_float(op, "the input", &inputs[0]));
  FLOW_TRY(check_window(op, attributes->pool.size, attributes->pool.stride));
  return pooled(op, attributes, &inputs[0], &outputs[0]);
}

/* g: dx {n, pool.input_size, c}. The size cannot follow from g: several sizes pool to the same. */
flow_status flow_shape_average_pool_gradient(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                             flow_signature *outputs)
{
  (void)input_count;
  FLOW_TRY(check_window(op, attributes->pool.size, attributes->pool.stride));
  return unpooled(op, attributes, &inputs[0], &outputs[0]);
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

/* The op has kept which element of a window was its maximum; g goes there. */
flow_status flow_gradient_max_pool(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0], *x = step->inputs[0];
  if (g == NULL || !step->needed[0] || !flow_dtype_is_float(x->dtype)) return FLOW_OK;
  flow_attributes attributes = *step->attributes;
  for (int i = 0; i < 2; i++) attributes.pool.input_size[i] = (int32_t)x->shape[i + 1];
  return flow_gradient_by(step, 0, FLOW_OP_max_pool_gradient, g, step->outputs[1], NULL, &attributes);
}

/* The gradient op needs the size of the image, which g does not have. */
flow_status flow_gradient_average_pool(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0], *x = step->inputs[0];
  if (g == NULL || !step->needed[0]) return FLOW_OK;
  flow_attributes attributes = *step->attributes;
  for (int i = 0; i < 2; i++) attributes.pool.input_size[i] = (int32_t)x->shape[i + 1];
  return flow_gradient_by(step, 0, FLOW_OP_average_pool_gradient, g, NULL, NULL, &attributes);
}

/* Averaging is linear, and this its transpose: the transpose of that is averaging again. */
flow_status flow_gradient_average_pool_gradient(flow_gradient_step *step)
{
  flow_tensor *u = step->output_gradients[0];
  if (u == NULL || !step->needed[0]) return FLOW_OK;
  return flow_gradient_by(step, 0, FLOW_OP_average_pool, u, NULL, NULL, step->attributes);
}

/* The number of each window's first cell in its image, row by row, {windows, 1}; below 0 where that is padding. */
static flow_tensor *window_starts(flow_expression *e, const flow_tensor *index, const flow_attributes *pool)
{
  int64_t shape[2] = { index->shape[1] * index->shape[2], 1 };
  flow_tensor *starts = NULL;
  void *block = NULL;
  if (e->status != FLOW_OK) return NULL;
  flow_status status = flow_alloc(sizeof(double) * (size_t)(shape[0] + 1), &block);
  double *numbers = block;
  for (int64_t i = 0; status == FLOW_OK && i < shape[0]; i++) {
    int64_t row = i / index->shape[2] * pool->pool.stride[0] - pool->pool.padding[0];
    int64_t column = i % index->shape[2] * pool->pool.stride[1] - pool->pool.padding[2];
    numbers[i] = (double)(row * pool->pool.input_size[1] + column);
  }
  if (status == FLOW_OK) status = flow_tensor_new(FLOW_INT32, 2, shape, &starts);
  if (status == FLOW_OK) status = flow_tensor_write(starts, numbers, (double)shape[0]);
  flow_free(block);
  return flow_express_keep(e, status, starts);
}

/* The cells are numbered row by row in windows, by index, and in images, where take_along finds them. */
flow_tensor *flow_express_at_maxima(flow_expression *e, flow_tensor *x, flow_tensor *index, const flow_attributes *pool)
{
  if (e->status != FLOW_OK) return NULL;
  int64_t cells = x->shape[1] * x->shape[2], windows = index->shape[1] * index->shape[2], channels = x->shape[3];
  flow_attributes flat = { .shape = { .rank = 3, .dims = { x->shape[0], cells, channels } } }, along = { .along = { .axis = 1 } };
  flow_attributes flat_index = { .shape = { .rank = 3, .dims = { index->shape[0], windows, channels } } };
  flow_tensor *at = flow_express_cast(e, flow_express(e, FLOW_OP_reshape, index, NULL, NULL, &flat_index), FLOW_INT32);
  flow_tensor *width = flow_express_number(e, at, pool->pool.size[1]),
              *row = e_mul(e, e_floor_divide(e, at, width), flow_express_number(e, at, (double)x->shape[2]));
  at = e_add(e, e_add(e, row, e_mod(e, at, width)), window_starts(e, index, pool));
  at = e_maximum(e, e_minimum(e, at, flow_express_number(e, at, (double)cells - 1)), flow_express_number(e, at, 0)); /* all NaN */
  flow_tensor *taken = flow_express(e, FLOW_OP_take_along, flow_express(e, FLOW_OP_reshape, x, NULL, NULL, &flat), at, NULL, &along);
  return flow_express_reshape_like(e, taken, index);
}

/* Spreading over windows is linear, and transposed it takes what is at the maxima. */
flow_status flow_gradient_max_pool_gradient(flow_gradient_step *step)
{
  flow_tensor *u = step->output_gradients[0];
  if (u == NULL || !step->needed[0]) return FLOW_OK;
  flow_expression e = flow_gradient_expression(step);
  return flow_expression_take(&e, flow_express_at_maxima(&e, u, step->inputs[1], step->attributes), &step->input_gradients[0]);
}
