/* fuse_gather.c: a sum over rows that are gathered for it alone reads them where they are in the table:
 *
 *   sum(gather(table, indices {..., k}), over the k)  ->  gather_sum(table, indices)
 *
 * The mean of a text's embedded words is such a sum: k rows for each text, which are neither written nor read again. The same bits. Runs
 * when a plan for the CPU is made, after gradients were taken: those of the table read the indices alone. */
#include "ops/rules.h"
#include "plan/passes/fusion.h"

/* Floats in a row of the table from which on the sum takes row by row; it takes several shorter ones at a time (reduce.c). */
enum { FEWEST_FLOATS = 64 };

/* Whether the sum is over the last axis of the indices, and rows of the table have at least FEWEST_FLOATS floats. */
static int is_over_indices(const flow_graph *graph, const flow_node *sum, const flow_node *gather)
{
  const flow_signature *table = &graph->values[gather->inputs[0]].signature, *indices = &graph->values[gather->inputs[1]].signature;
  int axis = indices->rank - 1;      /* the first is that of the batch's rows */
  if (axis < 1 || table->dtype != FLOW_FLOAT32 || flow_shape_size(table->rank - 1, table->dims + 1) < FEWEST_FLOATS) return 0;
  return !sum->attributes.reduce.keepdims && flow_reduced_axes(&sum->attributes, axis + table->rank) == (1u << axis);
}

/* sum(gather(table, indices)) over the axis of indices becomes gather_sum(table, indices), which writes no gathered rows. The gather
 * must have no other reader. */
static flow_status read_table(flow_graph *graph, const int *readers, int n)
{
  static const flow_attributes none;
  const flow_node *sum = &graph->nodes[n];
  const flow_node *gather = flow_sole_producer(graph, readers, sum->inputs[0], FLOW_OP_gather);
  if (!gather || !is_over_indices(graph, sum, gather)) return FLOW_OK;
  flow_signature result = graph->values[sum->outputs[0]].signature;
  return flow_graph_rewrite(graph, n, FLOW_OP_gather_sum, (int[]){ gather->inputs[0], gather->inputs[1] }, 2, &none, &result, 1);
}

flow_status flow_graph_fuse_gathers(flow_graph *graph, const char *live, const int *outputs, int output_count)
{
  return graph->place ? FLOW_OK : flow_rewrite_each(graph, live, outputs, output_count, FLOW_OP_sum, read_table);
}
