/* zero_padding2d.c: ZeroPadding2D: rows and columns of zeros around images {batch, height, width, channels} of known sizes. The op is
 * the gradient of a slice, which writes its input into a larger tensor of zeros. */
#include "layers/margins.h"
#include "autodiff/apply.h"

static const flow_argument parameters[] = {
  { "padding", FLOW_SIDES, "1", NULL },
  FLOW_LAYER_DATA_FORMAT,
  FLOW_LAYER_COMMON
};

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  const int64_t all = INT64_MAX / 2, *in = inputs[0]->shape;
  int64_t m[4];
  FLOW_TRY(flow_margins(layer, inputs[0], "padding", m));
  flow_attributes attributes = { .slice = { .rank = 4, .begin = { 0, m[0], m[2], 0 }, .end = { all, m[0] + in[1], m[2] + in[2], all },
                                            .step = { 1, 1, 1, 1 },
                                            .dims = { in[0], m[0] + in[1] + m[1], m[2] + in[2] + m[3], in[3] } } };
  return flow_apply1(context, FLOW_OP_slice_gradient, inputs[0], NULL, NULL, &attributes, out);
}

const flow_layer_class flow_layer_zero_padding2d = {
  .name = "ZeroPadding2D",
  .positional = 2,
  .parameters = parameters,
  .call = call,
  .doc = "Images with rows and columns of zeros around them."
};
