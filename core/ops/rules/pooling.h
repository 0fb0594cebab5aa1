/* pooling.h: what the rules of pools and of convolutions share. */
#ifndef FLOW_OPS_RULES_POOLING_H
#define FLOW_OPS_RULES_POOLING_H

#include "ops/expression.h"
#include "ops/rules.h"

/* x {n, pool.input_size, c} where the windows of a max_pool have their maxima: in the shape of index, which tells these. pool: the
 * attributes of max_pool_gradient. */
flow_tensor *flow_express_at_maxima(flow_expression *e, flow_tensor *x, flow_tensor *index, const flow_attributes *pool);

/* *out: floor((size + padding - reach) / stride) + 1, where reach is how many cells a window extends over, 1 or more, padding is that of
 * both sides, and stride is 1 or more. axis: names it in the message. At least one window is there: no *out is 0. */
flow_status flow_rule_window_count(int op, const char *axis, int64_t size, int64_t padding, int64_t reach, int64_t stride, int64_t *out);
/* Positions of maxima are bytes. */
enum { FLOW_MOST_MAXIMUM_CELLS = 254 };
/* Refuses windows without a size or stride, or whose maximum has a place that one byte does not hold: it holds cells 0 to 253; 255 means
 * none (NO_ARGMAX in pool_window.h). */
flow_status flow_rule_maximum_window(int op, const int32_t size[2], const int32_t stride[2]);

#endif
