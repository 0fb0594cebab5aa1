/* graph.c: building and rewriting the list of nodes. See graph.h. Each function that appends reserves memory for all that it adds before
 * it changes anything, so that a failure leaves the graph unchanged. Indices of values never change; those of nodes do
 * (flow_graph_insert), which is why values say which node makes them. */
#include "graph/loop.h"
#include "graph/variable.h"
#include <string.h>
#include "tensor/place.h"

/* The last owner is gone: the graph will not be computed with again. Versions hold no references, and are only forgotten. */
static void drop_contents(flow_graph *graph)
{
  for (int i = 0; i < graph->value_count; i++) {
    flow_tensor_release(graph->values[i].tensor);
    flow_variable_release(graph->values[i].variable);
    graph->values[i].tensor = NULL;
    graph->values[i].variable = NULL;
  }
  for (int i = 0; i < graph->loop_count; i++) flow_loop_release(graph->loops[i]);
  graph->version_count = graph->loop_count = 0;
}

/* For flow_counted: the last reference is gone. */
static void release_graph(void *self)
{
  flow_graph *graph = self;
  for (int i = 0; i < graph->node_count; i++) flow_free(graph->nodes[i].inputs);
  flow_free(graph->loops);
  flow_free(graph->outer_values);
  flow_free(graph->drawers);
  flow_free(graph->values);
  flow_free(graph->nodes);
  flow_free(graph->inputs);
  flow_free(graph->versions);
  flow_tensor_index_free(&graph->constants);
  flow_place_release(graph->place);
  flow_free(graph);
}

/* One owner, the caller. */
flow_status flow_graph_new(flow_graph **out)
{
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_graph), &block));
  flow_graph *graph = block;
  flow_counted_init(&graph->counted, release_graph);
  atomic_init(&graph->owners, 1);
  *out = graph;
  return FLOW_OK;
}

/* A graph has two counts. `owners` are what computes with it: traces, tapes and plans; the last of them gives back variables, constants
 * and loops. `counted` also counts symbolic tensors, which may outlive all owners and then only know shapes. */
flow_graph *flow_graph_retain(flow_graph *graph)
{
  flow_counted_retain(&graph->counted);
  atomic_fetch_add_explicit(&graph->owners, 1, memory_order_relaxed);
  return graph;
}

/* Releasing (acq_rel) orders what every owner did with the contents before the last one drops them. */
void flow_graph_release(flow_graph *graph)
{
  if (!graph) return;
  if (atomic_fetch_sub_explicit(&graph->owners, 1, memory_order_acq_rel) == 1) drop_contents(graph);
  flow_counted_release(&graph->counted);
}

/* What a trace keeps of a tensor: dtype and shape, without strides. */
flow_signature flow_tensor_signature(const flow_tensor *tensor)
{
  flow_signature signature = { .dtype = tensor->dtype, .rank = tensor->rank };
  memcpy(signature.dims, tensor->shape, sizeof(int64_t) * (size_t)tensor->rank);
  return signature;
}

/* Pointers into `values` are not valid any more after it: the array may move. A copy is appended; references in it change hands. */
static flow_status add_value(flow_graph *graph, const flow_value *value, int *index)
{
  FLOW_TRY(flow_grow(&graph->values, sizeof(flow_value), graph->value_count + 1, &graph->value_capacity));
  *index = graph->value_count;
  graph->values[graph->value_count++] = *value;
  return FLOW_OK;
}

/* *value: the next argument of the traced function, in the order of the calls. */
flow_status flow_graph_input(flow_graph *graph, const flow_signature *signature, int *value)
{
  FLOW_TRY(flow_grow(&graph->inputs, sizeof(int), graph->input_count + 1, &graph->input_capacity));
  FLOW_TRY(add_value(graph, &(flow_value){ .kind = FLOW_VALUE_INPUT, .signature = *signature, .node = -1 }, value));
  graph->inputs[graph->input_count++] = *value;
  return FLOW_OK;
}

/* The index is by address: an entry may be of a tensor that was freed, and another one be at its address now; so what was found is
 * compared with the value's tensor. A tensor with gaps is copied, and copied again at its next use: only the copy has a reference, so
 * only its address can be kept. */
flow_status flow_graph_constant(flow_graph *graph, flow_tensor *tensor, int *value)
{
  *value = flow_tensor_index_find(&graph->constants, tensor);
  if (*value >= 0 && graph->values[*value].tensor == tensor) return FLOW_OK;      /* else it was replaced, and freed since */
  FLOW_TRY(flow_tensor_index_reserve(&graph->constants));
  flow_tensor *contiguous;
  FLOW_TRY(flow_tensor_contiguous(tensor, &contiguous));
  flow_value constant = { .kind = FLOW_VALUE_CONSTANT, .signature = flow_tensor_signature(tensor), .node = -1, .tensor = contiguous };
  flow_status status = add_value(graph, &constant, value);
  if (status != FLOW_OK) {
    flow_tensor_release(contiguous);
    return status;
  }
  return flow_tensor_index_put(&graph->constants, contiguous, *value);      /* cannot fail: there is room */
}

/* Each call makes its own value; flow_graph_version remembers which one reading yields. */
flow_status flow_graph_variable(flow_graph *graph, flow_variable *variable, int late, int *value)
{
  flow_value read = { .kind = FLOW_VALUE_VARIABLE, .signature = flow_tensor_signature(variable->tensor), .node = -1,
                      .late = late, .variable = variable };
  FLOW_TRY(add_value(graph, &read, value));
  flow_variable_retain(variable);
  return FLOW_OK;
}

/* A trace that is neither this one nor around it has ended, or is not the innermost: then the value has no meaning here. */
flow_status flow_graph_operand(flow_graph *graph, flow_tensor *tensor, int *value)
{
  if (!tensor->graph) return flow_graph_constant(graph, tensor, value);
  if (flow_graph_encloses(tensor->graph, graph)) return flow_graph_close_over(graph, tensor, value);
  if (tensor->graph != graph)
    return flow_fail(FLOW_INVALID_STATE, "a tensor of one trace is used in another: pass it as an argument instead");
  *value = tensor->value;
  return FLOW_OK;
}

/* An owner keeps the number that it got first, so that a cell, which is called for each step of a sequence, draws from one stream. */
flow_status flow_graph_draw(flow_graph *graph, const void *owner, int *number)
{
  while (graph->outer) graph = graph->outer;
  for (int i = 0; owner && i < graph->drawer_count; i++)
    if (graph->drawers[i] == owner) {
      *number = i;
      return FLOW_OK;
    }
  FLOW_TRY(flow_grow(&graph->drawers, sizeof(const void *), graph->drawer_count + 1, &graph->drawer_capacity));
  *number = graph->drawer_count;
  graph->drawers[graph->drawer_count++] = owner;
  return FLOW_OK;
}

/* Each call adds one entry, and counts those of its owner before. */
flow_status flow_graph_draw_again(flow_graph *graph, const void *owner, int *number)
{
  while (graph->outer) graph = graph->outer;
  FLOW_TRY(flow_grow(&graph->drawers, sizeof(const void *), graph->drawer_count + 1, &graph->drawer_capacity));
  *number = 0;
  for (int i = 0; i < graph->drawer_count; i++) *number += graph->drawers[i] == owner;
  graph->drawers[graph->drawer_count++] = owner;
  return FLOW_OK;
}

int flow_graph_drawn(const flow_graph *graph)
{
  while (graph->outer) graph = graph->outer;
  return graph->drawer_count;
}

void flow_graph_draw_back(flow_graph *graph, int drawn)
{
  while (graph->outer) graph = graph->outer;
  graph->drawer_count = drawn;
}

/* Fills a node's value lists; inputs are checked to exist. */
static flow_status set_lists(flow_node *node, const int *inputs, int input_count, int output_count)
{
  void *block;
  FLOW_TRY(flow_alloc(sizeof(int) * (size_t)(input_count + output_count + 1), &block));
  node->inputs = block;
  node->outputs = node->inputs + input_count;
  node->input_count = input_count;
  node->output_count = output_count;
  if (input_count) memcpy(node->inputs, inputs, sizeof(int) * (size_t)input_count);
  return FLOW_OK;
}

/* For ops with a fixed number of outputs. outputs: room for the numbers of the new values. */
flow_status flow_graph_append(flow_graph *graph, int op, const int *inputs, int input_count, const flow_attributes *attributes,
                              const flow_signature *output_signatures, int *outputs)
{
  return flow_graph_append_with(graph, op, inputs, input_count, attributes, output_signatures, flow_op(op)->outputs, outputs);
}

/* inputs: values that exist. All room is taken before anything is added; attributes are copied, and own no memory. */
flow_status flow_graph_append_with(flow_graph *graph, int op, const int *inputs, int input_count, const flow_attributes *attributes,
                                   const flow_signature *output_signatures, int output_count, int *outputs)
{
  if (graph->closed) return flow_fail(FLOW_INVALID_STATE, "%s: the trace that this tensor belongs to has ended", flow_op(op)->name);
  FLOW_TRY(flow_grow(&graph->nodes, sizeof(flow_node), graph->node_count + 1, &graph->node_capacity));
  FLOW_TRY(flow_grow(&graph->values, sizeof(flow_value), graph->value_count + output_count, &graph->value_capacity));
  flow_node node = { .op = op, .attributes = *attributes };
  FLOW_TRY(set_lists(&node, inputs, input_count, output_count));
  for (int i = 0; i < output_count; i++) {
    flow_value result = { .kind = FLOW_VALUE_RESULT, .signature = output_signatures[i], .node = graph->node_count, .output = i };
    FLOW_TRY(add_value(graph, &result, &node.outputs[i]));   /* cannot fail: there is room */
    outputs[i] = node.outputs[i];
  }
  graph->nodes[graph->node_count++] = node;
  return FLOW_OK;
}

/* Appends and moves to its place: O(nodes), which is fine for the few that a pass inserts. The new node runs before what was node `index`;
 * values keep their numbers. */
flow_status flow_graph_insert(flow_graph *graph, int index, int op, const int *inputs, int input_count,
                              const flow_attributes *attributes, const flow_signature *output_signatures, int *outputs)
{
  FLOW_TRY(flow_graph_append(graph, op, inputs, input_count, attributes, output_signatures, outputs));
  flow_node added = graph->nodes[graph->node_count - 1];
  memmove(graph->nodes + index + 1, graph->nodes + index, sizeof added * (size_t)(graph->node_count - 1 - index));
  graph->nodes[index] = added;
  for (int n = index; n < graph->node_count; n++)
    for (int i = 0; i < graph->nodes[n].output_count; i++) graph->values[graph->nodes[n].outputs[i]].node = n;
  return FLOW_OK;
}

/* Outputs that the old node had keep their values and so their readers; more become new values. The signatures of values that stay are
 * not changed: they have to be right for the new op, too. */
flow_status flow_graph_rewrite(flow_graph *graph, int index, int op, const int *inputs, int input_count,
                               const flow_attributes *attributes, const flow_signature *output_signatures, int output_count)
{
  flow_node node = { .op = op, .attributes = *attributes };
  FLOW_TRY(flow_grow(&graph->values, sizeof(flow_value), graph->value_count + output_count, &graph->value_capacity));
  FLOW_TRY(set_lists(&node, inputs, input_count, output_count));
  flow_node *old = &graph->nodes[index];
  node.bfloat16 = old->bfloat16;
  for (int i = 0; i < output_count; i++) {
    if (i < old->output_count) {
      node.outputs[i] = old->outputs[i];
      continue;
    }
    flow_value result = { .kind = FLOW_VALUE_RESULT, .signature = output_signatures[i], .node = index, .output = i };
    FLOW_TRY(add_value(graph, &result, &node.outputs[i]));   /* cannot fail: there is room */
  }
  flow_free(old->inputs);
  *old = node;
  return FLOW_OK;
}

/* An op of two values, whose shape rule gives the result's signature, before node *index, which is one further on then. */
flow_status flow_graph_insert_pair(flow_graph *graph, int *index, int op, int a, int b, int *output)
{
  static const flow_attributes none;
  const int inputs[2] = { a, b };
  flow_signature operands[2] = { graph->values[a].signature, graph->values[b].signature }, result;
  FLOW_TRY(flow_op_infer(op, &none, operands, 2, &result));
  FLOW_TRY(flow_graph_insert(graph, *index, op, inputs, 2, &none, &result, output));
  ++*index;
  return FLOW_OK;
}

/* Readers only: outputs of the graph are the caller's list, and the plan drops nodes whose results are not read any more. same[value] for
 * the first `count` values: what is read in its place. */
void flow_graph_redirect(flow_graph *graph, const int *same, int count)
{
  for (int n = 0; n < graph->node_count; n++) {
    flow_node *node = &graph->nodes[n];
    for (int i = 0; i < node->input_count; i++)
      if (node->inputs[i] < count) node->inputs[i] = same[node->inputs[i]];
  }
}

/* *out: a new reference. A constant gives its tensor, all else a symbolic one. */
flow_status flow_graph_tensor(flow_graph *graph, int value, flow_tensor **out)
{
  const flow_value *v = &graph->values[value];
  if (v->tensor) {
    *out = flow_tensor_retain(v->tensor);
    return FLOW_OK;
  }
  return flow_tensor_new_symbolic(graph, value, v->signature.dtype, v->signature.rank, v->signature.dims, out);
}

/* A cast that a policy asked for need not be carried out where the kernel that reads it computes in float32 anyway. On a device whose
 * kernels read 16 bits by themselves nothing is to be won. */
void flow_graph_loosen(const flow_tensor *tensor)
{
  flow_graph *graph = tensor->graph;
  if (!graph || graph->exact || (graph->place && flow_place_accelerator(graph->place)->device.half_floats)) return;
  flow_value *v = &graph->values[tensor->value];
  if (v->kind != FLOW_VALUE_RESULT || v->signature.dtype != FLOW_BFLOAT16 || graph->nodes[v->node].op != FLOW_OP_cast) return;
  v->loose = graph->values[graph->nodes[v->node].inputs[0]].signature.dtype == FLOW_FLOAT32;
}

/* The float32 value before the cast of a loose one; -1: there is none. */
int flow_graph_wide(const flow_tensor *tensor)
{
  if (!tensor->graph || !tensor->graph->values[tensor->value].loose) return -1;
  return tensor->graph->nodes[tensor->graph->values[tensor->value].node].inputs[0];
}

/* A search through a list: a trace touches hundreds of variables at most, each a few times. -1: this trace has not read or written the
 * variable yet. */
int flow_graph_version(const flow_graph *graph, const flow_variable *variable)
{
  for (int i = 0; i < graph->version_count; i++)
    if (graph->versions[i].variable == variable) return graph->versions[i].value;
  return -1;
}

/* Later reads of the variable in this trace get this value. */
flow_status flow_graph_set_version(flow_graph *graph, flow_variable *variable, int value)
{
  for (int i = 0; i < graph->version_count; i++)
    if (graph->versions[i].variable == variable) {
      graph->versions[i].value = value;
      return FLOW_OK;
    }
  FLOW_TRY(flow_grow(&graph->versions, sizeof(flow_reading), graph->version_count + 1, &graph->version_capacity));
  graph->versions[graph->version_count++] = (flow_reading){ .variable = variable, .value = value };
  return FLOW_OK;
}

/* Ops of the flag ALIAS give their input's memory in another shape: the value whose memory it is. */
int flow_graph_root(const flow_graph *graph, int value)
{
  while (graph->values[value].kind == FLOW_VALUE_RESULT) {
    const flow_node *node = &graph->nodes[graph->values[value].node];
    if (!(flow_op(node->op)->flags & FLOW_OP_ALIAS)) break;
    value = node->inputs[0];
  }
  return value;
}

void flow_graph_count_uses(const flow_graph *graph, int *uses)
{
  memset(uses, 0, sizeof(int) * (size_t)graph->value_count);
  for (int n = 0; n < graph->node_count; n++)
    for (int i = 0; i < graph->nodes[n].input_count; i++) uses[graph->nodes[n].inputs[i]]++;
}

/* Outputs count twice: no pass may take a value for one that has a single reader and nothing else needs. */
void flow_graph_count_live_uses(const flow_graph *graph, const char *live, const int *outputs, int output_count, int *uses)
{
  for (int n = 0; n < graph->node_count; n++)
    for (int i = 0; live[n] && i < graph->nodes[n].input_count; i++) uses[graph->nodes[n].inputs[i]]++;
  for (int i = 0; i < output_count; i++) uses[outputs[i]] += 2;
}
