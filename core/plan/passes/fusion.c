/* fusion.c: see fusion.h. */
#include "plan/passes/fusion.h"

/* Only the first result counts: what reads another output of the node, as of a pooling its indices, is the caller's to look for. */
const flow_node *flow_sole_producer(const flow_graph *graph, const int *readers, int value, int op)
{
  const flow_value *v = &graph->values[value];
  if (v->kind != FLOW_VALUE_RESULT || v->output != 0 || readers[value] != 1) return NULL;
  const flow_node *node = &graph->nodes[v->node];
  return node->op == op ? node : NULL;
}

int flow_is_per_channel(const flow_graph *graph, int vector, int like)
{
  const flow_signature *s = &graph->values[vector].signature, *y = &graph->values[like].signature;
  return s->rank == 1 && y->rank > 1 && s->dims[0] == y->dims[y->rank - 1] && s->dtype == y->dtype;
}

/* A failed flow_tensor_item is a 0, too: passes take numbers that make no difference to them where there is none. */
double flow_constant_number(const flow_graph *graph, int value)
{
  const flow_value *v = &graph->values[value];
  double number = 0;
  if (v->kind == FLOW_VALUE_CONSTANT && v->signature.rank == 0 && flow_tensor_item(v->tensor, &number) == FLOW_OK) return number;
  return 0;
}

flow_status flow_rewrite_each(flow_graph *graph, const char *live, const int *outputs, int output_count, int op,
                              flow_status (*rewrite)(flow_graph *graph, const int *readers, int node))
{
  void *readers;
  FLOW_TRY(flow_alloc_zero(sizeof(int) * (size_t)(graph->value_count + 1), &readers));
  flow_graph_count_live_uses(graph, live, outputs, output_count, readers);
  flow_status status = FLOW_OK;
  for (int n = 0; n < graph->node_count && status == FLOW_OK; n++)
    if (live[n] && graph->nodes[n].op == op) status = rewrite(graph, readers, n);
  flow_free(readers);
  return status;
}

int flow_fusion_alike(const flow_fusion *f, int a, int b)
{
  const flow_signature *s = &f->graph->values[a].signature, *t = &f->graph->values[b].signature;
  return s->dtype == t->dtype && flow_shape_equal(s->rank, s->dims, t->rank, t->dims);
}

/* Nodes are in the order of the trace, and insertions keep it, so that the smaller index runs first. */
int flow_fusion_is_before(const flow_fusion *f, int value, int node)
{
  const flow_value *v = &f->graph->values[value];
  return v->kind != FLOW_VALUE_RESULT || v->node < node;
}

/* One block for all tables, with room for the values of the graph as it is now. What rewrites add lies beyond `count`: the tables have
 * no place for it, and redirection leaves it alone. */
static flow_status run(flow_graph *graph, const char *live, const int *outputs, int output_count, int op,
                       flow_status (*fuse)(flow_fusion *f, int node))
{
  size_t values = (size_t)graph->value_count + 1;
  int count = graph->value_count;
  void *block;
  FLOW_TRY(flow_alloc_zero(values * (2 * sizeof(int) + 1), &block));
  flow_fusion f = { .graph = graph, .live = live, .readers = block };
  f.same = f.readers + values;
  f.returned = (char *)(f.same + values);
  for (int v = 0; v < count; v++) f.same[v] = v;
  for (int n = 0; n < graph->node_count; n++)
    for (int i = 0; live[n] && i < graph->nodes[n].input_count; i++) f.readers[graph->nodes[n].inputs[i]]++;
  for (int i = 0; i < output_count; i++) {
    f.returned[outputs[i]] = 1;
    f.readers[outputs[i]]++;
  }
  flow_status status = FLOW_OK;
  for (int n = 0; n < graph->node_count && status == FLOW_OK; n++)
    if (live[n] && graph->nodes[n].op == op) status = fuse(&f, n);
  flow_graph_redirect(graph, f.same, count);
  flow_free(block);
  return status;
}

flow_status flow_fusion_run(flow_graph *graph, const char *live, const int *outputs, int output_count, int op,
                            flow_status (*fuse)(flow_fusion *f, int node))
{
  return graph->place ? run(graph, live, outputs, output_count, op, fuse) : FLOW_OK;
}

flow_status flow_fusion_run_anywhere(flow_graph *graph, const char *live, const int *outputs, int output_count, int op,
                                     flow_status (*fuse)(flow_fusion *f, int node))
{
  return run(graph, live, outputs, output_count, op, fuse);
}

flow_status flow_fusion_run_on_cpu(flow_graph *graph, const char *live, const int *outputs, int output_count, int op,
                                   flow_status (*fuse)(flow_fusion *f, int node))
{
  return graph->place ? FLOW_OK : run(graph, live, outputs, output_count, op, fuse);
}
