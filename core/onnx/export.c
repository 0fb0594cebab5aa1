/* export.c: see onnx.h. Field numbers are those of onnx.proto3 (github.com/onnx/onnx). */
#include "onnx/onnx.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "graph/context.h"
#include "graph/variable.h"

enum { IR_VERSION = 8, OPERATORS = 18, SMALL = 1024, MOST_COMPUTED = 65536 };

enum { MODEL_IR_VERSION = 1, MODEL_PRODUCER = 2, MODEL_PRODUCER_VERSION = 3, MODEL_GRAPH = 7, MODEL_OPERATORS = 8 };
enum { OPERATORS_VERSION = 2 };
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_TYPE = 4, NODE_ATTRIBUTE = 5 };
enum { ATTRIBUTE_NAME = 1, ATTRIBUTE_INTEGER = 3, ATTRIBUTE_TEXT = 4, ATTRIBUTE_INTEGERS = 8, ATTRIBUTE_TYPE = 20 };
enum { TYPE_INTEGER = 2, TYPE_TEXT = 3, TYPE_INTEGERS = 7 };
enum { TENSOR_DIMS = 1, TENSOR_DTYPE = 2, TENSOR_NAME = 8, TENSOR_RAW_DATA = 9 };
enum { VALUE_NAME = 1, VALUE_TYPE = 2, TYPE_TENSOR = 1, TENSOR_TYPE_DTYPE = 1, TENSOR_TYPE_SHAPE = 2 };
enum { SHAPE_DIM = 1, DIM_VALUE = 1, DIM_NAME = 2 };

/* TensorProto.DataType */
static const int dtypes[FLOW_DTYPE_COUNT] = { [FLOW_FLOAT32] = 1, [FLOW_FLOAT16] = 10, [FLOW_BFLOAT16] = 16, [FLOW_FLOAT64] = 11,
  [FLOW_INT8] = 3, [FLOW_UINT8] = 2, [FLOW_INT32] = 6, [FLOW_INT64] = 7, [FLOW_BOOL] = 9 };

static const int64_t to_first[4] = { 0, 3, 1, 2 }, to_last[4] = { 0, 2, 3, 1 };

const char *flow_onnx_fail(flow_onnx *x, flow_status status, const char *format, ...)
{
  char text[512];
  va_list arguments;
  if (x->status != FLOW_OK) return NULL;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  x->status = flow_fail(status, "%s", text);
  return NULL;
}

/* ---- what the export keeps ---------------------------------------------------------------------------------------------- */

static char *keep_text(flow_onnx *x, const char *text)
{
  if (x->status == FLOW_OK) x->status = flow_grow(&x->kept, sizeof *x->kept, x->kept_count + 1, &x->kept_capacity);
  if (x->status != FLOW_OK) return NULL;
  char *copy = flow_duplicate_text(text);
  if (copy) x->kept[x->kept_count++] = copy;
  else x->status = FLOW_OUT_OF_MEMORY;
  return copy;
}

flow_tensor *flow_onnx_keep(flow_onnx *x, flow_tensor *tensor)
{
  if (x->status == FLOW_OK) x->status = flow_grow(&x->tensors, sizeof *x->tensors, x->tensor_count + 1, &x->tensor_capacity);
  if (x->status == FLOW_OK) return x->tensors[x->tensor_count++] = tensor;
  flow_tensor_release(tensor);
  return NULL;
}

static const char *make_name(flow_onnx *x, const char *what)
{
  char text[160];
  snprintf(text, sizeof text, "/%.100s_%d", what, ++x->made);        /* names of layers, and so of inputs and outputs, have no slash */
  return keep_text(x, text);
}

static void release(flow_onnx *x)
{
  for (int i = 0; i < x->kept_count; i++) flow_free(x->kept[i]);
  for (int i = 0; i < x->tensor_count; i++) flow_tensor_release(x->tensors[i]);
  flow_free(x->kept);
  flow_free(x->tensors);
  flow_free(x->names[0]);
  flow_message_release(&x->message);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------------- */

void flow_onnx_begin(flow_onnx *x, const char *type, const char *const *inputs, int count, const char *result)
{
  if (x->status != FLOW_OK) return;
  flow_message_open(&x->message, GRAPH_NODE);
  for (int i = 0; i < count; i++) flow_message_text(&x->message, NODE_INPUT, inputs[i] ? inputs[i] : "");
  flow_message_text(&x->message, NODE_OUTPUT, result);
  flow_message_text(&x->message, NODE_NAME, result);
  flow_message_text(&x->message, NODE_TYPE, type);
}

void flow_onnx_end(flow_onnx *x)
{
  if (x->status == FLOW_OK) flow_message_close(&x->message);
}

static int open_attribute(flow_onnx *x, const char *name, int type)
{
  if (x->status != FLOW_OK) return 0;
  flow_message_open(&x->message, NODE_ATTRIBUTE);
  flow_message_text(&x->message, ATTRIBUTE_NAME, name);
  flow_message_integer(&x->message, ATTRIBUTE_TYPE, type);
  return 1;
}

void flow_onnx_integer(flow_onnx *x, const char *name, int64_t value)
{
  if (!open_attribute(x, name, TYPE_INTEGER)) return;
  flow_message_integer(&x->message, ATTRIBUTE_INTEGER, value);
  flow_message_close(&x->message);
}

void flow_onnx_integers(flow_onnx *x, const char *name, const int64_t *values, int count)
{
  if (!open_attribute(x, name, TYPE_INTEGERS)) return;
  for (int i = 0; i < count; i++) flow_message_integer(&x->message, ATTRIBUTE_INTEGERS, values[i]);
  flow_message_close(&x->message);
}

void flow_onnx_text(flow_onnx *x, const char *name, const char *value)
{
  if (!open_attribute(x, name, TYPE_TEXT)) return;
  flow_message_text(&x->message, ATTRIBUTE_TEXT, value);
  flow_message_close(&x->message);
}

const char *flow_onnx_emit(flow_onnx *x, const char *type, const char *result, const char *a, const char *b, const char *c)
{
  const char *inputs[3] = { a, b, c };
  if (!result) result = make_name(x, type);
  flow_onnx_begin(x, type, inputs, c ? 3 : b ? 2 : 1, result);
  flow_onnx_end(x);
  return result;
}

const char *flow_onnx_transpose(flow_onnx *x, const char *name, const int64_t *axes, int count, const char *result)
{
  if (!result) result = make_name(x, "Transpose");
  flow_onnx_begin(x, "Transpose", &name, 1, result);
  flow_onnx_integers(x, "perm", axes, count);
  flow_onnx_end(x);
  return result;
}

const char *flow_onnx_cast(flow_onnx *x, const char *name, int dtype, const char *result)
{
  if (!result) result = make_name(x, "Cast");
  flow_onnx_begin(x, "Cast", &name, 1, result);
  flow_onnx_integer(x, "to", dtypes[dtype]);
  flow_onnx_end(x);
  return result;
}

/* ---- constants ---------------------------------------------------------------------------------------------------------- */

static const char *write_tensor(flow_onnx *x, const char *name, int dtype, int rank, const int64_t *dims, const void *bytes, uint64_t count)
{
  if (x->status != FLOW_OK) return NULL;
  flow_message_open(&x->message, GRAPH_INITIALIZER);
  for (int i = 0; i < rank; i++) flow_message_integer(&x->message, TENSOR_DIMS, dims[i]);
  flow_message_integer(&x->message, TENSOR_DTYPE, dtypes[dtype]);
  flow_message_text(&x->message, TENSOR_NAME, name);
  if (count < SMALL) flow_message_bytes(&x->message, TENSOR_RAW_DATA, bytes, count);
  else flow_message_lend(&x->message, TENSOR_RAW_DATA, bytes, count);
  flow_message_close(&x->message);
  return name;
}

static uint64_t bytes_of(const flow_tensor *tensor)
{
  return (uint64_t)flow_shape_size(tensor->rank, tensor->shape) * (uint64_t)flow_dtype_size(tensor->dtype);
}

const char *flow_onnx_tensor(flow_onnx *x, flow_tensor *tensor, const char *name)
{
  if (x->status != FLOW_OK) return NULL;
  if (!name) name = make_name(x, "constant");
  return write_tensor(x, name, tensor->dtype, tensor->rank, tensor->shape, tensor->data, bytes_of(tensor));
}

const char *flow_onnx_list(flow_onnx *x, const int64_t *values, int count)
{
  int64_t dims[1] = { count };
  return write_tensor(x, make_name(x, "integers"), FLOW_INT64, 1, dims, values, (uint64_t)count * sizeof *values);
}

const char *flow_onnx_number(flow_onnx *x, int dtype, double value)
{
  flow_tensor *tensor = NULL;
  if (x->status == FLOW_OK) x->status = flow_tensor_scalar(dtype, value, &tensor);
  if (x->status != FLOW_OK || !flow_onnx_keep(x, tensor)) return NULL;
  return flow_onnx_tensor(x, tensor, make_name(x, "number"));
}

/* The rows of the batch as an int64 tensor {1}. */
static const char *rows_of_batch(flow_onnx *x)
{
  if (x->rows || x->status != FLOW_OK) return x->rows;
  if (!x->input) return flow_onnx_fail(x, FLOW_INTERNAL, "ONNX: a shape depends on the batch, but no input has rows");
  const char *result = make_name(x, "rows");
  flow_onnx_begin(x, "Shape", &x->input, 1, result);
  flow_onnx_integer(x, "start", 0);
  flow_onnx_integer(x, "end", 1);
  flow_onnx_end(x);
  if (x->input_rows != 1) result = flow_onnx_emit(x, "Div", NULL, result, flow_onnx_list(x, &x->input_rows, 1), NULL);
  return x->rows = result;
}

const char *flow_onnx_shape(flow_onnx *x, const flow_signature *signature)
{
  const char *parts[FLOW_MAX_RANK];
  int symbolic = 0;
  for (int i = 0; i < signature->rank; i++) symbolic |= signature->dims[i] < 0;
  if (!symbolic) return flow_onnx_list(x, signature->dims, signature->rank);
  for (int i = 0; i < signature->rank; i++) {
    int64_t size = signature->dims[i], times = -size;
    if (size >= 0) parts[i] = flow_onnx_list(x, &size, 1);
    else if (size == -1) parts[i] = rows_of_batch(x);
    else parts[i] = flow_onnx_emit(x, "Mul", NULL, rows_of_batch(x), flow_onnx_list(x, &times, 1), NULL);
  }
  const char *result = make_name(x, "shape");
  flow_onnx_begin(x, "Concat", parts, signature->rank, result);
  flow_onnx_integer(x, "axis", 0);
  flow_onnx_end(x);
  return result;
}

/* ---- values -------------------------------------------------------------------------------------------------------------- */

const flow_signature *flow_onnx_signature(const flow_onnx *x, const flow_node *node, int input)
{
  return &x->graph->values[node->inputs[input]].signature;
}

int flow_onnx_axis(int axis, flow_onnx_layout layout)
{
  return layout == FLOW_CHANNELS_FIRST && axis > 0 && axis < 4 ? axis % 3 + 1 : axis;
}

/* What a variable, a constant or a known result holds, contiguous. */
static flow_tensor *held_tensor(flow_onnx *x, int value)
{
  const flow_value *v = &x->graph->values[value];
  flow_tensor *tensor = v->kind == FLOW_VALUE_CONSTANT ? v->tensor : x->known[value];
  if (v->kind == FLOW_VALUE_VARIABLE && !v->late) tensor = v->variable->tensor;
  if (!tensor || x->status != FLOW_OK || (!flow_tensor_place(tensor) && flow_tensor_is_contiguous(tensor))) return tensor;
  flow_tensor *copy = NULL;
  x->status = flow_tensor_on_host_contiguous(tensor, &copy);
  return x->status == FLOW_OK ? flow_onnx_keep(x, copy) : NULL;
}

static flow_tensor *static_tensor(flow_onnx *x, int value)
{
  int root = flow_graph_root(x->graph, value);
  flow_tensor *tensor = held_tensor(x, root), *view = NULL;
  if (!tensor || root == value) return tensor;
  const flow_signature *signature = &x->graph->values[value].signature;
  int64_t strides[FLOW_MAX_RANK];
  flow_contiguous_strides(signature->rank, signature->dims, strides);
  if (x->status == FLOW_OK) x->status = flow_tensor_view(tensor, signature->rank, signature->dims, strides, 0, &view);
  return x->status == FLOW_OK ? flow_onnx_keep(x, view) : NULL;
}

flow_tensor *flow_onnx_static(flow_onnx *x, const flow_node *node, int input) { return static_tensor(x, node->inputs[input]); }

/* The name under which a variable or constant stands in the file: the variable's own, if no other has it. */
static const char *stored_name(flow_onnx *x, int value)
{
  const flow_variable *variable = x->graph->values[value].variable;
  const char *name = variable ? variable->name : NULL;
  if (!name || !*name) return make_name(x, "constant");
  for (int other = 0; other < 2 * x->graph->value_count; other++) {        /* both layouts, which are one after the other */
    if (x->names[0][other] && strcmp(x->names[0][other], name) == 0) return make_name(x, name);
  }
  return keep_text(x, name);
}

static const char *channels_last(flow_onnx *x, int value)
{
  const flow_value *v = &x->graph->values[value];
  if (v->signature.rank == 4 && x->names[FLOW_CHANNELS_FIRST][value]) return flow_onnx_transpose(x, x->names[1][value], to_last, 4, NULL);
  if (v->kind == FLOW_VALUE_VARIABLE && v->late) {
    return flow_onnx_fail(x, FLOW_UNSUPPORTED, "ONNX: the model reads the variable \"%s\" after changing it; an exported model cannot "
                          "change variables", v->variable->name ? v->variable->name : "");
  }
  flow_tensor *tensor = held_tensor(x, value);
  if (!tensor) return flow_onnx_fail(x, FLOW_INTERNAL, "ONNX: a value was not exported");
  return flow_onnx_tensor(x, tensor, stored_name(x, value));
}

static const char *channels_first(flow_onnx *x, int value, const char *last)
{
  const flow_signature *signature = &x->graph->values[value].signature;
  int rank = signature->rank;
  int64_t dims[4] = { 1, 1, 1, 1 };
  if (rank == 4) return flow_onnx_transpose(x, last, to_first, 4, NULL);
  if (rank == 0 || rank > 4) return last;
  for (int i = 0; i < rank; i++) dims[4 - rank + i] = signature->dims[i];
  if (rank == 1) {
    int64_t first[4] = { 1, dims[3], 1, 1 };
    return flow_onnx_emit(x, "Reshape", NULL, last, flow_onnx_list(x, first, 4), NULL);
  }
  flow_signature full = { .dtype = signature->dtype, .rank = 4, .dims = { dims[0], dims[1], dims[2], dims[3] } };
  return flow_onnx_transpose(x, flow_onnx_emit(x, "Reshape", NULL, last, flow_onnx_shape(x, &full), NULL), to_first, 4, NULL);
}

/* A vector that the file holds anyway is held in the shape that is asked for. */
static const char *static_vector(flow_onnx *x, int value)
{
  const flow_signature *signature = &x->graph->values[value].signature;
  flow_tensor *tensor = signature->rank == 1 && !x->names[FLOW_CHANNELS_LAST][value] ? static_tensor(x, value) : NULL, *view = NULL;
  if (!tensor || x->status != FLOW_OK) return NULL;
  int64_t dims[4] = { 1, tensor->shape[0], 1, 1 }, strides[4];
  flow_contiguous_strides(4, dims, strides);
  x->status = flow_tensor_view(tensor, 4, dims, strides, 0, &view);
  if (x->status != FLOW_OK || !flow_onnx_keep(x, view)) return NULL;
  return flow_onnx_tensor(x, view, stored_name(x, value));
}

static const char *form(flow_onnx *x, int value, flow_onnx_layout layout)
{
  if (x->status != FLOW_OK) return NULL;
  const char **at = &x->names[layout][value];
  if (*at) return *at;
  if (layout == FLOW_CHANNELS_LAST) return *at = channels_last(x, value);
  const char *vector = static_vector(x, value);
  return *at = vector ? vector : channels_first(x, value, form(x, value, FLOW_CHANNELS_LAST));
}

const char *flow_onnx_input(flow_onnx *x, const flow_node *node, int input, flow_onnx_layout layout)
{
  return form(x, node->inputs[input], layout);
}

flow_onnx_layout flow_onnx_layout_of(const flow_onnx *x, const flow_node *node)
{
  int first = 0;
  for (int i = 0; i < node->input_count; i++) {
    const flow_signature *signature = flow_onnx_signature(x, node, i);
    if (signature->rank > 4) return FLOW_CHANNELS_LAST;
    first |= signature->rank == 4 && x->names[FLOW_CHANNELS_FIRST][node->inputs[i]] && !x->names[FLOW_CHANNELS_LAST][node->inputs[i]];
  }
  return first ? FLOW_CHANNELS_FIRST : FLOW_CHANNELS_LAST;
}

const char *flow_onnx_result(flow_onnx *x, const flow_node *node, int output, flow_onnx_layout layout)
{
  const char *name = make_name(x, flow_op(node->op)->name);
  flow_onnx_set(x, node, output, layout, name);
  return name;
}

void flow_onnx_set(flow_onnx *x, const flow_node *node, int output, flow_onnx_layout layout, const char *name)
{
  x->names[layout][node->outputs[output]] = name;
}

/* ---- the model ------------------------------------------------------------------------------------------------------------ */

static void describe_value(flow_onnx *x, int field, const char *name, const flow_signature *signature)
{
  flow_message *m = &x->message;
  flow_message_open(m, field);
  flow_message_text(m, VALUE_NAME, name);
  flow_message_open(m, VALUE_TYPE);
  flow_message_open(m, TYPE_TENSOR);
  flow_message_integer(m, TENSOR_TYPE_DTYPE, dtypes[signature->dtype]);
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

/* Nodes that the outputs depend on. */
static void mark_live(const flow_graph *graph, const int *outputs, int count, char *live)
{
  for (int i = 0; i < count; i++) {
    const flow_value *v = &graph->values[outputs[i]];
    if (v->kind == FLOW_VALUE_RESULT) live[v->node] = 1;
  }
  for (int n = graph->node_count - 1; n >= 0; n--) {
    unsigned reads = flow_onnx_of(graph->nodes[n].op)->reads;
    for (int i = 0; live[n] && i < graph->nodes[n].input_count; i++) {
      if (reads && !(reads >> i & 1)) continue;
      const flow_value *v = &graph->values[graph->nodes[n].inputs[i]];
      if (v->kind == FLOW_VALUE_RESULT) live[v->node] = 1;
    }
  }
}

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

/* Computes a small node whose inputs are the same in every run: statistics of a normalization become one scale and one shift.
 * Returns whether it did. */
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

static void write_nodes(flow_onnx *x, const char *live)
{
  for (int n = 0; n < x->graph->node_count && x->status == FLOW_OK; n++) {
    const flow_node *node = &x->graph->nodes[n];
    const flow_onnx_record *record = flow_onnx_of(node->op);
    if (!live[n] || compute_now(x, node)) continue;
    if (record->rule) record->rule(x, node, record->type);
    else flow_onnx_fail(x, FLOW_UNSUPPORTED, "the op %s has no ONNX form", flow_op(node->op)->name);
  }
}

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
    const char *value = form(x, outputs[i], FLOW_CHANNELS_LAST);
    if (x->status != FLOW_OK) return;
    flow_onnx_emit(x, "Identity", output_names[i], value, NULL, NULL);
    describe_value(x, GRAPH_OUTPUT, output_names[i], &x->graph->values[outputs[i]].signature);
  }
  flow_message_close(m);
}

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

flow_status flow_trace_save_onnx(flow_context *context, const char *path, const char *name, flow_tensor *const *outputs, int count,
                                 const char *const *input_names, int input_count, const char *const *output_names)
{
  flow_graph *graph = flow_context_trace(context);
  int values[FLOW_MAX_OPERANDS];
  if (!graph) return flow_fail(FLOW_INVALID_STATE, "flow_trace_save_onnx: no trace is open");
  if (input_count != graph->input_count) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_trace_save_onnx: %d names for %d inputs", input_count, graph->input_count);
  }
  if (count < 1 || count > FLOW_MAX_OPERANDS) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_trace_save_onnx: %d outputs, expected 1 to %d", count, FLOW_MAX_OPERANDS);
  }
  for (int i = 0; i < count; i++) FLOW_TRY(flow_graph_operand(graph, outputs[i], &values[i]));
  flow_onnx x = { .context = context, .graph = graph };
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
