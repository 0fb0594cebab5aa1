/* loop_trace.c: the trace of a loop's body, within another trace. See loop.h. The body is a separate trace, whose inputs stand for
 * values of the outer one: the states, one row of each tensor of rows, and, added on demand (flow_graph_close_over), what it closes
 * over. At its end what the results do not need is dropped, and the rest becomes a loop. A body that writes variables or sums over
 * replicas cannot be one: flow_loop_end says so through *written, and the caller traces it again, written out. */
#include "graph/loop.h"
#include "base/need.h"

#include <string.h>

/* ---- its beginning ---------------------------------------------------------------------------------------------------------------- */

static void drop(flow_tensor **tensors, int count)
{
  for (int i = 0; i < count; i++) {
    flow_tensor_release(tensors[i]);
    tensors[i] = NULL;
  }
}

/* A state, or, if it is a row, one of the first axis of a tensor. Room for its outer value is taken before the input is added, so that
 * each input has one. */
static flow_status add_input(flow_graph *body, flow_tensor *tensor, int is_row, double rounds, flow_tensor **out)
{
  int value, outer;
  FLOW_TRY(flow_check_tensor("flow_loop_begin: a state or a tensor of rows", tensor));
  flow_signature signature = flow_tensor_signature(tensor);
  if (is_row) {
    if (signature.rank == 0 || (double)signature.dims[0] != rounds)
      return flow_fail(FLOW_INVALID_ARGUMENT, "flow_loop_begin: rows of a tensor of shape %s in %.0f rounds",
                       flow_shape_text(signature.rank, signature.dims), rounds);
    memmove(signature.dims, signature.dims + 1, sizeof(int64_t) * (size_t)--signature.rank);
  }
  FLOW_TRY(flow_graph_operand(body->outer, tensor, &outer));
  FLOW_TRY(flow_grow(&body->outer_values, sizeof(int), body->input_count + 1, &body->outer_capacity));
  FLOW_TRY(flow_graph_input(body, &signature, &value));
  body->outer_values[body->input_count - 1] = outer;
  return flow_graph_tensor(body, value, out);
}

/* After a failure no trace of it is open, and out[] has no references. */
flow_status flow_loop_begin(flow_context *context, flow_tensor *const *states, int state_count, flow_tensor *const *rows, int row_count,
                            double rounds, flow_tensor **out)
{
  FLOW_NEED(context, out);
  if (state_count > 0) FLOW_NEED(states);
  if (row_count > 0) FLOW_NEED(rows);
  flow_graph *outer;
  FLOW_TRY(flow_innermost_trace(context, "flow_loop_begin", &outer));
  if (state_count < 0 || row_count < 0 || state_count + row_count < 1 || !(rounds >= 1 && rounds < 0x1p31))
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_loop_begin: %d states, %d tensors of rows, %g rounds", state_count, row_count, rounds);
  FLOW_TRY(flow_trace_begin(context));
  flow_graph *body = flow_context_trace(context);
  body->outer = outer;
  body->loop_states = state_count;
  body->loop_rows = row_count;
  flow_status status = FLOW_OK;
  int made = 0;
  for (; made < state_count + row_count; made++) {
    int is_row = made >= state_count;
    FLOW_TRY_GOTO(add_input(body, is_row ? rows[made - state_count] : states[made], is_row, rounds, &out[made]), failed);
  }
  return FLOW_OK;
failed:
  drop(out, made);
  flow_trace_abort(context);
  return status;
}

/* ---- its end ---------------------------------------------------------------------------------------------------------------------- */

/* Whether the body does what loops must not do. Effects, sums over replicas, new versions of variables, or what flow_loop_write_out
 * said. */
static int writes(const flow_graph *body)
{
  for (int n = 0; n < body->node_count; n++)
    if (flow_op(body->nodes[n].op)->flags & (FLOW_OP_EFFECT | FLOW_OP_COLLECTIVE)) return 1;
  return body->version_count > 0 || body->written_out;
}

/* A state keeps its dtype and shape from round to round. */
static flow_status check_states(const flow_graph *body, const int *results)
{
  for (int i = 0; i < body->loop_states; i++) {
    const flow_signature *before = &body->values[body->inputs[i]].signature, *after = &body->values[results[i]].signature;
    if (before->dtype == after->dtype && flow_shape_equal(before->rank, before->dims, after->rank, after->dims)) continue;
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_loop_end: state %d was %s %s, a round makes it %s %s", i + 1,
                     flow_dtype_name(before->dtype), flow_shape_text(before->rank, before->dims), flow_dtype_name(after->dtype),
                     flow_shape_text(after->rank, after->dims));
  }
  return FLOW_OK;
}

/* What the results need of a body. */
typedef struct need { char *nodes, *values; } need;

/* Marks what the results need, from the last node to the first. Nodes come after those that make their inputs, so that one walk is
 * enough. */
static void mark(const flow_graph *body, const int *results, int count, need live)
{
  for (int i = 0; i < count; i++) live.values[results[i]] = 1;
  for (int n = body->node_count - 1; n >= 0; n--) {
    const flow_node *node = &body->nodes[n];
    for (int i = 0; i < node->output_count; i++) live.nodes[n] |= live.values[node->outputs[i]];
    for (int i = 0; i < node->input_count && live.nodes[n]; i++) live.values[node->inputs[i]] = 1;
  }
}

/* Takes the others out of a graph. Values keep their numbers; those of nodes that went are read by nothing that stays. */
static void drop_nodes(flow_graph *from, const char *live)
{
  int kept = 0;
  for (int n = 0; n < from->node_count; n++) {
    if (!live[n]) {
      flow_free(from->nodes[n].inputs);
      continue;
    }
    for (int i = 0; i < from->nodes[n].output_count; i++) from->values[from->nodes[n].outputs[i]].node = kept;
    from->nodes[kept++] = from->nodes[n];
  }
  from->node_count = kept;
}

/* How often and which rounds. */
typedef struct course { int64_t rounds; int reverse, gate; } course;

/* A loop of the live part of a traced body; inputs[]: the values of the outer trace that its node reads. */
static flow_status make_loop(flow_graph *from, const int *results, int count, need live, int *map, course which, int *inputs,
                             int *input_count, flow_loop **out)
{
  flow_graph *body;
  int rows = 0, gate = -1;
  FLOW_TRY(flow_graph_new(&body));
  flow_status status = FLOW_OK;
  body->exact = from->exact;
  body->replicas = from->replicas;
  drop_nodes(from, live.nodes);
  for (int v = 0; v < from->value_count; v++) map[v] = -1;
  *input_count = 0;
  for (int i = 0; i < from->input_count && status == FLOW_OK; i++) {
    int value = from->inputs[i], is_state = i < from->loop_states, is_row = !is_state && i < from->loop_states + from->loop_rows;
    if (!is_state && !live.values[value]) continue;
    flow_signature signature = from->values[value].signature;
    status = flow_graph_input(body, &signature, &map[value]);
    if (i == which.gate) gate = *input_count;
    inputs[(*input_count)++] = from->outer_values[i];
    rows += is_row;
  }
  if (status == FLOW_OK) status = flow_graph_copy_nodes(body, from, map, NULL, 0);
  for (int i = 0; i < count && status == FLOW_OK; i++)
    status = flow_graph_copy_value(body, from, map, results[i], &inputs[*input_count + i]);
  body->closed = 1;
  if (status == FLOW_OK)
    status = flow_loop_new(body, from->loop_states, rows, inputs + *input_count, count, which.rounds, which.reverse, gate,
                           out);
  flow_graph_release(body);
  return status;
}

/* *out: symbolic tensors of the outer trace, new references. Results that are tensors of an outer trace become inputs of the body first,
 * so that all have values in it. */
static flow_status end_loop(flow_graph *body, flow_tensor *const *results, int count, course which, flow_tensor **out)
{
  flow_graph *outer = body->outer;
  flow_loop *loop = NULL;
  void *block;
  int states = body->loop_states, input_count, made = 0;
  /* One for each result first: outer tensors among them become inputs. */
  FLOW_TRY(flow_alloc(sizeof(int) * (size_t)(count + states + 1), &block));
  int *values = block;
  flow_status status = FLOW_OK;
  for (int i = 0; i < count && status == FLOW_OK; i++) status = flow_graph_operand(body, results[i], &values[i]);
  if (status == FLOW_OK) status = check_states(body, values);
  void *work = NULL;
  size_t nodes = (size_t)body->node_count + 1, known = (size_t)body->value_count + 1;
  if (status == FLOW_OK)
    status = flow_alloc_zero(sizeof(int) * (known + (size_t)(body->input_count + count)) + nodes + known, &work);
  if (status == FLOW_OK) {
    int *map = work, *inputs = map + known;
    need live = { .nodes = (char *)(inputs + body->input_count + count) };
    live.values = live.nodes + nodes;
    mark(body, values, count, live);
    if (which.gate >= 0) live.values[body->inputs[which.gate]] = 1;
    status = make_loop(body, values, count, live, map, which, inputs, &input_count, &loop);
    if (status == FLOW_OK) status = flow_loop_append(outer, loop, inputs, input_count, values);
  }
  for (; made < count && status == FLOW_OK; made++) status = flow_graph_tensor(outer, values[made], &out[made]);
  if (status != FLOW_OK) drop(out, made);
  flow_loop_release(loop);
  flow_free(work);
  flow_free(block);
  return status;
}

/* Only kept here: flow_loop_end makes it the loop's. */
flow_status flow_loop_gate(flow_context *context, int input)
{
  FLOW_NEED(context);
  flow_graph *body;
  FLOW_TRY(flow_innermost_trace(context, "flow_loop_gate", &body));
  if (!body->outer || input < 0 || input >= body->loop_states + body->loop_rows)
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_loop_gate: there is no loop with an input %d", input);
  const flow_signature *signature = &body->values[body->inputs[input]].signature;
  if (signature->dtype != FLOW_BOOL || signature->rank != 0)
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_loop_gate: input %d is %s %s in a round, expected a bool without axes", input,
                     flow_dtype_name(signature->dtype), flow_shape_text(signature->rank, signature->dims));
  body->loop_gate = input + 1;
  return FLOW_OK;
}

/* Whether the loop can end so. More rounds than a tensor has rows would read beyond its end: flow_loop_begin has compared the rows with the
 * rounds that it was told, and its caller tells them here again. */
static flow_status check_end(const flow_graph *body, flow_tensor *const *results, int count, double rounds)
{
  if (count < body->loop_states)
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_loop_end: %d results of a loop with %d states", count, body->loop_states);
  int fits = rounds >= 1 && rounds < 0x1p31 && rounds == (double)(int64_t)rounds;
  for (int i = body->loop_states; i < body->loop_states + body->loop_rows; i++)
    fits &= (double)body->outer->values[body->outer_values[i]].signature.dims[0] == rounds;
  if (!fits) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_loop_end: %g rounds are not those of flow_loop_begin", rounds);
  for (int i = 0; i < count; i++) FLOW_TRY(flow_check_tensor("flow_loop_end: a result", results[i]));
  return FLOW_OK;
}

flow_status flow_loop_end(flow_context *context, flow_tensor *const *results, int count, double rounds, int reverse,
                          flow_tensor **out, int *written)
{
  FLOW_NEED(context, written);
  if (count > 0) FLOW_NEED(results, out);
  flow_graph *body;
  FLOW_TRY(flow_innermost_trace(context, "flow_loop_end", &body));
  if (!body->outer) return flow_fail(FLOW_INVALID_STATE, "flow_loop_end: the innermost trace is not the body of a loop");
  *written = writes(body);
  flow_status status = check_end(body, results, count, rounds);
  if (status == FLOW_OK && !*written) {
    const course which = { .rounds = (int64_t)rounds, .reverse = reverse != 0, .gate = body->loop_gate - 1 };
    status = end_loop(body, results, count, which, out);
  }
  flow_trace_abort(context);
  return status;
}

/* All bodies around it, too: what a round makes is wanted outside of each of them. */
void flow_loop_write_out(flow_context *context)
{
  if (!context) return;
  for (flow_graph *body = flow_context_trace(context); body && body->outer; body = body->outer) body->written_out = 1;
}

/* ---- outside ---------------------------------------------------------------------------------------------------------------------- */

/* Takes the body off the stack of traces for a moment; flow_loop_return puts it back. */
flow_graph *flow_loop_leave(flow_context *context)
{
  flow_graph *body = flow_context_trace(context);
  if (!body || !body->outer) return NULL;
  context->scopes->trace_count--;
  return body;
}

void flow_loop_return(flow_context *context, flow_graph *body)
{
  if (body) context->scopes->traces[context->scopes->trace_count++] = body;
}
