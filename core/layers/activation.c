/* activation.c: Activation: one of the named functions, elementwise (softmax: along the last axis). The names and formulas are in
 * core/autodiff/composites.c; a name that is not there is refused when the layer is made. The output has the input's shape; whole
 * numbers become float32 unless the function takes them, as linear and relu do. */
#include "layers/express.h"
#include "layers/layer.h"

static const flow_argument parameters[] = {
  { "activation", FLOW_ACTIVATION, NULL, NULL },
  FLOW_LAYER_COMMON
};

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  flow_expression e = flow_expression_of(context);
  return flow_expression_take(&e, flow_express_activation(&e, flow_argument_text(layer->arguments, "activation"), inputs[0]), out);
}

const flow_layer_class flow_layer_activation = {
  .name = "Activation",
  .positional = 1,
  .parameters = parameters,
  .call = call,
  .supports_masking = 1,
  .doc = "A named activation function."
};
