/* conv_lstm.h: what ConvLSTM1D, ConvLSTM2D and ConvLSTM3D share: LSTM whose products are convolutions (Shi et al. 2015), over the steps of
 * {batch, steps, ..., channels}. The records differ in how many axes their windows have. */
#ifndef FLOW_LAYERS_CONV_LSTM_H
#define FLOW_LAYERS_CONV_LSTM_H

#include "layers/recurrent.h"

/* Parameters; one: the default of a window's sizes. type: FLOW_SINGLE, FLOW_PAIR or FLOW_TRIPLE. */
#define FLOW_CONV_LSTM_PARAMETERS(type, one)                                                                                               \
  { "filters", FLOW_INTEGER, NULL, ">0" }, { "kernel_size", type, NULL, ">0" }, { "strides", type, one, ">0" },                            \
      { "padding", FLOW_TEXT, "valid", "valid|same" }, FLOW_LAYER_DATA_FORMAT, { "dilation_rate", type, one, ">0" }, FLOW_RECURRENT_GATES, \
      { "unit_forget_bias", FLOW_BOOLEAN, "true", NULL }, FLOW_RECURRENT_PENALTIES, FLOW_RECURRENT_SEED, FLOW_RECURRENT_SEQUENCES,         \
      { "zero_output_for_mask", FLOW_BOOLEAN, "false", NULL }, FLOW_LAYER_REST

/* What the records have in common. */
#define FLOW_CONV_LSTM_LAYER                                                                                                          \
  .positional = 27, .input_names = flow_recurrent_inputs_2, .most_outputs = 3, .options = flow_recurrent_options,                     \
  .build = flow_conv_lstm_build, .call_named = flow_conv_lstm_call, .check = flow_conv_lstm_check, .outputs = flow_recurrent_outputs, \
  .supports_masking = 1, .compute_mask = flow_recurrent_mask

flow_status flow_conv_lstm_check(flow_layer *layer);
/* Kernel {..., channels, 4 * filters}, recurrent kernel {..., filters, 4 * filters} and bias, with the gates in LSTM's order. */
flow_status flow_conv_lstm_build(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs);
flow_status flow_conv_lstm_call(flow_context *context, flow_layer *layer, const flow_named_call *call, flow_tensor **outputs);

#endif
