/* gradient_recurrent.c: derivatives of the recurrent cells. Shapes: n rows, t steps, u units; a cell with k gates has inputs {n, t, k u}
 * (the product with the layer's kernel is made before) and a recurrent kernel {u, k u}. Their gradient ops walk the steps from the last
 * to the first and give the gradients of the gates; one product over all rows and steps then makes the gradient of the recurrent kernel,
 * which is faster than one product a step. */
#include "autodiff/expression.h"

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

/* x[begin .. end) along one axis. */
static flow_tensor *take(flow_expression *e, flow_tensor *x, int axis, int64_t begin, int64_t end)
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

static flow_tensor *join(flow_expression *e, flow_tensor *a, flow_tensor *b, int axis)
{
  return flow_express(e, FLOW_OP_concat, a, b, NULL, &(flow_attributes){ .axis = { axis } });
}

/* {n, t, u}: the state before each step. */
static flow_tensor *states_before(flow_expression *e, const flow_gradient_step *step)
{
  flow_tensor *h = step->inputs[2], *sequence = step->outputs[0];
  int64_t steps = sequence->shape[1];
  flow_attributes one_step = { .shape = { .rank = 3, .dims = { h->shape[0], 1, h->shape[1] } } };
  if (steps == 0) return sequence;
  flow_tensor *first = flow_express(e, FLOW_OP_reshape, h, NULL, NULL, &one_step);
  if (steps == 1) return first;
  if (step->attributes->recurrent.reverse) return join(e, take(e, sequence, 1, 1, FLOW_SLICE_ALL), first, 1);
  return join(e, first, take(e, sequence, 1, 0, steps - 1), 1);
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
  flow_expression e = flow_expression_of(step->context);
  run(&e, FLOW_OP_simple_rnn_gradient, step, 3, (flow_tensor *[4]){ g, step->inputs[1], step->outputs[0] }, 3, outputs);
  results[0] = outputs[0];
  results[2] = outputs[1];
  if (step->needed[1]) results[1] = kernel_gradient(&e, states_before(&e, step), outputs[0]);
  return flow_expression_give(&e, step, results);
}

/* Inputs x, w, h, c and perhaps a mask; outputs the sequence of h, the last c, the history. The gradient of c may come alone. */
flow_status flow_gradient_lstm(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0], *gc = step->output_gradients[1], *results[5] = { NULL }, *outputs[3];
  if (g == NULL && gc == NULL) return FLOW_OK;
  flow_expression e = flow_expression_of(step->context);
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
flow_status flow_gradient_gru(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0], *results[5] = { NULL }, *outputs[3];
  if (g == NULL) return FLOW_OK;
  flow_expression e = flow_expression_of(step->context);
  int64_t units = step->inputs[1]->shape[0];
  flow_tensor *history = history_of(&e, step, 1);
  run(&e, FLOW_OP_gru_gradient, step, 4, (flow_tensor *[6]){ g, step->inputs[1], step->inputs[2], step->outputs[0], history }, 5, outputs);
  results[0] = outputs[0];
  results[2] = outputs[1];
  if (step->attributes->recurrent.reset_after) {
    if (step->needed[1]) results[1] = kernel_gradient(&e, states_before(&e, step), outputs[2]);
    if (step->needed[3]) results[3] = flow_express_sum_to(&e, outputs[2], step->inputs[3]);
  } else if (step->needed[1]) {
    flow_tensor *gates = kernel_gradient(&e, states_before(&e, step), take(&e, outputs[0], 2, 0, 2 * units));
    flow_tensor *candidate = kernel_gradient(&e, take(&e, history, 2, 3 * units, 4 * units), take(&e, outputs[0], 2, 2 * units, 3 * units));
    results[1] = join(&e, gates, candidate, 1);
  }
  return flow_expression_give(&e, step, results);
}
