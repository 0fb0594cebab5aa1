/* conv_lstm1d.c: ConvLSTM1D: see conv_lstm.h. */
#include "layers/conv_lstm.h"

static const flow_argument parameters[] = { FLOW_CONV_LSTM_PARAMETERS(FLOW_SINGLE, "1") };

const flow_layer_class flow_layer_conv_lstm1d = {
  .name = "ConvLSTM1D", .parameters = parameters, FLOW_CONV_LSTM_LAYER,
  .doc = "LSTM over steps that are sequences themselves: its products are convolutions over them."
};
