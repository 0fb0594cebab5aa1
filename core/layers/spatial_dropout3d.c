/* spatial_dropout3d.c: SpatialDropout3D (Tompson et al. 2015): in training, zeroes whole channels of a volume with probability rate and
 * scales the others by 1 / (1 - rate). Keyed as Dropout is. */
#include "layers/noise.h"

static const flow_argument parameters[] = {
  { "rate", FLOW_NUMBER, NULL, NULL },
  FLOW_LAYER_DATA_FORMAT,
  { "seed", FLOW_INTEGER, "null", NULL },
  FLOW_LAYER_REST
};

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count;
  flow_signature input = flow_signature_of(inputs[0]);
  FLOW_TRY(flow_layer_check_rank(layer, &input, 5, "{batch, depth, height, width, channels}", NULL));
  return flow_layer_drop_channels(context, layer, inputs[0], training, out);
}

const flow_layer_class flow_layer_spatial_dropout3d = { .name = "SpatialDropout3D", .positional = 3, FLOW_SPATIAL_DROPOUT };
