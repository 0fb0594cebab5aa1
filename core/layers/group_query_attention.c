/* group_query_attention.c: GroupQueryAttention (Ainslie et al. 2023): MultiHeadAttention in which num_query_heads / num_key_value_heads
 * heads of the query share one of the key and the value. Inputs {batch, steps, features}; the steps are attended.
 * keras/src/layers/attention/grouped_query_attention.py: the class there is GroupedQueryAttention, from which files take the name of the
 * group, and is exported as GroupQueryAttention. */
#include "layers/attention.h"

static const flow_argument parameters[] = {
  { "head_dim", FLOW_INTEGER, NULL, ">0" },
  { "num_query_heads", FLOW_INTEGER, NULL, ">0" },
  { "num_key_value_heads", FLOW_INTEGER, NULL, ">0" },
  { "dropout", FLOW_NUMBER, "0", NULL },
  { "use_bias", FLOW_BOOLEAN, "true", NULL },
  { "sliding_window", FLOW_INTEGER, "null", ">0" },
  { "flash_attention", FLOW_ABSENT, "null", NULL },
  FLOW_ATTENTION_PROJECTIONS
};

/* Both are greater than 0 by then: the record's ">0" comes before this. */
static flow_status check(flow_layer *layer)
{
  long long of_query = flow_argument_integer(layer->arguments, "num_query_heads");
  long long of_key = flow_argument_integer(layer->arguments, "num_key_value_heads");
  if (of_query % of_key != 0)
    return flow_layer_fail(layer, "num_query_heads must be a multiple of num_key_value_heads, found %lld and %lld", of_query, of_key);
  return flow_attention_check_dropout(layer);
}

/* The heads of this layer as attention.c sees them, with the names that Keras' files have for its parts. Several query heads share each
 * of key_heads. */
static flow_attention_heads heads_of(const flow_layer *layer)
{
  static const flow_layer_part parts[] = { { "_query_dense/vars", "query" }, { "_key_dense/vars", "key" }, { "_gate_dense/vars", "gate" },
                                           { "_value_dense/vars", "value" }, { "_output_dense/vars", "attention_output" } };
  int64_t dim = flow_argument_integer(layer->arguments, "head_dim");
  return (flow_attention_heads){ .heads = flow_argument_integer(layer->arguments, "num_query_heads"),
                                 .key_heads = flow_argument_integer(layer->arguments, "num_key_value_heads"),
                                 .key_dim = dim, .value_dim = dim, .parts = parts };
}

static flow_status build(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs)
{
  (void)count;
  flow_attention_heads heads = heads_of(layer);
  return flow_attention_build(context, layer, &heads, inputs);
}

static flow_status call(flow_context *context, flow_layer *layer, const flow_named_call *call, flow_tensor **outputs)
{
  static const int steps[] = { 1 };
  flow_attention_heads heads = heads_of(layer);
  return flow_attention_call(context, layer, &heads, steps, 1, NULL, call, outputs);
}

const flow_layer_class flow_layer_group_query_attention = {
  .name = "GroupQueryAttention",
  .alias = "GroupedQueryAttention",
  .group = "grouped_query_attention",
  .positional = 16,
  .parameters = parameters,
  .input_names = flow_attention_heads_inputs,
  FLOW_ATTENTION_LAYER,
  .check = check,
  .quantizes = 1u << FLOW_QUANTIZED_BY_ROW,
  .doc = "MultiHeadAttention whose heads share those of key and value in groups."
};
