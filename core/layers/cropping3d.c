/* cropping3d.c: Cropping3D: volumes without some planes, rows and columns at their borders: a slice of {batch, depth, height, width,
 * channels}, whose sizes must be known and larger than what is cut off. */
#include "autodiff/apply.h"
#include "layers/volumes.h"

static const flow_argument parameters[] = {
  { "cropping", FLOW_VOLUME_SIDES, "1", NULL },
  FLOW_LAYER_DATA_FORMAT,
  FLOW_LAYER_COMMON
};

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  const int64_t all = INT64_MAX / 2, *in = inputs[0]->shape;
  int64_t m[6];
  FLOW_TRY(flow_volumes_margins(layer, inputs[0], "cropping", m));
  for (int i = 0; i < 3; i++)
    if (m[2 * i] + m[2 * i + 1] >= in[i + 1])
      return flow_layer_fail(layer, "the input %s is too small to cut off %lld planes, %lld rows and %lld columns",
                             flow_tensor_shape_text(inputs[0]), (long long)m[0] + m[1], (long long)m[2] + m[3], (long long)m[4] + m[5]);
  flow_attributes attributes = { .slice = { .rank = 5, .begin = { 0, m[0], m[2], m[4], 0 }, .step = { 1, 1, 1, 1, 1 },
                                            .end = { all, in[1] - m[1], in[2] - m[3], in[3] - m[5], all } } };
  return flow_apply1(context, FLOW_OP_slice, inputs[0], NULL, NULL, &attributes, out);
}

const flow_layer_class flow_layer_cropping3d = {
  .name = "Cropping3D",
  .positional = 2,
  .parameters = parameters,
  .call = call,
  .doc = "Volumes without planes, rows and columns at their borders."
};
