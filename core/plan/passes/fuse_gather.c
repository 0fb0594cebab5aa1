/* fuse_gather.c: what reads rows that are gathered from a table takes them from the table itself. Runs when a plan for the CPU is made,
 * after gradients were taken: those of the table read the indices alone.
 *
 *   sum(gather(table, indices {..., k}), over the k)  ->  gather_sum(table, indices)
 *
 * The mean of a text's embedded words is such a sum: k rows for each text, which are neither written nor read again. The same bits.
 *
 *   dense(gather(table, indices), w, b)  ->  gather_dense(table, indices, w, b), in plans that do not train
 *
 * The input product of a recurrent layer that reads embedded words is such a product. A word has the same one wherever it stands, which is
 * kept until a weight is written to (kernels/cpu/matrix_product/gather_dense.c). */
#include "ops/rules.h"
#include "plan/passes/fusion.h"
#include "plan/plan.h"

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

/* ---- products ----------------------------------------------------------------------------------------------------------------- */

/* FEWEST_FACTORS: width of a table's row from which on its product takes longer than a copy of the result. MOST_BYTES: of the products of
 * all rows, which a plan keeps. */
enum { FEWEST_FACTORS = 64, MOST_BYTES = 64 << 20 };

/* Whether a value is a variable, a constant, or made from such alone, by `depth` ops in a row at most. */
static int is_made_of_weights(const flow_graph *graph, int value, int depth)
{
  const flow_value *v = &graph->values[value];
  if (v->kind == FLOW_VALUE_VARIABLE || v->kind == FLOW_VALUE_CONSTANT) return 1;
  if (v->kind != FLOW_VALUE_RESULT || depth == 0) return 0;
  const flow_node *node = &graph->nodes[v->node];
  if (node->input_count == 0 || flow_op(node->op)->flags & (FLOW_OP_RANDOM | FLOW_OP_COLLECTIVE)) return 0;
  for (int i = 0; i < node->input_count; i++)
    if (!is_made_of_weights(graph, node->inputs[i], depth - 1)) return 0;
  return 1;
}

/* Whether products of all rows of the table may be kept, and are worth it. */
static int is_worth_keeping(const flow_graph *graph, const flow_node *gather, const flow_node *dense)
{
  enum { DEPTH = 4 };
  const flow_signature *table = &graph->values[gather->inputs[0]].signature, *w = &graph->values[dense->inputs[1]].signature;
  int64_t bytes;
  if (table->rank != 2 || table->dtype != FLOW_FLOAT32 || table->dims[1] < FEWEST_FACTORS || dense->bfloat16) return 0;
  if (__builtin_mul_overflow(table->dims[0], w->dims[1], &bytes) || bytes > MOST_BYTES / (int64_t)sizeof(float)) return 0;
  return is_made_of_weights(graph, gather->inputs[0], DEPTH) && is_made_of_weights(graph, dense->inputs[1], DEPTH) &&
         is_made_of_weights(graph, dense->inputs[2], DEPTH);
}

/* The gather may have other readers: rows take little time beside products. */
static flow_status keep_products(flow_graph *graph, const int *readers, int n)
{
  (void)readers;
  const flow_node *dense = &graph->nodes[n];
  const flow_value *x = &graph->values[dense->inputs[0]];
  const flow_node *gather = x->kind == FLOW_VALUE_RESULT ? &graph->nodes[x->node] : NULL;
  if (!gather || gather->op != FLOW_OP_gather || !is_worth_keeping(graph, gather, dense)) return FLOW_OK;
  flow_attributes attributes = dense->attributes;
  flow_signature result = graph->values[dense->outputs[0]].signature;
  const int inputs[] = { gather->inputs[0], gather->inputs[1], dense->inputs[1], dense->inputs[2] };
  return flow_graph_rewrite(graph, n, FLOW_OP_gather_dense, inputs, 4, &attributes, &result, 1);
}

flow_status flow_graph_fuse_gathers(flow_graph *graph, const char *live, const int *outputs, int output_count)
{
  if (graph->place) return FLOW_OK;
  FLOW_TRY(flow_rewrite_each(graph, live, outputs, output_count, FLOW_OP_sum, read_table));
  return flow_graph_trains(graph) ? FLOW_OK : flow_rewrite_each(graph, live, outputs, output_count, FLOW_OP_dense, keep_products);
}
