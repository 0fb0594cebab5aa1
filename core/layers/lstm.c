/* lstm.c: LSTM (Hochreiter and Schmidhuber 1997). Gates input, forget, candidate, output: c = f c + i g, h = o activation(c). */
#include "layers/recurrent.h"
#include "tensor/tensor.h"

static const flow_argument parameters[] = {
  { "units", FLOW_INTEGER, NULL, ">0" },
  FLOW_RECURRENT_GATES,
  { "unit_forget_bias", FLOW_BOOLEAN, "true", NULL },
  FLOW_RECURRENT_PENALTIES,
  FLOW_RECURRENT_SEED,
  FLOW_RECURRENT_SEQUENCES,
  FLOW_RECURRENT_ENDING
};

/* One step from ops, for other activations than the usual ones and for recurrent dropout; flow_recurrent_cell has the contract. */
static void step(flow_expression *e, const flow_layer *layer, const flow_recurrent_weights *weights, flow_tensor *const *x,
                 flow_tensor **states)
{
  flow_tensor *gates[4];
  for (int gate = 0; gate < 4; gate++) gates[gate] = e_add(e, x[gate], flow_recurrent_product(e, weights, states[0], gate));
  flow_tensor *i = flow_recurrent_gate(e, layer, gates[0]), *f = flow_recurrent_gate(e, layer, gates[1]);
  flow_tensor *g = flow_recurrent_activate(e, layer, gates[2]), *o = flow_recurrent_gate(e, layer, gates[3]);
  states[1] = e_add(e, e_mul(e, f, states[1]), e_mul(e, i, g));
  states[0] = e_mul(e, o, flow_recurrent_activate(e, layer, states[1]));
}

/* With unit_forget_bias the forget gate's is 1, so that a new layer remembers (Jozefowicz, Zaremba and Sutskever 2015). */
static flow_status bias(flow_context *context, const flow_layer *layer, int64_t units, flow_tensor **initial)
{
  int64_t size = 4 * units;
  FLOW_TRY(flow_layer_initialize(context, layer, "bias_initializer", 1, &size, initial));
  float *values = flow_tensor_elements(*initial);
  for (int64_t i = units; i < 2 * units && flow_argument_boolean(layer->arguments, "unit_forget_bias"); i++) values[i] = 1;
  return FLOW_OK;
}

const flow_recurrent_cell flow_lstm_steps = { .part = { "cell/vars", "lstm_cell" }, .gates = 4, .states = 2,
                                              .op = FLOW_OP_lstm, .own_masks = 1, .bias = bias, .step = step };

const flow_layer_class flow_layer_lstm = {
  .name = "LSTM",
  .positional = 24,
  .parameters = parameters,
  FLOW_RECURRENT_LAYER(flow_lstm_steps, 2),
  .doc = "Long short-term memory: a state that gates keep and change, step by step."
};
