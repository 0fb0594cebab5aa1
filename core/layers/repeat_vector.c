/* repeat_vector.c: RepeatVector: {batch, features} n times: {batch, n, features}: a broadcast, whose gradient is the sum over the n. */
#include "layers/express.h"
#include "layers/layer.h"

static const flow_argument parameters[] = { { "n", FLOW_INTEGER, NULL, ">0" }, FLOW_LAYER_COMMON };

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  flow_tensor *x = inputs[0];
  flow_signature input = flow_signature_of(x);
  FLOW_TRY(flow_layer_check_rank(layer, &input, 2, "{batch, features}", NULL));
  int64_t n = flow_argument_integer(layer->arguments, "n");
  flow_attributes attributes = { .shape = { .rank = 3, .dims = { x->shape[0], n, x->shape[1] } } };
  flow_expression e = flow_expression_of(context);
  flow_tensor *row = flow_express_reshape(&e, x, 3, (int64_t[]){ x->shape[0], 1, x->shape[1] });
  return flow_expression_take(&e, flow_express(&e, FLOW_OP_broadcast_to, row, NULL, NULL, &attributes), out);
}

const flow_layer_class flow_layer_repeat_vector = {
  .name = "RepeatVector", .positional = 1, .parameters = parameters, .call = call, .doc = "Each sample's vector n times."
};
