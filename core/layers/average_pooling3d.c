/* average_pooling3d.c: AveragePooling3D: the mean of each window of a volume; padding does not count. */
#include "layers/pooling.h"
#include "layers/volumes.h"

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  return flow_volumes_pool(context, layer, FLOW_OP_average_pool, inputs[0], out);
}

const flow_layer_class flow_layer_average_pooling3d = {
  .name = "AveragePooling3D",
  .alias = "AvgPool3D",
  .positional = 4,
  .parameters = flow_volumes_pooling_parameters,
  .call = call,
  .check = flow_pooling_check,
  .doc = "The mean of each window of depth, height and width; padding does not count."
};
