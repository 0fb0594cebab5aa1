/* fuse_batch_norm.c: on a device, a relu right after a normalization is computed while its result is in registers:
 *
 *   y, mean, variance = batch_norm(x, ..); relu(y)     -> y', mean, variance = batch_norm_relu(x, ..)
 *   y, mean, variance = batch_norm(x, ..); relu(y + r) -> y', mean, variance = batch_norm_relu(x, .., r)
 *
 * r has y's shape and dtype and is computed before the normalization: if two normalizations are added, the later one includes the sum.
 * No other node may read a value between. Runs when a plan is made, after gradients were taken: those read x and y'. */
#include "plan/passes/fusion.h"

/* The number of the live node of flow_sole_producer; -1: there is none. */
static int sole_maker(const flow_fusion *f, int value, int op)
{
  int node = flow_sole_producer(f->graph, f->readers, value, op) ? f->graph->values[value].node : -1;
  return node >= 0 && f->live[node] ? node : -1;
}

/* The normalization that can include the sum `node`, and its other operand; -1: there is none. */
static int find_adder(const flow_fusion *f, const flow_node *node, int *addend)
{
  for (int side = 0; side < 2; side++) {
    int made = sole_maker(f, node->inputs[side], FLOW_OP_batch_norm);
    *addend = node->inputs[1 - side];
    if (made >= 0 && flow_fusion_is_before(f, *addend, made) && flow_fusion_alike(f, *addend, node->inputs[side])) return made;
  }
  return -1;
}

/* Includes a relu, whose result is the value `relu`, in the normalization `index`. addend: -1: none. */
static flow_status take_over(flow_fusion *f, int index, int relu, int addend)
{
  const flow_node *node = &f->graph->nodes[index];
  flow_attributes attributes = node->attributes;
  flow_signature signatures[3];
  int inputs[4] = { node->inputs[0], node->inputs[1], node->inputs[2], addend };
  for (int i = 0; i < 3; i++) signatures[i] = f->graph->values[node->outputs[i]].signature;
  f->same[relu] = node->outputs[0];
  return flow_graph_rewrite(f->graph, index, FLOW_OP_batch_norm_relu, inputs, addend < 0 ? 3 : 4, &attributes, signatures, 3);
}

/* relu(batch_norm(x)) and relu(batch_norm(x) + addend) become one node; see the top. A result that the plan returns stays: its readers
 * are not known. */
static flow_status fuse(flow_fusion *f, int index)
{
  const flow_node *relu = &f->graph->nodes[index];
  int y = relu->inputs[0], result = relu->outputs[0], addend = -1;
  if (f->returned[result]) return FLOW_OK;
  int made = sole_maker(f, y, FLOW_OP_batch_norm), sum = sole_maker(f, y, FLOW_OP_add);
  if (sum >= 0) made = find_adder(f, &f->graph->nodes[sum], &addend);
  return made >= 0 ? take_over(f, made, result, addend) : FLOW_OK;
}

flow_status flow_graph_fuse_batch_norm(flow_graph *graph, const char *live, const int *outputs, int output_count)
{
  return flow_fusion_run(graph, live, outputs, output_count, FLOW_OP_relu, fuse);
}
