/* pooling.c: see pooling.h. A window over images is an op (max_pool, average_pool) with `pool` attributes: size, stride, padding; a
 * global one is a reduction over the axes of the positions. Padding "same" is worked out from the input's size, which must be known
 * then. */
#include "layers/pooling.h"

const flow_argument flow_pooling_parameters[] = {
  { "pool_size", FLOW_PAIR, "2,2", ">0" },
  { "strides", FLOW_PAIR, "null", ">0" }, /* null: pool_size */
  { "padding", FLOW_TEXT, "valid", "valid|same" },
  FLOW_LAYER_DATA_FORMAT,
  FLOW_LAYER_COMMON
};

const flow_argument flow_pooling_steps_parameters[] = {
  { "pool_size", FLOW_SINGLE, "2", ">0" },
  { "strides", FLOW_SINGLE, "null", ">0" },
  { "padding", FLOW_TEXT, "valid", "valid|same" },
  FLOW_LAYER_DATA_FORMAT,
  FLOW_LAYER_COMMON
};

const flow_argument flow_pooling_global_parameters[] = {
  FLOW_LAYER_DATA_FORMAT,
  { "keepdims", FLOW_BOOLEAN, "false", NULL },
  FLOW_LAYER_COMMON
};

/* strides becomes pool_size where it is null, as Keras stores it. */
flow_status flow_pooling_check(flow_layer *layer)
{
  const double *size;
  if (!flow_argument_is_null(layer->arguments, "strides")) return FLOW_OK;
  int count = flow_argument_list(layer->arguments, "pool_size", &size);
  return flow_arguments_set_numbers(layer->arguments, "strides", size, count);
}

flow_status flow_pooling_call(flow_context *context, const flow_layer *layer, int op, flow_tensor *x, flow_tensor **out)
{
  static const int32_t no_dilation[2] = { 1, 1 };
  flow_signature input = flow_signature_of(x), image = flow_sequences_signature(&input);
  flow_attributes attributes = { .pool = { .size = { 0 } } };
  FLOW_TRY(flow_sequences_check(layer, &input, flow_layer_is_over_steps(layer, "pool_size")));
  flow_argument_pair(layer->arguments, "pool_size", attributes.pool.size);
  flow_argument_pair(layer->arguments, "strides", attributes.pool.stride);
  FLOW_TRY(flow_layer_padding(layer, &image, attributes.pool.size, attributes.pool.stride, no_dilation, attributes.pool.padding));
  flow_expression e = flow_expression_of(context);
  flow_tensor *y = flow_express_first(&e, op, flow_sequences_to_images(&e, x), NULL, &attributes);
  return flow_expression_take(&e, flow_sequences_like_input(&e, y, x), out);
}

flow_status flow_pooling_global(const flow_layer *layer, const flow_tensor *x, flow_attributes *reduce)
{
  flow_signature input = flow_signature_of(x);
  FLOW_TRY(flow_sequences_check(layer, &input, 0));
  int keepdims = flow_argument_boolean(layer->arguments, "keepdims");
  *reduce = (flow_attributes){ .reduce = { .count = 2, .keepdims = keepdims, .axes = { 1, 2 } } };
  return FLOW_OK;
}

flow_status flow_pooling_global_volume(const flow_layer *layer, const flow_tensor *x, flow_attributes *reduce)
{
  flow_signature input = flow_signature_of(x);
  FLOW_TRY(flow_layer_check_rank(layer, &input, 5, "{batch, depth, height, width, channels}", NULL));
  int keepdims = flow_argument_boolean(layer->arguments, "keepdims");
  *reduce = (flow_attributes){ .reduce = { .count = 3, .keepdims = keepdims, .axes = { 1, 2, 3 } } };
  return FLOW_OK;
}

flow_status flow_pooling_global_steps(const flow_layer *layer, const flow_tensor *x, flow_attributes *reduce)
{
  flow_signature input = flow_signature_of(x);
  FLOW_TRY(flow_sequences_check(layer, &input, 1));
  int keepdims = flow_argument_boolean(layer->arguments, "keepdims");
  *reduce = (flow_attributes){ .reduce = { .count = 1, .keepdims = keepdims, .axes = { 1 } } };
  return FLOW_OK;
}
