/* conv_lstm2d.c: ConvLSTM2D: see conv_lstm.h. */
#include "layers/conv_lstm.h"

static const flow_argument parameters[] = { FLOW_CONV_LSTM_PARAMETERS(FLOW_PAIR, "1,1") };

const flow_layer_class flow_layer_conv_lstm2d = {
  .name = "ConvLSTM2D", .parameters = parameters, FLOW_CONV_LSTM_LAYER,
  .doc = "LSTM over steps that are images: its products are convolutions over height and width."
};
