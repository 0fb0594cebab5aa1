/* lstm_cell.c: LSTMCell: one step of LSTM, for RNN and loops that scripts write. */
#include "layers/recurrent.h"

static const flow_argument parameters[] = {
  { "units", FLOW_INTEGER, NULL, ">0" },
  FLOW_RECURRENT_GATES,
  { "unit_forget_bias", FLOW_BOOLEAN, "true", NULL },
  FLOW_RECURRENT_REGULARIZERS,
  FLOW_RECURRENT_DROPOUTS,
  FLOW_RECURRENT_SEED,
  FLOW_LAYER_REST
};

const flow_layer_class flow_layer_lstm_cell = {
  .name = "LSTMCell", .positional = 17, .parameters = parameters, FLOW_RECURRENT_CELL(flow_lstm_steps, 2),
  .doc = "One step of LSTM: its output, then its states."
};
