/* merge.c: see merge.h. */
#include "layers/merge.h"

const flow_argument flow_merge_parameters[] = { FLOW_LAYER_COMMON };

/* Samples of a smaller rank get dimensions of 1 after the batch: {batch, c} -> {batch, 1, 1, c}. */
static flow_tensor *raise_rank(flow_expression *e, flow_tensor *x, int rank)
{
  if (x->rank == rank) return x;
  int64_t dims[FLOW_MAX_RANK];
  int added = rank - x->rank;
  for (int i = 0; i < rank; i++) dims[i] = i == 0 ? x->shape[0] : i <= added ? 1 : x->shape[i - added];
  return flow_express_reshape(e, x, rank, dims);
}

/* Whether both broadcast to one shape; the batch must agree. Symbolic dimensions are left to the op. */
static int shapes_match(const flow_tensor *a, const flow_tensor *b)
{
  if (a->rank == 0 || b->rank == 0) return a->rank == b->rank;
  if (a->shape[0] >= 0 && b->shape[0] >= 0 && a->shape[0] != b->shape[0]) return 0;
  for (int i = 1; i < a->rank && i < b->rank; i++) {
    int64_t x = a->shape[a->rank - i], y = b->shape[b->rank - i];
    if (x >= 0 && y >= 0 && x != y && x != 1 && y != 1) return 0;
  }
  return 1;
}

flow_tensor *flow_merge_mask_of(flow_expression *e, const flow_tensor *x)
{
  flow_tensor *mask = e->status == FLOW_OK ? x->mask : NULL;
  int64_t dims[FLOW_MAX_RANK];
  if (!mask || mask->rank + 1 > FLOW_MAX_RANK) return NULL;
  for (int i = 0; i < mask->rank; i++) dims[i] = mask->shape[i];
  dims[mask->rank] = 1;
  return flow_express_reshape(e, flow_express_cast(e, mask, FLOW_BOOL), mask->rank + 1, dims);
}

flow_status flow_merge_masks(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, flow_tensor *const *masks, int count,
                             flow_tensor **out)
{
  (void)layer; (void)inputs;
  flow_expression e = flow_expression_of(context);
  flow_tensor *merged = count > 0 ? masks[0] : NULL;
  for (int i = 0; i < count; i++)
    if (!masks[i]) return FLOW_OK;
  for (int i = 1; i < count; i++) merged = e_logical_or(&e, merged, masks[i]);
  return merged ? flow_expression_take(&e, merged, out) : flow_expression_end(&e);
}

/* One input more, with masks of which one may be NULL; *kept: where the result so far counts, NULL: everywhere, or unknown. */
static flow_tensor *join(flow_expression *e, int op, flow_tensor *so_far, flow_tensor **kept, flow_tensor *x, flow_tensor *mask)
{
  if (op == FLOW_OP_maximum || op == FLOW_OP_minimum) {
    if (mask) x = e_where(e, mask, x, so_far);
    if (*kept) so_far = e_where(e, *kept, so_far, x);
    *kept = mask && *kept ? e_logical_or(e, *kept, mask) : NULL;
  }
  return flow_express(e, op, so_far, x, NULL, NULL);
}

/* Inputs are joined from the left, two at a time, as Keras does it. For maximum and minimum, what a mask leaves out does not take part. */
flow_status flow_merge(const flow_layer *layer, flow_expression *e, flow_tensor *const *inputs, int count, int op, const char *verb,
                       flow_tensor **out)
{
  int rank = 0;
  for (int i = 0; i < count; i++) {
    if (inputs[i]->rank > rank) rank = inputs[i]->rank;
    if (!shapes_match(inputs[0], inputs[i]))
      return flow_layer_fail(layer, "inputs 1 and %d have shapes %s and %s, which cannot be %s", i + 1, flow_tensor_shape_text(inputs[0]),
                             flow_tensor_shape_text(inputs[i]), verb);
  }
  /* Keras forgets the mask of what changes its rank. */
  flow_tensor *kept = inputs[0]->rank == rank ? flow_merge_mask_of(e, inputs[0]) : NULL;
  *out = raise_rank(e, inputs[0], rank);
  for (int i = 1; i < count; i++) {
    flow_tensor *mask = inputs[i]->rank == rank ? flow_merge_mask_of(e, inputs[i]) : NULL;
    *out = join(e, op, *out, &kept, raise_rank(e, inputs[i], rank), mask);
  }
  return FLOW_OK;
}

flow_status flow_merge_call(flow_context *context, const flow_layer *layer, flow_tensor *const *inputs, int count, int op, const char *verb,
                            flow_tensor **out)
{
  flow_expression e = flow_expression_of(context);
  flow_tensor *result;
  FLOW_TRY(flow_merge(layer, &e, inputs, count, op, verb, &result));
  return flow_expression_take(&e, result, out);
}
