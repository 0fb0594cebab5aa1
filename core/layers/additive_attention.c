/* additive_attention.c: AdditiveAttention (Bahdanau, Cho and Bengio 2015): Attention with the score sum(scale * tanh(query + key)). */
#include "layers/dot_attention.h"

static const flow_argument parameters[] = {
  { "use_scale", FLOW_BOOLEAN, "true", NULL },
  { "dropout", FLOW_NUMBER, "0", NULL },
  { "seed", FLOW_INTEGER, "null", NULL },
  FLOW_LAYER_COMMON
};

static flow_status build(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs)
{
  (void)count;
  FLOW_TRY(flow_attention_check(layer, inputs));
  if (!flow_argument_boolean(layer->arguments, "use_scale")) return FLOW_OK;
  const flow_signature *query = &inputs[FLOW_ATTENTION_QUERY];
  FLOW_TRY(flow_layer_check_channels(layer, query, "features"));
  return flow_layer_add_variable(context, layer, 0, "scale", "glorot_uniform", 1, &query->dims[query->rank - 1], 1);
}

/* sum over the features of scale * tanh(query + key): {batch, Tq, Tv}. Query and key need as many features. */
static flow_tensor *scores_of(flow_expression *e, const flow_layer *layer, flow_tensor *query, flow_tensor *key)
{
  flow_tensor *y = flow_attention_tanh(e, query, key, NULL);
  if (flow_argument_boolean(layer->arguments, "use_scale")) y = e_mul(e, flow_express_variable(e, layer->variables[0]), y);
  return flow_express_sum(e, y, -1, 0);
}

static flow_status call(flow_context *context, flow_layer *layer, const flow_named_call *call, flow_tensor **outputs)
{
  return flow_attention_score(context, layer, scores_of, call, outputs);
}

const flow_layer_class flow_layer_additive_attention = {
  .name = "AdditiveAttention",
  .positional = 2,
  .parameters = parameters,
  .input_names = flow_attention_inputs,
  FLOW_ATTENTION_LAYER,
  .check = flow_attention_check_dropout,
  .doc = "Attention with a learned sum of tanh(query + key) in place of the product."
};
