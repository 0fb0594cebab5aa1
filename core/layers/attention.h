/* attention.h: what the layers of attention share: their masks, the weights softmax(scores), and the projections into heads and back of
 * MultiHeadAttention and GroupQueryAttention (Vaswani et al., Attention Is All You Need, 2017; Ainslie et al., GQA, 2023). */
#ifndef FLOW_LAYERS_ATTENTION_H
#define FLOW_LAYERS_ATTENTION_H

#include "layers/express.h"
#include "layers/layer.h"

/* The options of a call; the inputs of one with heads. */
extern const flow_argument flow_attention_options[];
extern const char *const   flow_attention_heads_inputs[];

/* What the records have in common: query and value must be given, and the weights are a second output. */
#define FLOW_ATTENTION_LAYER \
  .min_inputs = 2, .options = flow_attention_options, .most_outputs = 2, .build = build, .call_named = call, .supports_masking = 1

/* The last parameters of both layers with heads. */
#define FLOW_ATTENTION_PROJECTIONS                                    \
  { "kernel_initializer", FLOW_INITIALIZER, "glorot_uniform", NULL }, \
  { "bias_initializer", FLOW_INITIALIZER, "zeros", NULL },            \
  { "kernel_regularizer", FLOW_REGULARIZER, "null", NULL },           \
  { "bias_regularizer", FLOW_REGULARIZER, "null", NULL },             \
  { "activity_regularizer", FLOW_REGULARIZER, "null", NULL },         \
  { "kernel_constraint", FLOW_CONSTRAINT, "null", NULL },             \
  { "bias_constraint", FLOW_CONSTRAINT, "null", NULL },               \
  { "use_gate", FLOW_BOOLEAN, "false", NULL },                        \
  { "seed", FLOW_INTEGER, "null", NULL },                             \
  FLOW_LAYER_REST

/* Where key_heads is less than heads, each of them serves heads / key_heads heads of the query. */
typedef struct flow_attention_heads {
  int64_t heads, key_heads, key_dim, value_dim;
  int     own_output;                     /* whether the argument output_shape is there; else the output has the size of the query */
  const flow_layer_part *parts;           /* query, key, gate, value, output */
} flow_attention_heads;

/* What a call has of earlier calls (attention_cache.c). held: {batch, 2, steps, key heads, size}, keys and values that are projected
 * already. index: how many of those steps are before the first one of this call, one number, or one for each row; NULL: the call adds
 * nothing, and does not read its value and key. */
typedef struct flow_attention_cache {
  flow_tensor *held, *index;
} flow_attention_cache;

/* Keras' check of argument "dropout". */
flow_status flow_attention_check_dropout(flow_layer *layer);
/* Creates the kernels and biases for inputs in the order of flow_attention_heads_inputs. */
flow_status flow_attention_build(flow_context *context, flow_layer *layer, const flow_attention_heads *heads,
                                 const flow_signature *inputs);
/* The call, which attends to `axes`, counted from 0: outputs[0] like the query, outputs[1] the weights {batch, heads, query steps, key
 * steps} where they were asked for. With a cache, which is NULL for layers that have none, the last output is the one for the next call. */
flow_status flow_attention_call(flow_context *context, flow_layer *layer, const flow_attention_heads *heads, const int *axes,
                                int axis_count, const flow_attention_cache *cache, const flow_named_call *call, flow_tensor **outputs);

/* Whether a call of a query with these attended axes may have this cache. */
flow_status flow_attention_check_cache(const flow_layer *layer, const flow_attention_heads *heads, const flow_attention_cache *cache,
                                       const flow_tensor *query, const int *axes, int axis_count);
/* The index of a cache for a call with this key {batch, steps, features}, {} or {batch}: it fails, in traces when they run, where the
 * steps do not fit. */
flow_tensor *flow_attention_start(flow_expression *e, const flow_attention_cache *cache, flow_tensor *key);
/* The cache with keys and values, {batch, steps, heads, size}, from `start` on. */
flow_tensor *flow_attention_store(flow_expression *e, flow_tensor *held, flow_tensor *start, flow_tensor *key, flow_tensor *value);
/* The keys (0) or values (1) of a cache, {batch, steps, heads, size}. */
flow_tensor *flow_attention_stored(flow_expression *e, flow_tensor *held, int which);

/* 0, 1, 2, ... in the shape {count, 1} or {1, count}; count is below 2^31. */
flow_tensor *flow_attention_positions(flow_expression *e, int64_t count, int as_column);
/* {queries, keys} of bool: whether key j is not after query i (window: and both are less than that many steps apart, where that is not 0;
 * causal 0: only that). start: of the queries among the keys, as flow_attention_start gives it, {batch}: the result is {batch, queries,
 * keys}; NULL: 0. */
flow_tensor *flow_attention_band(flow_expression *e, int64_t queries, int64_t keys, int causal, int64_t window, flow_tensor *start);
/* Both masks, of which one may be NULL. */
flow_tensor *flow_attention_both(flow_expression *e, flow_tensor *a, flow_tensor *b);
/* x with an axis of 1 before `axis`, counted from the end: -1 is after the last. */
flow_tensor *flow_attention_expand(flow_expression *e, flow_tensor *x, int axis);
/* In training, the layer's argument dropout on weights. */
flow_tensor *flow_attention_dropout(flow_expression *e, flow_layer *layer, flow_tensor *weights, int training);
flow_tensor *flow_attention_multiply(flow_expression *e, flow_tensor *a, flow_tensor *b, int transpose_b);
flow_tensor *flow_attention_softmax(flow_expression *e, flow_tensor *scores);
/* Ends a call: new references to the output and, if the options ask for them, the weights. */
flow_status  flow_attention_give(flow_expression *e, const flow_named_call *call, flow_tensor *y, flow_tensor *weights,
                                 flow_tensor **outputs);

#endif
