/* rescaling.c: Rescaling: x * scale + offset in float32, or in float64 where that is the policy. Lists of numbers, one for each channel,
 * broadcast as tensors do; an offset of 0 adds no op. Plans move the scale of pictures into the convolution after it. */
#include "layers/express.h"
#include "layers/layer.h"
#include "layers/policy.h"

static const flow_argument parameters[] = {
  { "scale", FLOW_NUMBERS, NULL, NULL },
  { "offset", FLOW_NUMBERS, "0", NULL },
  FLOW_LAYER_COMMON
};

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  const flow_arguments *arguments = layer->arguments;
  int has_offset = flow_argument_is_list(arguments, "offset") || flow_argument_number(arguments, "offset") != 0;
  flow_expression e = flow_expression_of(context);
  flow_tensor *y = flow_express_cast(&e, inputs[0], flow_policy_variable_dtype(layer));
  y = e_mul(&e, y, flow_express_numbers(&e, arguments, "scale", y));
  if (has_offset) y = e_add(&e, y, flow_express_numbers(&e, arguments, "offset", y));
  return flow_expression_take(&e, y, out);
}

const flow_layer_class flow_layer_rescaling = {
  .name = "Rescaling",
  .positional = 2,
  .parameters = parameters,
  .call = call,
  .supports_masking = 1,
  .doc = "x * scale + offset in float32."
};
