/* fusion.h: what passes have in common that let a node of a plan on a device take over what is next to it. */
#ifndef FLOW_PLAN_PASSES_FUSION_H
#define FLOW_PLAN_PASSES_FUSION_H

#include "graph/graph.h"

typedef struct flow_fusion {
  flow_graph *graph;
  const char *live;
  int        *readers;       /* [value]: operands of live nodes that are it; outputs of the plan count, too */
  int        *same;          /* [value]: what is read in its place */
  char       *returned;      /* [value]: it is an output of the plan */
} flow_fusion;

/* Calls fuse for each live node of this op, in order, then redirects readers by what it put into same. A rewrite may add values, which
 * nothing reads before the end. Nothing to do for a graph of the CPU. */
flow_status flow_fusion_run(flow_graph *graph, const char *live, const int *outputs, int output_count, int op,
                            flow_status (*fuse)(flow_fusion *f, int node));
/* Whether two values have one dtype and shape. */
int         flow_fusion_alike(const flow_fusion *f, int a, int b);
/* Whether the value is there when `node` runs. */
int         flow_fusion_is_before(const flow_fusion *f, int value, int node);

#endif
