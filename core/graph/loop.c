/* loop.c: see loop.h. Tracing a body: loop_trace.c. */
#include "graph/loop.h"

#include <string.h>
#include "base/philox.h"

/* ---- life ----------------------------------------------------------------------------------------------------------------------- */

/* Once the last reference is gone: of graphs that have its node, and of plans. */
static void release_loop(void *self)
{
  flow_loop *loop = self;
  if (loop->plan) loop->release_plan(loop->plan);
  flow_graph_release(loop->body);
  flow_free(loop->values);
  flow_free(loop);
}

/* body: retained. values: the body's results, states first, copied. rounds: how often it runs. *out: one reference. */
flow_status flow_loop_new(flow_graph *body, int states, int rows, const int *values, int results, int64_t rounds, int reverse,
                          int gate, flow_loop **out)
{
  void *block, *list;
  FLOW_TRY(flow_alloc(sizeof(int) * (size_t)(results + 1), &list));
  flow_status status = flow_alloc_zero(sizeof(flow_loop), &block);
  if (status != FLOW_OK) {
    flow_free(list);
    return status;
  }
  flow_loop *loop = block;
  flow_counted_init(&loop->counted, release_loop);
  loop->body = flow_graph_retain(body);
  loop->states = states;
  loop->rows = rows;
  loop->results = results;
  loop->values = list;
  loop->rounds = rounds;
  loop->reverse = reverse;
  loop->gate = gate;
  memcpy(loop->values, values, sizeof(int) * (size_t)results);
  *out = loop;
  return FLOW_OK;
}

/* Loops are counted: a graph, copies of its node and plans share one. */
flow_loop *flow_loop_retain(flow_loop *loop)
{
  flow_counted_retain(&loop->counted);
  return loop;
}

void flow_loop_release(flow_loop *loop)
{
  if (loop) flow_counted_release(&loop->counted);
}

/* ---- nodes ---------------------------------------------------------------------------------------------------------------------- */

/* The signature of what `rounds` rounds give, stacked along a new first axis. */
static flow_status stacked(const flow_signature *one, int64_t rounds, flow_signature *out)
{
  if (one->rank == FLOW_MAX_RANK)
    return flow_fail(FLOW_UNSUPPORTED, "a loop's states and results have at most %d axes, found %s", FLOW_MAX_RANK - 1,
                     flow_shape_text(one->rank, one->dims));
  *out = (flow_signature){ .dtype = one->dtype, .rank = one->rank + 1, .dims = { rounds } };
  memcpy(out->dims + 1, one->dims, sizeof(int64_t) * (size_t)one->rank);
  return FLOW_OK;
}

/* The graph has the loop from now on, under this number. */
static flow_status adopt(flow_graph *graph, flow_loop *loop, int *number)
{
  FLOW_TRY(flow_grow(&graph->loops, sizeof(flow_loop *), graph->loop_count + 1, &graph->loop_capacity));
  *number = graph->loop_count;
  graph->loops[graph->loop_count++] = flow_loop_retain(loop);
  return FLOW_OK;
}

/* The signatures are those of the body's results, stacked but for the last states. outputs: the last states, the results of all rounds,
 * then the states of all rounds. */
flow_status flow_loop_append(flow_graph *graph, flow_loop *loop, const int *inputs, int input_count, int *outputs)
{
  const flow_value *values = loop->body->values;
  int count = loop->results + loop->states, number;
  void *block;
  FLOW_TRY(flow_alloc(sizeof(flow_signature) * (size_t)(count + 1), &block));
  flow_signature *signatures = block;
  flow_status status = FLOW_OK;
  for (int i = 0; i < loop->states && status == FLOW_OK; i++) {
    signatures[i] = values[loop->values[i]].signature;
    status = stacked(&signatures[i], loop->rounds, &signatures[loop->results + i]);
  }
  for (int i = loop->states; i < loop->results && status == FLOW_OK; i++)
    status = stacked(&values[loop->values[i]].signature, loop->rounds, &signatures[i]);
  if (status == FLOW_OK) status = adopt(graph, loop, &number);
  if (status == FLOW_OK) {
    const flow_attributes attributes = { .loop = { .number = number } };
    status = flow_graph_append_with(graph, FLOW_OP_loop, inputs, input_count, &attributes, signatures, count, outputs);
  }
  flow_free(block);
  return status;
}

/* ---- what a body closes over ------------------------------------------------------------------------------------------------------ */

/* Whether `inner` is the body of a loop in `outer`, or of a loop in such a body. */
int flow_graph_encloses(const flow_graph *outer, const flow_graph *inner)
{
  for (inner = inner->outer; inner; inner = inner->outer)
    if (inner == outer) return 1;
  return 0;
}

/* A tensor of a trace further out becomes an input of every body in between, by flow_graph_operand. One that is closed over twice is
 * one input. */
flow_status flow_graph_close_over(flow_graph *body, flow_tensor *tensor, int *value)
{
  int outer;
  flow_signature signature = flow_tensor_signature(tensor);
  FLOW_TRY(flow_graph_operand(body->outer, tensor, &outer));
  for (int i = body->loop_states + body->loop_rows; i < body->input_count; i++)
    if (body->outer_values[i] == outer) {
      *value = body->inputs[i];
      return FLOW_OK;
    }
  FLOW_TRY(flow_grow(&body->outer_values, sizeof(int), body->input_count + 1, &body->outer_capacity));
  FLOW_TRY(flow_graph_input(body, &signature, value));
  body->outer_values[body->input_count - 1] = outer;
  return FLOW_OK;
}

/* ---- copies ------------------------------------------------------------------------------------------------------------------------ */

/* Where an op's key is; NULL: it has none. */
static uint64_t *key_of(int op, flow_attributes *attributes)
{
  if (op == FLOW_OP_loop) return &attributes->loop.stream;
  if (op == FLOW_OP_dropout) return &attributes->dropout.stream;
  return flow_op(op)->flags & FLOW_OP_RANDOM && op != FLOW_OP_global_rows && op != FLOW_OP_row_share ? &attributes->random.stream : NULL;
}

/* The key is mixed with the loop's stream and the row, counted from 1; ops that draw nothing are left unchanged. */
void flow_loop_key(int op, flow_attributes *attributes, uint64_t stream, int64_t row)
{
  uint64_t *key = key_of(op, attributes);
  if (key) *key = flow_mix(flow_mix(*key, stream), (uint64_t)row + 1);
}

/* map[value]: where it is in `to`, -1: not copied yet. Constants are copied when they are first asked for. */
flow_status flow_graph_copy_value(flow_graph *to, const flow_graph *from, int *map, int value, int *out)
{
  if (map[value] < 0) {
    const flow_value *v = &from->values[value];
    if (v->kind != FLOW_VALUE_CONSTANT) return flow_fail(FLOW_INTERNAL, "loop: value %d of its body was not copied", value);
    FLOW_TRY(flow_graph_constant(to, v->tensor, &map[value]));
  }
  *out = map[value];
  return FLOW_OK;
}

/* Appends a copy of a node of `from` to `to`, and maps its outputs. A loop inside is shared, not copied: it does not change. */
static flow_status copy_node(flow_graph *to, const flow_graph *from, const flow_node *node, int *map, const uint64_t *stream, int64_t row)
{
  int n = node->input_count, m = node->output_count;
  void *block;
  FLOW_TRY(flow_alloc(sizeof(flow_signature) * (size_t)(m + 1) + sizeof(int) * (size_t)(n + m + 1), &block));
  flow_signature *signatures = block;
  int *inputs = (int *)(signatures + m + 1), *outputs = inputs + n;
  flow_attributes attributes = node->attributes;
  flow_status status = FLOW_OK;
  for (int i = 0; i < n && status == FLOW_OK; i++) status = flow_graph_copy_value(to, from, map, node->inputs[i], &inputs[i]);
  for (int i = 0; i < m; i++) signatures[i] = from->values[node->outputs[i]].signature;
  if (status == FLOW_OK && node->op == FLOW_OP_loop) status = adopt(to, flow_loop_of(from, node), &attributes.loop.number);
  if (stream) flow_loop_key(node->op, &attributes, *stream, row);
  if (status == FLOW_OK) status = flow_graph_append_with(to, node->op, inputs, n, &attributes, signatures, m, outputs);
  if (status == FLOW_OK) to->nodes[to->node_count - 1].bfloat16 = node->bfloat16;
  for (int i = 0; i < m && status == FLOW_OK; i++) map[node->outputs[i]] = outputs[i];
  flow_free(block);
  return status;
}

/* map: has the inputs of `from`; gets all other values. stream NULL: random ops keep their keys. */
flow_status flow_graph_copy_nodes(flow_graph *to, const flow_graph *from, int *map, const uint64_t *stream, int64_t row)
{
  for (int n = 0; n < from->node_count; n++) FLOW_TRY(copy_node(to, from, &from->nodes[n], map, stream, row));
  return FLOW_OK;
}
