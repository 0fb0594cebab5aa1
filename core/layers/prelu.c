/* prelu.c: PReLU (He et al. 2015): x, or alpha * x where x is negative, with its own alpha for each position of a sample, or one along
 * shared_axes, which count the axes of a sample from 1. The variable alpha has a sample's shape with 1 for the shared axes; at 0 the
 * gradient of x is 0. */
#include "layers/express.h"
#include "layers/layer.h"

static const flow_argument parameters[] = {
  { "alpha_initializer", FLOW_INITIALIZER, "zeros", NULL },
  { "alpha_regularizer", FLOW_REGULARIZER, "null", NULL },
  { "alpha_constraint", FLOW_CONSTRAINT, "null", NULL },
  { "shared_axes", FLOW_SHAPE, "null", NULL },
  FLOW_LAYER_COMMON
};

/* alpha has a sample's shape, with 1 along shared axes. */
static flow_status build(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs)
{
  (void)count;
  const double *shared = NULL;
  int given = !flow_argument_is_null(layer->arguments, "shared_axes");
  int shared_count = given ? flow_argument_list(layer->arguments, "shared_axes", &shared) : 0;
  int64_t shape[FLOW_MAX_RANK];
  if (inputs->rank == 0) return flow_layer_fail(layer, "input is a scalar, expected at least 1 dimension {batch, ...}");
  for (int axis = 1; axis < inputs->rank; axis++) shape[axis - 1] = inputs->dims[axis];
  for (int i = 0; i < shared_count; i++) {
    if (shared[i] < 1 || shared[i] >= inputs->rank)
      return flow_layer_fail(layer, "shared_axes names axis %.15g, the samples of the input %s have %d", shared[i],
                             flow_shape_text(inputs->rank, inputs->dims), inputs->rank - 1);
    shape[(int)shared[i] - 1] = 1;
  }
  for (int i = 0; i < inputs->rank - 1; i++)
    if (shape[i] < 1)
      return flow_layer_fail(layer, "axis %d of the samples of the input %s must have a known size", i + 1,
                             flow_shape_text(inputs->rank, inputs->dims));
  return flow_layer_add_variable(context, layer, 0, "alpha", "alpha_initializer", inputs->rank - 1, shape, 1);
}

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  flow_expression e = flow_expression_of(context);
  flow_tensor *x = flow_dtype_is_float(inputs[0]->dtype) ? inputs[0] : flow_express_cast(&e, inputs[0], FLOW_FLOAT32);
  flow_tensor *below = e_mul(&e, e_relu(&e, e_neg(&e, x)), flow_express_variable(&e, layer->variables[0]));
  return flow_expression_take(&e, e_sub(&e, e_relu(&e, x), below), out);
}

const flow_layer_class flow_layer_prelu = {
  .name = "PReLU",
  .positional = 4,
  .parameters = parameters,
  .build = build,
  .call = call,
  .supports_masking = 1,
  .doc = "x, or a learned multiple of x where x is negative."
};
