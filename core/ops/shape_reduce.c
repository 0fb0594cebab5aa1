/* shape_reduce.c: shape rules of reductions. A reduced axis goes, symbolic or not, or stays as 1 with keepdims. */
#include "ops/rules.h"

static void reduce_dims(const flow_signature *x, unsigned mask, int keepdims, flow_signature *out)
{
  flow_signature result = { .dtype = out->dtype };
  for (int i = 0; i < x->rank; i++) {
    if (!(mask & 1u << i)) {
      result.dims[result.rank++] = x->dims[i];
    } else if (keepdims) {
      result.dims[result.rank++] = 1;
    }
  }
  *out = result;
}

/* A largest of nothing does not exist; a symbolic axis is judged when the rows are known. */
static flow_status check_not_empty(int op, const flow_signature *x, unsigned mask, const flow_signature *out)
{
  int64_t reduced = 1;
  for (int i = 0; i < x->rank; i++) {
    if ((mask & 1u << i) && x->dims[i] == 0) reduced = 0;
  }
  for (int i = 0; i < out->rank; i++) {
    if (out->dims[i] == 0) return FLOW_OK;
  }
  if (reduced != 0) return FLOW_OK;
  return flow_rule_fail(op, "there is nothing to choose from in shape %s along the reduced axes", flow_shape_text(x->rank, x->dims));
}

flow_status flow_shape_reduce(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                              flow_signature *outputs)
{
  (void)input_count;
  unsigned mask;
  FLOW_TRY(flow_rule_reduced(op, attributes, &inputs[0], &mask));
  int accumulates = !(flow_op(op)->flags & FLOW_OP_CHECKS);      /* the others choose one element, which there must be */
  /* Sums of small integers overflow their own dtype at once: 300 labels of uint8. */
  outputs[0].dtype = accumulates && !flow_dtype_is_float(inputs[0].dtype) ? FLOW_INT64 : inputs[0].dtype;
  reduce_dims(&inputs[0], mask, attributes->reduce.keepdims, &outputs[0]);
  return accumulates ? FLOW_OK : check_not_empty(op, &inputs[0], mask, &outputs[0]);
}

flow_status flow_shape_reduce_bool(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                   flow_signature *outputs)
{
  (void)input_count;
  unsigned mask;
  FLOW_TRY(flow_rule_reduced(op, attributes, &inputs[0], &mask));
  outputs[0].dtype = FLOW_BOOL;
  reduce_dims(&inputs[0], mask, attributes->reduce.keepdims, &outputs[0]);
  return FLOW_OK;
}

flow_status flow_shape_argmax(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                              flow_signature *outputs)
{
  (void)input_count;
  unsigned mask;
  FLOW_TRY(flow_rule_reduced(op, attributes, &inputs[0], &mask));
  if (attributes->reduce.count > 1) return flow_rule_fail(op, "%d axes given, expected one, or none to flatten", attributes->reduce.count);
  outputs[0].dtype = FLOW_INT64;
  reduce_dims(&inputs[0], mask, attributes->reduce.keepdims, &outputs[0]);
  return check_not_empty(op, &inputs[0], mask, &outputs[0]);
}

/* How many elements are reduced, as a number: it depends on the rows, which a mean divides by. */
flow_status flow_shape_element_count(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                     flow_signature *outputs)
{
  (void)input_count;
  unsigned mask;
  FLOW_TRY(flow_rule_reduced(op, attributes, &inputs[0], &mask));
  outputs[0] = (flow_signature){ .dtype = FLOW_FLOAT32, .rank = 0 };
  return FLOW_OK;
}
