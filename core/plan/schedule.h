/* schedule.h: in what order the nodes of a plan run, and where its segments begin.
 *
 * The order of the trace is one of many that are valid. schedule.c looks for one in which as many nodes as possible that go by rows come
 * together, since a chunk of rows then stays in a core's cache while all of them work on it; in which sums over replicas come together,
 * so that replicas wait for each other once; and in which small nodes of a device come together. It is a list scheduler without
 * look-ahead: it takes whatever is ready, in the order of the trace, in turns of the kinds. */
#ifndef FLOW_PLAN_SCHEDULE_H
#define FLOW_PLAN_SCHEDULE_H

#include "plan/plan.h"

/* Whether the node keeps its place in the order of the trace: an effect, or one that reads storage after an effect. */
int         flow_is_ordered(const flow_graph *graph, int node);
/* tail[node] becomes 1 for nodes of the commit tail: effects on variables, and nodes that read a variable after one; else 0. */
void        flow_mark_tail(const flow_graph *graph, char *tail);
/* live[node] becomes 1 for effects, for what makes outputs[0 .. count), and for all that these read; else 0. */
void        flow_mark_live(const flow_graph *graph, const int *outputs, int count, char *live);
/* Makes plan->order, the segments and undo_end from the live nodes of its graph, which is closed. After a failure the plan's release frees
 * what was made. */
flow_status flow_plan_schedule(flow_plan *plan, const char *live);

#endif
