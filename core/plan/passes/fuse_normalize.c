/* fuse_normalize.c: what scales and shifts a normalized tensor for one reader is done by the op that normalizes it:
 *
 *   normalize(x) * gamma            ->  layer_norm(x, gamma)
 *   layer_norm(x, gamma) + beta     ->  layer_norm(x, gamma, beta)
 *
 * gamma and beta have the sizes of the normalized axes. Training keeps the normalized tensor for its gradients, which are readers, too, so
 * that this happens in plans for predictions. Runs when a plan is made, after gradients were taken. */
#include "plan/passes/fusion.h"

/* Whether `parameter` has the sizes of the normalized axes of y, after axes of size 1. */
static int is_parameter(const flow_graph *graph, int parameter, int y, int axis)
{
  const flow_signature *p = &graph->values[parameter].signature, *s = &graph->values[y].signature;
  int normalized = axis < 0 ? -axis : s->rank - axis, more = p->rank - normalized;
  if (p->dtype != s->dtype || more < 0 || p->rank > s->rank) return 0;
  for (int i = 0; i < p->rank; i++)
    if (p->dims[i] != (i < more ? 1 : s->dims[s->rank - p->rank + i])) return 0;
  return 1;
}

/* The node whose result `value` is and that can take one more parameter; NULL: none. */
static const flow_node *fusible(const flow_graph *graph, const int *readers, int value, int op)
{
  if (op == FLOW_OP_mul) {
    const flow_node *node = flow_sole_producer(graph, readers, value, FLOW_OP_normalize);
    return node && readers[node->outputs[1]] == 0 ? node : NULL;
  }
  const flow_node *node = flow_sole_producer(graph, readers, value, FLOW_OP_layer_norm);
  return node && node->input_count == 2 ? node : NULL;
}

/* The node n, a product or a sum, becomes the layer_norm of what it scales or shifts. */
static flow_status take_parameter(flow_graph *graph, const int *readers, int n)
{
  const flow_node *node = &graph->nodes[n];
  for (int side = 0; side < 2; side++) {
    int y = node->inputs[side], parameter = node->inputs[1 - side];
    const flow_node *made = fusible(graph, readers, y, node->op);
    if (!made || !is_parameter(graph, parameter, y, made->attributes.normalization.axis)) continue;
    int inputs[3] = { made->inputs[0], made->input_count > 1 ? made->inputs[1] : parameter, parameter };
    flow_attributes attributes = made->attributes;
    flow_signature result = graph->values[y].signature;
    return flow_graph_rewrite(graph, n, FLOW_OP_layer_norm, inputs, made->input_count + 1, &attributes, &result, 1);
  }
  return FLOW_OK;
}

/* Products come first: a sum is taken by the layer_norm that a product has become. */
flow_status flow_graph_fuse_normalize(flow_graph *graph, const char *live, const int *outputs, int output_count)
{
  FLOW_TRY(flow_rewrite_each(graph, live, outputs, output_count, FLOW_OP_mul, take_parameter));
  return flow_rewrite_each(graph, live, outputs, output_count, FLOW_OP_add, take_parameter);
}
