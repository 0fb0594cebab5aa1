/* noise.c: see noise.h. */
#include "layers/noise.h"
#include "layers/config.h"

/* A record's check(). At 1 the scale 1 / (1 - rate) would be infinite. */
flow_status flow_layer_check_noise_rate(flow_layer *layer)
{
  double rate = flow_argument_number(layer->arguments, "rate");
  if (!(rate >= 0 && rate < 1)) return flow_layer_fail(layer, "rate must be from 0 to below 1, found %.15g", rate);
  return FLOW_OK;
}

flow_status flow_layer_check_dropout_rate(flow_layer *layer)
{
  double rate = flow_argument_number(layer->arguments, "rate");
  if (!(rate >= 0 && rate <= 1)) return flow_layer_fail(layer, "rate must be between 0 and 1, found %.15g", rate);
  return FLOW_OK;
}

/* ---- masks ------------------------------------------------------------------------------------------------------------------ */

/* The shape of the mask for an input: Keras aligns a shorter one at the last axis; none is the input's. */
static flow_status noise_shape(const flow_layer *layer, const flow_tensor *x, flow_attributes *shape)
{
  const double *sizes;
  int count = flow_argument_list(layer->arguments, "noise_shape", &sizes), whole = flow_argument_is_null(layer->arguments, "noise_shape");
  *shape = (flow_attributes){ .shape = { .rank = x->rank } };
  for (int axis = 0; axis < x->rank; axis++) {
    int given = axis - (x->rank - count);
    int64_t size = whole ? x->shape[axis] : given < 0 ? 1 : sizes[given] < 0 ? x->shape[axis] : (int64_t)sizes[given];
    if (count > x->rank || (size != 1 && size != x->shape[axis]))
      return flow_layer_fail(layer, "noise_shape has %d entries that do not fit the input %s: each must be 1, the input's size or -1, "
                             "which stands for it", count, flow_tensor_shape_text(x));
    shape->shape.dims[axis] = size;
  }
  return FLOW_OK;
}

/* A mask whose first axis is 1 is the same for all samples, wherever they are computed: it is keyed without them. */
static flow_tensor *batch_mask(flow_expression *e, const flow_attributes *dropout, const flow_attributes *shape, flow_tensor *x)
{
  double rate = dropout->dropout.rate;
  flow_attributes random = {
    .random = { .rank = shape->shape.rank,
                .dtype = FLOW_FLOAT32,
                .low = 0,
                .high = 1,
                .keyed_by_step = 1,
                .seed = dropout->dropout.seed,
                .stream = dropout->dropout.stream,
                .own_seed = dropout->dropout.own_seed }
  };
  for (int axis = 0; axis < shape->shape.rank; axis++) random.random.dims[axis] = shape->shape.dims[axis];
  flow_tensor *drawn = NULL;
  flow_express_all(e, FLOW_OP_random_uniform, NULL, 0, &random, &drawn);
  if (e->status != FLOW_OK) return NULL;
  flow_tensor *kept = flow_express(e, FLOW_OP_ge, drawn, flow_express_number(e, drawn, rate), NULL, NULL);
  flow_tensor *mask = flow_express_cast(e, kept, x->dtype);
  return mask ? e_mul(e, mask, flow_express_number(e, mask, rate < 1 ? 1 / (1 - rate) : 0)) : NULL;
}

/* A separate mask for each sample. */
static flow_tensor *sample_mask(flow_expression *e, const flow_attributes *dropout, const flow_attributes *shape, flow_tensor *x)
{
  flow_tensor *ones = flow_express(e, FLOW_OP_broadcast_to, flow_express_number(e, x, 1), NULL, NULL, shape);
  return flow_express(e, FLOW_OP_dropout, ones, NULL, NULL, dropout);
}

/* A mask for samples goes by their number in the global batch (the op dropout), one that all samples share by the step alone: both are
 * the same for any number of replicas. */
flow_status flow_layer_dropout_mask(flow_expression *e, flow_layer *layer, flow_tensor *x, double rate, flow_tensor **mask)
{
  flow_attributes shape;
  flow_layer_draws draws;
  FLOW_TRY(noise_shape(layer, x, &shape));
  FLOW_TRY(flow_layer_draw(e->context, layer, &draws));
  flow_attributes dropout = flow_draws_dropout(draws, rate);
  int by_sample = shape.shape.rank > 0 && shape.shape.dims[0] != 1;
  *mask = by_sample ? sample_mask(e, &dropout, &shape, x) : batch_mask(e, &dropout, &shape, x);
  return FLOW_OK;
}

/* ---- normal numbers --------------------------------------------------------------------------------------------------------- */

/* Numbers in [0, 1) in the shape of x. */
static flow_tensor *uniform(flow_expression *e, flow_layer *layer, flow_tensor *x, int64_t elements)
{
  flow_layer_draws draws = flow_express_draw(e, layer);
  flow_attributes attributes = { .random = { .rank = 1, .dims = { elements }, .low = 0, .high = 1 } };
  attributes.random.stream = draws.stream;
  attributes.random.seed = draws.seed;
  attributes.random.own_seed = draws.own_seed;
  flow_tensor *flat = flow_express(e, FLOW_OP_sample_uniform, x, NULL, NULL, &attributes);
  return flow_express_reshape_like(e, flat, x);
}

/* Two uniform numbers for each element make a normal one (Box and Muller 1958). */
flow_status flow_layer_normal_noise(flow_expression *e, flow_layer *layer, double deviation, flow_tensor **x, flow_tensor **noise)
{
  int64_t elements = 1;
  const flow_tensor *shape = *x;
  *noise = NULL;
  for (int axis = 1; axis < shape->rank; axis++) {
    if (shape->shape[axis] < 0)
      return flow_layer_fail(layer, "the input %s must have known sizes beyond the batch", flow_tensor_shape_text(shape));
    if (__builtin_mul_overflow(elements, shape->shape[axis], &elements))
      return flow_layer_fail(layer, "the input %s has too many elements", flow_tensor_shape_text(shape));
  }
  if (shape->rank < 1) return flow_layer_fail(layer, "the input is a single number, expected a batch");
  if (shape->dtype != FLOW_FLOAT32 && shape->dtype != FLOW_FLOAT64) *x = flow_express_cast(e, *x, FLOW_FLOAT32);
  if (elements == 0) { /* nothing to draw: x itself has no elements either */
    *noise = *x;
    return FLOW_OK;
  }
  flow_tensor *first = uniform(e, layer, *x, elements), *second = uniform(e, layer, *x, elements);
  if (!second) return FLOW_OK;
  flow_tensor *logarithm = flow_express(e, FLOW_OP_log1p, e_neg(e, first), NULL, NULL, NULL);
  flow_tensor *square = e_mul(e, logarithm, flow_express_number(e, *x, -2 * deviation * deviation));
  flow_tensor *radius = flow_express(e, FLOW_OP_sqrt, square, NULL, NULL, NULL);
  flow_tensor *angle = e_mul(e, second, flow_express_number(e, *x, 2 * 3.14159265358979323846));
  *noise = e_mul(e, radius, e_cos(e, angle));
  return FLOW_OK;
}

/* One number for each sample and channel: {n, 1, ..., channels}. */
flow_status flow_layer_drop_channels(flow_context *context, flow_layer *layer, flow_tensor *x, int training, flow_tensor **out)
{
  double rate = flow_argument_number(layer->arguments, "rate");
  flow_attributes shape = { .shape = { .rank = x->rank } };
  for (int i = 0; i < x->rank; i++) shape.shape.dims[i] = i == 0 || i == x->rank - 1 ? x->shape[i] : 1;
  flow_expression e = flow_expression_of(context);
  if (!training || rate == 0) return flow_expression_take(&e, x, out);
  flow_layer_draws draws = flow_express_draw(&e, layer);
  flow_attributes dropout = flow_draws_dropout(draws, rate);
  flow_tensor *ones = flow_express(&e, FLOW_OP_broadcast_to, flow_express_number(&e, x, 1), NULL, NULL, &shape);
  return flow_expression_take(&e, e_mul(&e, x, flow_express(&e, FLOW_OP_dropout, ones, NULL, NULL, &dropout)), out);
}

/* The order of Keras' files: name, dtype, then the arguments. */
void flow_layer_config_untrained(const flow_layer *layer, flow_json *object)
{
  flow_json *policy = flow_config_policy(layer);
  flow_json_put_text(object, "name", layer->name);
  flow_json_put(object, "dtype", policy);
  flow_config_add_arguments(object, layer->class->parameters, layer->arguments);
}
