/* max_pooling3d.c: MaxPooling3D: the largest value of each window of a volume; padding never wins. */
#include "layers/pooling.h"
#include "layers/volumes.h"

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  return flow_volumes_pool(context, layer, FLOW_OP_max_pool, inputs[0], out);
}

const flow_layer_class flow_layer_max_pooling3d = {
  .name = "MaxPooling3D",
  .alias = "MaxPool3D",
  .positional = 4,
  .parameters = flow_volumes_pooling_parameters,
  .call = call,
  .check = flow_pooling_check,
  .doc = "The largest value of each window of depth, height and width."
};
