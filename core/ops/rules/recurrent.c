/* recurrent.c: rules of the recurrent cells: n rows, t steps, u units; gates are side by side in the last axis.
 *
 * A cell with k gates has inputs {n, t, k u} (the product with the layer's kernel is made before) and a recurrent kernel {u, k u}. Their
 * gradient ops walk the steps from the last to the first and give the gradients of the gates; one product over all rows and steps then
 * makes the gradient of the recurrent kernel, which is faster than one product a step. */
#include "ops/expression.h"
#include "ops/rules.h"
#include "ops/rules/recurrent.h"

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

/* Of a call: rows may be symbolic (negative), steps and units are numbers, which may be 0. */
typedef struct sizes {
  int dtype;
  int64_t rows, steps, units;
} sizes;

/* x {n, t, gates * u} and w {u, gates * u}. There are up to 4 gates, so that the bound of INT64_MAX / 8 units keeps products in range. */
static flow_status read_sizes(int op, int gates, const flow_signature *x, const flow_signature *w, sizes *s)
{
  FLOW_TRY(flow_rule_float(op, "x", x));
  FLOW_TRY(flow_rule_rank(op, "x", x, 3, "{batch, steps, gates}"));
  FLOW_TRY(flow_rule_rank(op, "w", w, 2, "{units, gates}"));
  *s = (sizes){ x->dtype, x->dims[0], x->dims[1], w->dims[0] };
  if (s->steps < 0 || s->units < 0) {
    return flow_rule_fail(op, "x %s and w %s depend on the number of rows beyond the batch, expected fixed sizes there",
                          flow_shape_text(x->rank, x->dims), flow_shape_text(w->rank, w->dims));
  }
  if (s->units > INT64_MAX / 8) return flow_rule_fail(op, "w %s is too large", flow_shape_text(w->rank, w->dims));
  int64_t w_dims[2] = { s->units, gates * s->units }, x_dims[3] = { s->rows, s->steps, gates * s->units };
  FLOW_TRY(flow_rule_same_dtype(op, "w", x->dtype, w));
  FLOW_TRY(flow_rule_dims(op, "w", w, 2, w_dims));
  return flow_rule_dims(op, "x", x, 3, x_dims);
}

/* x has the dtype of the call and the shape of the first `rank` of a, b, c. */
static flow_status check(int op, const sizes *s, const char *what, const flow_signature *x, int rank, int64_t a, int64_t b, int64_t c)
{
  FLOW_TRY(flow_rule_same_dtype(op, what, s->dtype, x));
  return flow_rule_dims(op, what, x, rank, (int64_t[]){ a, b, c });
}

/* A state is {rows, units} in the dtype of the sequence. */
static flow_status check_state(int op, const sizes *s, const char *what, const flow_signature *x)
{
  return check(op, s, what, x, 2, s->rows, s->units, 0);
}

/* The last input, where it is there. */
static flow_status check_mask(int op, const sizes *s, const flow_signature *inputs, int input_count, int at)
{
  if (input_count <= at) return FLOW_OK;
  const flow_signature *mask = &inputs[at];
  if (mask->dtype != FLOW_BOOL) return flow_rule_fail(op, "the mask is %s, expected bool", flow_dtype_name(mask->dtype));
  return flow_rule_dims(op, "the mask", mask, 2, (int64_t[]){ s->rows, s->steps });
}

static flow_signature sequence_of(const sizes *s, int64_t width)
{
  return (flow_signature){ .dtype = s->dtype, .rank = 3, .dims = { s->rows, s->steps, width } };
}

static flow_signature state_of(const sizes *s)
{
  return (flow_signature){ .dtype = s->dtype, .rank = 2, .dims = { s->rows, s->units } };
}

/* What the gradient reads of each step, `parts` states wide; nothing where no gradient is asked for: then it is never written. */
static flow_signature history_shape(const sizes *s, const flow_attributes *attributes, int64_t parts)
{
  return attributes->recurrent.history ? sequence_of(s, parts * s->units) : (flow_signature){ .dtype = s->dtype, .rank = 1, .dims = { 0 } };
}

/* The sizes follow from w {u, gates * u} and a gradient {n, t, u}. */
static flow_status read_gradient(int op, int gates, const flow_signature *g, const flow_signature *w, sizes *s)
{
  FLOW_TRY(flow_rule_float(op, "the gradient", g));
  FLOW_TRY(flow_rule_rank(op, "the gradient", g, 3, "{batch, steps, units}"));
  flow_signature x = *g;
  if (x.dims[2] > INT64_MAX / 8) return flow_rule_fail(op, "the gradient %s is too large", flow_shape_text(g->rank, g->dims));
  x.dims[2] *= gates;
  return read_sizes(op, gates, &x, w, s);
}

/* That what a rule gives can be addressed. */
static flow_status given(int op, const flow_signature *outputs, int count)
{
  flow_extent extent;
  for (int i = 0; i < count; i++) FLOW_TRY(flow_rule_extent(op, outputs[i].rank, outputs[i].dims, &extent));
  return FLOW_OK;
}

/* x {n, t, u}, w {u, u}, h {n, u} and perhaps a mask {n, t}: the states after each step {n, t, u}. */
flow_status flow_shape_simple_rnn(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                  flow_signature *outputs)
{
  (void)attributes;
  sizes s;
  FLOW_TRY(read_sizes(op, 1, &inputs[0], &inputs[1], &s));
  FLOW_TRY(check_state(op, &s, "h", &inputs[2]));
  FLOW_TRY(check_mask(op, &s, inputs, input_count, 3));
  outputs[0] = inputs[0];
  return given(op, outputs, 1);
}

/* g {n, t, u}, w, the sequence {n, t, u} and perhaps a mask: dx {n, t, u}, dh {n, u}. */
flow_status flow_shape_simple_rnn_gradient(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                           flow_signature *outputs)
{
  (void)attributes;
  sizes s;
  FLOW_TRY(read_gradient(op, 1, &inputs[0], &inputs[1], &s));
  FLOW_TRY(check(op, &s, "the sequence", &inputs[2], 3, s.rows, s.steps, s.units));
  FLOW_TRY(check_mask(op, &s, inputs, input_count, 3));
  outputs[0] = inputs[0];
  outputs[1] = state_of(&s);
  return given(op, outputs, 2);
}

/* x {n, t, 4u}, w {u, 4u}, h and c {n, u} and perhaps a mask {n, t}: the sequence {n, t, u}, the last c {n, u}, and the history
 * {n, t, 5u}: four gates and c of each step. */
flow_status flow_shape_lstm(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                            flow_signature *outputs)
{
  sizes s;
  FLOW_TRY(read_sizes(op, 4, &inputs[0], &inputs[1], &s));
  FLOW_TRY(check_state(op, &s, "h", &inputs[2]));
  FLOW_TRY(check_state(op, &s, "c", &inputs[3]));
  FLOW_TRY(check_mask(op, &s, inputs, input_count, 4));
  outputs[0] = sequence_of(&s, s.units);
  outputs[1] = state_of(&s);
  outputs[2] = history_shape(&s, attributes, 5);
  return given(op, outputs, 3);
}

/* g {n, t, u}, the gradient of the last c {n, u}, w, the first c, the history and perhaps a mask: dx {n, t, 4u}, dh and dc {n, u}. */
flow_status flow_shape_lstm_gradient(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                     flow_signature *outputs)
{
  (void)attributes;
  sizes s;
  FLOW_TRY(read_gradient(op, 4, &inputs[0], &inputs[2], &s));
  FLOW_TRY(check_state(op, &s, "the gradient of c", &inputs[1]));
  FLOW_TRY(check_state(op, &s, "c", &inputs[3]));
  FLOW_TRY(check(op, &s, "the history", &inputs[4], 3, s.rows, s.steps, 5 * s.units));
  FLOW_TRY(check_mask(op, &s, inputs, input_count, 5));
  outputs[0] = sequence_of(&s, 4 * s.units);
  outputs[1] = outputs[2] = state_of(&s);
  return given(op, outputs, 3);
}

/* x {n, t, 3u}, w {u, 3u}, h {n, u}, b {3u} and perhaps a mask {n, t}: the sequence {n, t, u}, and the history {n, t, 4u}: three gates,
 * and r h or, with reset_after, the candidate's part of h . w. */
flow_status flow_shape_gru(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                           flow_signature *outputs)
{
  sizes s;
  FLOW_TRY(read_sizes(op, 3, &inputs[0], &inputs[1], &s));
  FLOW_TRY(check_state(op, &s, "h", &inputs[2]));
  FLOW_TRY(check(op, &s, "b", &inputs[3], 1, 3 * s.units, 0, 0));
  FLOW_TRY(check_mask(op, &s, inputs, input_count, 4));
  outputs[0] = sequence_of(&s, s.units);
  outputs[1] = history_shape(&s, attributes, 4);
  return given(op, outputs, 2);
}

/* g {n, t, u}, w, h, the sequence, the history and perhaps a mask: dx {n, t, 3u}, dh {n, u}, and the gradient of h . w, which differs from
 * dx with reset_after alone. */
flow_status flow_shape_gru_gradient(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                    flow_signature *outputs)
{
  sizes s;
  FLOW_TRY(read_gradient(op, 3, &inputs[0], &inputs[1], &s));
  FLOW_TRY(check_state(op, &s, "h", &inputs[2]));
  FLOW_TRY(check(op, &s, "the sequence", &inputs[3], 3, s.rows, s.steps, s.units));
  FLOW_TRY(check(op, &s, "the history", &inputs[4], 3, s.rows, s.steps, 4 * s.units));
  FLOW_TRY(check_mask(op, &s, inputs, input_count, 5));
  outputs[0] = sequence_of(&s, 3 * s.units);
  outputs[1] = state_of(&s);
  outputs[2] = attributes->recurrent.reset_after ? outputs[0] : (flow_signature){ .dtype = s.dtype, .rank = 1, .dims = { 0 } };
  return given(op, outputs, 3);
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

/* An op with all its outputs. The mask comes after the `count` other inputs, where there is one. */
static void run(flow_expression *e, int op, const flow_gradient_step *step, int mask_at, flow_tensor **inputs, int count,
                flow_tensor **outputs)
{
  if (step->input_count > mask_at) inputs[count++] = step->inputs[mask_at];
  flow_express_all(e, op, inputs, count, step->attributes, outputs);
}

/* g, or zeros like x. */
static flow_tensor *gradient_or_zeros(flow_expression *e, flow_tensor *g, const flow_tensor *like)
{
  return g ? g : flow_express_broadcast_like(e, flow_express_number(e, like, 0), like);
}

/* What the op keeps for its gradient, its output number `output`: the activations of the gates of all steps. Where it was not asked to
 * keep it (attributes.recurrent.history), the op is run once more. */
static flow_tensor *history_of(flow_expression *e, const flow_gradient_step *step, int output)
{
  flow_tensor *outputs[3];
  flow_attributes attributes = *step->attributes;
  if (attributes.recurrent.history) return step->outputs[output];
  attributes.recurrent.history = 1;
  flow_express_all(e, step->op, step->inputs, step->input_count, &attributes, outputs);
  return outputs[output];
}

flow_tensor *flow_express_range(flow_expression *e, flow_tensor *x, int axis, int64_t begin, int64_t end)
{
  if (e->status != FLOW_OK) return NULL;
  flow_attributes attributes = { .slice = { .rank = x->rank } };
  for (int i = 0; i < x->rank; i++) {
    attributes.slice.begin[i] = i == axis ? begin : 0;
    attributes.slice.end[i] = i == axis ? end : FLOW_SLICE_ALL;
    attributes.slice.step[i] = 1;
  }
  return flow_express(e, FLOW_OP_slice, x, NULL, NULL, &attributes);
}

flow_tensor *flow_express_joined(flow_expression *e, flow_tensor *const *tensors, int count, int axis)
{
  flow_tensor *joined;
  flow_express_all(e, FLOW_OP_concat, tensors, count, &(flow_attributes){ .axis = { axis } }, &joined);
  return joined;
}

flow_tensor *flow_express_states_before(flow_expression *e, flow_tensor *after, flow_tensor *first, int reverse)
{
  if (e->status != FLOW_OK) return NULL;
  int64_t steps = after->shape[1];
  if (steps == 0) return after;
  flow_tensor *row = flow_express_insert_axis(e, first, 1);
  if (steps == 1) return row;
  if (reverse) return flow_express_joined(e, (flow_tensor *[]){ flow_express_range(e, after, 1, 1, FLOW_SLICE_ALL), row }, 2, 1);
  return flow_express_joined(e, (flow_tensor *[]){ row, flow_express_range(e, after, 1, 0, steps - 1) }, 2, 1);
}

/* Of the op of a step, whose first output is the sequence of states and whose third input the first one. */
static flow_tensor *states_before(flow_expression *e, const flow_gradient_step *step)
{
  return flow_express_states_before(e, step->outputs[0], step->inputs[2], step->attributes->recurrent.reverse);
}

/* The gradient of w {u, k} in a . w, for a {n, t, u} and g {n, t, k}: a^T g over all rows and steps. */
static flow_tensor *kernel_gradient(flow_expression *e, flow_tensor *a, flow_tensor *g)
{
  flow_attributes transpose_a = { .matmul = { .transpose_a = 1 } };
  return flow_express(e, FLOW_OP_matmul, flow_express_rows(e, a), flow_express_rows(e, g), NULL, &transpose_a);
}

/* h' = tanh(x + h w), or another activation: the op gives dx and dh; inputs are x, w, h and perhaps a mask. */
flow_status flow_gradient_simple_rnn(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0], *results[4] = { NULL }, *outputs[2];
  if (g == NULL) return FLOW_OK;
  flow_expression e = flow_gradient_expression(step);
  run(&e, FLOW_OP_simple_rnn_gradient, step, 3, (flow_tensor *[4]){ g, step->inputs[1], step->outputs[0] }, 3, outputs);
  results[0] = outputs[0];
  results[2] = outputs[1];
  if (step->needed[1]) results[1] = kernel_gradient(&e, states_before(&e, step), outputs[0]);
  return flow_expression_give(&e, step, results);
}

/* Inputs x, w, h, c and perhaps a mask; outputs the sequence of h, the last c, the history. The gradient of c may come alone. */
flow_status flow_gradient_lstm_by_op(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0], *gc = step->output_gradients[1], *results[5] = { NULL }, *outputs[3];
  if (g == NULL && gc == NULL) return FLOW_OK;
  flow_expression e = flow_gradient_expression(step);
  g = gradient_or_zeros(&e, g, step->outputs[0]);
  gc = gradient_or_zeros(&e, gc, step->outputs[1]);
  flow_tensor *history = history_of(&e, step, 2);
  run(&e, FLOW_OP_lstm_gradient, step, 4, (flow_tensor *[6]){ g, gc, step->inputs[1], step->inputs[3], history }, 5, outputs);
  results[0] = outputs[0];
  results[2] = outputs[1];
  results[3] = outputs[2];
  if (step->needed[1]) results[1] = kernel_gradient(&e, states_before(&e, step), outputs[0]);
  return flow_expression_give(&e, step, results);
}

/* Inputs x, w, h, the recurrent bias and perhaps a mask. With reset_after the candidate's part of the recurrent product is multiplied by
 * the reset gate, so that its gradient differs from that of x: the third output. Without, the reset gate is applied to h before the
 * product: the part of the kernel that makes the candidate sees r h, which the history has. */
flow_status flow_gradient_gru_by_op(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0], *results[5] = { NULL }, *outputs[3];
  if (g == NULL) return FLOW_OK;
  flow_expression e = flow_gradient_expression(step);
  int64_t units = step->inputs[1]->shape[0];
  flow_tensor *history = history_of(&e, step, 1);
  run(&e, FLOW_OP_gru_gradient, step, 4, (flow_tensor *[6]){ g, step->inputs[1], step->inputs[2], step->outputs[0], history }, 5, outputs);
  results[0] = outputs[0];
  results[2] = outputs[1];
  if (step->attributes->recurrent.reset_after) {
    if (step->needed[1]) results[1] = kernel_gradient(&e, states_before(&e, step), outputs[2]);
    if (step->needed[3]) results[3] = flow_express_sum_to(&e, outputs[2], step->inputs[3]);
  } else if (step->needed[1]) {
    flow_tensor *gates = kernel_gradient(&e, states_before(&e, step), flow_express_range(&e, outputs[0], 2, 0, 2 * units));
    flow_tensor *candidate = kernel_gradient(&e, flow_express_range(&e, history, 2, 3 * units, 4 * units),
                                             flow_express_range(&e, outputs[0], 2, 2 * units, 3 * units));
    results[1] = flow_express_joined(&e, (flow_tensor *[]){ gates, candidate }, 2, 1);
  }
  return flow_expression_give(&e, step, results);
}
