/* max_pooling2d.c: MaxPooling2D: the largest value of each window; padding never wins. */
#include "layers/express.h"
#include "layers/layer.h"

static const flow_argument parameters[] = {
  { "pool_size", FLOW_PAIR, "2,2", NULL },
  { "strides", FLOW_PAIR, "null", NULL },       /* null: pool_size */
  { "padding", FLOW_TEXT, "valid", "valid|same" },
  { "data_format", FLOW_TEXT, "channels_last", "channels_last|!channels_first" },
  FLOW_LAYER_COMMON
};

static flow_status check(flow_layer *layer)
{
  static const char *const positive[] = { "pool_size", "strides", NULL };
  if (flow_argument_is_null(layer->arguments, "strides")) {
    const double *size;
    int count = flow_argument_list(layer->arguments, "pool_size", &size);
    FLOW_TRY(flow_arguments_set_numbers(layer->arguments, "strides", size, count));
  }
  return flow_layer_check_positive(layer, positive);
}

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  static const int32_t no_dilation[2] = { 1, 1 };
  flow_signature input = flow_signature_of(inputs[0]);
  flow_attributes attributes = { .pool = { .size = { 0 } } };
  FLOW_TRY(flow_layer_check_rank(layer, &input, 4, "{batch, height, width, channels}",
                                 input.rank < 4 ? "did you mean to put it before Flatten?" : NULL));
  flow_argument_pair(layer->arguments, "pool_size", attributes.pool.size);
  flow_argument_pair(layer->arguments, "strides", attributes.pool.stride);
  FLOW_TRY(flow_layer_padding(layer, &input, attributes.pool.size, attributes.pool.stride, no_dilation, attributes.pool.padding));
  flow_expression e = flow_expression_of(context);
  return flow_expression_take(&e, flow_express_first(&e, FLOW_OP_max_pool, inputs[0], NULL, &attributes), out);
}

const flow_layer_class flow_layer_max_pooling2d = {
  .name = "MaxPooling2D", .alias = "MaxPool2D", .positional = 4, .parameters = parameters, .min_inputs = 1, .max_inputs = 1,
  .call = call, .check = check,
  .doc = "The largest value of each window of height and width."
};
