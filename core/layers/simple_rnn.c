/* simple_rnn.c: SimpleRNN: h = activation(x . kernel + bias + h . recurrent_kernel), step by step. */
#include "layers/recurrent.h"

static const flow_argument parameters[] = {
  { "units", FLOW_INTEGER, NULL, ">0" },
  { "activation", FLOW_ACTIVATION, "tanh", NULL },
  { "use_bias", FLOW_BOOLEAN, "true", NULL },
  FLOW_RECURRENT_INITIALIZERS,
  FLOW_RECURRENT_PENALTIES,
  FLOW_RECURRENT_SEQUENCES,
  FLOW_RECURRENT_SEED,
  { "zero_output_for_mask", FLOW_BOOLEAN, "false", NULL },
  FLOW_LAYER_REST
};

/* One step from ops, for other activations than tanh and for recurrent dropout. */
static void step(flow_expression *e, const flow_layer *layer, const flow_recurrent_weights *weights, flow_tensor *const *x,
                 flow_tensor **states)
{
  states[0] = flow_recurrent_activate(e, layer, e_add(e, x[0], flow_recurrent_product(e, weights, states[0], 0)));
}

static flow_status bias(flow_context *context, const flow_layer *layer, int64_t units, flow_tensor **initial)
{
  return flow_layer_initialize(context, layer, "bias_initializer", 1, &units, initial);
}

const flow_recurrent_cell flow_simple_rnn_steps = { .part = { "cell/vars", "simple_rnn_cell" }, .gates = 1, .states = 1,
                                                    .op = FLOW_OP_simple_rnn, .bias = bias, .step = step };

const flow_layer_class flow_layer_simple_rnn = {
  .name = "SimpleRNN", .positional = 21, .parameters = parameters, FLOW_RECURRENT_LAYER(flow_simple_rnn_steps, 1),
  .doc = "A fully connected layer that reads its last output, too, step by step."
};
