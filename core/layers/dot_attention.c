/* dot_attention.c: see dot_attention.h. The call of keras/src/layers/attention/attention.py: scores, masks, softmax, dropout on the
 * weights, weights times values, zeros where the mask of the query leaves a step out. What a mask leaves out is lowered to a score so
 * small that its weight is 0 beside any other. */
#include "layers/dot_attention.h"

enum { QUERY_MASK = FLOW_ATTENTION_KEY + 1, VALUE_MASK };
const char *const flow_attention_inputs[] = { "inputs[1]", "inputs[2]", "inputs[3]", "mask[1]", "mask[2]", "mask[3]", NULL };

/* Ranks above 3 are left to the ops, which broadcast the axes before the last two. */
flow_status flow_attention_check(const flow_layer *layer, const flow_signature *inputs)
{
  for (int i = FLOW_ATTENTION_QUERY; i <= FLOW_ATTENTION_KEY; i++)
    if (inputs[i].rank >= 0 && inputs[i].rank < 2)
      return flow_layer_fail(layer, "input %d has %d dimension%s %s, expected 3 {batch, steps, features}", i + 1, inputs[i].rank,
                             inputs[i].rank == 1 ? "" : "s", flow_shape_text(inputs[i].rank, inputs[i].dims));
  return FLOW_OK;
}

/* query {batch, Tq, 1, d} + key {batch, 1, Tk, d}: all pairs by broadcasting, which takes memory for Tq * Tk * d numbers. */
flow_tensor *flow_attention_tanh(flow_expression *e, flow_tensor *query, flow_tensor *key, flow_tensor *scale)
{
  flow_tensor *sum = e_add(e, flow_attention_expand(e, query, -2), flow_attention_expand(e, key, -3));
  return e_tanh(e, scale ? e_mul(e, scale, sum) : sum);
}

/* value stands for a key that is not given. scores_of is the layer's own formula. */
flow_status flow_attention_score(flow_context *context, flow_layer *layer, flow_attention_scores scores_of, const flow_named_call *call,
                                 flow_tensor **outputs)
{
  flow_tensor *query = call->inputs[FLOW_ATTENTION_QUERY], *value = call->inputs[FLOW_ATTENTION_VALUE];
  flow_tensor *key = call->inputs[FLOW_ATTENTION_KEY] ? call->inputs[FLOW_ATTENTION_KEY] : value;
  flow_signature inputs[] = { flow_signature_of(query), flow_signature_of(value), flow_signature_of(key) };
  FLOW_TRY(flow_attention_check(layer, inputs));
  flow_expression e = flow_expression_of(context);
  flow_tensor *scores = scores_of(&e, layer, query, key), *mask = call->inputs[VALUE_MASK];
  if (mask) mask = flow_attention_expand(&e, flow_express_cast(&e, mask, FLOW_BOOL), -2);
  if (scores && flow_argument_boolean(call->options, "use_causal_mask"))
    mask = flow_attention_both(&e, mask,
                               flow_attention_band(&e, scores->shape[scores->rank - 2], scores->shape[scores->rank - 1], 1, 0, NULL));
  if (mask && scores) {      /* 65504 is the largest float16 */
    flow_tensor *less = e_sub(&e, scores, flow_express_number(&e, scores, scores->dtype == FLOW_FLOAT16 ? 65504 : 1e9));
    scores = e_where(&e, mask, scores, less);
  }
  flow_tensor *weights = flow_attention_dropout(&e, layer, flow_attention_softmax(&e, scores), call->training);
  flow_tensor *y = flow_attention_multiply(&e, weights, value, 0);
  if (call->inputs[QUERY_MASK] && y) {
    flow_tensor *kept = flow_attention_expand(&e, flow_express_cast(&e, call->inputs[QUERY_MASK], FLOW_BOOL), -1);
    y = e_where(&e, kept, y, flow_express_number(&e, y, 0));
  }
  return flow_attention_give(&e, call, y, weights, outputs);
}
