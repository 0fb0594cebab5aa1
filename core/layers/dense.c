/* dense.c: Dense: activation(x . kernel + bias) over the last axis: {batch, ..., in} to {batch, ..., units}; kernel {in, units}, bias
 * {units}. The size of the last axis must be known when the layer is built and stays; the axes before it may have any sizes in any call. */
#include "layers/express.h"
#include "layers/layer.h"
#include "layers/quantization.h"

static const flow_argument parameters[] = { { "units", FLOW_INTEGER, NULL, ">0" }, FLOW_LAYER_KERNEL_AND_BIAS("kernel") };

enum { KERNEL, BIAS };

static flow_status check_input(const flow_layer *layer, const flow_signature *input)
{
  if (input->rank < 2)
    return flow_layer_fail(layer, "input has %d dimension%s %s, expected at least 2 {batch, ..., features}", input->rank,
                           input->rank == 1 ? "" : "s", flow_shape_text(input->rank, input->dims));
  return flow_layer_check_channels(layer, input, "features");
}

static flow_status build(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs)
{
  (void)count;
  FLOW_TRY(check_input(layer, inputs));
  int64_t units = flow_argument_integer(layer->arguments, "units"), shape[2] = { inputs->dims[inputs->rank - 1], units };
  FLOW_TRY(flow_layer_add_variable(context, layer, KERNEL, "kernel", "kernel_initializer", 2, shape, 1));
  return flow_layer_add_bias(context, layer, BIAS, units);
}

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count;
  flow_signature input = flow_signature_of(inputs[0]);
  FLOW_TRY(check_input(layer, &input));
  FLOW_TRY(flow_quantization_observe(context, layer, inputs[0]));
  flow_expression e = flow_expression_of(context);
  flow_tensor *kernel = flow_express_variable(&e, layer->variables[KERNEL]);
  flow_tensor *y;
  if (flow_quantization_applies(layer, inputs[0], kernel)) y = flow_quantization_multiply(&e, layer, inputs[0], kernel, training);
  else y = flow_express(&e, FLOW_OP_matmul, inputs[0], kernel, NULL, NULL);
  return flow_layer_take(&e, layer, BIAS, y, out);
}

const flow_layer_class flow_layer_dense = {
  .name = "Dense",
  .positional = 10,
  .parameters = parameters,
  .build = build,
  .call = call,
  .supports_masking = 1,
  .quantizes = 1u << FLOW_QUANTIZED | 1u << FLOW_QUANTIZED_BY_ROW,
  .doc = "activation(x . kernel + bias) over the last axis."
};
