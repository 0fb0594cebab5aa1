/* replicas.c: rules of what replicas do together, and of loops. */
#include "ops/expression.h"
#include "ops/rules.h"

/* Rows of all replicas one after the other: each brings the same number of rows. */
flow_status flow_shape_all_gather(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                  flow_signature *outputs)
{
  (void)input_count;
  if (inputs[0].rank == 0 || attributes->axis.axis < 1)
    return flow_rule_fail(op, "%d replicas of a tensor of rank %d, expected 1 or more, with rows", attributes->axis.axis, inputs[0].rank);
  flow_signature all = inputs[0];
  flow_extent extent;
  if (__builtin_mul_overflow(all.dims[0], (int64_t)attributes->axis.axis, &all.dims[0]) || all.dims[0] == FLOW_DIM_INFER)
    return flow_rule_fail(op, "the result would have more elements than can be addressed");
  FLOW_TRY(flow_rule_extent(op, all.rank, all.dims, &extent));
  outputs[0] = all;
  return FLOW_OK;
}

/* A loop's outputs follow from its body, which a signature of inputs does not show: flow_loop_end appends the node itself. */
flow_status flow_shape_loop(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                            flow_signature *outputs)
{
  (void)attributes;
  (void)inputs;
  (void)input_count;
  (void)outputs;
  return flow_rule_fail(op, "flow_loop_end makes it, in a trace; outside of one call the function round by round");
}

/* The sum of what all replicas would give back is the gradient of each one's x. */
flow_status flow_gradient_all_reduce(flow_gradient_step *step)
{
  if (step->output_gradients[0] == NULL || !step->needed[0]) return FLOW_OK;
  return flow_gradient_by(step, 0, FLOW_OP_all_reduce, step->output_gradients[0], NULL, NULL, NULL);
}
