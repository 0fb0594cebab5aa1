/* pooling.h: what the gradients of pools and of convolutions that are fused with one share. */
#ifndef FLOW_OPS_RULES_POOLING_H
#define FLOW_OPS_RULES_POOLING_H

#include "ops/expression.h"

/* x {n, pool.input_size, c} where the windows of a max_pool have their maxima: in the shape of index, which tells these. pool: the
 * attributes of max_pool_gradient. */
flow_tensor *flow_express_at_maxima(flow_expression *e, flow_tensor *x, flow_tensor *index, const flow_attributes *pool);

#endif
