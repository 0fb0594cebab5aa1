/* formula.h: several ops in a row without a release after each: a layer's or loss's formula as it reads on paper.
 *
 *   flow_formula f = flow_formula_begin(context);
 *   flow_tensor *error = flow_formula_op(&f, FLOW_OP_sub, y_pred, y_true, NULL);
 *   flow_tensor *squares = flow_formula_op(&f, FLOW_OP_square, error, NULL, NULL);
 *   return flow_formula_end(&f, flow_formula_mean(&f, squares, -1), out);
 *
 * The formula owns every intermediate tensor and releases it at the end. After a failure the steps do nothing and
 * return NULL; flow_formula_end returns the first failure. */
#ifndef FLOW_LAYERS_FORMULA_H
#define FLOW_LAYERS_FORMULA_H

#include "ops/op.h"

enum { FLOW_FORMULA_STEPS = 48 };

typedef struct flow_formula {
  flow_context *context;
  flow_status   status;                       /* of the first failure */
  int           count;
  flow_tensor  *made[FLOW_FORMULA_STEPS];     /* references */
} flow_formula;

flow_formula flow_formula_begin(flow_context *context);
/* Releases what was made; *out is a new reference to `result`, which may also be an input. */
flow_status  flow_formula_end(flow_formula *f, flow_tensor *result, flow_tensor **out);

/* The steps return borrowed tensors. b may be NULL for ops of one input. */
flow_tensor *flow_formula_op(flow_formula *f, int op, flow_tensor *a, flow_tensor *b, const flow_attributes *attributes);
/* A scalar of the dtype of `like` if that is a float, else float32. */
flow_tensor *flow_formula_constant(flow_formula *f, const flow_tensor *like, double number);
/* op(a, constant) */
flow_tensor *flow_formula_number(flow_formula *f, int op, flow_tensor *a, double number);
/* Several inputs and outputs; outputs may have fewer places than the op has, the others are not returned. */
void         flow_formula_many(flow_formula *f, int op, flow_tensor *const *inputs, int input_count, const flow_attributes *attributes,
                               flow_tensor **outputs, int output_count);
flow_tensor *flow_formula_where(flow_formula *f, flow_tensor *condition, flow_tensor *a, flow_tensor *b);
flow_tensor *flow_formula_variable(flow_formula *f, flow_variable *variable);
flow_tensor *flow_formula_activate(flow_formula *f, const char *activation, flow_tensor *x);   /* x itself for "linear" */
flow_tensor *flow_formula_cast(flow_formula *f, flow_tensor *x, int dtype);                    /* x itself if it has it */
flow_tensor *flow_formula_sum(flow_formula *f, flow_tensor *x, int axis, int keepdims);        /* one axis from 0, -1 the last */
flow_tensor *flow_formula_mean(flow_formula *f, flow_tensor *x, int axis);
flow_tensor *flow_formula_reshape(flow_formula *f, flow_tensor *x, int rank, const int64_t *dims);
/* A tensor that the formula owns from now on, made under `status`. */
flow_tensor *flow_formula_take(flow_formula *f, flow_status status, flow_tensor *made);

/* Whether a and b have the same shape; a dimension that depends on the batch equals only itself. */
int          flow_formula_same_shape(const flow_tensor *a, const flow_tensor *b);
/* dtype and shape of a tensor as rules see them. */
flow_signature flow_signature_of(const flow_tensor *tensor);
/* The same as text: "{None, 28, 28}". See flow_shape_text. */
const char *flow_tensor_shape_text(const flow_tensor *tensor);

#endif
