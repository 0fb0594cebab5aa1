/* reduce.c: rules of reductions. A reduced axis goes, symbolic or not, or stays as 1 with keepdims. */
#include "ops/expression.h"
#include "ops/rules.h"

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

/* The shape of x without the axes of the mask, or with 1 for them; out->dtype stays. */
static void reduce_dims(const flow_signature *x, unsigned mask, int keepdims, flow_signature *out)
{
  flow_signature result = { .dtype = out->dtype };
  for (int i = 0; i < x->rank; i++) {
    if (!(mask & 1u << i)) {
      result.dims[result.rank++] = x->dims[i];
    } else if (keepdims) {
      result.dims[result.rank++] = 1;
    }
  }
  *out = result;
}

/* A largest of nothing does not exist; a symbolic axis is judged when the rows are known. */
static flow_status check_not_empty(int op, const flow_signature *x, unsigned mask, const flow_signature *out)
{
  int64_t reduced = 1;
  for (int i = 0; i < x->rank; i++) {
    if ((mask & 1u << i) && x->dims[i] == 0) reduced = 0;
  }
  for (int i = 0; i < out->rank; i++) {
    if (out->dims[i] == 0) return FLOW_OK;
  }
  if (reduced != 0) return FLOW_OK;
  return flow_rule_fail(op, "there are no elements along the reduced axes of shape %s", flow_shape_text(x->rank, x->dims));
}

/* sum, prod, max, min, logsumexp over reduce.axes. Sums and products of integers are int64; a largest of nothing is an error. */
flow_status flow_shape_reduce(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                              flow_signature *outputs)
{
  (void)input_count;
  unsigned mask;
  FLOW_TRY(flow_rule_reduced(op, attributes, &inputs[0], &mask));
  int accumulates = !(flow_op(op)->flags & FLOW_OP_CHECKS); /* the others choose an element, so there must be one */
  /* Sums of small integers overflow their own dtype at once: 300 labels of uint8. */
  outputs[0].dtype = accumulates && !flow_dtype_is_float(inputs[0].dtype) ? FLOW_INT64 : inputs[0].dtype;
  reduce_dims(&inputs[0], mask, attributes->reduce.keepdims, &outputs[0]);
  return accumulates ? FLOW_OK : check_not_empty(op, &inputs[0], mask, &outputs[0]);
}

/* any and all, of any dtype: bool. */
flow_status flow_shape_reduce_bool(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                   flow_signature *outputs)
{
  (void)input_count;
  unsigned mask;
  FLOW_TRY(flow_rule_reduced(op, attributes, &inputs[0], &mask));
  outputs[0].dtype = FLOW_BOOL;
  reduce_dims(&inputs[0], mask, attributes->reduce.keepdims, &outputs[0]);
  return FLOW_OK;
}

/* The int64 position of the largest along one axis, or of all elements where no axis is given. */
flow_status flow_shape_argmax(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                              flow_signature *outputs)
{
  (void)input_count;
  unsigned mask;
  FLOW_TRY(flow_rule_reduced(op, attributes, &inputs[0], &mask));
  if (attributes->reduce.count > 1) return flow_rule_fail(op, "%d axes given, expected one, or none to flatten", attributes->reduce.count);
  outputs[0].dtype = FLOW_INT64;
  reduce_dims(&inputs[0], mask, attributes->reduce.keepdims, &outputs[0]);
  return check_not_empty(op, &inputs[0], mask, &outputs[0]);
}

/* How many elements are reduced, as a number: it depends on the rows, which a mean divides by. */
flow_status flow_shape_element_count(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                     flow_signature *outputs)
{
  (void)input_count;
  unsigned mask;
  FLOW_TRY(flow_rule_reduced(op, attributes, &inputs[0], &mask));
  outputs[0] = (flow_signature){ .dtype = FLOW_FLOAT32, .rank = 0 };
  return FLOW_OK;
}

/* ---- batch kinds ------------------------------------------------------------------------------------------------- */

/* A sum over the rows can be put together of partial sums; over other axes each row has its own. */
flow_batch_kind flow_kind_reduce_sum(const flow_attributes *attributes, const flow_signature *inputs, int input_count)
{
  (void)input_count;
  return flow_reduced_axes(attributes, inputs[0].rank) & 1u ? FLOW_REDUCE : FLOW_MAP;
}

/* Other reductions have no partial results that could be added: over the rows they need all of them. */
flow_batch_kind flow_kind_reduce(const flow_attributes *attributes, const flow_signature *inputs, int input_count)
{
  (void)input_count;
  return flow_reduced_axes(attributes, inputs[0].rank) & 1u ? FLOW_WHOLE : FLOW_MAP;
}

/* ---- gradients: shapes "kept" have 1 where x was reduced, so that they broadcast against x ----------------------- */

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

/* Every element of x adds itself once to its sum: it gets that sum's g. */
flow_status flow_gradient_sum(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0], *x = step->inputs[0];
  if (g == NULL || !step->needed[0] || !flow_dtype_is_float(x->dtype)) return FLOW_OK;
  flow_expression e = flow_gradient_expression(step);
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
  flow_expression e = flow_gradient_expression(step);
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
  flow_expression e = flow_gradient_expression(step);
  flow_tensor *extreme = keep_dims(&e, step->outputs[0], x, step->attributes);
  flow_tensor *hit = flow_express_cast(&e, e_eq(&e, x, extreme), x->dtype);
  flow_tensor *share = e_div(&e, keep_dims(&e, g, x, step->attributes), reduce_kept(&e, FLOW_OP_sum, hit, step->attributes));
  return flow_expression_take(&e, e_mul(&e, hit, share), &step->input_gradients[0]);
}

flow_status flow_gradient_max(flow_gradient_step *step)
{
  return gradient_of_extreme(step);
}
flow_status flow_gradient_min(flow_gradient_step *step)
{
  return gradient_of_extreme(step);
}

/* y = log(sum of e^x): dy / dx_i = e^(x_i - y), which cannot overflow, as y is at least x_i. */
flow_status flow_gradient_logsumexp(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0], *x = step->inputs[0];
  if (g == NULL || !step->needed[0]) return FLOW_OK;
  flow_expression e = flow_gradient_expression(step);
  flow_tensor *share = e_exp(&e, e_sub(&e, x, keep_dims(&e, step->outputs[0], x, step->attributes)));
  return flow_expression_take(&e, e_mul(&e, keep_dims(&e, g, x, step->attributes), share), &step->input_gradients[0]);
}
