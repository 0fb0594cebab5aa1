/* multi_head_attention.h: what MultiHeadAttention and CachedMultiHeadAttention share: all but the inputs of their calls. */
#ifndef FLOW_LAYERS_MULTI_HEAD_ATTENTION_H
#define FLOW_LAYERS_MULTI_HEAD_ATTENTION_H

#include "layers/attention.h"

extern const flow_argument flow_multi_head_parameters[];

/* The check of a record's arguments (flow_layer_class). */
flow_status flow_multi_head_check(flow_layer *layer);
/* inputs and call: in the order of flow_attention_heads_inputs. cache: NULL without one. */
flow_status flow_multi_head_build(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs);
flow_status flow_multi_head_call(flow_context *context, flow_layer *layer, const flow_attention_cache *cache, const flow_named_call *call,
                                 flow_tensor **outputs);

#define FLOW_MULTI_HEAD_LAYER                                                                                         \
  .positional = 18, .parameters = flow_multi_head_parameters, .check = flow_multi_head_check, .regularizes_parts = 1, \
  .quantizes = 1u << FLOW_QUANTIZED_BY_ROW

#endif
