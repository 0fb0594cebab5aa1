/* recurrent.h: parts of formulas that the gradients of recurrent ops (recurrent.c) and the gradients of these
 * (autodiff/gradient_recurrent.c) share. After a failure of the expression all give NULL. */
#ifndef FLOW_OPS_RULES_RECURRENT_H
#define FLOW_OPS_RULES_RECURRENT_H

#include "ops/expression.h"

/* x[begin .. end) along one axis; end FLOW_SLICE_ALL: all from `begin` on. */
flow_tensor *flow_express_range(flow_expression *e, flow_tensor *x, int axis, int64_t begin, int64_t end);
/* `count` tensors, one after the other along an axis. */
flow_tensor *flow_express_joined(flow_expression *e, flow_tensor *const *tensors, int count, int axis);
/* {n, t, u}: the states before each step, of those after each step {n, t, u} and the first {n, u}. reverse: the steps go backwards. */
flow_tensor *flow_express_states_before(flow_expression *e, flow_tensor *after, flow_tensor *first, int reverse);

#endif
