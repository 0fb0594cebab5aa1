/* gradient_reduce_movement.c: derivatives of reductions and of ops that only move elements. */
#include <string.h>

#include "autodiff/expression.h"
#include "autodiff/gradients.h"
#include "autodiff/apply.h"
#include "ops/rules.h"

/* ---- reductions: shapes "kept" have 1 where x was reduced, so that they broadcast against x ------------------------------ */

/* `reduced` with axes of size 1 where x was reduced, so that it broadcasts against x. */
static flow_tensor *keep_dims(flow_expression *e, flow_tensor *reduced, const flow_tensor *x, const flow_attributes *attributes)
{
  unsigned mask = flow_reduced_axes(attributes, x->rank);
  flow_attributes kept = { .shape = { .rank = x->rank } };
  for (int i = 0; i < x->rank; i++) kept.shape.dims[i] = mask & 1u << i ? 1 : x->shape[i];
  if (e->status != FLOW_OK || flow_shape_equal(reduced->rank, reduced->shape, x->rank, kept.shape.dims)) return reduced;
  return flow_express(e, FLOW_OP_reshape, reduced, NULL, NULL, &kept);
}

/* The reduction of x, whose result keeps its axes. */
static flow_tensor *reduce_kept(flow_expression *e, int op, flow_tensor *x, const flow_attributes *attributes)
{
  flow_attributes kept = *attributes;
  kept.reduce.keepdims = 1;
  return flow_express(e, op, x, NULL, NULL, &kept);
}

flow_status flow_gradient_sum(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0], *x = step->inputs[0];
  if (g == NULL || !step->needed[0] || !flow_dtype_is_float(x->dtype)) return FLOW_OK;
  flow_expression e = flow_expression_of(step->context);
  flow_tensor *dx = flow_express_broadcast_like(&e, keep_dims(&e, g, x, step->attributes), x);
  return flow_expression_take(&e, dx, &step->input_gradients[0]);
}

/* d y / d x_i is the product of the others. With z zeros among the factors: z = 0: y / x_i; z = 1: the product of the
 * rest for the zero itself, 0 for the others; more: 0. `rest` has 1 in place of zeros, so both cases are rest's product
 * over rest_i, where no zero is left once x_i is taken out. */
flow_status flow_gradient_prod(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0], *x = step->inputs[0];
  if (g == NULL || !step->needed[0] || !flow_dtype_is_float(x->dtype)) return FLOW_OK;
  flow_expression e = flow_expression_of(step->context);
  flow_tensor *zero = flow_express_number(&e, x, 0), *one = flow_express_number(&e, x, 1);
  flow_tensor *is_zero = e_eq(&e, x, zero);
  flow_tensor *rest = e_where(&e, is_zero, one, x);
  flow_tensor *others = e_div(&e, reduce_kept(&e, FLOW_OP_prod, rest, step->attributes), rest);
  flow_tensor *zeros = flow_express_cast(&e, is_zero, x->dtype);
  flow_tensor *zeros_left = e_sub(&e, reduce_kept(&e, FLOW_OP_sum, zeros, step->attributes), zeros);
  flow_tensor *slope = e_where(&e, e_eq(&e, zeros_left, zero), others, zero);
  flow_tensor *dx = e_mul(&e, keep_dims(&e, g, x, step->attributes), slope);
  return flow_expression_take(&e, dx, &step->input_gradients[0]);
}

/* The k elements that equal the extreme get g / k each. */
static flow_status gradient_of_extreme(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0], *x = step->inputs[0];
  if (g == NULL || !step->needed[0] || !flow_dtype_is_float(x->dtype)) return FLOW_OK;
  flow_expression e = flow_expression_of(step->context);
  flow_tensor *extreme = keep_dims(&e, step->outputs[0], x, step->attributes);
  flow_tensor *hit = flow_express_cast(&e, e_eq(&e, x, extreme), x->dtype);
  flow_tensor *share = e_div(&e, keep_dims(&e, g, x, step->attributes), reduce_kept(&e, FLOW_OP_sum, hit, step->attributes));
  return flow_expression_take(&e, e_mul(&e, hit, share), &step->input_gradients[0]);
}

flow_status flow_gradient_max(flow_gradient_step *step) { return gradient_of_extreme(step); }
flow_status flow_gradient_min(flow_gradient_step *step) { return gradient_of_extreme(step); }

/* y = log(sum of e^x): dy / dx_i = e^(x_i - y), which cannot overflow, as y is at least x_i. */
flow_status flow_gradient_logsumexp(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0], *x = step->inputs[0];
  if (g == NULL || !step->needed[0]) return FLOW_OK;
  flow_expression e = flow_expression_of(step->context);
  flow_tensor *share = e_exp(&e, e_sub(&e, x, keep_dims(&e, step->outputs[0], x, step->attributes)));
  return flow_expression_take(&e, e_mul(&e, keep_dims(&e, g, x, step->attributes), share), &step->input_gradients[0]);
}

/* ---- movement -------------------------------------------------------------------------------------------------------------- */

/* What was repeated gets the sum over its copies. */
flow_status flow_gradient_broadcast_to(flow_gradient_step *step)
{
  if (step->output_gradients[0] == NULL || !step->needed[0]) return FLOW_OK;
  flow_expression e = flow_expression_of(step->context);
  flow_tensor *dx = flow_express_sum_to(&e, step->output_gradients[0], step->inputs[0]);
  return flow_expression_take(&e, dx, &step->input_gradients[0]);
}

flow_status flow_gradient_reshape(flow_gradient_step *step)
{
  if (step->output_gradients[0] == NULL || !step->needed[0]) return FLOW_OK;
  flow_expression e = flow_expression_of(step->context);
  flow_tensor *dx = flow_express_reshape_like(&e, step->output_gradients[0], step->inputs[0]);
  return flow_expression_take(&e, dx, &step->input_gradients[0]);
}

flow_status flow_gradient_transpose(flow_gradient_step *step)
{
  if (step->output_gradients[0] == NULL || !step->needed[0]) return FLOW_OK;
  int rank = step->attributes->transpose.rank;
  flow_attributes inverse = { .transpose = { .rank = rank } };
  for (int i = 0; i < rank; i++) inverse.transpose.axes[step->attributes->transpose.axes[i]] = i;
  return flow_apply1(step->context, FLOW_OP_transpose, step->output_gradients[0], NULL, NULL, &inverse, &step->input_gradients[0]);
}

/* Inputs joined along the rows of a batch, each a multiple of them: g is {sum of the multiples, rows, elements of a row}, in which each
 * input has a place that does not depend on the number of rows. */
static flow_status gradient_of_joined_rows(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0];
  flow_attributes units = { .shape = { .rank = 3, .dims = { 0, -1, 1 } } }, part = { .slice = { .rank = 3 } };
  for (int i = 1; i < g->rank; i++) {
    if (g->shape[i] < 0)
      return flow_fail(FLOW_UNSUPPORTED, "concat: the gradient of joining batches needs all sizes but the number of rows; found %s",
                       flow_shape_text(g->rank, g->shape));
    units.shape.dims[2] *= g->shape[i];      /* cannot overflow, since g exists */
  }
  for (int i = 0; i < step->input_count; i++) {
    if (step->inputs[i]->shape[0] >= 0)
      return flow_fail(FLOW_UNSUPPORTED, "concat: the gradient of joining %lld rows and those of a batch needs their number, which is not "
                       "known while tracing; join along another axis, or run it eagerly", (long long)step->inputs[i]->shape[0]);
    units.shape.dims[0] -= step->inputs[i]->shape[0];
  }
  for (int i = 0; i < 3; i++) {
    part.slice.end[i] = INT64_MAX;
    part.slice.step[i] = 1;
  }
  int64_t at = 0;
  for (int i = 0; i < step->input_count; i++) {
    part.slice.begin[0] = at;
    at -= step->inputs[i]->shape[0];
    part.slice.end[0] = at;
    if (!step->needed[i]) continue;
    flow_expression e = flow_expression_of(step->context);
    flow_tensor *all = flow_express(&e, FLOW_OP_reshape, g, NULL, NULL, &units);
    flow_tensor *own = all ? flow_express(&e, FLOW_OP_slice, all, NULL, NULL, &part) : NULL;
    FLOW_TRY(flow_expression_take(&e, own ? flow_express_reshape_like(&e, own, step->inputs[i]) : NULL, &step->input_gradients[i]));
  }
  return FLOW_OK;
}

/* Each input gets its stretch of g. */
flow_status flow_gradient_concat(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0];
  if (g == NULL) return FLOW_OK;
  int rank = g->rank, axis = step->attributes->axis.axis;
  if (axis < 0) axis += rank;
  if (g->shape[axis] < 0 && step->input_count > 1) return gradient_of_joined_rows(step);
  flow_attributes part = { .slice = { .rank = rank } };
  for (int i = 0; i < rank; i++) {
    part.slice.end[i] = INT64_MAX;
    part.slice.step[i] = 1;
  }
  int64_t at = 0;
  for (int i = 0; i < step->input_count; i++) {
    int64_t length = step->inputs[i]->shape[axis];
    if (length >= 0) {
      part.slice.begin[axis] = at;
      part.slice.end[axis] = at + length;
      at += length;
    }
    if (!step->needed[i]) continue;
    FLOW_TRY(flow_apply1(step->context, FLOW_OP_slice, g, NULL, NULL, &part, &step->input_gradients[i]));
  }
  return FLOW_OK;
}

/* slice.dims may be unset for slice; its gradient needs them. */
static flow_attributes slice_of(const flow_attributes *attributes, const flow_tensor *whole)
{
  flow_attributes result = *attributes;
  memcpy(result.slice.dims, whole->shape, sizeof(int64_t) * (size_t)whole->rank);
  return result;
}

/* Nothing is computed yet: see parts.h. */
flow_status flow_gradient_slice(flow_gradient_step *step)
{
  if (step->output_gradients[0] == NULL || !step->needed[0]) return FLOW_OK;
  step->input_gradients[0] = flow_tensor_retain(step->output_gradients[0]);
  step->is_part = 1;
  return FLOW_OK;
}

flow_status flow_gradient_slice_gradient(flow_gradient_step *step)
{
  if (step->output_gradients[0] == NULL || !step->needed[0]) return FLOW_OK;
  flow_attributes attributes = slice_of(step->attributes, step->outputs[0]);
  return flow_apply1(step->context, FLOW_OP_slice, step->output_gradients[0], NULL, NULL, &attributes, &step->input_gradients[0]);
}

/* Inputs are one after the other in g. */
flow_status flow_gradient_pack(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0];
  if (g == NULL) return FLOW_OK;
  int64_t at = 0;
  for (int i = 0; i < step->input_count; i++) {
    flow_tensor *x = step->inputs[i];
    flow_attributes part = { .slice = { .rank = 1, .begin = { at }, .step = { 1 } } };
    at += flow_shape_size(x->rank, x->shape);
    part.slice.end[0] = at;
    if (!step->needed[i]) continue;
    flow_expression e = flow_expression_of(step->context);
    flow_tensor *dx = flow_express_reshape_like(&e, flow_express(&e, FLOW_OP_slice, g, NULL, NULL, &part), x);
    FLOW_TRY(flow_expression_take(&e, dx, &step->input_gradients[i]));
  }
  return FLOW_OK;
}

/* Rows of g are added to the rows of the table that they came from; a row that was read twice gets both. */
flow_status flow_gradient_gather(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0], *table = step->inputs[0];
  if (g == NULL || !step->needed[0]) return FLOW_OK;
  flow_attributes attributes = { .shape = { .rank = table->rank } };
  for (int i = 0; i < table->rank; i++) attributes.shape.dims[i] = table->shape[i];
  return flow_apply1(step->context, FLOW_OP_gather_gradient, g, step->inputs[1], NULL, &attributes, &step->input_gradients[0]);
}

flow_status flow_gradient_gather_gradient(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0];
  if (g == NULL || !step->needed[0]) return FLOW_OK;
  return flow_apply1(step->context, FLOW_OP_gather, g, step->inputs[1], NULL, NULL, &step->input_gradients[0]);
}
