/* expression.c: see expression.h. A formula is a row of calls without checks between them: the first failure is kept in e->status, after it
 * every call does nothing and gives NULL. The tensors that a formula makes belong to the expression and are released at its end; results
 * are borrowed until then. */
#include "ops/expression.h"

#include <string.h>

/* outputs: room for as many tensors as the op has outputs; all NULL after a failure. inputs may be tensors of the expression or the
 * caller's. */
void flow_express_all(flow_expression *e, int op, flow_tensor *const *inputs, int input_count, const flow_attributes *attributes,
                      flow_tensor **outputs)
{
  int output_count = flow_op(op)->outputs;
  for (int i = 0; i < output_count; i++) outputs[i] = NULL;
  if (e->status != FLOW_OK) return;
  if (e->count + output_count > FLOW_EXPRESSION_MOST) {
    e->status = flow_fail(FLOW_INTERNAL, "%s: a formula makes more than %d tensors", flow_op(op)->name, FLOW_EXPRESSION_MOST);
    return;
  }
  /* New references go straight to `made`; a failure leaves it unchanged, since `count` does not move. */
  e->status = e->applier->apply(e->context, op, inputs, input_count, attributes, &e->made[e->count]);
  if (e->status != FLOW_OK) return;
  for (int i = 0; i < output_count; i++) outputs[i] = e->made[e->count + i];
  e->count += output_count;
}

/* For ops of up to three inputs, of which the last may be NULL, and one output. */
flow_tensor *flow_express(flow_expression *e, int op, flow_tensor *a, flow_tensor *b, flow_tensor *c, const flow_attributes *attributes)
{
  flow_tensor *inputs[3] = { a, b, c }, *output;
  flow_express_all(e, op, inputs, b == NULL ? 1 : c == NULL ? 2 : 3, attributes, &output);
  return output;
}

/* Takes `made` over, in failure too, so that formulas can be written without looking at each step. */
flow_tensor *flow_express_keep(flow_expression *e, flow_status status, flow_tensor *made)
{
  if (e->status == FLOW_OK && status == FLOW_OK && e->count == FLOW_EXPRESSION_MOST)
    status = flow_fail(FLOW_INTERNAL, "a formula makes more than %d tensors", FLOW_EXPRESSION_MOST);
  if (e->status == FLOW_OK) e->status = status;
  if (e->status == FLOW_OK) return e->made[e->count++] = made;
  flow_tensor_release(made);
  return NULL;
}

/* A scalar in the dtype of `like`; in a trace the op that reads it makes it a constant. */
flow_tensor *flow_express_number(flow_expression *e, const flow_tensor *like, double value)
{
  flow_tensor *scalar = NULL;
  if (e->status != FLOW_OK) return NULL;
  flow_status status = flow_tensor_scalar(flow_tensor_dtype(like), value, &scalar);
  return flow_express_keep(e, status, scalar);
}

/* By a condition, not as the larger of two, which are equal at infinity and give their gradient to one of both. Without a slope the product
 * of infinity would be NaN. */
flow_tensor *flow_express_leaky_relu(flow_expression *e, flow_tensor *x, flow_tensor *scale, double slope)
{
  if (slope == 0) return flow_express(e, FLOW_OP_relu, x, NULL, NULL, NULL);
  flow_tensor *scaled = flow_express(e, FLOW_OP_mul, x, scale, NULL, NULL);
  return e_where(e, e_gt(e, x, flow_express_number(e, x, 0)), x, scaled);
}

/* after_cast lets a trace remember that a 16-bit value was cast from a wider one (flow_graph_loosen). */
flow_tensor *flow_express_cast(flow_expression *e, flow_tensor *x, int dtype)
{
  if (e->status != FLOW_OK || x->dtype == dtype) return x;
  flow_tensor *cast = flow_express(e, FLOW_OP_cast, x, NULL, NULL, &(flow_attributes){ .cast = { .dtype = dtype } });
  if (cast) e->applier->after_cast(e->context, cast);
  return cast;
}

/* The attributes of an op that makes something of the tensor's shape. */
static flow_attributes shape_of(const flow_tensor *tensor)
{
  flow_attributes attributes = { .shape = { .rank = tensor->rank } };
  memcpy(attributes.shape.dims, tensor->shape, sizeof(int64_t) * (size_t)tensor->rank);
  return attributes;
}

static int same_shape(const flow_tensor *a, const flow_tensor *b)
{
  return flow_shape_equal(a->rank, a->shape, b->rank, b->shape);
}

/* x itself if the shapes are equal: no op is recorded for nothing. */
flow_tensor *flow_express_reshape_like(flow_expression *e, flow_tensor *x, const flow_tensor *like)
{
  if (e->status != FLOW_OK || same_shape(x, like)) return x;
  flow_attributes attributes = shape_of(like);
  return flow_express(e, FLOW_OP_reshape, x, NULL, NULL, &attributes);
}

flow_tensor *flow_express_broadcast_like(flow_expression *e, flow_tensor *x, const flow_tensor *like)
{
  if (e->status != FLOW_OK || same_shape(x, like)) return x;
  flow_attributes attributes = shape_of(like);
  return flow_express(e, FLOW_OP_broadcast_to, x, NULL, NULL, &attributes);
}

/* The opposite of broadcasting x to a shape: what was repeated is added up. The gradient of every op that broadcasts ends with it. */
flow_tensor *flow_express_sum_to(flow_expression *e, flow_tensor *x, const flow_tensor *like)
{
  if (e->status != FLOW_OK || same_shape(x, like)) return x;
  int missing = x->rank - like->rank; /* axes of x before the first of `like` */
  /* The shapes differ, so that at least one axis is summed: a count of 0 would mean all of them. */
  flow_attributes reduce = { .reduce = { .keepdims = 1 } };
  for (int i = 0; i < x->rank; i++) {
    /* The first axis is that of the batch's rows: over one row, too, the sum is the op that it is over many, with its bits. */
    int one_row = i == 0 && missing == 0 && like->shape[0] == 1;
    if (i < missing || one_row || like->shape[i - missing] != x->shape[i]) reduce.reduce.axes[reduce.reduce.count++] = i;
  }
  return flow_express_reshape_like(e, flow_express(e, FLOW_OP_sum, x, NULL, NULL, &reduce), like);
}

/* at: from 0 to the rank. */
flow_tensor *flow_express_insert_axis(flow_expression *e, flow_tensor *x, int at)
{
  if (e->status != FLOW_OK) return NULL;
  flow_attributes attributes = { .shape = { .rank = x->rank + 1 } };
  for (int i = 0; i <= x->rank; i++) attributes.shape.dims[i] = i < at ? x->shape[i] : i == at ? 1 : x->shape[i - 1];
  return flow_express(e, FLOW_OP_reshape, x, NULL, NULL, &attributes);
}

/* Whether all axes but the last can be written as one dimension, a multiple of the rows. */
int flow_express_has_rows(const flow_tensor *x)
{
  int symbolic = 0;
  for (int i = 0; i < x->rank - 1; i++) symbolic += x->shape[i] < 0;
  return symbolic <= 1;
}

/* x {..., n} as {rows, n}. */
flow_tensor *flow_express_rows(flow_expression *e, flow_tensor *x)
{
  if (e->status != FLOW_OK || x->rank == 2) return x;
  if (!flow_express_has_rows(x)) {
    e->status = flow_fail(FLOW_UNSUPPORTED, "the gradient of a product with shape %s: more than one axis depends on the number of rows",
                          flow_shape_text(x->rank, x->shape));
    return NULL;
  }
  int64_t rows = 1; /* negative when one factor is: k x rows again; cannot overflow, since the shape of x was checked */
  for (int i = 0; i < x->rank - 1; i++) rows *= x->shape[i];
  flow_attributes attributes = { .shape = { .rank = 2, .dims = { rows, x->shape[x->rank - 1] } } };
  return flow_express(e, FLOW_OP_reshape, x, NULL, NULL, &attributes);
}

/* Returns the status of the formula; the expression can be used again. */
flow_status flow_expression_end(flow_expression *e)
{
  for (int i = 0; i < e->count; i++) flow_tensor_release(e->made[i]);
  e->count = 0;
  return e->status;
}

/* *out: a new reference to the result, which thereby outlives the expression; NULL after a failure. */
flow_status flow_expression_take(flow_expression *e, flow_tensor *result, flow_tensor **out)
{
  *out = e->status == FLOW_OK ? flow_tensor_retain(result) : NULL;
  return flow_expression_end(e);
}

/* results: one for each input of the step, NULL where none is needed; they become its gradients. */
flow_status flow_expression_give(flow_expression *e, flow_gradient_step *step, flow_tensor *const *results)
{
  for (int i = 0; i < step->input_count && e->status == FLOW_OK; i++) {
    step->input_gradients[i] = results[i] ? flow_tensor_retain(results[i]) : NULL;
  }
  return flow_expression_end(e);
}

/* For gradients that are one op: of input number `input`. */
flow_status flow_gradient_by(flow_gradient_step *step, int input, int op, flow_tensor *a, flow_tensor *b, flow_tensor *c,
                             const flow_attributes *attributes)
{
  flow_expression e = flow_gradient_expression(step);
  return flow_expression_take(&e, flow_express(&e, op, a, b, c, attributes), &step->input_gradients[input]);
}
