/* spatial_dropout1d.c: SpatialDropout1D (Tompson et al. 2015): in training, zeroes whole channels of a sequence with probability rate
 * and scales the others by 1 / (1 - rate). Keyed as Dropout is. */
#include "layers/noise.h"
#include "layers/sequences.h"

static const flow_argument parameters[] = {
  { "rate", FLOW_NUMBER, NULL, NULL },
  { "seed", FLOW_INTEGER, "null", NULL },
  FLOW_LAYER_REST
};

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count;
  flow_signature input = flow_signature_of(inputs[0]);
  FLOW_TRY(flow_sequences_check(layer, &input, 1));
  return flow_layer_drop_channels(context, layer, inputs[0], training, out);
}

const flow_layer_class flow_layer_spatial_dropout1d = { .name = "SpatialDropout1D", .positional = 2, FLOW_SPATIAL_DROPOUT };
