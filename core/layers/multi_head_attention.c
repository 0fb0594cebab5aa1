/* multi_head_attention.c: MultiHeadAttention: for each head, the mean of the values weighted by softmax(query . key / sqrt(key_dim));
 * the heads side by side times a last kernel. attention.c has the formulas. query {batch, ..., features}, value and key likewise with
 * other sizes of the attended axes; the output has the query's shape, or output_shape in place of its features.
 * keras/src/layers/attention/multi_head_attention.py.
 *
 * This file says what is MultiHeadAttention's own, and CachedMultiHeadAttention's: as many heads of the key as of the query, value_dim,
 * output_shape, attention_axes. */
#include "layers/multi_head_attention.h"

#include "tensor/axis.h"

const flow_argument flow_multi_head_parameters[] = {
  { "num_heads", FLOW_INTEGER, NULL, ">0" },        { "key_dim", FLOW_INTEGER, NULL, ">0" },
  { "value_dim", FLOW_INTEGER, "null", ">0" },      { "dropout", FLOW_NUMBER, "0", NULL },
  { "use_bias", FLOW_BOOLEAN, "true", NULL },       { "output_shape", FLOW_SHAPE, "null", ">0" },
  { "attention_axes", FLOW_SHAPE, "null", NULL },   { "sliding_window", FLOW_INTEGER, "null", ">0" },
  { "flash_attention", FLOW_ABSENT, "null", NULL }, FLOW_ATTENTION_PROJECTIONS
};

/* value_dim defaults to key_dim. */
flow_status flow_multi_head_check(flow_layer *layer)
{
  if (flow_argument_is_null(layer->arguments, "value_dim")) /* as Keras' get_config says */
    FLOW_TRY(flow_arguments_set_number(layer->arguments, "value_dim", flow_argument_integer(layer->arguments, "key_dim")));
  return flow_attention_check_dropout(layer);
}

/* Read from the arguments in each call: nothing of it is kept. Groups and names of the parts are those of Keras' files. */
static flow_attention_heads heads_of(const flow_layer *layer)
{
  static const flow_layer_part parts[] = { { "query_dense/vars", "query" }, { "key_dense/vars", "key" }, { "_gate_dense/vars", "gate" },
                                           { "value_dense/vars", "value" }, { "output_dense/vars", "attention_output" } };
  flow_attention_heads heads = { .heads = flow_argument_integer(layer->arguments, "num_heads"), .own_output = 1, .parts = parts };
  heads.key_heads = heads.heads;
  heads.key_dim = flow_argument_integer(layer->arguments, "key_dim");
  heads.value_dim = flow_argument_integer(layer->arguments, "value_dim");
  return heads;
}

flow_status flow_multi_head_build(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs)
{
  (void)count;
  flow_attention_heads heads = heads_of(layer);
  return flow_attention_build(context, layer, &heads, inputs);
}

/* Without attention_axes, all but the first and the last. */
static flow_status axes_of(const flow_layer *layer, int rank, int axes[FLOW_MAX_RANK], int *count)
{
  const double *given;
  *count = 0;
  if (flow_argument_is_null(layer->arguments, "attention_axes")) {
    for (int axis = 1; axis < rank - 1; axis++) axes[(*count)++] = axis;
    return FLOW_OK;
  }
  int of = flow_argument_list(layer->arguments, "attention_axes", &given);
  if (of == 0) return flow_layer_fail(layer, "attention_axes is empty, expected one axis or more");
  for (int i = 0; i < of; i++) axes[(*count)++] = flow_axis_of(given[i], rank);
  return FLOW_OK;
}

flow_status flow_multi_head_call(flow_context *context, flow_layer *layer, const flow_attention_cache *cache, const flow_named_call *call,
                                 flow_tensor **outputs)
{
  int axes[FLOW_MAX_RANK], count;
  flow_attention_heads heads = heads_of(layer);
  FLOW_TRY(axes_of(layer, call->inputs[0]->rank, axes, &count));
  return flow_attention_call(context, layer, &heads, axes, count, cache, call, outputs);
}

static flow_status build(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs)
{
  return flow_multi_head_build(context, layer, count, inputs);
}

static flow_status call(flow_context *context, flow_layer *layer, const flow_named_call *call, flow_tensor **outputs)
{
  return flow_multi_head_call(context, layer, NULL, call, outputs);
}

const flow_layer_class flow_layer_multi_head_attention = {
  .name = "MultiHeadAttention",
  .input_names = flow_attention_heads_inputs,
  FLOW_ATTENTION_LAYER,
  FLOW_MULTI_HEAD_LAYER,
  .clears_masks = 1,
  .doc = "For each step of query, what num_heads heads find in value where key is like it."
};
