/* cropping2d.c: Cropping2D: images without some rows and columns at their borders: a slice of {batch, height, width, channels}. Height
 * and width must be known and larger than what is cut off. */
#include "layers/margins.h"
#include "autodiff/apply.h"

static const flow_argument parameters[] = {
  { "cropping", FLOW_SIDES, "0", NULL },
  FLOW_LAYER_DATA_FORMAT,
  FLOW_LAYER_COMMON
};

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  const int64_t all = INT64_MAX / 2, *in = inputs[0]->shape;
  int64_t m[4];
  FLOW_TRY(flow_margins(layer, inputs[0], "cropping", m));
  if (m[0] + m[1] >= in[1] || m[2] + m[3] >= in[2])
    return flow_layer_fail(layer, "the input %s is too small to cut off %lld rows and %lld columns", flow_tensor_shape_text(inputs[0]),
                           (long long)m[0] + m[1], (long long)m[2] + m[3]);
  flow_attributes attributes = { .slice = { .rank = 4, .begin = { 0, m[0], m[2], 0 }, .end = { all, in[1] - m[1], in[2] - m[3], all },
                                            .step = { 1, 1, 1, 1 } } };
  return flow_apply1(context, FLOW_OP_slice, inputs[0], NULL, NULL, &attributes, out);
}

const flow_layer_class flow_layer_cropping2d = {
  .name = "Cropping2D", .positional = 2, .parameters = parameters, .call = call, .doc = "Images without rows and columns at their borders."
};
