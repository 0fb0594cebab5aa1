/* join_casts.c: the variables that a step reads as 16-bit floats are cast by one node, however many they are:
 *
 *   half(v), half(w), ...  ->  v', w', ... = casts(v, w, ...)
 *
 * On a device each node is a launch, whose price is that of casting a hundred thousand numbers. Runs when a plan is made, after the casts
 * that kernels do on their own were left out (fold_casts.c). Only what a plan reads at its start is joined: so all of it is there. */
#include "graph/graph.h"

#include <string.h>

/* What one node will do: the casts to one dtype, in the order of the trace. */
typedef struct joint { int *inputs, *results; flow_signature *signatures; int count, first; } joint;

static int is_joined(const flow_graph *graph, const flow_node *node, int dtype, const char *returned)
{
  if (node->op != FLOW_OP_cast || node->attributes.cast.dtype != dtype || returned[node->outputs[0]]) return 0;
  const flow_value *x = &graph->values[node->inputs[0]];
  return x->kind == FLOW_VALUE_VARIABLE && !x->late && x->signature.dtype == FLOW_FLOAT32;
}

static void collect(const flow_graph *graph, const char *live, const char *returned, int dtype, joint *j)
{
  j->count = 0;
  for (int n = 0; n < graph->node_count; n++) {
    const flow_node *node = &graph->nodes[n];
    if (!live[n] || !is_joined(graph, node, dtype, returned)) continue;
    if (j->count == 0) j->first = n;
    j->inputs[j->count] = node->inputs[0];
    j->signatures[j->count] = graph->values[node->outputs[0]].signature;
    j->results[j->count++] = node->outputs[0];
  }
}

/* The first of the casts becomes all of them; whoever read the others reads its outputs. */
static flow_status join(flow_graph *graph, const joint *j, int *same)
{
  flow_attributes attributes = graph->nodes[j->first].attributes;
  FLOW_TRY(flow_graph_rewrite(graph, j->first, FLOW_OP_casts, j->inputs, j->count, &attributes, j->signatures, j->count));
  for (int i = 1; i < j->count; i++) same[j->results[i]] = graph->nodes[j->first].outputs[i];
  return FLOW_OK;
}

flow_status flow_graph_join_casts(flow_graph *graph, const char *live, const int *outputs, int output_count)
{
  static const int half_floats[] = { FLOW_FLOAT16, FLOW_BFLOAT16 };
  int values = graph->value_count;
  size_t nodes = (size_t)graph->node_count + 1;
  void *block;
  if (!graph->place) return FLOW_OK;
  FLOW_TRY(flow_alloc_zero(nodes * (sizeof(flow_signature) + 2 * sizeof(int)) + ((size_t)values + 1) * (sizeof(int) + 1), &block));
  joint j = { .signatures = block };
  j.inputs = (int *)(j.signatures + nodes);
  j.results = j.inputs + nodes;
  int *same = j.results + nodes;
  char *returned = (char *)(same + values + 1);
  flow_status status = FLOW_OK;
  for (int v = 0; v < values; v++) same[v] = v;
  for (int i = 0; i < output_count; i++) returned[outputs[i]] = 1;
  for (int h = 0; h < 2 && status == FLOW_OK; h++) {
    collect(graph, live, returned, half_floats[h], &j);
    if (j.count > 1) status = join(graph, &j, same);
  }
  flow_graph_redirect(graph, same, values);
  flow_free(block);
  return status;
}
