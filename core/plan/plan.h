/* core/plan: from a finished trace to a plan, which knows in what order its nodes run and where the effects are. plan.c calls the passes
 * and drops dead nodes; passes/ rewrite the graph, one file for each reason: fuse*.c, several nodes that one op replaces; fold_*.c,
 * nodes whose work another node includes; join_casts.c and transpose_filters.c, nodes that do the same with several tensors;
 * advance_updates.c, updates that come before a sum over replicas. Then schedule.c finds the order and the segments, and lifetimes.c how
 * long values live; memory_plan.c packs what lives into one block, for core/run. Uses base, tensor, ops, graph. Called where a trace
 * ends (trace.c): from Lua through the C API, and from core/models.
 *
 * plan.h: a finished trace. A plan is a flat list of nodes in the order in which they run, cut into segments:
 *
 *   ROWS segment   a maximal group of MAP and REDUCE nodes over the rows of the batch: each worker takes a slot (a fixed
 *                  range of rows) and runs all nodes on one cache-sized chunk of rows before the next chunk. Values that
 *                  live only inside the segment have the size of a chunk and belong to the worker.
 *   WHOLE segment  one node over all rows, which divides its work itself.
 *
 * The commit tail is last and runs only if everything before it succeeded: the effects in the order of the trace, and nodes that read a
 * variable after one. A value that the trace read before an update does not change: the tail gets a copy of it. Immutable after
 * flow_plan_make, shared by any number of instances and threads. */
#ifndef FLOW_PLAN_PLAN_H
#define FLOW_PLAN_PLAN_H

#include "graph/graph.h"

typedef struct flow_segment {
  int by_rows;         /* ROWS or WHOLE */
  int tail;            /* part of the commit tail */
  int first, count;    /* range of order[] */
} flow_segment;

/* Where and how long a value is needed, in segment numbers. */
typedef struct flow_lifetime {
  int defined, last_use;   /* -1: not computed */
  int local;               /* lives in one ROWS segment only: chunk-sized */
} flow_lifetime;

struct flow_plan {
  _Atomic int    references;
  flow_graph    *graph;                /* closed */
  int           *order;                /* nodes in running order */
  int            order_count;
  int early_gather;                    /* the node whose rows workers send each other while they go on computing; -1: none */
  int            undo_end;             /* effects in order[0 .. undo_end) are undone if something after them refuses data */
  flow_segment  *segments;
  int            segment_count;
  flow_lifetime *lifetimes;            /* [value]; of roots only (flow_graph_root) */
  int           *roots;                /* [value] */
  int           *outputs;              /* values */
  int            output_count;
};

/* Finishes `graph`: fuses, drops dead nodes, schedules. Closes the graph. New reference. */
flow_status flow_plan_make(flow_graph *graph, flow_tensor *const *outputs, int count, flow_plan **out);
flow_plan  *flow_plan_retain(flow_plan *plan);

/* Whether an operand of a node in a ROWS segment carries rows. output: index among outputs instead of inputs. */
int flow_node_row_input(const flow_graph *graph, const flow_node *node, int input);
int flow_node_row_output(const flow_graph *graph, const flow_node *node, int output);
/* Whether a node can run chunk by chunk over the rows of the batch; on a device all run as a whole. */
int flow_node_by_rows(const flow_graph *graph, const flow_node *node);

/* Whether the graph writes variables. Every plan of it does so then, since effects are always live; bodies of loops have none. */
int flow_graph_writes(const flow_graph *graph);
/* Whether it updates variables otherwise than by assigning to them. The weights differ in each run of such a plan; what is only assigned,
 * such as the state of a recurrent layer, is not a weight. */
int flow_graph_trains(const flow_graph *graph);

/* Makes the plans of the bodies of live loops. plan_loops.c */
flow_status flow_plan_loops(const flow_graph *graph, const char *live);

/* Copies a graph's constants to the device on which it runs. place_constants.c */
flow_status flow_graph_place_constants(flow_graph *graph);

#endif
