/* spatial_dropout2d.c: SpatialDropout2D (Tompson et al. 2015): in training, zeroes whole channels of an image with probability rate
 * and scales the others by 1 / (1 - rate). Keyed as Dropout is. */
#include "layers/config.h"
#include "layers/noise.h"

static const flow_argument parameters[] = {
  { "rate", FLOW_NUMBER, NULL, NULL },
  FLOW_LAYER_DATA_FORMAT,
  { "seed", FLOW_INTEGER, "null", NULL },
  FLOW_LAYER_COMMON
};

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count;
  flow_tensor *x = inputs[0];
  flow_signature input = flow_signature_of(x);
  FLOW_TRY(flow_layer_check_rank(layer, &input, 4, "{batch, height, width, channels}", NULL));
  double rate = flow_argument_number(layer->arguments, "rate");
  flow_attributes shape = { .shape = { .rank = 4, .dims = { x->shape[0], 1, 1, x->shape[3] } } };
  flow_expression e = flow_expression_of(context);
  if (!training || rate == 0) return flow_expression_take(&e, x, out);
  flow_attributes dropout = { .dropout = { .rate = rate, .stream = layer->stream, .seed = flow_layer_seed(context, layer) } };
  flow_tensor *ones = flow_express(&e, FLOW_OP_broadcast_to, flow_express_number(&e, x, 1), NULL, NULL, &shape);
  return flow_expression_take(&e, e_mul(&e, x, flow_express(&e, FLOW_OP_dropout, ones, NULL, NULL, &dropout)), out);
}

/* Keras' constructor takes no "trainable". */
static void config(const flow_layer *layer, flow_json *object)
{
  flow_json *policy = flow_config_policy(layer);
  flow_json_put_text(object, "name", layer->name);
  flow_json_put(object, "dtype", policy);
  flow_config_add_arguments(object, layer->class->parameters, layer->arguments);
}

const flow_layer_class flow_layer_spatial_dropout2d = {
  .name = "SpatialDropout2D", .positional = 3, .parameters = parameters, .min_inputs = 1, .max_inputs = 1, .call = call,
  .check = flow_layer_check_dropout_rate, .config = config,
  .doc = "In training, zeroes a share rate of the channels and scales the others by 1 / (1 - rate)."
};
