/* shape_elementwise.c: shape rules of elementwise ops, of ops that make tensors from attributes, and of assignment. */
#include <math.h>

#include "ops/rules.h"

/* What the record's flags promise of an arithmetic op's inputs, once flow_apply has cast them. */
static flow_status check_arithmetic(int op, const flow_signature *inputs, int input_count)
{
  if (flow_op(op)->flags & (FLOW_OP_FLOAT_ONLY | FLOW_OP_TO_FLOAT)) FLOW_TRY(flow_rule_float(op, "the input", &inputs[0]));
  if ((flow_op(op)->flags & FLOW_OP_NO_BOOLS) && inputs[0].dtype == FLOW_BOOL) {
    return flow_rule_fail(op, "bools have no %s that is a bool; cast first, as with :to(\"int32\"), or use %s",
                          input_count == 1 ? "sign" : "difference", input_count == 1 ? "logical_not" : "logical_xor");
  }
  for (int i = 1; i < input_count; i++) FLOW_TRY(flow_rule_same_dtype(op, "an input", inputs[0].dtype, &inputs[i]));
  return FLOW_OK;
}

/* Every input has the output's shape and dtype. */
flow_status flow_shape_same(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                            flow_signature *outputs)
{
  FLOW_TRY(check_arithmetic(op, inputs, input_count));
  for (int i = 1; i < input_count; i++) FLOW_TRY(flow_rule_dims(op, "an input", &inputs[i], inputs[0].rank, inputs[0].dims));
  if (op == FLOW_OP_dropout && !(attributes->dropout.rate >= 0 && attributes->dropout.rate <= 1)) {
    return flow_rule_fail(op, "the rate is %g, expected 0 to 1", attributes->dropout.rate);
  }
  outputs[0] = inputs[0];
  return FLOW_OK;
}

/* One bool for each element of the first input, whatever the others are. */
flow_status flow_shape_predicate(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                 flow_signature *outputs)
{
  (void)op; (void)attributes; (void)input_count;
  outputs[0] = inputs[0];
  outputs[0].dtype = FLOW_BOOL;
  return FLOW_OK;
}

flow_status flow_shape_cast(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                            flow_signature *outputs)
{
  (void)input_count;
  int dtype = attributes->cast.dtype;
  if (dtype < 0 || dtype >= FLOW_DTYPE_COUNT) return flow_rule_fail(op, "there is no dtype number %d", dtype);
  outputs[0] = inputs[0];
  outputs[0].dtype = dtype;
  return FLOW_OK;
}

/* As many outputs as inputs. */
flow_status flow_shape_casts(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                             flow_signature *outputs)
{
  if (attributes->cast.dtype != FLOW_FLOAT16 && attributes->cast.dtype != FLOW_BFLOAT16)
    return flow_rule_fail(op, "the dtype has number %d, expected float16 or bfloat16", attributes->cast.dtype);
  for (int i = 0; i < input_count; i++) {
    FLOW_TRY(flow_rule_same_dtype(op, "an input", FLOW_FLOAT32, &inputs[i]));
    FLOW_TRY(flow_shape_cast(op, attributes, &inputs[i], 1, &outputs[i]));
  }
  return FLOW_OK;
}

flow_status flow_shape_broadcast(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                 flow_signature *outputs)
{
  (void)attributes;
  FLOW_TRY(check_arithmetic(op, inputs, input_count));
  outputs[0].dtype = inputs[0].dtype;
  return flow_rule_broadcast(op, &inputs[0], &inputs[1], &outputs[0]);
}

flow_status flow_shape_compare(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                               flow_signature *outputs)
{
  FLOW_TRY(flow_shape_broadcast(op, attributes, inputs, input_count, outputs));
  outputs[0].dtype = FLOW_BOOL;
  return FLOW_OK;
}

/* Three shapes broadcast together; the dtype is that of the two values, which are equal after promotion. */
flow_status flow_shape_where(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                             flow_signature *outputs)
{
  (void)attributes; (void)input_count;
  FLOW_TRY(flow_rule_same_dtype(op, "the third input", inputs[1].dtype, &inputs[2]));
  outputs[0].dtype = inputs[1].dtype;
  FLOW_TRY(flow_rule_broadcast(op, &inputs[1], &inputs[2], &outputs[0]));
  return flow_rule_broadcast(op, &inputs[0], &outputs[0], &outputs[0]);
}

/* float32 only: the chain runs in one kind of register. */
flow_status flow_shape_fused(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                             flow_signature *outputs)
{
  if (attributes->fused.count < 1 || attributes->fused.count > 12)
    return flow_rule_fail(op, "a chain has 1 to 12 steps, found %d", attributes->fused.count);
  outputs[0] = inputs[0];
  for (int i = 0; i < input_count; i++) {
    if (inputs[i].dtype != FLOW_FLOAT32)
      return flow_rule_fail(op, "input %d is %s, expected float32", i + 1, flow_dtype_name(inputs[i].dtype));
    FLOW_TRY(flow_rule_broadcast(op, &inputs[i], &outputs[0], &outputs[0]));
  }
  for (int s = 0; s < attributes->fused.count; s++) {
    int known = attributes->fused.steps[s].op >= 0 && attributes->fused.steps[s].op < FLOW_OP_COUNT;
    for (int i = 0; i < 3; i++) known &= attributes->fused.steps[s].inputs[i] < input_count + s;
    if (!known) return flow_rule_fail(op, "step %d names an op or a register that does not exist", s + 1);
  }
  return FLOW_OK;
}

flow_status flow_shape_broadcast_to(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                    flow_signature *outputs)
{
  (void)input_count;
  flow_signature target;
  FLOW_TRY(flow_rule_given_shape(op, inputs[0].dtype, attributes->shape.rank, attributes->shape.dims, &target));
  int missing = target.rank - inputs[0].rank;
  int fits = missing >= 0;
  for (int i = 0; fits && i < inputs[0].rank; i++) {
    int64_t dim = inputs[0].dims[i];
    fits = dim == 1 || dim == target.dims[missing + i];
  }
  if (!fits) {
    return flow_rule_fail(op, "shape %s cannot be repeated to %s: dimensions, last to first, must be equal or 1",
                          flow_shape_text(inputs[0].rank, inputs[0].dims), flow_shape_text(target.rank, target.dims));
  }
  outputs[0] = target;
  return FLOW_OK;
}

flow_status flow_shape_fill(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                            flow_signature *outputs)
{
  (void)inputs; (void)input_count;
  return flow_rule_given_shape(op, attributes->fill.dtype, attributes->fill.rank, attributes->fill.dims, &outputs[0]);
}

/* Rows of all replicas one after the other: each brings the same number of rows. */
flow_status flow_shape_all_gather(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                  flow_signature *outputs)
{
  (void)input_count;
  if (inputs[0].rank == 0 || attributes->axis.axis < 1)
    return flow_rule_fail(op, "%d replicas of a tensor of rank %d, expected 1 or more, with rows", attributes->axis.axis, inputs[0].rank);
  outputs[0] = inputs[0];
  outputs[0].dims[0] *= attributes->axis.axis;
  return FLOW_OK;
}

flow_status flow_shape_scalar(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                              flow_signature *outputs)
{
  (void)op; (void)attributes; (void)inputs; (void)input_count;
  outputs[0] = (flow_signature){ .dtype = FLOW_FLOAT32, .rank = 0 };
  return FLOW_OK;
}

/* low and high are the range of a uniform distribution, mean and standard deviation of the others. Integers exclude the upper end, so
 * that the range must not be empty. */
flow_status flow_shape_random(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                              flow_signature *outputs)
{
  (void)inputs; (void)input_count;
  double low = attributes->random.low, high = attributes->random.high;
  FLOW_TRY(flow_rule_given_shape(op, attributes->random.dtype, attributes->random.rank, attributes->random.dims, &outputs[0]));
  if (!isfinite(low) || !isfinite(high)) return flow_rule_fail(op, "the parameters are %g and %g, expected finite numbers", low, high);
  if (op != FLOW_OP_random_uniform) {
    FLOW_TRY(flow_rule_float(op, "the result", &outputs[0]));
    if (high < 0) return flow_rule_fail(op, "the standard deviation is %g, expected 0 or more", high);
    return FLOW_OK;
  }
  if (outputs[0].dtype == FLOW_BOOL) return flow_rule_fail(op, "the result is bool, expected a float or integer dtype");
  int integer = flow_dtype_is_integer(outputs[0].dtype);
  if (integer ? low >= high : low > high) {
    return flow_rule_fail(op, "the range is %g to %g, expected the lower end first%s", low, high,
                          integer ? " (the upper end is excluded)" : "");
  }
  return FLOW_OK;
}

/* The value is cast and broadcast to the variable, which keeps its shape. */
flow_status flow_shape_assign(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                              flow_signature *outputs)
{
  (void)attributes; (void)input_count; (void)outputs;
  const flow_signature *variable = &inputs[0], *value = &inputs[1];
  flow_signature common;
  FLOW_TRY(flow_rule_broadcast(op, variable, value, &common));
  if (flow_shape_equal(common.rank, common.dims, variable->rank, variable->dims)) return FLOW_OK;
  return flow_rule_fail(op, "a value of shape %s does not fit a variable of shape %s", flow_shape_text(value->rank, value->dims),
                        flow_shape_text(variable->rank, variable->dims));
}
