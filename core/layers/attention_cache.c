/* attention_cache.c: keys and values that attention keeps from call to call, so that the next step of a text does not compute the steps
 * before it again; as in KerasHub's CachedMultiHeadAttention (keras_hub/src/layers/modeling/cached_multi_head_attention.py). A cache is a
 * tensor {batch, 2, steps, heads, size}: index 0 of the second axis has the keys, 1 the values. A call returns the cache for the next call.
 *
 * The place of a call's first step is a tensor, so one trace serves all steps of a text. The new cache is made in one pass over the old
 * one: places of the call's steps get these, all others keep theirs. */
#include "layers/attention.h"
#include "ops/index_words.h"
#include "tensor/tensor.h"

enum { STEPS_AXIS = 2 };

/* Whether the index is one number for all rows. */
static int is_single(const flow_tensor *index)
{
  for (int i = 0; i < index->rank; i++)
    if (index->shape[i] != 1) return 0;
  return 1;
}

flow_status flow_attention_check_cache(const flow_layer *layer, const flow_attention_heads *heads, const flow_attention_cache *cache,
                                       const flow_tensor *query, const int *axes, int axis_count)
{
  const flow_tensor *held = cache->held, *index = cache->index;
  if (query->rank != 3 || axis_count != 1 || axes[0] != 1)
    return flow_layer_fail(layer, "a cache is for inputs {batch, steps, features}, found a query %s", flow_tensor_shape_text(query));
  if (heads->value_dim != heads->key_dim)
    return flow_layer_fail(layer, "a cache holds keys and values of one size, found key_dim %lld and value_dim %lld",
                           (long long)heads->key_dim, (long long)heads->value_dim);
  if (held->rank != 5 || held->shape[0] != query->shape[0] || held->shape[1] != 2 || held->shape[2] < 1 ||
      held->shape[3] != heads->key_heads || held->shape[4] != heads->key_dim)
    return flow_layer_fail(layer, "the cache has the shape %s, expected {batch, 2, steps, %lld, %lld} with as many rows as the query",
                           flow_tensor_shape_text(held), (long long)heads->key_heads, (long long)heads->key_dim);
  int fits = !index || is_single(index) || index->shape[0] == query->shape[0];
  for (int i = 1; index && i < index->rank; i++) fits &= index->shape[i] == 1;
  if (!fits)
    return flow_layer_fail(layer, "cache_update_index has the shape %s, expected one number, or one for each row of the query",
                           flow_tensor_shape_text(index));
  return FLOW_OK;
}

/* index for each row of x {batch, steps, features}: it then depends on x, and has no value while x has none. */
static flow_tensor *for_each_row(flow_expression *e, flow_tensor *index, flow_tensor *x)
{
  flow_attributes part = { .slice = { .rank = 3, .end = { INT64_MAX / 2, 1, 1 }, .step = { 1, 1, 1 } } };
  flow_tensor *first = flow_express_reshape(e, flow_express(e, FLOW_OP_slice, x, NULL, NULL, &part), 1, x->shape);
  return first ? e_add(e, index, flow_express_cast(e, e_mul(e, first, flow_express_number(e, first, 0)), index->dtype)) : NULL;
}

/* The index is looked up in the list of all possible indices, since gather checks it in each run of a trace, too. A trace may have more
 * steps than the cache, as large numbers stand for unknown sizes (lua/flow/layers/symbolic.lua): the list is then empty. */
flow_tensor *flow_attention_start(flow_expression *e, const flow_attention_cache *cache, flow_tensor *key)
{
  if (e->status != FLOW_OK) return NULL;
  const int64_t steps = key->shape[1], room = cache->held->shape[STEPS_AXIS], count = steps > room ? 0 : room - steps + 1;
  if (steps < 1 || room > INT32_MAX - 1) {
    e->status = flow_fail(FLOW_INVALID_ARGUMENT,
                          "a call with a cache has one step or more, and the cache less than 2^31, found %lld "
                          "and %lld",
                          (long long)steps, (long long)room);
    return NULL;
  }
  flow_tensor *index = flow_express_indices(e, cache->index), *possible = flow_attention_positions(e, count, 0);
  if (index) index = flow_express_reshape(e, index, is_single(index) ? 0 : 1, index->shape);
  if (possible) possible = flow_express_reshape(e, possible, 1, &count);
  if (index && count == 0) index = for_each_row(e, index, key);
  return flow_express(e, FLOW_OP_gather, possible, index, NULL, &(flow_attributes){ .axis = { .axis = FLOW_PLACES_IN_CACHE } });
}

/* x with `count` axes of size 1 at its end. */
static flow_tensor *with_axes(flow_expression *e, flow_tensor *x, int count)
{
  for (int i = 0; i < count; i++) x = flow_attention_expand(e, x, -1);
  return x;
}

/* Several steps are first brought to their places by take_along, with copies of them in all other places; a single one is broadcast. */
flow_tensor *flow_attention_store(flow_expression *e, flow_tensor *held, flow_tensor *start, flow_tensor *key, flow_tensor *value)
{
  if (e->status != FLOW_OK) return NULL;
  const int64_t steps = key->shape[1];
  flow_tensor *block, *parts[2] = { flow_express_insert_axis(e, key, 1), flow_express_insert_axis(e, value, 1) };
  flow_express_all(e, FLOW_OP_concat, parts, 2, &(flow_attributes){ .axis = { 1 } }, &block);     /* {batch, 2, steps, heads, size} */
  flow_tensor *places = with_axes(e, flow_attention_positions(e, held->shape[STEPS_AXIS], 1), 1); /* {steps, 1, 1} */
  if (start && start->rank > 0) start = with_axes(e, start, 4);
  flow_tensor *number = e_sub(e, places, start), *inside; /* [place]: number of its step within this call */
  if (e->status != FLOW_OK) return NULL;
  if (steps == 1) {
    inside = e_eq(e, number, flow_express_number(e, number, 0));
  } else {
    flow_tensor *last = flow_express_number(e, number, (double)(steps - 1)), *first = flow_express_number(e, number, 0);
    inside = e_logical_and(e, e_ge(e, number, first), e_le(e, number, last));
    flow_tensor *source = flow_express_broadcast_like(e, e_minimum(e, e_maximum(e, number, first), last), held);
    block = flow_express(e, FLOW_OP_take_along, block, source, NULL, &(flow_attributes){ .along = { .axis = STEPS_AXIS } });
  }
  return e_where(e, inside, block, held);
}

flow_tensor *flow_attention_stored(flow_expression *e, flow_tensor *held, int which)
{
  if (e->status != FLOW_OK) return NULL;
  const int64_t all = INT64_MAX / 2;
  flow_attributes part = {
    .slice = { .rank = 5, .begin = { 0, which }, .end = { all, which + 1, all, all, all }, .step = { 1, 1, 1, 1, 1 } }
  };
  const int64_t dims[] = { held->shape[0], held->shape[2], held->shape[3], held->shape[4] };
  return flow_express_reshape(e, flow_express(e, FLOW_OP_slice, held, NULL, NULL, &part), 4, dims);
}
