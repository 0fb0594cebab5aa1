/* fusion.h: what passes share that join neighbouring nodes; flow_fusion is for those of which one node takes the place of several. */
#ifndef FLOW_PLAN_PASSES_FUSION_H
#define FLOW_PLAN_PASSES_FUSION_H

#include "graph/graph.h"

/* The node whose first result is `value`, if it runs `op` and the value has one reader; else NULL. readers[value]: how many it has. */
const flow_node *flow_sole_producer(const flow_graph *graph, const int *readers, int value, int op);
/* Whether `vector` has a number for each channel, the last axis, of `like`, in its dtype. */
int              flow_is_per_channel(const flow_graph *graph, int vector, int like);
/* The number in a constant scalar; 0 if the value is not a constant scalar. */
double           flow_constant_number(const flow_graph *graph, int value);

/* Calls rewrite for each live node of this op, in order, for the CPU and for devices. readers[value]: how many nodes and outputs read the
 * value, as flow_graph_count_live_uses counts them before the first call; values that rewrites add have no place in it. Ends at the first
 * call that fails. */
flow_status flow_rewrite_each(flow_graph *graph, const char *live, const int *outputs, int output_count, int op,
                              flow_status (*rewrite)(flow_graph *graph, const int *readers, int node));

typedef struct flow_fusion {
  flow_graph *graph;
  const char *live;
  int        *readers;       /* [value]: how many operands of live nodes and outputs of the plan it is */
  int        *same;          /* [value]: what is read in its place */
  char       *returned;      /* [value]: it is an output of the plan */
} flow_fusion;

/* Calls fuse for each live node of this op, in order, then redirects readers as fuse wrote in `same`. A rewrite may add values; nothing
 * reads them before the end. Does nothing for a graph of the CPU. */
flow_status flow_fusion_run(flow_graph *graph, const char *live, const int *outputs, int output_count, int op,
                            flow_status (*fuse)(flow_fusion *f, int node));
/* The same for all graphs, and for graphs of the CPU only. */
flow_status flow_fusion_run_anywhere(flow_graph *graph, const char *live, const int *outputs, int output_count, int op,
                                     flow_status (*fuse)(flow_fusion *f, int node));
flow_status flow_fusion_run_on_cpu(flow_graph *graph, const char *live, const int *outputs, int output_count, int op,
                                   flow_status (*fuse)(flow_fusion *f, int node));
/* Whether two values have the same dtype and shape. */
int         flow_fusion_alike(const flow_fusion *f, int a, int b);
/* Whether the value is computed before `node` runs. */
int         flow_fusion_is_before(const flow_fusion *f, int value, int node);

#endif
