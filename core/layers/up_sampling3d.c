/* up_sampling3d.c: UpSampling3D: volumes size times as deep, high and wide: planes, rows and columns are repeated. */
#include "layers/volumes.h"

static const flow_argument parameters[] = { { "size", FLOW_TRIPLE, "2,2,2", ">0" }, FLOW_LAYER_DATA_FORMAT, FLOW_LAYER_COMMON };

/* Each voxel is repeated along three further axes, which are then joined with its own. */
static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  flow_signature input = flow_signature_of(inputs[0]);
  const int64_t *in = inputs[0]->shape;
  int32_t size[3];
  int64_t larger[5] = { in[0], 0, 0, 0, in[4] };
  flow_argument_triple(layer->arguments, "size", size);
  FLOW_TRY(flow_volumes_check(layer, &input));
  for (int i = 0; i < 3; i++)
    if (in[1 + i] < 0 || __builtin_mul_overflow(in[1 + i], size[i], &larger[1 + i]) || larger[1 + i] > INT32_MAX)
      return flow_layer_fail(layer, "depth, height and width of the input %s must be known, and not too large %d, %d and %d times",
                             flow_tensor_shape_text(inputs[0]), size[0], size[1], size[2]);
  const int64_t split[] = { in[0], in[1], 1, in[2], 1, in[3], 1, in[4] };
  flow_attributes repeated = { .shape = { .rank = 8, .dims = { in[0], in[1], size[0], in[2], size[1], in[3], size[2], in[4] } } };
  flow_expression e = flow_expression_of(context);
  flow_tensor *x = flow_express_reshape(&e, inputs[0], 8, split);
  x = flow_express(&e, FLOW_OP_broadcast_to, x, NULL, NULL, &repeated);
  return flow_expression_take(&e, flow_express_reshape(&e, x, 5, larger), out);
}

const flow_layer_class flow_layer_up_sampling3d = {
  .name = "UpSampling3D", .positional = 2, .parameters = parameters, .call = call, .doc = "Volumes size times as deep, high and wide."
};
