/* identity.c: Identity: what goes in comes out. A place with a name in a model. */
#include "layers/layer.h"
#include "tensor/tensor.h"

static const flow_argument parameters[] = { FLOW_LAYER_COMMON };

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)context; (void)layer; (void)count; (void)training;
  *out = flow_tensor_retain(inputs[0]);
  return FLOW_OK;
}

const flow_layer_class flow_layer_identity = {
  .name = "Identity", .positional = 0, .parameters = parameters, .call = call, .supports_masking = 1, .doc = "Its input."
};
