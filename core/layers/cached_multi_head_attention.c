/* cached_multi_head_attention.c: CachedMultiHeadAttention: MultiHeadAttention that keeps keys and values from call to call, so that a text
 * is written step by step: keras_hub/src/layers/modeling/cached_multi_head_attention.py. Variables are those of MultiHeadAttention, and
 * without a cache a call computes the same. As there, masks that the inputs carry do not count: they say nothing of what a cache holds.
 *
 * With a cache (attention_cache.c) the query's steps come after cache_update_index steps of the cache, which use_causal_mask regards. The
 * value is the query where it is not given. */
#include "layers/multi_head_attention.h"

enum { QUERY, VALUE, KEY, ATTENTION_MASK, CACHE, UPDATE_INDEX };
static const char *const input_names[] = { "query", "value", "key", "attention_mask", "cache", "cache_update_index", NULL };

/* The number of flow_attention_heads_inputs, and where attention_mask is there. */
enum { INPUTS_OF_HEADS = 7, MASK_OF_HEADS = 6 };

static flow_status build(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs)
{
  const flow_signature *value = &inputs[inputs[VALUE].rank < 0 ? QUERY : VALUE];
  const flow_signature parts[] = { inputs[QUERY], *value, inputs[KEY] };
  return flow_multi_head_build(context, layer, count, parts);
}

static flow_status call(flow_context *context, flow_layer *layer, const flow_named_call *call, flow_tensor **outputs)
{
  flow_tensor *const *in = call->inputs, *value = in[VALUE] ? in[VALUE] : in[QUERY];
  flow_tensor *inputs[INPUTS_OF_HEADS] = { in[QUERY], value, in[KEY], [MASK_OF_HEADS] = in[ATTENTION_MASK] };
  if (in[UPDATE_INDEX] && !in[CACHE]) return flow_layer_fail(layer, "cache_update_index is given without a cache");
  const flow_attention_cache cache = { .held = in[CACHE], .index = in[UPDATE_INDEX] };
  const flow_named_call heads = { .inputs = inputs, .options = call->options, .training = call->training };
  return flow_multi_head_call(context, layer, in[CACHE] ? &cache : NULL, &heads, outputs);
}

const flow_layer_class flow_layer_cached_multi_head_attention = {
  .name = "CachedMultiHeadAttention",
  .input_names = input_names,
  .min_inputs = 1,
  .options = flow_attention_options,
  .most_outputs = 3,
  .build = build,
  .call_named = call,
  .supports_masking = 1,
  FLOW_MULTI_HEAD_LAYER,
  .doc = "MultiHeadAttention that keeps keys and values from call to call: for writing texts."
};
