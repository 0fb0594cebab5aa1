/* pooling.c: gradients of pools. Their shapes are in convolution.c, with which plans fuse them. */
#include "ops/rules/pooling.h"

#include "base/memory.h"
#include "ops/rules.h"

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
