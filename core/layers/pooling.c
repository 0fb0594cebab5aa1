/* pooling.c: see pooling.h. */
#include "layers/pooling.h"

const flow_argument flow_pooling_parameters[] = {
  { "pool_size", FLOW_PAIR, "2,2", NULL },
  { "strides", FLOW_PAIR, "null", NULL },       /* null: pool_size */
  { "padding", FLOW_TEXT, "valid", "valid|same" },
  FLOW_LAYER_DATA_FORMAT,
  FLOW_LAYER_COMMON
};

const flow_argument flow_pooling_global_parameters[] = {
  FLOW_LAYER_DATA_FORMAT,
  { "keepdims", FLOW_BOOLEAN, "false", NULL },
  FLOW_LAYER_COMMON
};

static flow_status check_input(const flow_layer *layer, const flow_tensor *x)
{
  flow_signature input = flow_signature_of(x);
  return flow_layer_check_rank(layer, &input, 4, "{batch, height, width, channels}",
                               input.rank < 4 ? "did you mean to put it before Flatten?" : NULL);
}

flow_status flow_pooling_check(flow_layer *layer)
{
  static const char *const positive[] = { "pool_size", "strides", NULL };
  if (flow_argument_is_null(layer->arguments, "strides")) {
    const double *size;
    int count = flow_argument_list(layer->arguments, "pool_size", &size);
    FLOW_TRY(flow_arguments_set_numbers(layer->arguments, "strides", size, count));
  }
  return flow_layer_check_positive(layer, positive);
}

flow_status flow_pooling_call(flow_context *context, const flow_layer *layer, int op, flow_tensor *x, flow_tensor **out)
{
  static const int32_t no_dilation[2] = { 1, 1 };
  flow_signature input = flow_signature_of(x);
  flow_attributes attributes = { .pool = { .size = { 0 } } };
  FLOW_TRY(check_input(layer, x));
  flow_argument_pair(layer->arguments, "pool_size", attributes.pool.size);
  flow_argument_pair(layer->arguments, "strides", attributes.pool.stride);
  FLOW_TRY(flow_layer_padding(layer, &input, attributes.pool.size, attributes.pool.stride, no_dilation, attributes.pool.padding));
  flow_expression e = flow_expression_of(context);
  return flow_expression_take(&e, flow_express_first(&e, op, x, NULL, &attributes), out);
}

flow_status flow_pooling_global(const flow_layer *layer, const flow_tensor *x, flow_attributes *reduce)
{
  FLOW_TRY(check_input(layer, x));
  int keepdims = flow_argument_boolean(layer->arguments, "keepdims");
  *reduce = (flow_attributes){ .reduce = { .count = 2, .keepdims = keepdims, .axes = { 1, 2 } } };
  return FLOW_OK;
}

flow_status flow_pooling_global_steps(const flow_layer *layer, const flow_tensor *x, flow_attributes *reduce)
{
  flow_signature input = flow_signature_of(x);
  FLOW_TRY(flow_layer_check_rank(layer, &input, 3, "{batch, steps, features}", NULL));
  int keepdims = flow_argument_boolean(layer->arguments, "keepdims");
  *reduce = (flow_attributes){ .reduce = { .count = 1, .keepdims = keepdims, .axes = { 1 } } };
  return FLOW_OK;
}
