/* expression.h: formulas over tensors, for gradient rules, layers, losses and optimizers.
 *
 * A formula calls ops, but this room is below the ones that run them: the applier that comes with the context does it. Rooms that use
 * core/autodiff get both by flow_expression_of (autodiff/expression.h), gradient rules by flow_gradient_expression.
 *
 * An expression owns every tensor that its calls make, so that formulas nest without a check after each op: after the
 * first failure all further calls return NULL at once, and flow_expression_take reports it. Tensors returned by the
 * calls are borrowed from the expression.
 *
 *   flow_expression e = flow_gradient_expression(step);
 *   flow_tensor *y = e_mul(&e, x, e_sigmoid(&e, x));
 *   return flow_expression_take(&e, y, &step->input_gradients[0]);      releases the rest */
#ifndef FLOW_OPS_EXPRESSION_H
#define FLOW_OPS_EXPRESSION_H

#include "ops/gradients.h"

enum { FLOW_EXPRESSION_MOST = 128 }; /* tensors; the longest formula, attention with heads, makes some 70 */

/* How ops are run for a context: at once, or into its trace. */
typedef struct flow_applier {
  flow_status (*apply)(flow_context *context, int op, flow_tensor *const *inputs, int input_count, const flow_attributes *attributes,
                       flow_tensor **outputs);                  /* as flow_apply: outputs are new references */
  /* Called with the result of each cast that flow_express_cast makes, which a trace may mark as loose (autodiff/apply.c). Never NULL. */
  void (*after_cast)(flow_context *context, flow_tensor *cast);
} flow_applier;

/* Lives on the stack of the function that writes the formula, and is used by its thread alone. Every way out of that function goes
 * through one of take, end and give, which release what was made. */
typedef struct flow_expression {
  const flow_applier *applier;
  flow_context *context;                   /* borrowed; handed to the applier */
  flow_status status;                      /* of the first call that failed: from then on no call does anything */
  int count;                               /* tensors in `made` */
  flow_tensor *made[FLOW_EXPRESSION_MOST]; /* a reference to each tensor that a call returned */
} flow_expression;

/* An expression for the formula of a gradient rule, run by the applier that came with the step. */
static inline flow_expression flow_gradient_expression(const flow_gradient_step *step)
{
  return (flow_expression){ .applier = step->applier, .context = step->context };
}

/* One op with all its outputs, borrowed: as many as its record says. They are NULL after a failure, of this call or an earlier one; only
 * then may inputs be NULL, so that a formula need not look at what its calls return. attributes: NULL where the op has none. */
void flow_express_all(flow_expression *e, int op, flow_tensor *const *inputs, int input_count, const flow_attributes *attributes,
                      flow_tensor **outputs);
/* One op with one output; b and c are NULL when it takes fewer inputs. */
flow_tensor *flow_express(flow_expression *e, int op, flow_tensor *a, flow_tensor *b, flow_tensor *c, const flow_attributes *attributes);

/* A scalar in the dtype of `like`. Each call makes a new tensor. It is concrete in a trace, too, where it becomes a constant of the op that
 * reads it. */
flow_tensor *flow_express_number(flow_expression *e, const flow_tensor *like, double value);
/* x, or slope * x where x is negative; scale: the slope as a scalar, of x's dtype or a wider one. At 0 the gradient is the slope. */
flow_tensor *flow_express_leaky_relu(flow_expression *e, flow_tensor *x, flow_tensor *scale, double slope);
/* `made` belongs to the expression from now on; `status` tells whether making it succeeded. NULL after a failure. */
flow_tensor *flow_express_keep(flow_expression *e, flow_status status, flow_tensor *made);
/* This one and the three after it return x itself where there is nothing to do, and after a failure, when x may be NULL. */
flow_tensor *flow_express_cast(flow_expression *e, flow_tensor *x, int dtype);
/* x in the shape of `like`, which has as many elements, or to which x broadcasts. */
flow_tensor *flow_express_reshape_like(flow_expression *e, flow_tensor *x, const flow_tensor *like);
flow_tensor *flow_express_broadcast_like(flow_expression *e, flow_tensor *x, const flow_tensor *like);
/* The reverse of broadcasting: x summed over the axes along which `like` was repeated, in the shape of `like`. The shape of `like`
 * broadcasts to that of x. */
flow_tensor *flow_express_sum_to(flow_expression *e, flow_tensor *x, const flow_tensor *like);

/* x with an axis of size 1 before axis `at`, 0 to its rank, which is below FLOW_MAX_RANK; NULL after a failure. */
flow_tensor *flow_express_insert_axis(flow_expression *e, flow_tensor *x, int at);

/* {..., n} as {rows, n}, and whether it can be: a product of two symbolic dimensions has no name. Where it cannot be, flow_express_rows
 * fails with FLOW_UNSUPPORTED. x has an axis at least. */
int flow_express_has_rows(const flow_tensor *x);
flow_tensor *flow_express_rows(flow_expression *e, flow_tensor *x);

/* Ends the expression: *out is a new reference to `result` (one of its tensors or of its inputs), everything made is
 * released. On failure *out is NULL. */
flow_status flow_expression_take(flow_expression *e, flow_tensor *result, flow_tensor **out);
/* Ends an expression whose results were retained one by one: returns its status, which the caller passes on. */
flow_status flow_expression_end(flow_expression *e);
/* Ends a gradient rule: each results[i] that is not NULL becomes the gradient of input i, as a new reference. results has one entry for
 * each input of the step; after a failure none is given. */
flow_status flow_expression_give(flow_expression *e, flow_gradient_step *step, flow_tensor *const *results);
/* A gradient rule that is one op: the gradient of input `input` is op(a, b, c); b and c are NULL when it takes fewer inputs.
 * A rule may call it for one input after the other. */
flow_status flow_gradient_by(flow_gradient_step *step, int input, int op, flow_tensor *a, flow_tensor *b, flow_tensor *c,
                             const flow_attributes *attributes);

/* Elementwise ops as formulas write them: e_NAME(e, x) or e_NAME(e, a, b) for each of ops.def. */
#define FLOW_EXPRESS_1(name)                                              \
  static inline flow_tensor *e_##name(flow_expression *e, flow_tensor *x) \
  {                                                                       \
    return flow_express(e, FLOW_OP_##name, x, NULL, NULL, NULL);          \
  }
#define FLOW_EXPRESS_2(name)                                                              \
  static inline flow_tensor *e_##name(flow_expression *e, flow_tensor *a, flow_tensor *b) \
  {                                                                                       \
    return flow_express(e, FLOW_OP_##name, a, b, NULL, NULL);                             \
  }
#define FLOW_NUMBERS(name, inputs, ...) FLOW_EXPRESS_##inputs(name)
#define FLOW_FLOATS(name, inputs, ...) FLOW_EXPRESS_##inputs(name)
#define FLOW_CONDITION(name, inputs, ...) FLOW_EXPRESS_##inputs(name)
#define FLOW_LOGICAL(name, inputs, ...) FLOW_EXPRESS_##inputs(name)
#define FLOW_OP(...)
#include "ops/ops.def"
#undef FLOW_OP
#undef FLOW_EXPRESS_1
#undef FLOW_EXPRESS_2

static inline flow_tensor *e_where(flow_expression *e, flow_tensor *condition, flow_tensor *a, flow_tensor *b)
{
  return flow_express(e, FLOW_OP_where, condition, a, b, NULL);
}

#endif
