/* conv_lstm.c: see conv_lstm.h. Formulas: Shi et al. 2015, without peepholes, as in Keras (keras/src/layers/rnn/conv_lstm.py); the gates
 * are those of LSTM, with convolutions in place of products.
 *
 * The convolution of the inputs does not depend on a state: it is done for all steps at once, with the steps as rows of a batch. That of
 * the states, with "same" padding, goes step by step. A layer over steps of columns is over images of one row, one over volumes sums
 * over planes (volumes.h). */
#include "layers/conv_lstm.h"

#include <string.h>

#include "layers/convolution.h"
#include "layers/volumes.h"

enum { GATES = 4 };

static const char *const expected[] = { NULL, "{batch, steps, columns, channels}", "{batch, steps, height, width, channels}",
                                        "{batch, steps, depth, height, width, channels}" };

/* How many axes the windows have: 1, 2 or 3. */
static int axes_of(const flow_layer *layer)
{
  const double *values;
  return flow_argument_list(layer->arguments, "kernel_size", &values);
}

/* ---- building ---------------------------------------------------------------------------------------------------------------------- */

/* A record's check(): strides and dilation exclude each other. */
flow_status flow_conv_lstm_check(flow_layer *layer)
{
  return axes_of(layer) == 3 ? flow_volumes_check_strides(layer) : flow_convolution_check(layer);
}

/* Sizes after the steps must be known: the states are made from them. */
static flow_status check_input(const flow_layer *layer, const flow_signature *input)
{
  int axes = axes_of(layer);
  FLOW_TRY(flow_layer_check_rank(layer, input, axes + 3, expected[axes], NULL));
  FLOW_TRY(flow_layer_check_channels(layer, input, "channels"));
  for (int i = 0; i < axes; i++)
    if (input->dims[2 + i] < 1)
      return flow_layer_fail(layer, "input has shape %s, expected %s with known sizes after the steps",
                             flow_shape_text(input->rank, input->dims), expected[axes]);
  return FLOW_OK;
}

/* {window..., channels, 4 * filters}: the gates side by side in the last axis, as in LSTM. */
static flow_status add_kernel(flow_context *context, flow_layer *layer, int index, const char *name, const char *initializer,
                              int64_t channels)
{
  const double *window;
  int64_t shape[5], filters = flow_argument_integer(layer->arguments, "filters");
  int axes = flow_argument_list(layer->arguments, "kernel_size", &window);
  for (int i = 0; i < axes; i++) shape[i] = (int64_t)window[i];
  shape[axes] = channels;
  shape[axes + 1] = GATES * filters;
  return flow_layer_add_variable(context, layer, index, name, initializer, axes + 2, shape, 1);
}

flow_status flow_conv_lstm_build(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs)
{
  static const flow_layer_part cell = { "cell/vars", "conv_lstm_cell" };
  (void)count;
  FLOW_TRY(check_input(layer, inputs));
  int64_t filters = flow_argument_integer(layer->arguments, "filters");
  FLOW_TRY(add_kernel(context, layer, FLOW_RECURRENT_KERNEL, "kernel", "kernel_initializer", inputs->dims[inputs->rank - 1]));
  FLOW_TRY(add_kernel(context, layer, FLOW_RECURRENT_RECURRENT_KERNEL, "recurrent_kernel", "recurrent_initializer", filters));
  if (flow_argument_boolean(layer->arguments, "use_bias")) {
    flow_tensor *initial;
    FLOW_TRY(flow_lstm_steps.bias(context, layer, filters, &initial));
    flow_status status = flow_layer_adopt(context, layer, FLOW_RECURRENT_BIAS, "bias", "bias_initializer", initial, 1);
    flow_tensor_release(initial);
    FLOW_TRY(status);
  }
  for (int i = 0; i < layer->variable_count; i++) layer->parts[i] = &cell;
  return FLOW_OK;
}

/* ---- convolutions -------------------------------------------------------------------------------------------------------------------- */

/* Where windows stand, of one axis, two or three. */
typedef struct window { int axes; flow_attributes images; flow_volume_window volumes; } window;

/* That of the inputs, as the arguments say. one: a step of the input. */
static flow_status window_of_inputs(const flow_layer *layer, const flow_signature *one, window *w)
{
  int32_t size[2];
  *w = (window){ .axes = one->rank - 2 };
  if (w->axes == 3) return flow_volumes_window(layer, one, "kernel_size", &w->volumes);
  flow_signature image = flow_sequences_signature(one);
  return flow_convolution_attributes(layer, &image, 1, size, &w->images);
}

/* That of the states: every cell is the middle of a window. */
static window window_of_states(const flow_layer *layer, const flow_tensor *h)
{
  const double *size;
  window w = { .axes = flow_argument_list(layer->arguments, "kernel_size", &size), .images = { .convolution = { .groups = 1 } } };
  int32_t sizes[3] = { 1, 1, 1 }, *last = sizes + 3 - w.axes, padding[6];
  for (int i = 0; i < w.axes; i++) last[i] = (int32_t)size[i];
  for (int i = 0; i < 3; i++) {
    padding[2 * i] = (sizes[i] - 1) / 2;
    padding[2 * i + 1] = sizes[i] - 1 - padding[2 * i];
    w.volumes.size[i] = sizes[i];
    w.volumes.stride[i] = w.volumes.dilation[i] = 1;
  }
  w.volumes.depth = h->shape[1];
  memcpy(w.volumes.padding, padding, sizeof padding);
  for (int i = 0; i < 2; i++) w.images.convolution.stride[i] = w.images.convolution.dilation[i] = 1;
  memcpy(w.images.convolution.padding, padding + 2, 4 * sizeof *padding);
  return w;
}

/* x {n, ..., channels} by a kernel {..., channels, filters}. */
static flow_tensor *convolve(flow_expression *e, const window *w, flow_tensor *x, flow_tensor *kernel)
{
  if (e->status != FLOW_OK) return NULL;
  if (w->axes == 3) {
    flow_tensor *padded = flow_volumes_pad(e, x, w->volumes.padding[0], w->volumes.padding[1]);
    return flow_volumes_of_images(e, flow_volumes_convolve(e, &w->volumes, padded, kernel, 1), w->volumes.depth);
  }
  const int64_t *size = kernel->shape;
  if (w->axes == 1) kernel = flow_express_reshape(e, kernel, 4, (int64_t[]){ 1, size[0], size[1], size[2] });
  flow_tensor *y = flow_express_first(e, FLOW_OP_convolution, flow_sequences_to_images(e, x), kernel, &w->images);
  return flow_sequences_like_input(e, y, x);
}

/* ---- steps ----------------------------------------------------------------------------------------------------------------------- */

/* What the steps of a call have in common. */
typedef struct run {
  window       window;
  int64_t      filters;
  flow_tensor *kernel;           /* of the states, all gates */
  flow_tensor *masks[GATES];     /* recurrent dropout of the state that each gate reads; NULL: none */
} run;

/* Channels of one gate. x may be a kernel, too, whose last axis is that of the filters. */
static flow_tensor *gate_of(flow_expression *e, flow_tensor *x, int gate, int64_t filters)
{
  return flow_steps_slice(e, x, -1, gate * filters, (gate + 1) * filters);
}

/* {n, steps, ...} as {n * steps, ...}, and back. In a trace n is -1, which stands for the rows, and -steps for that many rows of each
 * (ops/rules.h): products and quotients are right without a case for it. */
static flow_tensor *merge_steps(flow_expression *e, flow_tensor *x)
{
  int64_t dims[FLOW_MAX_RANK];
  if (e->status != FLOW_OK) return NULL;
  dims[0] = x->shape[0] * x->shape[1];
  for (int i = 2; i < x->rank; i++) dims[i - 1] = x->shape[i];
  return flow_express_reshape(e, x, x->rank - 1, dims);
}

/* {batch steps, ...} as {batch, steps, ...}: convolutions of all steps are one call on pictures. The batch may be unknown; its size is
 * then a multiple of the row symbol, which is divided, too. */
static flow_tensor *split_steps(flow_expression *e, flow_tensor *x, int64_t steps)
{
  int64_t dims[FLOW_MAX_RANK];
  if (e->status != FLOW_OK) return NULL;
  dims[0] = x->shape[0] / steps;
  dims[1] = steps;
  for (int i = 1; i < x->rank; i++) dims[i + 1] = x->shape[i];
  return flow_express_reshape(e, x, x->rank + 1, dims);
}

/* The input's share of all gates {n, steps, ..., 4 * filters}, and what dropout does to it: each gate has its own mask. */
static flow_tensor *input_gates(flow_expression *e, const flow_steps *s, flow_tensor *x, const window *w, int64_t filters)
{
  flow_layer *layer = s->layer;
  flow_tensor *kernel = flow_express_variable(e, layer->variables[FLOW_RECURRENT_KERNEL]), *parts[GATES] = { NULL }, *gates = NULL;
  double rate = s->training ? flow_steps_rate(layer, "dropout") : 0;
  flow_tensor *first = rate > 0 ? flow_steps_slice(e, x, 1, 0, 1) : NULL;
  if (rate > 0) {
    for (int gate = 0; gate < GATES; gate++) {
      flow_tensor *dropped = e_mul(e, x, flow_steps_dropout(e, s->draws, first, rate, gate));
      parts[gate] = convolve(e, w, merge_steps(e, dropped), gate_of(e, kernel, gate, filters));
    }
    const flow_attributes last = { .axis = { axes_of(layer) + 1 } };
    if (e->status == FLOW_OK) flow_express_all(e, FLOW_OP_concat, parts, GATES, &last, &gates);
  } else {
    gates = convolve(e, w, merge_steps(e, x), kernel);
  }
  flow_variable *bias = layer->variables[FLOW_RECURRENT_BIAS];
  return split_steps(e, bias ? e_add(e, gates, flow_express_variable(e, bias)) : gates, s->steps);
}

/* A flow_steps' step: x {n, ..., 4 * filters} holds the shares of the gates. */
static void one_step(flow_expression *e, const flow_steps *s, const void *self, flow_tensor *x, flow_tensor **states)
{
  const run *r = self;
  flow_tensor *gates[GATES], *h = states[0], *all = NULL;
  if (!r->masks[0]) all = e_add(e, x, convolve(e, &r->window, h, r->kernel));
  for (int i = 0; i < GATES; i++) {
    if (all) {
      gates[i] = gate_of(e, all, i, r->filters);
      continue;
    }
    flow_tensor *kernel = gate_of(e, r->kernel, i, r->filters), *share = gate_of(e, x, i, r->filters);
    gates[i] = e_add(e, share, convolve(e, &r->window, e_mul(e, h, r->masks[i]), kernel));
  }
  flow_tensor *i = flow_recurrent_gate(e, s->layer, gates[0]), *f = flow_recurrent_gate(e, s->layer, gates[1]);
  flow_tensor *g = flow_recurrent_activate(e, s->layer, gates[2]), *o = flow_recurrent_gate(e, s->layer, gates[3]);
  states[1] = e_add(e, e_mul(e, f, states[1]), e_mul(e, i, g));
  states[0] = e_mul(e, o, flow_recurrent_activate(e, s->layer, states[1]));
}

/* ---- the call -------------------------------------------------------------------------------------------------------------------- */

/* initial_state comes from the caller. */
static flow_status check_states(const flow_layer *layer, flow_tensor *const *given, int rank, const int64_t *dims)
{
  for (int i = 0; i < 2; i++)
    if (given[i] && !flow_shape_equal(given[i]->rank, given[i]->shape, rank, dims))
      return flow_layer_fail(layer, "state %d of initial_state has shape %s, expected %s", i + 1, flow_tensor_shape_text(given[i]),
                             flow_shape_text(rank, dims));
  return FLOW_OK;
}

/* The first states, which are like the gates of one step, and what all steps have in common. The states have the spatial sizes that the
 * inputs' convolution gives. */
static void prepare(flow_expression *e, flow_steps *s, flow_tensor *const *given, run *r, flow_tensor **states)
{
  int64_t dims[FLOW_MAX_RANK];
  if (e->status != FLOW_OK) return;
  int rank = s->x->rank - 1;
  dims[0] = s->x->shape[0];
  for (int i = 1; i < rank; i++) dims[i] = s->x->shape[i + 1];
  dims[rank - 1] = r->filters;
  e->status = check_states(s->layer, given, rank, dims);
  flow_steps_begin(e, s, given, s->x, rank, dims, states);
  if (e->status != FLOW_OK) return;
  double rate = s->training ? flow_steps_rate(s->layer, "recurrent_dropout") : 0;
  r->window = window_of_states(s->layer, states[0]);
  r->kernel = flow_express_variable(e, s->layer->variables[FLOW_RECURRENT_RECURRENT_KERNEL]);
  for (int gate = 0; gate < GATES && rate > 0; gate++) r->masks[gate] = flow_steps_dropout(e, s->draws, states[0], rate, GATES + gate);
}

/* All steps of the input are convolved as one batch first; the recurrent convolution goes step by step. */
flow_status flow_conv_lstm_call(flow_context *context, flow_layer *layer, const flow_named_call *call, flow_tensor **outputs)
{
  flow_tensor *x = call->inputs[0], *states[FLOW_STEPS_MOST_STATES] = { NULL };
  flow_signature input = flow_signature_of(x), one = { .dtype = input.dtype, .rank = input.rank - 1 };
  window inputs;
  FLOW_TRY(check_input(layer, &input));
  FLOW_TRY(flow_steps_check(layer, x, expected[axes_of(layer)]));
  for (int i = 0; i < one.rank; i++) one.dims[i] = input.dims[i ? i + 1 : 0];
  FLOW_TRY(window_of_inputs(layer, &one, &inputs));
  flow_expression e = flow_expression_of(context);
  run r = { .filters = flow_argument_integer(layer->arguments, "filters") };
  flow_steps s = flow_steps_of_call(&e, layer, call, 2);
  int drops = flow_steps_rate(layer, "dropout") > 0 || flow_steps_rate(layer, "recurrent_dropout") > 0;
  if (s.training && drops) s.draws = flow_express_draw(&e, layer);
  s.x = input_gates(&e, &s, x, &inputs, r.filters);
  prepare(&e, &s, call->inputs + 1, &r, states);
  s.step = one_step;
  s.self = &r;
  flow_tensor *sequence = flow_steps_run(&e, &s, states);
  return flow_steps_end(&e, &s, sequence, states, outputs);
}
