/* advance_updates.h: updates in the body of a plan, of copies; see advance_updates.c. */
#ifndef FLOW_PLAN_PASSES_ADVANCE_UPDATES_H
#define FLOW_PLAN_PASSES_ADVANCE_UPDATES_H

#include "graph/graph.h"

/* Lets all updates before the last reading on which a sum over replicas, or an output of each of them, depends work on copies. live[node]:
 * reached from outputs or effects. */
flow_status flow_graph_advance_updates(flow_graph *graph, const char *live, const int *outputs, int output_count);
/* Whether a node writes or reads such a copy, and no variable that is written: it keeps the order of the trace, in the body. */
int         flow_is_advanced(const flow_graph *graph, const flow_node *node);

#endif
