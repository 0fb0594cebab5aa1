/* fold_transposes.c: products read and write heads where they lie, as rows of {batch, steps, heads, channels}:
 *
 *   transpose(x), of the two axes before the last one;  matmul(t, b)  ->  matmul(x, b), swapped (flow_swapped), for either operand
 *   matmul(a, b), its only reader transposes so                       ->  matmul(a, b), written so
 *
 * and the same of the ops attention and attention_gradient (flow_attention_swapped). Attention transposes queries, keys and values that
 * way and its result back, and the gradients of all of them again. The same bits, since only steps in memory change. Two kinds of products
 * are left alone: those of a matrix of one column, whose sums are cut by how it lies, and those of many matrices by one, which are
 * multiplied as one tall matrix where their rows follow each other. On a GPU libraries multiply, which take no product so, and this is for
 * attention alone. Runs when a plan is made, after gradients were taken: for the CPU before products become attention, for a GPU after
 * that. */
#include "ops/matrix_product.h"
#include "plan/passes/fusion.h"

/* Whether the node swaps the two axes before the last one of four or more, and leaves all others where they are. */
static int swaps(const flow_graph *graph, const flow_node *node)
{
  const flow_signature *x = &graph->values[node->inputs[0]].signature;
  if (node->op != FLOW_OP_transpose || x->rank < 4 || x->dims[x->rank - 1] < 2) return 0;
  for (int axis = 0; axis < x->rank; axis++) {
    int from = axis == x->rank - 3 ? axis + 1 : axis == x->rank - 2 ? axis - 1 : axis;
    if (node->attributes.transpose.axes[axis] != from) return 0;
  }
  return 1;
}

/* The size of leading axis `axis` of an operand, whether its rows lie before the last one of these axes or not. */
static int64_t leading(const flow_signature *x, int swapped, int axis)
{
  return x->dims[swapped && axis == x->rank - 3 ? axis + 1 : axis];
}

/* Whether all matrices of A may meet the same matrix of B (describe_matmul): if sizes of B that are not known turn out to be 1, too. */
static int may_share_b(const flow_graph *graph, const flow_node *matmul)
{
  const flow_signature *a = &graph->values[matmul->inputs[0]].signature, *b = &graph->values[matmul->inputs[1]].signature;
  const int swapped = matmul->attributes.matmul.swapped;
  int differ = 0;
  for (int axis = 0; axis < b->rank - 2; axis++) {
    int64_t of_b = leading(b, swapped & FLOW_SWAPPED_B, axis);
    if (of_b > 1) return 0;
    differ |= of_b != leading(a, swapped & FLOW_SWAPPED_A, axis);
  }
  return differ && !matmul->attributes.matmul.transpose_a;
}

/* The bits of an op's operands in matmul.swapped, in their order; 0: it cannot be swapped. */
typedef struct operand_bits {
  int op;
  int inputs[4], outputs[3];
} operand_bits;
static const operand_bits ops[] = {
  { FLOW_OP_matmul, { FLOW_SWAPPED_A, FLOW_SWAPPED_B }, { FLOW_SWAPPED_C } },
  { FLOW_OP_attention, { FLOW_ATTENTION_Q, FLOW_ATTENTION_K, FLOW_ATTENTION_V }, { FLOW_ATTENTION_Y } },
  { FLOW_OP_attention_gradient,
    { FLOW_ATTENTION_Y, FLOW_ATTENTION_Q, FLOW_ATTENTION_K, FLOW_ATTENTION_V },
    { FLOW_ATTENTION_DV, FLOW_ATTENTION_DQ, FLOW_ATTENTION_DK } },
};

/* NULL: an op that this pass does not know. */
static const operand_bits *bits_of(const flow_node *node)
{
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    if (ops[i].op == node->op) return &ops[i];
  return NULL;
}

/* Whether this pass may change how a node reads and writes: attention, or a product of many matrices by as many others, of four axes or
 * more. */
static int is_wide(const flow_graph *graph, const flow_node *matmul)
{
  if (matmul->op != FLOW_OP_matmul) return bits_of(matmul) != NULL;
  if (graph->place) return 0;
  int rank = graph->values[matmul->inputs[0]].signature.rank;
  return rank >= 4 && rank == graph->values[matmul->inputs[1]].signature.rank && !may_share_b(graph, matmul);
}

/* Lets a node read the operands of the transposes that made its inputs. The transposes stay for other readers; without any they are
 * dropped with other dead nodes. */
static void read_swapped(flow_graph *graph, flow_node *node)
{
  const operand_bits *bits = bits_of(node);
  for (int i = 0; i < node->input_count && i < (int)(sizeof bits->inputs / sizeof *bits->inputs); i++) {
    const flow_value *value = &graph->values[node->inputs[i]];
    if (value->kind != FLOW_VALUE_RESULT || !bits->inputs[i] || node->attributes.matmul.swapped & bits->inputs[i]) continue;
    const flow_node *maker = &graph->nodes[value->node];
    if (!swaps(graph, maker)) continue;
    node->inputs[i] = maker->inputs[0];
    node->attributes.matmul.swapped |= bits->inputs[i];
  }
}

/* The node that makes what `transpose` takes alone writes what that would give. */
static void write_swapped(flow_graph *graph, const flow_node *transpose, const int *readers, const char *returned, int *same)
{
  if (!swaps(graph, transpose) || returned[transpose->outputs[0]]) return;
  const flow_value *value = &graph->values[transpose->inputs[0]];
  if (value->kind != FLOW_VALUE_RESULT || readers[transpose->inputs[0]] != 1) return;
  flow_node *node = &graph->nodes[value->node];
  if (!is_wide(graph, node)) return;
  const int bit = bits_of(node)->outputs[value->output];
  if (node->attributes.matmul.swapped & bit) return;
  node->attributes.matmul.swapped |= bit;
  graph->values[transpose->inputs[0]].signature = graph->values[transpose->outputs[0]].signature;
  same[transpose->outputs[0]] = transpose->inputs[0];
}

flow_status flow_graph_fold_transposes(flow_graph *graph, const char *live, const int *outputs, int output_count)
{
  int values = graph->value_count;
  void *block;
  FLOW_TRY(flow_alloc_zero((2 * sizeof(int) + 1) * (size_t)(values + 1), &block));
  int *readers = block, *same = readers + values + 1;
  char *returned = (char *)(same + values + 1);
  for (int n = 0; n < graph->node_count; n++)
    if (live[n] && is_wide(graph, &graph->nodes[n])) read_swapped(graph, &graph->nodes[n]);
  flow_graph_count_live_uses(graph, live, outputs, output_count, readers);
  for (int v = 0; v < values; v++) same[v] = v;
  for (int i = 0; i < output_count; i++) returned[outputs[i]] = 1;
  for (int n = 0; n < graph->node_count; n++)
    if (live[n]) write_swapped(graph, &graph->nodes[n], readers, returned, same);
  flow_graph_redirect(graph, same, values);
  flow_free(block);
  return FLOW_OK;
}
