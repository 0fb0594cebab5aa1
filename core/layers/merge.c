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
  *out = raise_rank(e, inputs[0], rank);
  for (int i = 1; i < count; i++) *out = flow_express(e, op, *out, raise_rank(e, inputs[i], rank), NULL, NULL);
  return FLOW_OK;
}
