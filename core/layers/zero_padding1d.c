/* zero_padding1d.c: ZeroPadding1D: steps of zeros before and after sequences. */
#include "layers/margins.h"
#include "autodiff/apply.h"

static const flow_argument parameters[] = {
  { "padding", FLOW_PAIR, "1,1", NULL },
  FLOW_LAYER_DATA_FORMAT,
  FLOW_LAYER_COMMON
};

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  const int64_t all = INT64_MAX / 2, *in = inputs[0]->shape;
  int64_t m[2];
  FLOW_TRY(flow_margins_of_steps(layer, inputs[0], "padding", m));
  flow_attributes attributes = { .slice = { .rank = 3, .begin = { 0, m[0], 0 }, .end = { all, m[0] + in[1], all }, .step = { 1, 1, 1 },
                                            .dims = { in[0], m[0] + in[1] + m[1], in[2] } } };
  return flow_apply1(context, FLOW_OP_slice_gradient, inputs[0], NULL, NULL, &attributes, out);
}

const flow_layer_class flow_layer_zero_padding1d = {
  .name = "ZeroPadding1D",
  .positional = 2,
  .parameters = parameters,
  .call = call,
  .doc = "Sequences with steps of zeros before and after them."
};
