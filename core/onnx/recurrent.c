/* recurrent.c: LSTM, GRU and simple RNN. The ops here read the products of all gates with the inputs, which the trace makes for all steps
 * at once; ONNX' read the inputs and multiply themselves. So the rule looks for that product and writes its factors. Where there is none
 * the weights of the inputs are a unit matrix. ONNX' ops know no masks with holes: with a mask each step is written by itself.
 *
 * Shapes. Here: the shares of the inputs {n, steps, gates x units}, the recurrent kernel {units, gates x units}, states {n, units}. ONNX
 * (Operators: RNN, GRU, LSTM, with one direction): X {steps, n, in}, W {1, gates x units, in}, R {1, gates x units, units}, B {1, 2 x
 * gates x units}, states {1, n, units}, Y {steps, 1, n, units}. */
#include "onnx/onnx.h"

#include "onnx/fields.h"

enum { MOST_GATES = 4 };

/* Gates in ONNX' order, as numbers of those here, where LSTM has input, forget, candidate, output: ONNX wants input, output, forget,
 * candidate. Those of GRU, update, reset, candidate, have the same order in both. */
static const int lstm_order[MOST_GATES] = { 0, 3, 1, 2 }, usual_order[MOST_GATES] = { 0, 1, 2, 3 };

/* What the products of a node's input 0 are made of: values of the graph; bias and kernel -1 where there are none. */
typedef struct projection {
  int x, kernel, bias;
} projection;

/* The node that makes a value, if it is one of this op; else NULL. */
static const flow_node *producer(const flow_graph *graph, int value, int op)
{
  const flow_value *v = &graph->values[value];
  return v->kind == FLOW_VALUE_RESULT && graph->nodes[v->node].op == op ? &graph->nodes[v->node] : NULL;
}

/* Which input of a node is the mask; -1: it has none. */
static int mask_of(const flow_node *node)
{
  int before = node->op == FLOW_OP_simple_rnn ? 3 : 4;
  return node->input_count > before ? before : -1;
}

/* Recognizes x . kernel + bias, or x . kernel, before the op; anything else is taken as a whole, {node's input, no kernel, no bias}. The
 * kernel has to be a variable, since it is rewritten in the file, and the bias one number for each of its columns, since it is read as
 * such. The products themselves are then not written, unless something else reads them (values_of). With a mask each step reads them. */
static projection projection_of(const flow_graph *graph, const flow_node *node)
{
  const projection none = { .x = node->inputs[0], .kernel = -1, .bias = -1 };
  if (mask_of(node) >= 0) return none;
  const flow_node *sum = producer(graph, node->inputs[0], FLOW_OP_add);
  const flow_node *product = producer(graph, sum ? sum->inputs[0] : node->inputs[0], FLOW_OP_matmul);
  if (!product || product->attributes.matmul.transpose_a || product->attributes.matmul.transpose_b) return none;
  if (graph->values[product->inputs[0]].signature.rank != 3 || graph->values[product->inputs[1]].signature.rank != 2) return none;
  if (graph->values[product->inputs[1]].kind != FLOW_VALUE_VARIABLE) return none;
  const flow_signature *bias = sum ? &graph->values[sum->inputs[1]].signature : NULL;
  if (bias && (bias->rank != 1 || bias->dims[0] != graph->values[product->inputs[1]].signature.dims[1])) return none;
  return (projection){ .x = product->inputs[0], .kernel = product->inputs[1], .bias = sum ? sum->inputs[1] : -1 };
}

/* The record's `values`: what the rule reads in place of input 0, then the other inputs. At most 6. */
static int values_of(const flow_graph *graph, const flow_node *node, int *values)
{
  projection p = projection_of(graph, node);
  int count = 0;
  values[count++] = p.x;
  if (p.kernel >= 0) values[count++] = p.kernel;
  if (p.bias >= 0) values[count++] = p.bias;
  for (int i = 1; i < node->input_count; i++) values[count++] = node->inputs[i];
  return count;
}

/* A float32 tensor {1, rows, columns} of zeros that the export keeps, or NULL. */
static float *new_weights(flow_onnx *x, int64_t rows, int64_t columns, int rank, flow_tensor **out)
{
  const int64_t dims[3] = { 1, rows, columns };
  *out = NULL;
  if (x->status == FLOW_OK) x->status = flow_tensor_new(FLOW_FLOAT32, rank, dims, out);
  if (x->status == FLOW_OK) *out = flow_onnx_keep(x, *out);
  return x->status == FLOW_OK && *out ? (float *)(void *)(*out)->data : NULL;
}

/* A matrix {in, gates x units} as ONNX has it: {1, gates x units, in}, gates in its order. matrix NULL: the unit matrix. */
static const char *turned(flow_onnx *x, const flow_tensor *matrix, int64_t in, int gates, int64_t units, const int *order)
{
  flow_tensor *tensor;
  float *to = new_weights(x, gates * units, in, 3, &tensor);
  if (!to) return NULL;
  for (int64_t row = 0; row < gates * units; row++) {
    int64_t column = order[row / units] * units + row % units;
    for (int64_t i = 0; i < in; i++)
      to[row * in + i] = matrix ? ((const float *)matrix->data)[i * gates * units + column] : (float)(i == column);
  }
  return flow_onnx_tensor(x, tensor, NULL);
}

/* The biases of the inputs and of the state, {gates x units} of float32 or NULL for zeros, as ONNX has them: {1, 2 x gates x units}. */
static const char *biases(flow_onnx *x, const flow_tensor *of_input, const flow_tensor *of_state, int gates, int64_t units,
                          const int *order)
{
  flow_tensor *tensor;
  float *to = new_weights(x, 2 * gates * units, 0, 2, &tensor);
  if (!to) return NULL;
  for (int64_t i = 0; i < gates * units; i++) {
    int64_t from = order[i / units] * units + i % units;
    to[i] = of_input ? ((const float *)of_input->data)[from] : 0;
    to[gates * units + i] = of_state ? ((const float *)of_state->data)[from] : 0;
  }
  return flow_onnx_tensor(x, tensor, NULL);
}

/* A state {n, units} with the axis of directions before it. */
static const char *first_state(flow_onnx *x, const flow_node *node, int input)
{
  const int64_t axis = 0;
  return flow_onnx_emit(x, "Unsqueeze", NULL, flow_onnx_input(x, node, input, FLOW_CHANNELS_LAST), flow_onnx_list(x, &axis, 1), NULL);
}

static const char *without_axis(flow_onnx *x, const char *name, int64_t axis, const char *result)
{
  return flow_onnx_emit(x, "Squeeze", result, name, flow_onnx_list(x, &axis, 1), NULL);
}

/* ---- step by step ---------------------------------------------------------------------------------------------------------------- */

/* Step t of {n, steps, ...}. */
static const char *at_step(flow_onnx *x, const char *from, int64_t t)
{
  const char *inputs[2] = { from, flow_onnx_number(x, FLOW_INT64, (double)t) }, *result = flow_onnx_name(x, "Gather");
  flow_onnx_begin(x, "Gather", inputs, 2, result);
  flow_onnx_integer(x, "axis", 1);
  flow_onnx_end(x);
  return result;
}

/* Columns of gate number `gate`. */
static const char *gate_of(flow_onnx *x, const char *from, int64_t units, int gate)
{
  const int64_t begin = gate * units, end = begin + units, axis = 1;
  const char *inputs[4] = { from, flow_onnx_list(x, &begin, 1), flow_onnx_list(x, &end, 1), flow_onnx_list(x, &axis, 1) };
  const char *result = flow_onnx_name(x, "Slice");
  flow_onnx_begin(x, "Slice", inputs, 4, result);
  flow_onnx_end(x);
  return result;
}

#define EMIT(type, a, b) flow_onnx_emit(x, type, NULL, a, b, NULL)

/* The states after one step, in *h and, of LSTM, *c: as the op's doc line says. at: the shares of the inputs; w and bias: the recurrent
 * ones. */
static void one_step(flow_onnx *x, const flow_node *node, int64_t units, const char *at, const char *w, const char *bias, const char **h,
                     const char **c)
{
  if (node->op == FLOW_OP_simple_rnn) {
    *h = EMIT("Tanh", EMIT("Add", at, EMIT("MatMul", *h, w)), NULL);
    return;
  }
  if (node->op == FLOW_OP_lstm) {
    const char *gates = EMIT("Add", at, EMIT("MatMul", *h, w)), *gate[4];
    for (int i = 0; i < 4; i++) gate[i] = EMIT(i == 2 ? "Tanh" : "Sigmoid", gate_of(x, gates, units, i), NULL);
    *c = EMIT("Add", EMIT("Mul", gate[1], *c), EMIT("Mul", gate[0], gate[2]));
    *h = EMIT("Mul", gate[3], EMIT("Tanh", *c, NULL));
    return;
  }
  const int after = node->attributes.recurrent.reset_after;
  const char *product = EMIT("MatMul", *h, w), *gate[2];
  if (after) product = EMIT("Add", product, bias);
  for (int i = 0; i < 2; i++) gate[i] = EMIT("Sigmoid", EMIT("Add", gate_of(x, at, units, i), gate_of(x, product, units, i)), NULL);
  const char *of_state = after ? EMIT("Mul", gate[1], gate_of(x, product, units, 2))
                               : EMIT("MatMul", EMIT("Mul", gate[1], *h), gate_of(x, w, units, 2));
  const char *candidate = EMIT("Tanh", EMIT("Add", gate_of(x, at, units, 2), of_state), NULL);
  *h = EMIT("Add", candidate, EMIT("Mul", gate[0], EMIT("Sub", *h, candidate)));
}

/* A step that the mask leaves out keeps the states, and its output is that of the step before. */
static void write_steps(flow_onnx *x, const flow_node *node, int64_t units)
{
  const int64_t steps = flow_onnx_signature(x, node, 0)->dims[1], axis = 1;
  const char *values = flow_onnx_input(x, node, 0, FLOW_CHANNELS_LAST), *w = flow_onnx_input(x, node, 1, FLOW_CHANNELS_LAST);
  const char *mask = flow_onnx_input(x, node, mask_of(node), FLOW_CHANNELS_LAST), *h = flow_onnx_input(x, node, 2, FLOW_CHANNELS_LAST);
  const char *more = node->op == FLOW_OP_simple_rnn ? NULL : flow_onnx_input(x, node, 3, FLOW_CHANNELS_LAST), *c = more;
  const char **outputs, *added = flow_onnx_list(x, &axis, 1), *result = flow_onnx_result(x, node, 0, FLOW_CHANNELS_LAST);
  void *block = NULL;
  if (flow_onnx_signature(x, node, mask_of(node))->dtype != FLOW_BOOL) mask = flow_onnx_cast(x, mask, FLOW_BOOL, NULL);
  if (x->status == FLOW_OK) x->status = flow_alloc(sizeof *outputs * (size_t)(steps + 1), &block);
  outputs = block;
  for (int64_t i = 0; i < steps && x->status == FLOW_OK; i++) {
    int64_t t = node->attributes.recurrent.reverse ? steps - 1 - i : i;
    const char *next = h, *next_c = c, *seen = EMIT("Unsqueeze", at_step(x, mask, t), added);
    one_step(x, node, units, at_step(x, values, t), w, more, &next, &next_c);
    h = flow_onnx_emit(x, "Where", NULL, seen, next, h);
    if (node->op == FLOW_OP_lstm) c = flow_onnx_emit(x, "Where", NULL, seen, next_c, c);
    outputs[t] = EMIT("Unsqueeze", h, added);
  }
  if (x->status == FLOW_OK) {
    flow_onnx_begin(x, "Concat", outputs, (int)steps, result);
    flow_onnx_integer(x, "axis", 1);
    flow_onnx_end(x);
  }
  if (node->op == FLOW_OP_lstm) flow_onnx_set(x, node, 1, FLOW_CHANNELS_LAST, c);
  flow_free(block);
}

/* ---- by the op of ONNX ------------------------------------------------------------------------------------------------------------- */

/* x and the sequence are {steps, n, ...} there. Weights are rewritten in the file, so that they have to be known, and float32, as which
 * their memory is read. The op's activations are the defaults of ONNX' ops. With one direction, axis 1 of Y and axis 0 of a state are
 * taken away. linear_before_reset is Keras' reset_after. */
FLOW_ONNX_RULE(recurrent)
{
  static const int64_t swapped[3] = { 1, 0, 2 };
  const int gates = node->op == FLOW_OP_lstm ? 4 : node->op == FLOW_OP_gru ? 3 : 1, is_lstm = node->op == FLOW_OP_lstm;
  const int *order = is_lstm ? lstm_order : usual_order;
  const int64_t units = flow_onnx_signature(x, node, 1)->dims[0];
  projection p = projection_of(x->graph, node);
  if (mask_of(node) >= 0) {
    write_steps(x, node, units);
    return;
  }
  flow_tensor *kernel = p.kernel >= 0 ? flow_onnx_static_value(x, p.kernel) : NULL, *recurrent = flow_onnx_static(x, node, 1);
  flow_tensor *bias = p.bias >= 0 ? flow_onnx_static_value(x, p.bias) : NULL,
              *state_bias = gates == 3 ? flow_onnx_static(x, node, 3) : NULL;
  if (!recurrent || recurrent->dtype != FLOW_FLOAT32 || (p.kernel >= 0 && !kernel) || (p.bias >= 0 && !bias) ||
      (gates == 3 && !state_bias)) {
    flow_onnx_fail(x, FLOW_UNSUPPORTED, "the op %s has no ONNX form unless its weights are float32 variables", flow_op(node->op)->name);
    return;
  }
  int64_t in = kernel ? kernel->shape[0] : gates * units;
  const char *inputs[7] = {
    flow_onnx_transpose(x, flow_onnx_form(x, p.x, FLOW_CHANNELS_LAST), swapped, 3, NULL),
    turned(x, kernel, in, gates, units, order),
    turned(x, recurrent, units, gates, units, order),
    biases(x, bias, state_bias, gates, units, order),
    NULL,
    first_state(x, node, 2),
    NULL
  };
  if (is_lstm) inputs[6] = first_state(x, node, 3);
  const char *sequence = flow_onnx_name(x, type), *last = is_lstm ? flow_onnx_name(x, "cell") : NULL;
  flow_onnx_begin(x, type, inputs, is_lstm ? 7 : 6, sequence);
  if (x->status == FLOW_OK && last) {
    flow_message_text(&x->message, NODE_OUTPUT, ""); /* the last h, which is in the sequence */
    flow_message_text(&x->message, NODE_OUTPUT, last);
  }
  flow_onnx_integer(x, "hidden_size", units);
  flow_onnx_text(x, "direction", node->attributes.recurrent.reverse ? "reverse" : "forward");
  if (gates == 3) flow_onnx_integer(x, "linear_before_reset", node->attributes.recurrent.reset_after);
  flow_onnx_end(x);
  flow_onnx_transpose(x, without_axis(x, sequence, 1, NULL), swapped, 3, flow_onnx_result(x, node, 0, FLOW_CHANNELS_LAST));
  if (last) without_axis(x, last, 0, flow_onnx_result(x, node, 1, FLOW_CHANNELS_LAST));
}

/* The rule reads further values than the node's inputs: those of the product that made x. */
#define RECURRENT(op_, type_)                                                       \
  {                                                                                 \
    .op = FLOW_OP_##op_, .rule = rule_recurrent, .type = type_, .values = values_of \
  }
const flow_onnx_record flow_onnx_recurrent[] = {
  RECURRENT(simple_rnn, "RNN"),
  RECURRENT(lstm, "LSTM"),
  RECURRENT(gru, "GRU"),
  { .rule = NULL },
};
