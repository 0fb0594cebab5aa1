/* up_sampling1d.c: UpSampling1D: every step size times, one after the other. */
#include "layers/sequences.h"

static const flow_argument parameters[] = { { "size", FLOW_INTEGER, "2", ">0" }, FLOW_LAYER_COMMON };

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  flow_tensor *x = inputs[0];
  flow_signature input = flow_signature_of(x);
  int64_t size = flow_argument_integer(layer->arguments, "size"), steps;
  FLOW_TRY(flow_sequences_check(layer, &input, 1));
  if (__builtin_mul_overflow(input.dims[1], size, &steps) || steps > INT32_MAX)
    return flow_layer_fail(layer, "the input %s with every step %lld times is too large", flow_tensor_shape_text(x), (long long)size);
  flow_attributes several = { .shape = { .rank = 4, .dims = { x->shape[0], x->shape[1], size, x->shape[2] } } };
  flow_expression e = flow_expression_of(context);
  flow_tensor *y = flow_express_reshape(&e, x, 4, (int64_t[]){ x->shape[0], x->shape[1], 1, x->shape[2] });
  y = flow_express(&e, FLOW_OP_broadcast_to, y, NULL, NULL, &several);
  return flow_expression_take(&e, flow_express_reshape(&e, y, 3, (int64_t[]){ x->shape[0], steps, x->shape[2] }), out);
}

const flow_layer_class flow_layer_up_sampling1d = {
  .name = "UpSampling1D", .positional = 1, .parameters = parameters, .call = call, .doc = "Sequences with every step size times."
};
