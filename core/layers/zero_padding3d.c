/* zero_padding3d.c: ZeroPadding3D: planes, rows and columns of zeros around volumes {batch, depth, height, width, channels} of known
 * sizes, by the op that ZeroPadding2D uses. */
#include "autodiff/apply.h"
#include "layers/volumes.h"

static const flow_argument parameters[] = {
  { "padding", FLOW_VOLUME_SIDES, "1", NULL },
  FLOW_LAYER_DATA_FORMAT,
  FLOW_LAYER_COMMON
};

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  const int64_t all = INT64_MAX / 2, *in = inputs[0]->shape;
  int64_t m[6];
  FLOW_TRY(flow_volumes_margins(layer, inputs[0], "padding", m));
  flow_attributes attributes = { .slice = { .rank = 5, .begin = { 0, m[0], m[2], m[4], 0 }, .step = { 1, 1, 1, 1, 1 },
                                            .end = { all, m[0] + in[1], m[2] + in[2], m[4] + in[3], all } } };
  for (int i = 0; i < 5; i++) attributes.slice.dims[i] = in[i] + (i >= 1 && i <= 3 ? m[2 * i - 2] + m[2 * i - 1] : 0);
  return flow_apply1(context, FLOW_OP_slice_gradient, inputs[0], NULL, NULL, &attributes, out);
}

const flow_layer_class flow_layer_zero_padding3d = {
  .name = "ZeroPadding3D",
  .positional = 2,
  .parameters = parameters,
  .call = call,
  .doc = "Volumes with planes, rows and columns of zeros around them."
};
