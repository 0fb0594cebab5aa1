/* dropout.c: Dropout: in training, zeroes with probability rate and scales what is kept by 1 / (1 - rate). The mask:
 * noise.h. */
#include "layers/noise.h"

static const flow_argument parameters[] = {
  { "rate", FLOW_NUMBER, NULL, NULL },
  { "noise_shape", FLOW_SIZES, "null", NULL },
  { "seed", FLOW_INTEGER, "null", NULL },
  FLOW_LAYER_COMMON
};

/* One op where every element is drawn, else a mask in noise_shape that is broadcast. */
static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count;
  double rate = flow_argument_number(layer->arguments, "rate");
  flow_expression e = flow_expression_of(context);
  flow_tensor *y = inputs[0], *mask;
  if (training && rate > 0) {
    flow_layer_draws draws = flow_express_draw(&e, layer);
    flow_attributes attributes = flow_draws_dropout(draws, rate);
    if (flow_argument_is_null(layer->arguments, "noise_shape")) {
      y = flow_express(&e, FLOW_OP_dropout, y, NULL, NULL, &attributes);
    } else {
      FLOW_TRY(flow_layer_dropout_mask(&e, layer, y, rate, &mask));      /* nothing is in the expression yet */
      y = e_mul(&e, y, mask);
    }
  }
  return flow_expression_take(&e, y, out);
}

const flow_layer_class flow_layer_dropout = {
  .name = "Dropout",
  .positional = 3,
  .parameters = parameters,
  .call = call,
  .check = flow_layer_check_dropout_rate,
  .supports_masking = 1,
  .doc = "In training, zeroes a share rate of the values and scales the others by 1 / (1 - rate)."
};
