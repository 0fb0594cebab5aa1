/* cropping1d.c: Cropping1D: sequences without some steps at their ends. */
#include "layers/margins.h"
#include "autodiff/apply.h"

static const flow_argument parameters[] = {
  { "cropping", FLOW_PAIR, "1,1", NULL },
  FLOW_LAYER_COMMON
};

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  const int64_t all = INT64_MAX / 2, *in = inputs[0]->shape;
  int64_t m[2];
  FLOW_TRY(flow_margins_of_steps(layer, inputs[0], "cropping", m));
  if (m[0] + m[1] >= in[1])
    return flow_layer_fail(layer, "the input %s is too short to cut off %lld steps", flow_tensor_shape_text(inputs[0]),
                           (long long)m[0] + m[1]);
  flow_attributes attributes = { .slice = { .rank = 3, .begin = { 0, m[0], 0 }, .end = { all, in[1] - m[1], all }, .step = { 1, 1, 1 } } };
  return flow_apply1(context, FLOW_OP_slice, inputs[0], NULL, NULL, &attributes, out);
}

const flow_layer_class flow_layer_cropping1d = {
  .name = "Cropping1D", .positional = 1, .parameters = parameters, .call = call, .doc = "Sequences without steps at their ends."
};
