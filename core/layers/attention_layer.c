/* attention_layer.c: Attention: the mean of the values weighted by softmax(scores), where the score of a query and a key is their
 * product (Luong, Pham and Manning 2015) or, "concat", the sum of tanh(query + key). query {batch, Tq, d}, value {batch, Tv, dv}, key
 * {batch, Tv, d}: {batch, Tq, dv}, and the weights {batch, Tq, Tv} if the call asks for them. use_scale adds a learned factor; "concat"
 * has a further one. keras/src/layers/attention/attention.py. */
#include "layers/dot_attention.h"

#include <string.h>

static const flow_argument parameters[] = {
  { "use_scale", FLOW_BOOLEAN, "false", NULL },
  { "score_mode", FLOW_TEXT, "dot", "dot|concat" },
  { "dropout", FLOW_NUMBER, "0", NULL },
  { "seed", FLOW_INTEGER, "null", NULL },
  FLOW_LAYER_COMMON
};

static int is_concat(const flow_layer *layer) { return strcmp(flow_argument_text(layer->arguments, "score_mode"), "concat") == 0; }

static flow_status build(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs)
{
  (void)count;
  int next = 0;
  FLOW_TRY(flow_attention_check(layer, inputs));
  if (flow_argument_boolean(layer->arguments, "use_scale"))
    FLOW_TRY(flow_layer_add_variable(context, layer, next++, "scale", "ones", 0, NULL, 1));
  if (is_concat(layer)) FLOW_TRY(flow_layer_add_variable(context, layer, next, "concat_score_weight", "ones", 0, NULL, 1));
  return FLOW_OK;
}

/* {batch, Tq, Tv}. Variables: scale, if there is one, then concat_score_weight: its index is `scaled`, 0 or 1. */
static flow_tensor *scores_of(flow_expression *e, const flow_layer *layer, flow_tensor *query, flow_tensor *key)
{
  int scaled = flow_argument_boolean(layer->arguments, "use_scale");
  flow_tensor *scale = scaled ? flow_express_variable(e, layer->variables[0]) : NULL;
  if (is_concat(layer)) {
    flow_tensor *sum = flow_express_sum(e, flow_attention_tanh(e, query, key, scale), -1, 0);
    return e_mul(e, flow_express_variable(e, layer->variables[scaled]), sum);
  }
  flow_tensor *scores = flow_attention_multiply(e, query, key, 1);
  return scale ? e_mul(e, scores, scale) : scores;
}

static flow_status call(flow_context *context, flow_layer *layer, const flow_named_call *call, flow_tensor **outputs)
{
  return flow_attention_score(context, layer, scores_of, call, outputs);
}

const flow_layer_class flow_layer_attention_layer = {
  .name = "Attention",
  .positional = 4,
  .parameters = parameters,
  .input_names = flow_attention_inputs,
  FLOW_ATTENTION_LAYER,
  .check = flow_attention_check_dropout,
  .doc = "Of a list {query, value, key}: for each query, the mean of the values weighted by how its keys fit."
};
