/* tape.c: recording. See tape.h; taking gradients is in autodiff.c. An eager tape holds references to all tensors that it has seen,
 * since rules may want them: it is what keeps the activations of a step alive. In a trace a tape costs nothing, as its nodes are the
 * trace's. */
#include "graph/tape.h"
#include "base/need.h"
#include "graph/variable.h"
#include <string.h>

/* By identity: another handle of the same memory is another tensor for a tape. */
int flow_tape_find(const flow_tape *tape, const flow_tensor *tensor)
{
  if (tape->traced) return tensor->graph == tape->graph ? tensor->value : -1;
  return flow_tensor_index_find(&tape->values, tensor);
}

/* In a trace a tape is a range of its nodes, [begin, end); eagerly it has a separate graph, to which ops append. Two references: the tape
 * may be released by the caller while it records, and by the scopes, when they are closed, while the caller still has it. */
flow_status flow_tape_begin(flow_context *context, flow_tape **out)
{
  FLOW_NEED(context, out);
  flow_scopes *scopes = context->scopes;
  if (scopes->tape_count == FLOW_MAX_TAPES)
    return flow_fail(FLOW_INVALID_STATE, "%d tapes record already; end one first", FLOW_MAX_TAPES);
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_tape), &block));
  flow_tape *tape = block;
  flow_graph *trace = flow_context_trace(context);
  flow_status status = FLOW_OK;
  if (trace) tape->graph = flow_graph_retain(trace);
  else status = flow_graph_new(&tape->graph);
  if (status != FLOW_OK) {
    flow_free(tape);
    return status;
  }
  tape->traced = trace != NULL;
  tape->begin = tape->graph->node_count;
  tape->end = -1;
  atomic_init(&tape->references, 2);   /* the caller's and that of its scopes */
  scopes->tapes[scopes->tape_count++] = tape;
  *out = tape;
  return FLOW_OK;
}

/* Tapes may end in any order: those that began later move down. */
flow_status flow_tape_end(flow_context *context, flow_tape *tape)
{
  FLOW_NEED(context, tape);
  flow_scopes *scopes = context->scopes;
  for (int i = scopes->tape_count - 1; i >= 0; i--)
    if (scopes->tapes[i] == tape) {
      tape->end = tape->graph->node_count;
      memmove(&scopes->tapes[i], &scopes->tapes[i + 1], sizeof(flow_tape *) * (size_t)(scopes->tape_count - i - 1));
      scopes->tape_count--;
      flow_tape_release(tape);
      return FLOW_OK;
    }
  return flow_fail(FLOW_INVALID_STATE, "this tape does not record");
}

void flow_tape_release(flow_tape *tape)
{
  if (!tape || atomic_fetch_sub_explicit(&tape->references, 1, memory_order_acq_rel) != 1) return;
  flow_graph_release(tape->graph);
  flow_tensor_index_free(&tape->values);
  flow_free(tape);
}

/* Appends a value that holds `tensor` to an eager tape. */
static flow_status add_leaf(flow_tape *tape, flow_tensor *tensor, flow_variable *variable, int *value)
{
  flow_signature signature = flow_tensor_signature(tensor);
  FLOW_TRY(flow_tensor_index_reserve(&tape->values));
  FLOW_TRY(flow_graph_input(tape->graph, &signature, value));
  flow_value *leaf = &tape->graph->values[*value];
  leaf->tensor = flow_tensor_retain(tensor);
  if (variable) {
    leaf->kind = FLOW_VALUE_VARIABLE;
    leaf->variable = flow_variable_retain(variable);
  }
  return flow_tensor_index_put(&tape->values, tensor, *value);   /* cannot fail: there is room */
}

/* A tensor that is known already stays what it is. */
flow_status flow_tape_watch(flow_tape *tape, flow_tensor *tensor)
{
  FLOW_NEED(tape, tensor);
  int value;
  FLOW_TRY(flow_check_tensor("flow_tape_watch: the tensor", tensor));
  if (flow_tape_find(tape, tensor) >= 0) return FLOW_OK;
  if (tape->traced)
    return flow_fail(FLOW_INVALID_ARGUMENT, "watch: this tensor is a constant of the trace; pass it to the traced function as an argument");
  return add_leaf(tape, tensor, NULL, &value);
}

/* Each reading of a variable is a separate leaf, of kind VARIABLE, by which gradients with respect to the variable are found. In a trace
 * the reading is an op of the graph, which needs no leaf. */
flow_status flow_tapes_watch_variable(flow_context *context, flow_variable *variable, flow_tensor *tensor)
{
  flow_scopes *scopes = context->scopes;
  int value;
  for (int i = 0; i < scopes->tape_count; i++)
    if (!scopes->tapes[i]->traced) FLOW_TRY(add_leaf(scopes->tapes[i], tensor, variable, &value));
  return FLOW_OK;
}

static void note_reading(const flow_graph *graph, int value, flow_variable **variables, int room, int *count)
{
  flow_variable *variable = graph->values[value].variable;
  if (!variable || !variable->trainable) return;
  if (*count < room) variables[*count] = variable;
  (*count)++;
}

/* Eagerly each reading is a leaf; in a trace it is an operand of a node that is no effect: what an assignment writes is its operand,
 * too. */
int flow_tape_variables(const flow_tape *tape, flow_variable **variables, int room)
{
  int count = 0;
  if (!tape || (!variables && room > 0)) return 0;
  const flow_graph *graph = tape->graph;
  if (!tape->traced)
    for (int v = 0; v < graph->value_count; v++) note_reading(graph, v, variables, room, &count);
  int end = !tape->traced ? 0 : tape->end < 0 ? graph->node_count : tape->end;
  for (int n = tape->begin; n < end; n++) {
    const flow_node *node = &graph->nodes[n];
    for (int i = 0; i < node->input_count && node->output_count > 0; i++) note_reading(graph, node->inputs[i], variables, room, &count);
  }
  return count;
}

/* The innermost tape first, which saw the tensor last. */
flow_graph *flow_tapes_find(flow_context *context, const flow_tensor *tensor, int *value)
{
  flow_scopes *scopes = context->scopes;
  for (int i = scopes->tape_count - 1; i >= 0; i--)
    if (!scopes->tapes[i]->traced && (*value = flow_tape_find(scopes->tapes[i], tensor)) >= 0) return scopes->tapes[i]->graph;
  return NULL;
}

/* Appends the op that ran to an eager tape, if something that is watched went into it. Other inputs become constants. The caller has
 * run the op already, and fails if this does: a tape never misses an op that succeeded. */
static flow_status record(flow_tape *tape, int op, flow_tensor *const *inputs, int input_count, const flow_attributes *attributes,
                          flow_tensor *const *outputs, int output_count)
{
  int known = 0;
  if (!output_count) return FLOW_OK;   /* effects have no gradient */
  for (int i = 0; i < input_count; i++) known |= flow_tape_find(tape, inputs[i]) >= 0;
  if (!known) return FLOW_OK;   /* nothing watched flows through this op */

  void *block;
  FLOW_TRY(flow_alloc(sizeof(int) * (size_t)(input_count + output_count + 1), &block));
  int *values = block, *results = values + input_count;
  flow_signature signatures[FLOW_MAX_OPERANDS];
  flow_status status = FLOW_OK;
  for (int i = 0; i < input_count && status == FLOW_OK; i++) {
    values[i] = flow_tape_find(tape, inputs[i]);
    if (values[i] < 0) status = flow_graph_constant(tape->graph, inputs[i], &values[i]);
  }
  for (int i = 0; i < output_count; i++) signatures[i] = flow_tensor_signature(outputs[i]);
  if (status == FLOW_OK)
    status = flow_graph_append(tape->graph, op, values, input_count, attributes, signatures, results);
  for (int i = 0; i < output_count && status == FLOW_OK; i++) {
    tape->graph->values[results[i]].tensor = flow_tensor_retain(outputs[i]);
    status = flow_tensor_index_put(&tape->values, outputs[i], results[i]);
  }
  flow_free(block);
  return status;
}

flow_status flow_tapes_record(flow_context *context, int op, flow_tensor *const *inputs, int input_count,
                              const flow_attributes *attributes, flow_tensor *const *outputs, int output_count)
{
  flow_scopes *scopes = context->scopes;
  for (int i = 0; i < scopes->tape_count; i++)
    if (!scopes->tapes[i]->traced)
      FLOW_TRY(record(scopes->tapes[i], op, inputs, input_count, attributes, outputs, output_count));
  return FLOW_OK;
}
