/* gradient_table.c: from ops to their gradient rules, made from ops.def. The rules are declared in ops/gradients.h and defined in
 * core/ops/rules, but that of loops, which traces and is therefore in this room (gradient_loop.c): hence the table is here, too. A rule
 * that is named in ops.def and written nowhere fails to link. */
#include "autodiff/gradients.h"

#define flow_gradient_NONE NULL      /* NONE in the column of gradients, after pasting */

/* From the column of ops.def, so that the build fails if the rule of an op is missing. */
static const flow_gradient_rule rules[FLOW_OP_COUNT] = {
#define FLOW_OP(name, inputs, outputs, kind, flags, shape, gradient, kind_rule, doc) \
  flow_gradient_##gradient,
#include "ops/ops.def"
#undef FLOW_OP
};

/* op: a number of the enum, not checked. */
flow_gradient_rule flow_gradient_of(int op) { return rules[op]; }
