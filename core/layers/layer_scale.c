/* layer_scale.c: LayerScale (Touvron et al. 2021, arXiv:2103.17239): each channel times its own weight, gamma {projection_dim}, which
 * begins as init_values. Keras has it for its ConvNeXt: keras/src/applications/convnext.py. */
#include "layers/express.h"
#include "layers/layer.h"
#include "layers/policy.h"

static const flow_argument parameters[] = {
  { "init_values", FLOW_NUMBER, NULL, NULL }, { "projection_dim", FLOW_INTEGER, NULL, ">0" }, FLOW_LAYER_COMMON
};

static const char *const read_by_build[] = { "init_values", NULL };

static flow_status check_input(const flow_layer *layer, const flow_signature *input)
{
  int64_t size = flow_argument_integer(layer->arguments, "projection_dim");
  if (input->rank >= 2 && input->dims[input->rank - 1] == size) return FLOW_OK;
  return flow_layer_fail(layer, "the last dimension of the input %s must be projection_dim, %lld",
                         flow_shape_text(input->rank, input->dims), (long long)size);
}

static flow_status build(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs)
{
  (void)count;
  const int64_t size = flow_argument_integer(layer->arguments, "projection_dim");
  flow_tensor *initial;
  FLOW_TRY(check_input(layer, inputs));
  FLOW_TRY(flow_tensor_new(flow_policy_variable_dtype(layer), 1, &size, &initial));
  flow_status status = flow_tensor_fill(initial, flow_argument_number(layer->arguments, "init_values"));
  if (status == FLOW_OK) status = flow_layer_adopt(context, layer, 0, "gamma", "constant", initial, 1);
  flow_tensor_release(initial);
  return status;
}

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  flow_signature input = flow_signature_of(inputs[0]);
  FLOW_TRY(check_input(layer, &input));
  flow_expression e = flow_expression_of(context);
  return flow_expression_take(&e, e_mul(&e, inputs[0], flow_express_variable(&e, layer->variables[0])), out);
}

const flow_layer_class flow_layer_layer_scale = {
  .name = "LayerScale",
  .positional = 2,
  .parameters = parameters,
  .build = build,
  .call = call,
  .read_by_build = read_by_build,
  .doc = "Each channel times its own weight, which begins as init_values."
};
