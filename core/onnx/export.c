/* export.c: from a trace to a file: inputs, the nodes that the outputs depend on, outputs. See onnx.h. */
#include "onnx/onnx.h"

#include <stdio.h>
#include <string.h>
#include "graph/loop.h"
#include "onnx/fields.h"

/* Version 18 of the operators belongs to IR version 8 (ONNX 1.13). MOST_COMPUTED: elements of a result that is computed now; larger ones
 * would make the file larger than the node that computes them. */
enum { IR_VERSION = 8, OPERATORS = 18, MOST_COMPUTED = 65536 };

/* Everything that the export made on the way. The graph is the caller's. */
static void release(flow_onnx *x)
{
  for (int i = 0; i < x->kept_count; i++) flow_free(x->kept[i]);
  for (int i = 0; i < x->tensor_count; i++) flow_tensor_release(x->tensors[i]);
  flow_free(x->kept);
  flow_free(x->tensors);
  flow_free(x->names[0]);
  flow_message_release(&x->message);
}

/* Name, element type and shape of an input or output: a ValueInfoProto of onnx.proto3. Rows are a dimension with a name, "batch", so that
 * runtimes take any number; a dimension of -3 is three times the rows, "3*batch". */
static void describe_value(flow_onnx *x, int field, const char *name, const flow_signature *signature)
{
  flow_message *m = &x->message;
  flow_message_open(m, field);
  flow_message_text(m, VALUE_NAME, name);
  flow_message_open(m, VALUE_TYPE);
  flow_message_open(m, TYPE_TENSOR);
  flow_message_integer(m, TENSOR_TYPE_DTYPE, flow_onnx_dtype(signature->dtype));
  flow_message_open(m, TENSOR_TYPE_SHAPE);
  for (int i = 0; i < signature->rank; i++) {
    char text[40] = "batch";
    if (signature->dims[i] < -1) snprintf(text, sizeof text, "%lld*batch", -(long long)signature->dims[i]);
    flow_message_open(m, SHAPE_DIM);
    if (signature->dims[i] < 0) flow_message_text(m, DIM_NAME, text);
    else flow_message_integer(m, DIM_VALUE, signature->dims[i]);
    flow_message_close(m);
  }
  for (int i = 0; i < 4; i++) flow_message_close(m);
}

/* Only results have a node; inputs, variables and constants are there anyway. */
static void mark_value(const flow_graph *graph, int value, char *live)
{
  const flow_value *v = &graph->values[value];
  if (v->kind == FLOW_VALUE_RESULT) live[v->node] = 1;
}

/* Marks what makes the values that the rule of a node's op reads: all inputs, those of the record's `reads`, where of others only the shape
 * counts, or what its `values` says. A node has any number of inputs (concat), so that no list of them is made here. */
static void mark_reads(const flow_graph *graph, const flow_node *node, char *live)
{
  const flow_onnx_record *record = flow_onnx_of(node->op);
  if (record && record->values) {
    int values[FLOW_MAX_OPERANDS], count = record->values(graph, node, values);
    for (int i = 0; i < count; i++) mark_value(graph, values[i], live);
    return;
  }
  for (int i = 0; i < node->input_count; i++)
    if (!record || !record->reads || record->reads >> i & 1) mark_value(graph, node->inputs[i], live);
}

/* live[node]: 1 for each node that the outputs depend on. One walk backwards is enough, since a node comes after those whose results it
 * reads. */
static void mark_live(const flow_graph *graph, const int *outputs, int count, char *live)
{
  for (int i = 0; i < count; i++) mark_value(graph, outputs[i], live);
  for (int n = graph->node_count - 1; n >= 0; n--)
    if (live[n]) mark_reads(graph, &graph->nodes[n], live);
}

/* Inputs are channels last under the names that the caller gave, which are borrowed. The first one whose first dimension counts rows
 * becomes that of which rows_of_batch (nodes.c) takes the number of rows while the model runs. */
static void write_inputs(flow_onnx *x, const char *const *names)
{
  for (int i = 0; i < x->graph->input_count; i++) {
    int value = x->graph->inputs[i];
    const flow_signature *signature = &x->graph->values[value].signature;
    x->names[FLOW_CHANNELS_LAST][value] = names[i];
    describe_value(x, GRAPH_INPUT, names[i], signature);
    if (!x->input && signature->rank > 0 && signature->dims[0] < 0) {
      x->input = names[i];
      x->input_rows = -signature->dims[0];
    }
  }
}

/* Computes a small node whose inputs are the same in every run: statistics of a normalization become one scale and one shift. Random ops
 * and those with effects are left to their rules. Returns whether the node is dealt with: its result is known, or the export has failed. */
static int compute_now(flow_onnx *x, const flow_node *node)
{
  const flow_signature *result = &x->graph->values[node->outputs[0]].signature;
  flow_tensor *inputs[FLOW_MAX_OPERANDS], *output = NULL;
  int64_t size = flow_shape_size(result->rank, result->dims);
  if ((flow_op(node->op)->flags & (FLOW_OP_RANDOM | FLOW_OP_EFFECT)) || node->output_count != 1) return 0;
  if (node->input_count < 1 || node->input_count > FLOW_MAX_OPERANDS || size < 0 || size > MOST_COMPUTED) return 0;
  for (int i = 0; i < node->input_count; i++) {
    if (!(inputs[i] = flow_onnx_static(x, node, i)) || x->status != FLOW_OK) return 0;
  }
  x->status = flow_apply(x->context, node->op, inputs, node->input_count, &node->attributes, &output);
  if (x->status == FLOW_OK) x->known[node->outputs[0]] = flow_onnx_keep(x, output);
  return 1;
}

/* In the trace's order, which is an order that ONNX accepts: what a node reads is written before. A node that is computed now writes
 * nothing: its result becomes a constant of the file when a rule asks for its form. */
static void write_nodes(flow_onnx *x, const char *live)
{
  for (int n = 0; n < x->graph->node_count && x->status == FLOW_OK; n++) {
    const flow_node *node = &x->graph->nodes[n];
    const flow_onnx_record *record = flow_onnx_of(node->op);
    if (!live[n] || compute_now(x, node)) continue;
    if (record) record->rule(x, node, record->type);
    else flow_onnx_fail(x, FLOW_UNSUPPORTED, "the op %s has no ONNX form", flow_op(node->op)->name);
  }
}

/* Writes a ModelProto: what reads it, the operators' version, the graph. The first failure stays in x->status. Outputs are copies by
 * Identity, since a value may be an input as well, or two outputs, and every output needs its own name. */
static void write_graph(flow_onnx *x, const char *name, const char *const *input_names, const int *outputs, int count,
                        const char *const *output_names, const char *live)
{
  flow_message *m = &x->message;
  flow_message_integer(m, MODEL_IR_VERSION, IR_VERSION);
  flow_message_text(m, MODEL_PRODUCER, "flowlua");
  flow_message_text(m, MODEL_PRODUCER_VERSION, flow_version());
  flow_message_open(m, MODEL_OPERATORS);
  flow_message_integer(m, OPERATORS_VERSION, OPERATORS);
  flow_message_close(m);
  flow_message_open(m, MODEL_GRAPH);
  flow_message_text(m, GRAPH_NAME, name);
  write_inputs(x, input_names);
  write_nodes(x, live);
  for (int i = 0; i < count; i++) {
    const char *value = flow_onnx_form(x, outputs[i], FLOW_CHANNELS_LAST);
    if (x->status != FLOW_OK) return;
    flow_onnx_emit(x, "Identity", output_names[i], value, NULL, NULL);
    describe_value(x, GRAPH_OUTPUT, output_names[i], &x->graph->values[outputs[i]].signature);
  }
  flow_message_close(m);
}

/* Under a temporary name first, as all files: after a failure an older file of that name is unchanged. The bound is protobuf's, whose
 * readers refuse a message of 2^31 bytes or more. */
static flow_status write_file(const flow_onnx *x, const char *path)
{
  uint64_t bytes = flow_message_size(&x->message);
  flow_sink sink;
  FLOW_TRY(x->message.status);
  if (bytes > INT32_MAX) {
    return flow_fail(FLOW_UNSUPPORTED, "%s: the ONNX model takes %.0f bytes; protobuf files end at 2147483647, and weights in files of "
                     "their own (external data) are not supported", path, (double)bytes);
  }
  FLOW_TRY(flow_sink_open(path, &sink));
  flow_status status = flow_message_write(&x->message, &sink);
  if (status == FLOW_OK) return flow_sink_commit(&sink);
  flow_sink_discard(&sink);
  return status;
}

/* A tensor of an ONNX model has one name, and no other has it. */
static flow_status check_names(const char *const *inputs, int input_count, const char *const *outputs, int output_count)
{
  for (int i = 0; i < input_count + output_count; i++) {
    const char *name = i < input_count ? inputs[i] : outputs[i - input_count];
    if (!name || !*name) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_trace_save_onnx: an input or output has no name");
    for (int k = 0; k < i; k++) {
      if (strcmp(k < input_count ? inputs[k] : outputs[k - input_count], name) == 0)
        return flow_fail(FLOW_INVALID_ARGUMENT, "flow_trace_save_onnx: two inputs or outputs have the name \"%s\"", name);
    }
  }
  return FLOW_OK;
}

/* Loops are unrolled before, since ONNX' Loop has no rules here; the trace stays unrolled. One block holds the names in both layouts, the
 * known tensors (one for each value) and the marks (one for each node); x.names[0] is its beginning, by which release frees it. Pointers
 * come first in it, so that they are aligned. */
flow_status flow_trace_save_onnx(flow_context *context, const char *path, const char *name, flow_tensor *const *outputs, int count,
                                 const char *const *input_names, int input_count, const char *const *output_names)
{
  if (!context || !path || !name || !outputs || (input_count > 0 && !input_names) || !output_names)
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_trace_save_onnx: %s is NULL",
                     !context        ? "context"
                     : !path         ? "path"
                     : !name         ? "name"
                     : !outputs      ? "outputs"
                     : !output_names ? "output_names"
                                     : "input_names");
  flow_graph *graph = flow_context_trace(context);
  int values[FLOW_MAX_OPERANDS];
  if (!graph) return flow_fail(FLOW_INVALID_STATE, "flow_trace_save_onnx: no trace is open");
  if (input_count != graph->input_count) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_trace_save_onnx: %d names for %d inputs", input_count, graph->input_count);
  }
  if (count < 1 || count > FLOW_MAX_OPERANDS) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_trace_save_onnx: %d outputs, expected 1 to %d", count, FLOW_MAX_OPERANDS);
  }
  FLOW_TRY(check_names(input_names, input_count, output_names, count));
  for (int i = 0; i < count; i++) FLOW_TRY(flow_graph_operand(graph, outputs[i], &values[i]));
  FLOW_TRY(flow_graph_unroll(graph, values, count));
  flow_onnx x = { .context = context,
                  .graph = graph,
                  .input_names = input_names,
                  .input_count = input_count,
                  .output_names = output_names,
                  .output_count = count };
  void *block;
  size_t forms;
  FLOW_TRY(flow_multiply(2 * sizeof *x.names[0] + sizeof *x.known, (size_t)graph->value_count + 1, &forms));
  FLOW_TRY(flow_alloc_zero(forms + (size_t)graph->node_count + 1, &block));
  x.names[0] = block;
  x.names[1] = x.names[0] + graph->value_count;
  x.known = (flow_tensor **)(x.names[1] + graph->value_count);
  char *live = (char *)block + forms;
  mark_live(graph, values, count, live);
  write_graph(&x, name, input_names, values, count, output_names, live);
  if (x.status == FLOW_OK) x.status = write_file(&x, path);
  release(&x);
  return x.status;
}
