/* dropout.c: Dropout: in training, zeroes with probability rate and scales what is kept by 1 / (1 - rate). The mask is keyed
 * by (seed, the layer's name, step, sample, element), so that replicas and restarts see the same one. noise_shape is the shape of
 * the mask, which broadcasts: {-1, 1, 1, 1} keeps or drops whole images. */
#include "layers/express.h"
#include "layers/layer.h"

static const flow_argument parameters[] = {
  { "rate", FLOW_NUMBER, NULL, NULL },
  { "noise_shape", FLOW_SIZES, "null", NULL },
  { "seed", FLOW_INTEGER, "null", NULL },
  FLOW_LAYER_COMMON
};

static flow_status check(flow_layer *layer)
{
  double rate = flow_argument_number(layer->arguments, "rate");
  if (!(rate >= 0 && rate <= 1)) return flow_layer_fail(layer, "rate must be between 0 and 1, found %.15g", rate);
  return FLOW_OK;
}

/* The shape of the mask for an input: Keras aligns a shorter one at the last axis. */
static flow_status noise_shape(const flow_layer *layer, const flow_tensor *x, flow_attributes *shape)
{
  const double *sizes;
  int count = flow_argument_list(layer->arguments, "noise_shape", &sizes);
  *shape = (flow_attributes){ .shape = { .rank = x->rank } };
  for (int axis = 0; axis < x->rank; axis++) {
    int given = axis - (x->rank - count);
    int64_t size = given < 0 ? 1 : sizes[given] < 0 ? x->shape[axis] : (int64_t)sizes[given];
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
  flow_attributes random = { .random = { .rank = shape->shape.rank, .dtype = FLOW_FLOAT32, .low = 0, .high = 1, .keyed_by_step = 1,
                                         .seed = dropout->dropout.seed, .stream = dropout->dropout.stream } };
  for (int axis = 0; axis < shape->shape.rank; axis++) random.random.dims[axis] = shape->shape.dims[axis];
  flow_tensor *drawn = NULL;
  flow_express_all(e, FLOW_OP_random_uniform, NULL, 0, &random, &drawn);
  if (e->status != FLOW_OK) return NULL;
  flow_tensor *kept = flow_express(e, FLOW_OP_ge, drawn, flow_express_number(e, drawn, rate), NULL, NULL);
  flow_tensor *mask = flow_express_cast(e, kept, x->dtype);
  return mask ? e_mul(e, mask, flow_express_number(e, mask, rate < 1 ? 1 / (1 - rate) : 0)) : NULL;
}

/* A mask of its own for each sample. */
static flow_tensor *sample_mask(flow_expression *e, const flow_attributes *dropout, const flow_attributes *shape, flow_tensor *x)
{
  flow_tensor *ones = flow_express(e, FLOW_OP_broadcast_to, flow_express_number(e, x, 1), NULL, NULL, shape);
  return flow_express(e, FLOW_OP_dropout, ones, NULL, NULL, dropout);
}

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count;
  double rate = flow_argument_number(layer->arguments, "rate");
  flow_expression e = flow_expression_of(context);
  flow_tensor *y = inputs[0];
  if (training && rate > 0) {
    flow_attributes attributes = { .dropout = { .rate = rate, .seed = flow_layer_seed(context, layer), .stream = layer->stream } };
    if (flow_argument_is_null(layer->arguments, "noise_shape")) {
      y = flow_express(&e, FLOW_OP_dropout, y, NULL, NULL, &attributes);
    } else {
      flow_attributes shape;
      FLOW_TRY(noise_shape(layer, y, &shape));
      int by_sample = shape.shape.rank > 0 && shape.shape.dims[0] != 1;
      y = e_mul(&e, y, by_sample ? sample_mask(&e, &attributes, &shape, y) : batch_mask(&e, &attributes, &shape, y));
    }
  }
  return flow_expression_take(&e, y, out);
}

const flow_layer_class flow_layer_dropout = {
  .name = "Dropout", .positional = 3, .parameters = parameters, .min_inputs = 1, .max_inputs = 1, .call = call, .check = check,
  .doc = "In training, zeroes a share rate of the values and scales the others by 1 / (1 - rate)."
};
