/* excess_precision.c: on the CPU, whose kernels compute in float32, what a plan rounds to bfloat16 on the way from one op to the next stays
 * float32, as in XLA's plans (xla_allow_excess_precision):
 *
 *   float32(bfloat16(x))                              -> x
 *   float32(move(bfloat16(x), ...)), e.g. a reshape   -> move(x, ...)
 *
 * so that mixed_bfloat16 costs no passes over memory, and all passes that follow find the patterns of float32. What the plan takes and
 * returns keeps its dtype, and so does what any op but a cast or a move reads or makes as bfloat16. Runs first; not for exact plans.
 * float16 is left as it is: loss scales follow from its overflows. */
#include "graph/graph.h"

typedef struct widening {
  flow_graph *graph;
  const char *live;
  char       *wide;          /* [value]: it becomes float32 */
  int        *same;          /* [value]: what is read in its place */
} widening;

/* Ops that take elements from one place to another, in any dtype. */
static int is_move(int op)
{
  static const unsigned char moves[FLOW_OP_COUNT] = {
    [FLOW_OP_reshape] = 1, [FLOW_OP_transpose] = 1, [FLOW_OP_concat] = 1, [FLOW_OP_slice] = 1, [FLOW_OP_slice_gradient] = 1,
    [FLOW_OP_gather] = 1, [FLOW_OP_take_along] = 1, [FLOW_OP_where] = 1, [FLOW_OP_broadcast_to] = 1, [FLOW_OP_copy] = 1,
    [FLOW_OP_stop_gradient] = 1,
  };
  return moves[op];
}

static int dtype_of(const widening *w, int value) { return w->graph->values[value].signature.dtype; }

/* Takes back what cannot be wide for this node. Returns whether there was anything. */
static int restrict_node(widening *w, const flow_node *node)
{
  int operands = node->input_count + node->output_count, narrow = !is_move(node->op), changed = 0;
  if (node->op == FLOW_OP_cast) return 0;
  for (int i = 0; i < operands; i++)      /* outputs come after inputs */
    narrow |= dtype_of(w, node->inputs[i]) == FLOW_BFLOAT16 && !w->wide[node->inputs[i]];
  for (int i = 0; i < operands && narrow; i++) {
    changed |= w->wide[node->inputs[i]];
    w->wide[node->inputs[i]] = 0;
  }
  return changed;
}

/* The largest set of values that can be float32 together. Returns whether there is any. */
static int choose(widening *w, const int *outputs, int output_count)
{
  const flow_graph *graph = w->graph;
  int some = 0;
  for (int v = 0; v < graph->value_count; v++) w->wide[v] = graph->values[v].kind == FLOW_VALUE_RESULT && dtype_of(w, v) == FLOW_BFLOAT16;
  for (int i = 0; i < output_count; i++) w->wide[outputs[i]] = 0;
  for (int changed = 1; changed;) {
    changed = 0;
    for (int n = 0; n < graph->node_count; n++)
      if (w->live[n]) changed |= restrict_node(w, &graph->nodes[n]);
  }
  for (int v = 0; v < graph->value_count; v++) some |= w->wide[v];
  return some;
}

static void widen_node(widening *w, flow_node *node)
{
  flow_value *values = w->graph->values;
  for (int i = 0; i < node->input_count; i++) node->inputs[i] = w->same[node->inputs[i]];
  for (int i = 0; i < node->output_count; i++)
    if (w->wide[node->outputs[i]]) values[node->outputs[i]].signature.dtype = FLOW_FLOAT32;
  if (node->op != FLOW_OP_cast) return;
  int x = node->inputs[0], y = node->outputs[0];
  node->attributes.cast.dtype = dtype_of(w, y);
  if (dtype_of(w, x) == FLOW_FLOAT32 && dtype_of(w, y) == FLOW_FLOAT32) w->same[y] = x;
}

flow_status flow_graph_keep_excess_precision(flow_graph *graph, const char *live, const int *outputs, int output_count)
{
  size_t values = (size_t)graph->value_count + 1;
  void *block;
  if (graph->place || graph->exact) return FLOW_OK;
  FLOW_TRY(flow_alloc_zero(values * (sizeof(int) + 1), &block));
  widening w = { .graph = graph, .live = live, .same = block };
  w.wide = (char *)(w.same + values);
  for (int v = 0; v < graph->value_count; v++) w.same[v] = v;
  if (choose(&w, outputs, output_count))
    for (int n = 0; n < graph->node_count; n++)
      if (live[n]) widen_node(&w, &graph->nodes[n]);
  flow_free(block);
  return FLOW_OK;
}
