/* place_constants.c: the constants of a graph that runs on a device are there. See plan.h. */
#include "plan/plan.h"

flow_status flow_graph_place_constants(flow_graph *graph)
{
  for (int v = 0; v < graph->value_count; v++) {
    flow_tensor *there;
    if (graph->values[v].kind != FLOW_VALUE_CONSTANT) continue;
    FLOW_TRY(flow_tensor_at(graph->values[v].tensor, graph->place, &there));
    flow_tensor_release(graph->values[v].tensor);
    graph->values[v].tensor = there;
  }
  return FLOW_OK;
}
