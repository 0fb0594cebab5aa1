/* express.h: what layers, losses and metrics add to the expressions of core/ops: variables, activations, means, reshapes. */
#ifndef FLOW_LAYERS_EXPRESS_H
#define FLOW_LAYERS_EXPRESS_H

#include "layers/arguments.h"
#include "autodiff/expression.h"

/* Results are borrowed from the expression, as everywhere in expression.h. */
flow_tensor *flow_express_variable(flow_expression *e, flow_variable *variable);                   /* its current value */
flow_tensor *flow_express_activation(flow_expression *e, const char *activation, flow_tensor *x);
flow_tensor *flow_express_sum(flow_expression *e, flow_tensor *x, int axis, int keepdims);         /* one axis from 0; -1: the last */
flow_tensor *flow_express_mean(flow_expression *e, flow_tensor *x, int axis);
flow_tensor *flow_express_mean_over(flow_expression *e, flow_tensor *x, const flow_attributes *reduce);      /* as flow_mean */
flow_tensor *flow_express_reshape(flow_expression *e, flow_tensor *x, int rank, const int64_t *dims);
/* An argument of type FLOW_NUMBERS in the dtype of `like`: a scalar, or a tensor in the shape of the nested list. */
flow_tensor *flow_express_numbers(flow_expression *e, const flow_arguments *arguments, const char *name, flow_tensor *like);
/* One op of one input with attributes, of which the first output counts: max_pool without its index. */
flow_tensor *flow_express_first(flow_expression *e, int op, flow_tensor *a, flow_tensor *b, const flow_attributes *attributes);
/* Labels of classes or numbers of rows as integers: floats are truncated, and NaN, which a cast would make 0, becomes INT32_MIN. */
flow_tensor *flow_express_indices(flow_expression *e, flow_tensor *x);

/* dtype and shape of a tensor as rules see them. */
flow_signature flow_signature_of(const flow_tensor *tensor);
/* "{None, 28, 28}": see flow_shape_text. */
const char *flow_tensor_shape_text(const flow_tensor *tensor);

#endif
