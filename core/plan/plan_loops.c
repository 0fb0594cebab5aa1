/* plan_loops.c: plans of loops' bodies, on the host. On a device loops are written out before (plan.c). */
#include "plan/plan.h"

#include "graph/loop.h"

/* Copies the body into `graph`, since passes rewrite what they make a plan of, and the body itself is still needed for gradients and for
 * writing loops out. map[value of the body]: work space. results[]: symbolic tensors of the copy, new references, *made of them, also
 * after a failure. */
static flow_status copy_body(const flow_loop *loop, flow_graph *graph, int *map, flow_tensor **results, int *made)
{
  const flow_graph *body = loop->body;
  graph->exact = body->exact;
  graph->replicas = body->replicas;
  for (int v = 0; v < body->value_count; v++) map[v] = -1;
  for (int i = 0; i < body->input_count; i++)
    FLOW_TRY(flow_graph_input(graph, &body->values[body->inputs[i]].signature, &map[body->inputs[i]]));
  FLOW_TRY(flow_graph_copy_nodes(graph, body, map, NULL, 0));
  for (; *made < loop->results; ++*made) {
    int value;
    FLOW_TRY(flow_graph_copy_value(graph, body, map, loop->values[*made], &value));
    FLOW_TRY(flow_graph_tensor(graph, value, &results[*made]));
  }
  return FLOW_OK;
}

/* Makes loop->plan. The loop can release it only through a pointer, as core/graph knows nothing of plans. */
static flow_status plan_body(flow_loop *loop)
{
  flow_graph *graph;
  void *block;
  int made = 0;
  FLOW_TRY(flow_alloc(sizeof(flow_tensor *) * (size_t)(loop->results + 1) + sizeof(int) * (size_t)(loop->body->value_count + 1), &block));
  flow_tensor **results = block;
  flow_status status = flow_graph_new(&graph);
  if (status == FLOW_OK) {
    status = copy_body(loop, graph, (int *)(results + loop->results + 1), results, &made);
    if (status == FLOW_OK) status = flow_plan_make(graph, results, made, &loop->plan);
    while (made > 0) flow_tensor_release(results[--made]);
    flow_graph_release(graph);
  }
  if (status == FLOW_OK) loop->release_plan = flow_plan_release;
  flow_free(block);
  return status;
}

flow_status flow_plan_loops(const flow_graph *graph, const char *live)
{
  for (int n = 0; n < graph->node_count; n++) {
    if (!live[n] || graph->nodes[n].op != FLOW_OP_loop) continue;
    flow_loop *loop = flow_loop_of(graph, &graph->nodes[n]);
    if (!loop->plan) FLOW_TRY(plan_body(loop));
  }
  return FLOW_OK;
}
