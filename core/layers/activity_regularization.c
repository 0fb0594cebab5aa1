/* activity_regularization.c: ActivityRegularization: its input, whose size it adds to the loss: l1 * sum |x| + l2 * sum x^2, divided by the
 * batch's rows. Keras 3: keras/src/layers/regularization/activity_regularization.py. */
#include "layers/config.h"
#include "layers/layer.h"
#include "tensor/tensor.h"

static const flow_argument parameters[] = {
  { "l1", FLOW_NUMBER, "0", NULL },
  { "l2", FLOW_NUMBER, "0", NULL },
  FLOW_LAYER_COMMON
};

/* The numbers stand a second time as those of activity_regularizer, which flow_layer_run reads after the call; flow_layer_change calls
 * this again when one of them is set later. */
static flow_status check(flow_layer *layer)
{
  flow_arguments *arguments = layer->arguments;
  FLOW_TRY(flow_arguments_set_text(arguments, "activity_regularizer", "l1_l2"));
  FLOW_TRY(flow_arguments_set_number(arguments, "activity_regularizer.l1", flow_argument_number(arguments, "l1")));
  return flow_arguments_set_number(arguments, "activity_regularizer.l2", flow_argument_number(arguments, "l2"));
}

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)context; (void)layer; (void)count; (void)training;
  *out = flow_tensor_retain(inputs[0]);
  return FLOW_OK;
}

/* Keras' two arguments: the activity_regularizer is made from them. */
static void config(const flow_layer *layer, flow_json *config)
{
  flow_config_add_common(config, layer);
  flow_json_put(config, "l1", flow_json_make(FLOW_JSON_REAL, flow_argument_number(layer->arguments, "l1"), NULL));
  flow_json_put(config, "l2", flow_json_make(FLOW_JSON_REAL, flow_argument_number(layer->arguments, "l2"), NULL));
}

const flow_layer_class flow_layer_activity_regularization = {
  .name = "ActivityRegularization",
  .positional = 2,
  .parameters = parameters,
  .call = call,
  .check = check,
  .config = config,
  .supports_masking = 1,
  .doc = "Its input, whose size it adds to the loss."
};
