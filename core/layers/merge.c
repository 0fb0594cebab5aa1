/* merge.c: see merge.h. */
#include "layers/merge.h"

#include "autodiff/apply.h"

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

/* Whether one of two sizes broadcasts to the other; symbolic ones are left to the op. */
static int sizes_match(int64_t x, int64_t y)
{
  return x < 0 || y < 0 || x == y || x == 1 || y == 1;
}

/* Whether both broadcast to one shape, the batches, too: one row of an array that a model learns goes with all rows of its data. */
static int shapes_match(const flow_tensor *a, const flow_tensor *b)
{
  if (a->rank == 0 || b->rank == 0) return a->rank == b->rank;
  if (!sizes_match(a->shape[0], b->shape[0])) return 0;
  for (int i = 1; i < a->rank && i < b->rank; i++)
    if (!sizes_match(a->shape[a->rank - i], b->shape[b->rank - i])) return 0;
  return 1;
}

/* The mask of x with an axis for the features, {batch, steps, 1}, so that it broadcasts to x; NULL: it has none. */
static flow_tensor *mask_of(flow_expression *e, const flow_tensor *x)
{
  flow_tensor *mask = x->mask;
  int64_t dims[FLOW_MAX_RANK];
  if (!mask || mask->rank + 1 > FLOW_MAX_RANK) return NULL;
  for (int i = 0; i < mask->rank; i++) dims[i] = mask->shape[i];
  dims[mask->rank] = 1;
  return flow_express_reshape(e, flow_express_cast(e, mask, FLOW_BOOL), mask->rank + 1, dims);
}

/* The result of the inputs so far; both tensors are references. kept: where it counts. Of maxima and minima NULL stands for everywhere, as
 * after an input without a mask; of products for nothing yet: all inputs with masks count where one of them does. */
typedef struct merged {
  flow_tensor *value, *kept;
} merged;

/* One input more, from the left, two at a time, as Keras does it. What a mask leaves out of an input is replaced: in maxima and minima by
 * the other operand, in products by 1; sums do not look at masks. Keras forgets the mask of an input whose rank changes, but in products,
 * where it applies the mask before. Each input has its own expression, so that a list may have any length and what was made for
 * earlier inputs is freed. After a failure `so_far` is unchanged. */
static flow_status join(flow_context *context, int op, merged *so_far, flow_tensor *x, int rank)
{
  flow_expression e = flow_expression_of(context);
  int picks = op == FLOW_OP_maximum || op == FLOW_OP_minimum, multiplies = op == FLOW_OP_mul;
  flow_tensor *mask = multiplies || (picks && x->rank == rank) ? mask_of(&e, x) : NULL, *value = so_far->value, *kept = so_far->kept;
  if (multiplies && mask) x = e_where(&e, mask, x, flow_express_number(&e, x, 1));
  if (e.status == FLOW_OK) x = raise_rank(&e, x, rank);
  if (picks && value) {
    if (mask) x = e_where(&e, mask, x, value);
    if (kept) value = e_where(&e, kept, value, x);
  }
  if (multiplies ? kept != NULL && mask != NULL : value && kept && mask) kept = e_logical_or(&e, kept, mask);
  else if (multiplies) kept = kept ? kept : mask;
  else kept = value ? NULL : mask;
  value = value ? flow_express(&e, op, value, x, NULL, NULL) : x;
  if (e.status != FLOW_OK) return flow_expression_end(&e);
  merged next = { flow_tensor_retain(value), flow_tensor_retain(kept) };
  flow_tensor_release(so_far->value);
  flow_tensor_release(so_far->kept);
  *so_far = next;
  return flow_expression_end(&e);
}

/* A product is 0 where the masks of all inputs leave it out. */
static flow_status zero_left_out(flow_context *context, merged *product)
{
  flow_expression e = flow_expression_of(context);
  flow_tensor *before = product->value;
  flow_tensor *zeroed = e_where(&e, product->kept, before, flow_express_number(&e, before, 0));
  flow_status status = flow_expression_take(&e, zeroed, &product->value);
  flow_tensor_release(before);
  return status;
}

flow_status flow_merge_call(flow_context *context, const flow_layer *layer, flow_tensor *const *inputs, int count, int op, const char *verb,
                            flow_tensor **out)
{
  int rank = 0, all_masked = 1;
  merged result = { NULL, NULL };
  for (int i = 0; i < count; i++) {
    if (inputs[i]->rank > rank) rank = inputs[i]->rank;
    all_masked &= inputs[i]->mask && inputs[i]->mask->rank < FLOW_MAX_RANK;
    if (!shapes_match(inputs[0], inputs[i]))
      return flow_layer_fail(layer, "inputs 1 and %d have shapes %s and %s, which cannot be %s", i + 1, flow_tensor_shape_text(inputs[0]),
                             flow_tensor_shape_text(inputs[i]), verb);
  }
  flow_status status = FLOW_OK;
  for (int i = 0; i < count && status == FLOW_OK; i++) status = join(context, op, &result, inputs[i], rank);
  if (status == FLOW_OK && op == FLOW_OP_mul && all_masked) status = zero_left_out(context, &result);
  flow_tensor_release(result.kept);
  if (status == FLOW_OK) *out = result.value;
  else flow_tensor_release(result.value);
  return status;
}

flow_status flow_merge_masks(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, flow_tensor *const *masks, int count,
                             flow_tensor **out)
{
  (void)layer;
  (void)inputs;
  for (int i = 0; i < count; i++)
    if (!masks[i]) return FLOW_OK;
  flow_tensor *counts = count > 0 ? flow_tensor_retain(masks[0]) : NULL, *next;
  for (int i = 1; i < count; i++) {
    flow_status status = flow_apply1(context, FLOW_OP_logical_or, counts, masks[i], NULL, NULL, &next);
    flow_tensor_release(counts);
    FLOW_TRY(status);
    counts = next;
  }
  *out = counts;
  return FLOW_OK;
}
