/* rules.c: from ops to their shape rules and kind rules, made from ops.def. Rules read records, so these tables are not part of them. */
#include "ops/rules.h"

#define flow_kind_NONE NULL      /* NONE in the column of kinds, after pasting */

static const struct { flow_shape_rule shape; flow_kind_rule kind; } rules[FLOW_OP_COUNT] = {
#define FLOW_OP(name, inputs, outputs, kind, flags, shape, gradient, kind_rule, doc) \
  { flow_shape_##shape, flow_kind_##kind_rule },
#include "ops/ops.def"
#undef FLOW_OP
};

flow_status flow_op_infer(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                          flow_signature *outputs)
{
  return rules[op].shape(op, attributes, inputs, input_count, outputs);
}

flow_batch_kind flow_op_batch_kind(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count)
{
  return rules[op].kind && input_count ? rules[op].kind(attributes, inputs, input_count) : flow_op(op)->kind;
}
