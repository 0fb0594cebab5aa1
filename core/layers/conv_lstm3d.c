/* conv_lstm3d.c: ConvLSTM3D: see conv_lstm.h. */
#include "layers/conv_lstm.h"

static const flow_argument parameters[] = { FLOW_CONV_LSTM_PARAMETERS(FLOW_TRIPLE, "1,1,1") };

const flow_layer_class flow_layer_conv_lstm3d = {
  .name = "ConvLSTM3D", .parameters = parameters, FLOW_CONV_LSTM_LAYER,
  .doc = "LSTM over steps that are volumes: its products are convolutions over depth, height and width."
};
