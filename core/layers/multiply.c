/* multiply.c: Multiply: the product of several inputs, broadcast per sample as in Keras; what a mask leaves out of one of them is 1, and 0
 * where it is left out of all. */
#include "layers/merge.h"

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)training;
  flow_expression e = flow_expression_of(context);
  flow_tensor *factors[FLOW_MERGE_MOST] = { NULL }, *result, *kept = NULL;
  int all_masked = 1;
  for (int i = 0; i < count; i++) {
    flow_tensor *mask = flow_merge_mask_of(&e, inputs[i]);
    factors[i] = mask ? e_where(&e, mask, inputs[i], flow_express_number(&e, inputs[i], 1)) : inputs[i];
    if (!mask) all_masked = 0;
    else kept = kept ? e_logical_or(&e, kept, mask) : mask;
  }
  if (e.status != FLOW_OK) return flow_expression_end(&e);
  FLOW_TRY(flow_merge(layer, &e, factors, count, FLOW_OP_mul, "multiplied", &result));
  if (all_masked && result) result = e_where(&e, kept, result, flow_express_number(&e, result, 0));
  return flow_expression_take(&e, result, out);
}

const flow_layer_class flow_layer_multiply = {
  .name = "Multiply", FLOW_MERGE_LAYER, .doc = "The product of a list of inputs, element by element."
};
