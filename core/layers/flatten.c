/* flatten.c: Flatten: each sample as one row, in row-major order: {batch, a, b, c} to {batch, a * b * c}; a scalar per sample becomes
 * {batch, 1}. No element is moved: the op gives a view where the input has no gaps. The mask of the input ends here. */
#include "layers/express.h"
#include "layers/layer.h"

static const flow_argument parameters[] = {
  FLOW_LAYER_DATA_FORMAT,
  FLOW_LAYER_COMMON
};

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  flow_signature input = flow_signature_of(inputs[0]);
  if (input.rank == 0) return flow_layer_fail(layer, "input is a scalar, expected at least 1 dimension {batch, ...}");
  int64_t size = flow_shape_size(input.rank - 1, input.dims + 1);
  int64_t dims[2] = { input.dims[0], size < 0 ? INT64_MIN : size };
  flow_expression e = flow_expression_of(context);
  return flow_expression_take(&e, flow_express_reshape(&e, inputs[0], 2, dims), out);
}

const flow_layer_class flow_layer_flatten = {
  .name = "Flatten", .positional = 1, .parameters = parameters, .call = call, .doc = "Each sample as one row."
};
