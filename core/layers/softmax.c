/* softmax.c: Softmax along one axis. */
#include "layers/express.h"
#include "layers/layer.h"

static const flow_argument parameters[] = {
  { "axis", FLOW_INTEGER, "-1", NULL },
  FLOW_LAYER_COMMON
};

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  int axis;
  FLOW_TRY(flow_layer_axis(layer, "axis", inputs[0]->rank, &axis));
  flow_attributes attributes = { .axis = { axis } };
  flow_expression e = flow_expression_of(context);
  return flow_expression_take(&e, flow_express(&e, FLOW_OP_softmax, inputs[0], NULL, NULL, &attributes), out);
}

const flow_layer_class flow_layer_softmax = {
  .name = "Softmax", .positional = 1, .parameters = parameters, .min_inputs = 1, .max_inputs = 1, .call = call,
  .doc = "e^x / sum of e^x along axis."
};
