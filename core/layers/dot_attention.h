/* dot_attention.h: the calls of Attention and AdditiveAttention, which differ in their scores. */
#ifndef FLOW_LAYERS_DOT_ATTENTION_H
#define FLOW_LAYERS_DOT_ATTENTION_H

#include "layers/attention.h"

/* The inputs of a call: a list {query, value, key}, of which the last may be left out, and a list of their masks. */
extern const char *const flow_attention_inputs[];
enum { FLOW_ATTENTION_QUERY, FLOW_ATTENTION_VALUE, FLOW_ATTENTION_KEY };

/* The scores {batch, query steps, key steps} of a query and a key. */
typedef flow_tensor *(*flow_attention_scores)(flow_expression *e, const flow_layer *layer, flow_tensor *query, flow_tensor *key);

/* Whether the inputs are {batch, steps, features}. */
flow_status flow_attention_check(const flow_layer *layer, const flow_signature *inputs);
flow_status flow_attention_score(flow_context *context, flow_layer *layer, flow_attention_scores scores_of, const flow_named_call *call,
                                 flow_tensor **outputs);
/* tanh(query + key) of each pair of steps: {batch, query steps, key steps, features}. scale: of the sum, NULL: none. */
flow_tensor *flow_attention_tanh(flow_expression *e, flow_tensor *query, flow_tensor *key, flow_tensor *scale);

#endif
