/* gru_cell.c: GRUCell: one step of GRU, for RNN and loops that scripts write. */
#include "layers/recurrent.h"

static const flow_argument parameters[] = {
  { "units", FLOW_INTEGER, NULL, ">0" },
  FLOW_RECURRENT_GATES,
  FLOW_RECURRENT_REGULARIZERS,
  FLOW_RECURRENT_DROPOUTS,
  { "reset_after", FLOW_BOOLEAN, "true", NULL },
  FLOW_RECURRENT_SEED,
  FLOW_LAYER_REST
};

const flow_layer_class flow_layer_gru_cell = {
  .name = "GRUCell", .positional = 17, .parameters = parameters, FLOW_RECURRENT_CELL(flow_gru_steps, 1),
  .doc = "One step of GRU: its output, then its states."
};
