/* gaussian_noise.c: GaussianNoise: in training, adds normal noise of mean 0 and deviation stddev. Two uniform numbers for each element
 * make a normal one (Box and Muller 1958); they are keyed by the layer's seed and name, the step and the sample, so that replicas
 * and restarts see the same noise. */
#include "layers/express.h"
#include "layers/layer.h"

static const flow_argument parameters[] = {
  { "stddev", FLOW_NUMBER, NULL, NULL },
  { "seed", FLOW_INTEGER, "null", NULL },
  FLOW_LAYER_COMMON
};

static flow_status check(flow_layer *layer)
{
  double deviation = flow_argument_number(layer->arguments, "stddev");
  if (!(deviation >= 0 && deviation <= 1)) return flow_layer_fail(layer, "stddev must be between 0 and 1, found %.15g", deviation);
  return FLOW_OK;
}

/* Numbers in [0, 1) in the shape of x. `index` tells the layer's streams apart. */
static flow_tensor *uniform(flow_expression *e, flow_layer *layer, flow_tensor *x, int index, int64_t elements)
{
  flow_attributes attributes = { .random = { .rank = 1, .dims = { elements }, .low = 0, .high = 1 } };
  attributes.random.stream = layer->stream + (uint64_t)index;
  attributes.random.seed = flow_layer_seed(e->context, layer);
  flow_tensor *flat = flow_express(e, FLOW_OP_sample_uniform, x, NULL, NULL, &attributes);
  return flow_express_reshape_like(e, flat, x);
}

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count;
  double deviation = flow_argument_number(layer->arguments, "stddev");
  flow_expression e = flow_expression_of(context);
  flow_tensor *x = inputs[0];
  int64_t elements = 1;
  if (!training || deviation == 0) return flow_expression_take(&e, x, out);
  for (int axis = 1; axis < x->rank; axis++) {
    if (x->shape[axis] < 1) return flow_layer_fail(layer, "the input %s must have known sizes beyond the batch", flow_tensor_shape_text(x));
    if (__builtin_mul_overflow(elements, x->shape[axis], &elements))
      return flow_layer_fail(layer, "the input %s has too many elements", flow_tensor_shape_text(x));
  }
  if (x->rank < 1) return flow_layer_fail(layer, "the input is a single number, expected a batch");
  if (x->dtype != FLOW_FLOAT32) x = flow_express_cast(&e, x, FLOW_FLOAT32);
  flow_tensor *first = uniform(&e, layer, x, 0, elements), *second = uniform(&e, layer, x, 1, elements);
  if (!second) return flow_expression_take(&e, NULL, out);
  flow_tensor *logarithm = flow_express(&e, FLOW_OP_log1p, e_neg(&e, first), NULL, NULL, NULL);
  flow_tensor *square = e_mul(&e, logarithm, flow_express_number(&e, x, -2 * deviation * deviation));
  flow_tensor *radius = flow_express(&e, FLOW_OP_sqrt, square, NULL, NULL, NULL);
  flow_tensor *angle = e_mul(&e, second, flow_express_number(&e, x, 2 * 3.14159265358979323846));
  return flow_expression_take(&e, e_add(&e, x, e_mul(&e, radius, e_cos(&e, angle))), out);
}

const flow_layer_class flow_layer_gaussian_noise = {
  .name = "GaussianNoise", .positional = 2, .parameters = parameters, .min_inputs = 1, .max_inputs = 1, .call = call, .check = check,
  .doc = "In training, adds normal noise of deviation stddev."
};
