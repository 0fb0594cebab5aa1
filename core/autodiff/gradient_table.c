/* gradient_table.c: from ops to their gradient rules, made from ops.def. */
#include "autodiff/gradients.h"

#define flow_gradient_NONE NULL      /* NONE in the column of gradients, after pasting */

static const flow_gradient_rule rules[FLOW_OP_COUNT] = {
#define FLOW_OP(name, inputs, outputs, kind, flags, shape, gradient, kind_rule, doc) \
  flow_gradient_##gradient,
#include "ops/ops.def"
#undef FLOW_OP
};

flow_gradient_rule flow_gradient_of(int op) { return rules[op]; }
