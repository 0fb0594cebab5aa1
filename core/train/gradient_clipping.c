/* gradient_clipping.c: what is done to gradients before the update, as ops: they are divided by the loss scale, then clipped by
 * clipnorm, global_clipnorm or clipvalue (keras/src/optimizers/base_optimizer.py: apply, _clip_gradients). This comes after whatever
 * sums them over replicas: what is clipped is the step's gradient, not a part of it. */
#include <string.h>

#include "layers/express.h"
#include "autodiff/apply.h"
#include "train/optimizer.h"

/* The number of option `name`; 0: there is none. */
static double option_of(const flow_optimizer *optimizer, const char *name)
{
  return flow_argument_is_null(optimizer->arguments, name) ? 0 : flow_argument_number(optimizer->arguments, name);
}

/* Over all elements, as a scalar. */
static flow_tensor *sum_of_squares(flow_expression *e, flow_tensor *x)
{
  flow_attributes all;
  memset(&all, 0, sizeof all);
  return flow_express(e, FLOW_OP_sum, e_square(e, x), NULL, NULL, &all);
}

/* unscaled[i]: new references, NULL where there is no gradient. divisor NULL: there is no loss scale. After a failure the caller releases
 * what was made. */
flow_status flow_optimizer_unscale(flow_context *context, flow_tensor *divisor, flow_tensor *const *gradients, int count,
                                   flow_tensor **unscaled)
{
  flow_status status = FLOW_OK;
  for (int i = 0; i < count && status == FLOW_OK; i++) {
    if (!gradients[i]) continue;
    if (divisor) status = flow_apply1(context, FLOW_OP_div, gradients[i], divisor, NULL, NULL, &unscaled[i]);
    else unscaled[i] = flow_tensor_retain(gradients[i]);
  }
  return status;
}

/* Elements [begin, end) of a flat gradient g: g limit / max(|g|, limit). As tf.clip_by_norm: a norm of 0 leaves the gradient unchanged,
 * and no comparison is needed. */
static flow_status clip_part(flow_context *context, flow_tensor *flat, int64_t begin, int64_t end, double limit, flow_tensor **out)
{
  flow_attributes part = { .slice = { .rank = 1, .begin = { begin }, .end = { end }, .step = { 1 } } };
  flow_expression e = flow_expression_of(context);
  flow_tensor *gradient = flow_express(&e, FLOW_OP_slice, flat, NULL, NULL, &part);
  flow_tensor *norm = flow_express(&e, FLOW_OP_sqrt, sum_of_squares(&e, gradient), NULL, NULL, NULL);
  flow_tensor *number = flow_express_number(&e, norm, limit);
  return flow_expression_take(&e, e_div(&e, e_mul(&e, gradient, number), e_maximum(&e, norm, number)), out);
}

/* clipnorm is for each variable alone, while the gradient of a run is flat: it is cut into its variables' parts, which are clipped and
 * packed again. *gradient is replaced when that has succeeded. */
flow_status flow_optimizer_clip_each(flow_context *context, const flow_optimizer *optimizer, const flow_run *r, flow_tensor **gradient)
{
  double limit = option_of(optimizer, "clipnorm");
  void *block;
  if (!(limit > 0)) return FLOW_OK;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_tensor *) * (size_t)r->count, &block));
  flow_tensor **parts = block, *clipped;
  const int64_t *offsets = r->home->offsets + r->first;
  flow_status status = FLOW_OK;
  for (int i = 0; i < r->count && status == FLOW_OK; i++)
    status = clip_part(context, *gradient, offsets[i] - offsets[0], offsets[i + 1] - offsets[0], limit, &parts[i]);
  if (status == FLOW_OK) status = flow_apply(context, FLOW_OP_pack, parts, r->count, NULL, &clipped);
  flow_tensors_release(parts, r->count);
  flow_free(block);
  FLOW_TRY(status);
  flow_tensor_release(*gradient);
  *gradient = clipped;
  return FLOW_OK;
}

/* Each element between -limit and limit. */
static flow_status clip_value(flow_context *context, flow_tensor *gradient, double limit, flow_tensor **out)
{
  flow_expression e = flow_expression_of(context);
  flow_tensor *low = flow_express_number(&e, gradient, -limit), *high = flow_express_number(&e, gradient, limit);
  return flow_expression_take(&e, e_minimum(&e, e_maximum(&e, gradient, low), high), out);
}

/* The gradients are members of larger structs: the next one is `stride` bytes further on. */
static flow_tensor **at(flow_tensor **first, int index, size_t stride)
{
  return (flow_tensor **)(void *)((char *)first + (size_t)index * stride);
}

/* limit min(1 / |g|, 1 / limit) with |g| over all runs; NaN if |g| is not finite, so that the step shows it. */
static flow_status global_scale(flow_context *context, flow_tensor **first, int count, size_t stride, double limit, flow_tensor **out)
{
  flow_tensor *total = NULL;
  for (int i = 0; i < count; i++) {
    flow_expression e = flow_expression_of(context);
    flow_tensor *squares = sum_of_squares(&e, *at(first, i, stride)), *sum;
    flow_status status = flow_expression_take(&e, total ? e_add(&e, total, squares) : squares, &sum);
    flow_tensor_release(total);
    total = sum;
    if (status != FLOW_OK) return status;
  }
  flow_expression e = flow_expression_of(context);
  flow_tensor *norm = flow_express(&e, FLOW_OP_sqrt, total, NULL, NULL, NULL);
  flow_tensor *number = flow_express_number(&e, total, limit), *one = flow_express_number(&e, total, 1);
  flow_tensor *scale = e_mul(&e, number, e_minimum(&e, e_div(&e, one, norm), e_div(&e, one, number)));
  flow_status status = flow_expression_take(&e, e_add(&e, scale, e_sub(&e, norm, norm)), out);
  flow_tensor_release(total);
  return status;
}

/* The scale is of float64 if one of the gradients is. */
static flow_status scaled(flow_context *context, flow_tensor *gradient, flow_tensor *scale, flow_tensor **out)
{
  flow_expression e = flow_expression_of(context);
  return flow_expression_take(&e, e_mul(&e, gradient, flow_express_cast(&e, scale, gradient->dtype)), out);
}

/* global_clipnorm or clipvalue; check_arguments lets only one of them be set. */
flow_status flow_optimizer_clip_together(flow_context *context, const flow_optimizer *optimizer, flow_tensor **first, int count,
                                         size_t stride)
{
  double value = option_of(optimizer, "clipvalue"), global = option_of(optimizer, "global_clipnorm");
  flow_tensor *scale = NULL;
  flow_status status = global > 0 ? global_scale(context, first, count, stride, global, &scale) : FLOW_OK;
  for (int i = 0; i < count && status == FLOW_OK && (value > 0 || scale); i++) {
    flow_tensor **gradient = at(first, i, stride), *clipped;
    status = scale ? scaled(context, *gradient, scale, &clipped) : clip_value(context, *gradient, value, &clipped);
    if (status != FLOW_OK) break;
    flow_tensor_release(*gradient);
    *gradient = clipped;
  }
  flow_tensor_release(scale);
  return status;
}
