/* lstm_cell.c: LSTMCell: one step of LSTM, for RNN and loops that scripts write. */
#include "layers/recurrent.h"

static const flow_argument parameters[] = {
  { "units", FLOW_INTEGER, NULL, NULL },
  { "activation", FLOW_ACTIVATION, "tanh", NULL },
  { "recurrent_activation", FLOW_ACTIVATION, "sigmoid", NULL },
  { "use_bias", FLOW_BOOLEAN, "true", NULL },
  FLOW_RECURRENT_INITIALIZERS,
  { "unit_forget_bias", FLOW_BOOLEAN, "true", NULL },
  FLOW_RECURRENT_REGULARIZERS,
  FLOW_RECURRENT_DROPOUTS,
  FLOW_RECURRENT_SEED,
  FLOW_LAYER_REST
};

static flow_status build(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs)
{
  (void)count;
  return flow_recurrent_build(context, layer, &flow_lstm_steps, inputs);
}

static flow_status call(flow_context *context, flow_layer *layer, const flow_named_call *call, flow_tensor **outputs)
{
  return flow_cell_call(context, layer, &flow_lstm_steps, call, outputs);
}

const flow_layer_class flow_layer_lstm_cell = {
  .name = "LSTMCell", .positional = 17, .parameters = parameters, .min_inputs = 1, .max_inputs = 3,
  .input_names = flow_cell_inputs_2, .options = flow_recurrent_options, .most_outputs = 3, .build = build, .call_named = call,
  .check = flow_cell_check, .doc = "One step of LSTM: its output, then its states."
};
