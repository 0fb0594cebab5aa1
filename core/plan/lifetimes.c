/* lifetimes.c: in which segments of a plan each value is made and read. Two values share memory only if their lifetimes do not overlap,
 * so a lifetime that is too short corrupts results silently, and one that is too long only costs memory. Values that others can see at
 * any time are therefore given life to the end of the run: outputs, and what is summed over replicas, which travels while the plan goes
 * on. */
#include "plan/lifetimes.h"

/* Segment `segment` reads the value; what is read elsewhere than where it is made is not local. An alias reads its root. */
static void use_value(flow_plan *plan, int value, int segment)
{
  flow_lifetime *life = &plan->lifetimes[plan->roots[value]];
  if (life->last_use < segment) life->last_use = segment;
  if (life->defined != segment) life->local = 0;
}

/* Two passes over the plan: first all definitions, with `local` for rows of a ROWS segment, then all uses, which take it away. */
flow_status flow_find_lifetimes(flow_plan *plan)
{
  flow_graph *graph = plan->graph;
  void *block;
  FLOW_TRY(flow_alloc(sizeof(flow_lifetime) * (size_t)(graph->value_count + 1), &block));
  plan->lifetimes = block;
  FLOW_TRY(flow_alloc(sizeof(int) * (size_t)(graph->value_count + 1), &block));
  plan->roots = block;
  for (int v = 0; v < graph->value_count; v++) {
    plan->roots[v] = flow_graph_root(graph, v);
    plan->lifetimes[v] = (flow_lifetime){ .defined = -1, .last_use = -1 };
  }
  for (int s = 0; s < plan->segment_count; s++)
    for (int k = 0; k < plan->segments[s].count; k++) {
      const flow_node *node = &graph->nodes[plan->order[plan->segments[s].first + k]];
      for (int i = 0; i < node->output_count; i++) {
        if (plan->roots[node->outputs[i]] != node->outputs[i]) continue;   /* an alias makes nothing */
        plan->lifetimes[node->outputs[i]] = (flow_lifetime){
          .defined = s, .last_use = flow_op(node->op)->flags & FLOW_OP_COLLECTIVE ? plan->segment_count : s,
          .local = plan->segments[s].by_rows && flow_node_row_output(graph, node, i) };
      }
    }
  for (int s = 0; s < plan->segment_count; s++)
    for (int k = 0; k < plan->segments[s].count; k++) {
      const flow_node *node = &graph->nodes[plan->order[plan->segments[s].first + k]];
      for (int i = 0; i < node->input_count; i++) use_value(plan, node->inputs[i], s);
    }
  for (int i = 0; i < plan->output_count; i++) use_value(plan, plan->outputs[i], plan->segment_count);
  for (int k = 0; k < plan->order_count; k++) {      /* parts of a sum are read when it is needed, which may be late */
    const flow_node *node = &graph->nodes[plan->order[k]];
    if (flow_op(node->op)->flags & FLOW_OP_COLLECTIVE) use_value(plan, node->inputs[0], plan->segment_count);
  }
  return FLOW_OK;
}
