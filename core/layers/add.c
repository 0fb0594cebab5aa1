/* add.c: Add: the sum of several inputs, broadcast per sample as in Keras. */
#include "layers/express.h"
#include "layers/layer.h"

static const flow_argument parameters[] = { FLOW_LAYER_COMMON };

/* Samples of a smaller rank get dimensions of 1 behind the batch: {batch, c} -> {batch, 1, 1, c}. */
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

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)training;
  int rank = 0;
  for (int i = 0; i < count; i++) {
    if (inputs[i]->rank > rank) rank = inputs[i]->rank;
    if (!shapes_match(inputs[0], inputs[i]))
      return flow_layer_fail(layer, "inputs 1 and %d have shapes %s and %s, which cannot be added", i + 1,
                             flow_tensor_shape_text(inputs[0]),
                             flow_tensor_shape_text(inputs[i]));
  }
  flow_expression e = flow_expression_of(context);
  flow_tensor *sum = raise_rank(&e, inputs[0], rank);
  for (int i = 1; i < count; i++) sum = e_add(&e, sum, raise_rank(&e, inputs[i], rank));
  return flow_expression_take(&e, sum, out);
}

const flow_layer_class flow_layer_add = {
  .name = "Add", .positional = 0, .parameters = parameters, .min_inputs = 1, .max_inputs = FLOW_MAX_OPERANDS, .call = call,
  .doc = "The sum of a list of inputs."
};
