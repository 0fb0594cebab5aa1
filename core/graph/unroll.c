/* unroll.c: loops written out, round after round. See loop.h. Each round is a copy of the body's nodes between slices, which take its
 * rows, and reshapes, which make its results rows; after the last round they are concatenated. Random ops of a round get the keys that
 * the host's loop gives them (flow_loop_key), so that both draw the same numbers. */
#include "graph/loop.h"

#include <string.h>

/* Appends a node of an op with one output, whose shape follows from its record. */
static flow_status append(flow_graph *graph, int op, const int *inputs, int count, const flow_attributes *attributes, int *out)
{
  void *block;
  flow_signature result;
  FLOW_TRY(flow_alloc(sizeof(flow_signature) * (size_t)count, &block));
  flow_signature *signatures = block;
  for (int i = 0; i < count; i++) signatures[i] = graph->values[inputs[i]].signature;
  flow_status status = flow_op_infer(op, attributes, signatures, count, &result);
  flow_free(block);
  return status == FLOW_OK ? flow_graph_append(graph, op, inputs, count, attributes, &result, out) : status;
}

static flow_status reshape(flow_graph *graph, int value, int rank, const int64_t *dims, int *out)
{
  flow_attributes attributes = { .shape = { .rank = rank } };
  memcpy(attributes.shape.dims, dims, sizeof(int64_t) * (size_t)rank);
  return append(graph, FLOW_OP_reshape, &value, 1, &attributes, out);
}

/* One row of the first axis of a value. */
static flow_status take_row(flow_graph *graph, int value, int64_t row, int *out)
{
  const flow_signature whole = graph->values[value].signature;
  flow_attributes attributes = { .slice = { .rank = whole.rank } };
  for (int i = 0; i < whole.rank; i++) {
    attributes.slice.begin[i] = i ? 0 : row;
    attributes.slice.end[i] = i ? INT64_MAX / 2 : row + 1;
    attributes.slice.step[i] = 1;
  }
  FLOW_TRY(append(graph, FLOW_OP_slice, &value, 1, &attributes, out));
  return reshape(graph, *out, whole.rank - 1, whole.dims + 1, out);
}

/* The same with a first axis of one row. */
static flow_status as_row(flow_graph *graph, int value, int *out)
{
  const flow_signature signature = graph->values[value].signature;
  int64_t dims[FLOW_MAX_RANK] = { 1 };
  memcpy(dims + 1, signature.dims, sizeof(int64_t) * (size_t)signature.rank);
  return reshape(graph, value, signature.rank + 1, dims, out);
}

/* A loop that is being written out. */
typedef struct rounds {
  const flow_loop *loop;
  uint64_t  stream;
  const int *inputs;           /* of its node */
  int       *states, *next;    /* [state]: before and after a round */
  int       *map;              /* [value of the body] */
  int       *rows;             /* [stacked output][round]: as rows */
} rounds;

static int *stack_of(const rounds *r, int output) { return r->rows + (int64_t)(output - r->loop->states) * r->loop->rounds; }

/* Appends the nodes of one round. What the round reads is in r->states and the node's inputs; what it gives goes to r->states and, as
 * rows, to the stacks. */
static flow_status one_round(flow_graph *graph, const rounds *r, int64_t round)
{
  const flow_loop *loop = r->loop;
  const flow_graph *body = loop->body;
  int64_t row = flow_loop_row(loop, round);
  for (int v = 0; v < body->value_count; v++) r->map[v] = -1;
  for (int i = 0; i < body->input_count; i++) {
    int *value = &r->map[body->inputs[i]];
    if (i < loop->states) *value = r->states[i];
    else if (i < loop->states + loop->rows) FLOW_TRY(take_row(graph, r->inputs[i], row, value));
    else *value = r->inputs[i];
  }
  FLOW_TRY(flow_graph_copy_nodes(graph, body, r->map, &r->stream, row));
  for (int i = 0; i < loop->results; i++) {
    int value;
    FLOW_TRY(flow_graph_copy_value(graph, body, r->map, loop->values[i], &value));
    if (i < loop->states) r->next[i] = value;
    else FLOW_TRY(as_row(graph, value, &stack_of(r, i)[row]));
  }
  for (int i = 0; i < loop->states; i++) {
    FLOW_TRY(as_row(graph, r->states[i], &stack_of(r, loop->results + i)[row]));
    r->states[i] = r->next[i];
  }
  return FLOW_OK;
}

/* Writes a loop out. inputs: of its node, as values that exist now. same[output of the node]: what takes its place. Outputs that
 * nothing reads are made, too, and dropped by the plan. */
static flow_status write_out(flow_graph *graph, const flow_loop *loop, const flow_node *node, const int *inputs, int *same)
{
  static const flow_attributes first_axis;
  int outputs = loop->results + loop->states;
  size_t stacked = (size_t)(outputs - loop->states), rows;
  void *block;
  FLOW_TRY(flow_multiply(stacked, (size_t)loop->rounds, &rows));
  FLOW_TRY(flow_alloc(sizeof(int) * (2 * (size_t)loop->states + (size_t)loop->body->value_count + rows + 1), &block));
  rounds r = { .loop = loop, .stream = node->attributes.loop.stream, .inputs = inputs, .states = block };
  r.next = r.states + loop->states;
  r.map = r.next + loop->states;
  r.rows = r.map + loop->body->value_count;
  flow_status status = FLOW_OK;
  memcpy(r.states, inputs, sizeof(int) * (size_t)loop->states);
  for (int64_t k = 0; k < loop->rounds && status == FLOW_OK; k++) status = one_round(graph, &r, k);
  for (int i = 0; i < outputs && status == FLOW_OK; i++) {
    if (i < loop->states) same[node->outputs[i]] = r.states[i];
    else status = append(graph, FLOW_OP_concat, stack_of(&r, i), (int)loop->rounds, &first_axis, &same[node->outputs[i]]);
  }
  flow_free(block);
  return status;
}

/* Puts a node of the old list at the end of the new one. */
static flow_status keep_node(flow_graph *graph, const flow_node *node)
{
  FLOW_TRY(flow_grow(&graph->nodes, sizeof(flow_node), graph->node_count + 1, &graph->node_capacity));
  for (int i = 0; i < node->output_count; i++) graph->values[node->outputs[i]].node = graph->node_count;
  graph->nodes[graph->node_count++] = *node;
  return FLOW_OK;
}

/* Whether anything is left to unroll. */
static int has_loops(const flow_graph *graph)
{
  for (int n = 0; n < graph->node_count; n++)
    if (graph->nodes[n].op == FLOW_OP_loop) return 1;
  return 0;
}

/* All loops that the graph has now; those inside of them are loops of the graph then. The old list of nodes is taken off the graph and
 * its nodes are appended again one by one: inserting each round in the middle would move the rest every time. */
static flow_status unroll_once(flow_graph *graph, int *outputs, int output_count)
{
  void *block;
  int count = graph->node_count, known = graph->value_count, n = 0;
  FLOW_TRY(flow_alloc(sizeof(int) * (size_t)(known + 1), &block));
  int *same = block;
  flow_node *nodes = graph->nodes;
  flow_status status = FLOW_OK;
  graph->nodes = NULL;
  graph->node_count = graph->node_capacity = 0;
  for (int v = 0; v < known; v++) same[v] = v;
  for (; n < count && status == FLOW_OK; n++) {
    flow_node *node = &nodes[n];
    for (int i = 0; i < node->input_count; i++) node->inputs[i] = same[node->inputs[i]];
    if (node->op == FLOW_OP_loop) {
      status = write_out(graph, flow_loop_of(graph, node), node, node->inputs, same);
      flow_free(node->inputs);
    } else {
      status = keep_node(graph, node);
      if (status != FLOW_OK) flow_free(node->inputs);
    }
  }
  for (; n < count; n++) flow_free(nodes[n].inputs);      /* after a failure, which ends the trace */
  for (int i = 0; i < output_count && status == FLOW_OK; i++) outputs[i] = same[outputs[i]];
  flow_free(nodes);
  flow_free(block);
  return status;
}

flow_status flow_graph_unroll(flow_graph *graph, int *outputs, int count)
{
  while (has_loops(graph)) FLOW_TRY(unroll_once(graph, outputs, count));
  return FLOW_OK;
}
