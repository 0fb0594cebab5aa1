/* simple_rnn_cell.c: SimpleRNNCell: one step of SimpleRNN, for RNN and loops that scripts write. */
#include "layers/recurrent.h"

static const flow_argument parameters[] = {
  { "units", FLOW_INTEGER, NULL, ">0" },
  { "activation", FLOW_ACTIVATION, "tanh", NULL },
  { "use_bias", FLOW_BOOLEAN, "true", NULL },
  FLOW_RECURRENT_INITIALIZERS,
  FLOW_RECURRENT_REGULARIZERS,
  FLOW_RECURRENT_DROPOUTS,
  FLOW_RECURRENT_SEED,
  FLOW_LAYER_REST
};

const flow_layer_class flow_layer_simple_rnn_cell = {
  .name = "SimpleRNNCell", .positional = 15, .parameters = parameters, FLOW_RECURRENT_CELL(flow_simple_rnn_steps, 1),
  .doc = "One step of SimpleRNN: its output, then its states."
};
