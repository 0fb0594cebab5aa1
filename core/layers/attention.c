/* attention.c: see attention.h. softmax(q k^T / sqrt(d)) v of Vaswani et al. 2017, with several heads, as in
 * keras/src/layers/attention/multi_head_attention.py and grouped_query_attention.py. All functions take part in a call's expression:
 * after a failure in it they give NULL.
 *
 * Shapes. Inputs are {batch, ..., features}; the axes between are attended or not. A projection gives {batch, ..., heads * dim}; split()
 * makes it {batch, others, heads, attended, dim}, with all attended axes as one, so that scores and results are products of matrices.
 * Shared heads of the key and the value (GroupQueryAttention) are repeated for each head of their group, so that every head of the query
 * has its own: many steps are attended by blocks then (core/plan/passes/fuse_attention.c). */
#include "layers/attention.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "layers/quantization.h"
#include "layers/regularizers.h"
#include "tensor/tensor.h"

const flow_argument flow_attention_options[] = {
  { "return_attention_scores", FLOW_BOOLEAN, "false", NULL },
  { "use_causal_mask", FLOW_BOOLEAN, "false", NULL },
  FLOW_ARGUMENTS_END
};

enum { QUERY, VALUE, KEY, QUERY_MASK, VALUE_MASK, KEY_MASK, ATTENTION_MASK };
const char *const flow_attention_heads_inputs[] = {
  "query", "value", "key", "query_mask", "value_mask", "key_mask", "attention_mask", NULL
};

/* What a score counts that a mask leaves out, as in Keras. */
enum { LEFT_OUT = -1000000000 };

/* ---- pieces -------------------------------------------------------------------------------------------------------------- */

/* A record's check(). */
flow_status flow_attention_check_dropout(flow_layer *layer)
{
  double rate = flow_argument_number(layer->arguments, "dropout");
  return rate >= 0 && rate <= 1 ? FLOW_OK : flow_layer_fail(layer, "dropout must be between 0 and 1, found %.15g", rate);
}

flow_tensor *flow_attention_positions(flow_expression *e, int64_t count, int as_column)
{
  flow_tensor *tensor = NULL;
  if (e->status != FLOW_OK) return NULL;
  const int64_t dims[2] = { as_column ? count : 1, as_column ? 1 : count };
  flow_status status = flow_tensor_new(FLOW_INT32, 2, dims, &tensor);
  int32_t *values = status == FLOW_OK ? flow_tensor_elements(tensor) : NULL;
  for (int64_t i = 0; values && i < count; i++) values[i] = (int32_t)i;
  return flow_express_keep(e, status, tensor);
}

/* Which key steps a query step sees: those at or before it (causal), those less than `window` steps away, or both. */
flow_tensor *flow_attention_band(flow_expression *e, int64_t queries, int64_t keys, int causal, int64_t window, flow_tensor *start)
{
  if (queries < 0 || keys < 0 || queries > INT32_MAX || keys > INT32_MAX) {
    if (e->status == FLOW_OK)
      e->status = flow_fail(FLOW_INVALID_ARGUMENT, "a causal mask or a window needs numbers of steps that are known and below 2^31");
    return NULL;
  }
  flow_tensor *rows = flow_attention_positions(e, queries, 1), *columns = flow_attention_positions(e, keys, 0);
  flow_tensor *near = NULL, *before = NULL;
  for (int i = 0; start && start->rank > 0 && i < 2; i++) start = flow_attention_expand(e, start, -1);
  if (start) rows = e_add(e, rows, start);
  if (causal) before = e_ge(e, rows, columns);
  if (window) {
    flow_tensor *distance = e_abs(e, e_sub(e, rows, columns));
    near = distance ? e_lt(e, distance, flow_express_number(e, distance, (double)window)) : NULL;
  }
  return flow_attention_both(e, before, near);
}

flow_tensor *flow_attention_both(flow_expression *e, flow_tensor *a, flow_tensor *b)
{
  return !a ? b : !b ? a : e_logical_and(e, a, b);
}

flow_tensor *flow_attention_expand(flow_expression *e, flow_tensor *x, int axis)
{
  int64_t dims[FLOW_MAX_RANK];
  if (e->status != FLOW_OK || !x) return NULL;
  if (x->rank == FLOW_MAX_RANK) {
    e->status = flow_fail(FLOW_INVALID_ARGUMENT, "a mask of shape %s has too many dimensions", flow_tensor_shape_text(x));
    return NULL;
  }
  int at = x->rank + 1 + axis;
  if (at < 0) at = 0;
  for (int i = 0; i <= x->rank; i++) dims[i] = i < at ? x->shape[i] : i == at ? 1 : x->shape[i - 1];
  return flow_express_reshape(e, x, x->rank + 1, dims);
}

flow_tensor *flow_attention_dropout(flow_expression *e, flow_layer *layer, flow_tensor *weights, int training)
{
  double rate = flow_argument_number(layer->arguments, "dropout");
  if (!training || rate <= 0 || e->status != FLOW_OK) return weights;
  flow_layer_draws draws = flow_express_draw(e, layer);
  flow_attributes attributes = flow_draws_dropout(draws, rate);
  return flow_express(e, FLOW_OP_dropout, weights, NULL, NULL, &attributes);
}

/* Products of the last two axes; those before them broadcast. */
flow_tensor *flow_attention_multiply(flow_expression *e, flow_tensor *a, flow_tensor *b, int transpose_b)
{
  return flow_express(e, FLOW_OP_matmul, a, b, NULL, &(flow_attributes){ .matmul = { .transpose_b = transpose_b } });
}

flow_tensor *flow_attention_softmax(flow_expression *e, flow_tensor *scores)
{
  if (e->status != FLOW_OK) return NULL;
  return flow_express(e, FLOW_OP_softmax, scores, NULL, NULL, &(flow_attributes){ .axis = { .axis = scores->rank - 1 } });
}

/* Outputs: y, and, if the call asks for them, the weights. */
flow_status flow_attention_give(flow_expression *e, const flow_named_call *call, flow_tensor *y, flow_tensor *weights,
                                flow_tensor **outputs)
{
  flow_tensor *scores = NULL;
  if (e->status == FLOW_OK && flow_argument_boolean(call->options, "return_attention_scores")) scores = flow_tensor_retain(weights);
  flow_status status = flow_expression_take(e, y, &outputs[0]);
  if (status != FLOW_OK) {
    flow_tensor_release(scores);
    outputs[0] = NULL;
    return status;
  }
  outputs[1] = scores;
  return FLOW_OK;
}

/* ---- heads: building ------------------------------------------------------------------------------------------------------- */

enum { OF_QUERY, OF_KEY, OF_GATE, OF_VALUE, OF_OUTPUT };

/* The variable that holds the kernel of a projection; its bias comes next, if there are biases. */
static int kernel_of(const flow_layer *layer, int projection)
{
  int gate = flow_argument_boolean(layer->arguments, "use_gate");
  int before = projection > OF_GATE && !gate ? projection - 1 : projection;
  return before * (flow_argument_boolean(layer->arguments, "use_bias") ? 2 : 1);
}

/* Kernel and bias of one projection. shape: of the kernel, whose last bias_rank axes are what a unit gives, and so the bias' shape. The
 * variables are called "query/kernel"; files keep them in the groups of heads->parts. */
static flow_status add_projection(flow_context *context, flow_layer *layer, const flow_attention_heads *heads, int projection, int rank,
                                  const int64_t *shape, int bias_rank)
{
  const flow_layer_part *part = &heads->parts[projection];
  int kernel = kernel_of(layer, projection);
  char name[64];
  snprintf(name, sizeof name, "%s/kernel", part->name);
  unsigned outputs = ((1u << bias_rank) - 1) << (rank - bias_rank);
  FLOW_TRY(flow_layer_add_kernel(context, layer, kernel, name, rank, shape, outputs));
  layer->parts[kernel] = part;
  if (!flow_argument_boolean(layer->arguments, "use_bias")) return FLOW_OK;
  snprintf(name, sizeof name, "%s/bias", part->name);
  FLOW_TRY(flow_layer_add_variable(context, layer, kernel + 1, name, "bias_initializer", bias_rank, shape + rank - bias_rank, 1));
  layer->parts[kernel + 1] = part;
  return FLOW_OK;
}

/* Also of every call: shapes of later calls may differ in all but the features. */
static flow_status check_inputs(const flow_layer *layer, const flow_signature *inputs)
{
  static const char *const names[] = { "query", "value", "key" };
  for (int i = QUERY; i <= KEY; i++) {
    const flow_signature *input = &inputs[i], *value = &inputs[VALUE];
    if (input->rank < 0) continue;
    if (input->rank < 3 || input->rank != inputs[QUERY].rank || input->rank + 2 > FLOW_MAX_RANK)
      return flow_layer_fail(layer, "%s has %d dimensions %s, expected at least 3 {batch, steps, features}, as many as query", names[i],
                             input->rank, flow_shape_text(input->rank, input->dims));
    if (input->dims[input->rank - 1] < 1)
      return flow_layer_fail(layer, "the last dimension of %s %s must be a known number of features", names[i],
                             flow_shape_text(input->rank, input->dims));
    for (int axis = 1; i == KEY && axis < input->rank - 1; axis++)
      if (input->dims[axis] >= 0 && value->dims[axis] >= 0 && input->dims[axis] != value->dims[axis])
        return flow_layer_fail(layer, "value and key have %lld and %lld steps, expected as many of both", (long long)value->dims[axis],
                               (long long)input->dims[axis]);
  }
  return FLOW_OK;
}

/* Variables in the order query, key, gate, value, output, which kernel_of relies on; the gate is there with use_gate. inputs: seven, of
 * which only the shapes of query, value and key are read. */
flow_status flow_attention_build(flow_context *context, flow_layer *layer, const flow_attention_heads *heads,
                                 const flow_signature *inputs)
{
  FLOW_TRY(check_inputs(layer, inputs));
  const flow_signature *query = &inputs[QUERY], *value = &inputs[VALUE], *key = inputs[KEY].rank < 0 ? value : &inputs[KEY];
  int64_t of_query = query->dims[query->rank - 1], of_key = key->dims[key->rank - 1], of_value = value->dims[value->rank - 1];
  int64_t shape[FLOW_MAX_RANK] = { of_query, heads->heads, heads->key_dim };
  FLOW_TRY(add_projection(context, layer, heads, OF_QUERY, 3, shape, 2));
  FLOW_TRY(add_projection(context, layer, heads, OF_KEY, 3, (const int64_t[]){ of_key, heads->key_heads, heads->key_dim }, 2));
  if (flow_argument_boolean(layer->arguments, "use_gate"))
    FLOW_TRY(add_projection(context, layer, heads, OF_GATE, 3, (const int64_t[]){ of_query, heads->heads, heads->value_dim }, 2));
  FLOW_TRY(add_projection(context, layer, heads, OF_VALUE, 3, (const int64_t[]){ of_value, heads->key_heads, heads->value_dim }, 2));
  const double *sizes = NULL;
  int given = heads->own_output && !flow_argument_is_null(layer->arguments, "output_shape"), rank = 1;
  if (given) rank = flow_argument_list(layer->arguments, "output_shape", &sizes);
  if (rank > FLOW_MAX_RANK - 2)
    return flow_layer_fail(layer, "output_shape has %d entries, at most %d are possible", rank, FLOW_MAX_RANK - 2);
  shape[0] = heads->heads;
  shape[1] = heads->value_dim;
  for (int i = 0; i < rank; i++) shape[2 + i] = sizes ? (int64_t)sizes[i] : of_query;
  return add_projection(context, layer, heads, OF_OUTPUT, 2 + rank, shape, rank);
}

/* ---- heads: the call --------------------------------------------------------------------------------------------------------- */

/* x {..., features} by the kernel of a projection, whose first `bound` axes are those features, plus its bias: {..., the rest as one};
 * of the gate its sigmoid. */
static flow_tensor *project(flow_expression *e, flow_layer *layer, int projection, int bound, flow_tensor *x, int training)
{
  int index = kernel_of(layer, projection);
  flow_tensor *kernel = flow_express_variable(e, layer->variables[index]);
  if (!kernel) return NULL;
  int64_t dims[2] = { 1, 1 };
  for (int i = 0; i < kernel->rank; i++) dims[i >= bound] *= kernel->shape[i];
  kernel = flow_express_reshape(e, kernel, 2, dims);
  flow_tensor *y = flow_quantization_applies(layer, x, kernel) ? flow_quantization_multiply(e, layer, x, kernel, training)
                                                               : flow_express(e, FLOW_OP_matmul, x, kernel, NULL, NULL);
  if (flow_argument_boolean(layer->arguments, "use_bias"))
    y = e_add(e, y, flow_express_reshape(e, flow_express_variable(e, layer->variables[index + 1]), 1, &dims[1]));
  if (projection == OF_GATE) y = e_sigmoid(e, y);
  if (y) e->status = flow_layer_regularize_activity(e->context, layer, y);      /* in Keras each projection is a layer */
  return y;
}

/* How the axes of {batch, ..., heads, channels} stand for the products: those attended last before the channels, and as one. */
typedef struct plan { int rank, attended, permutation[FLOW_MAX_RANK], back[FLOW_MAX_RANK]; } plan;

/* The permutation that brings the attended axes side by side before the features, and the one back. */
static flow_status plan_axes(const flow_layer *layer, int rank, const int *axes, int count, plan *p)
{
  int taken[FLOW_MAX_RANK] = { 0 }, next = 0;
  *p = (plan){ .rank = rank + 1, .attended = count };
  for (int i = 0; i < count; i++) {
    if (axes[i] < 1 || axes[i] > rank - 2 || taken[axes[i]])
      return flow_layer_fail(layer, "attention_axes names axis %d (counted from 1) of %d, or one of them twice: neither the first nor the "
                             "last axis is attended", axes[i] + 1, rank);
    taken[axes[i]] = 1;
  }
  for (int axis = 0; axis < rank; axis++)      /* {batch, steps, features}: the heads take the place of the features */
    if (!taken[axis]) p->permutation[next++] = axis;
  for (int i = 0; i < count; i++) p->permutation[next++] = axes[i];
  p->permutation[next] = rank;
  for (int i = 0; i <= rank; i++) p->back[p->permutation[i]] = i;
  return FLOW_OK;
}

/* Axis i of the result is axis order[i] of x. */
static flow_tensor *transpose(flow_expression *e, flow_tensor *x, const int *order)
{
  if (e->status != FLOW_OK) return NULL;
  flow_attributes attributes = { .transpose = { .rank = x->rank } };
  for (int i = 0; i < x->rank; i++) attributes.transpose.axes[i] = order[i];
  return flow_express(e, FLOW_OP_transpose, x, NULL, NULL, &attributes);
}

/* {batch, ..., heads * dim} as {batch, ..., heads, dim}. */
static flow_tensor *split(flow_expression *e, flow_tensor *x, int64_t heads, int64_t dim)
{
  int64_t dims[FLOW_MAX_RANK];
  if (e->status != FLOW_OK) return NULL;
  for (int i = 0; i < x->rank - 1; i++) dims[i] = x->shape[i];
  dims[x->rank - 1] = heads;
  dims[x->rank] = dim;
  return flow_express_reshape(e, x, x->rank + 1, dims);
}

/* That as {batch, others, heads, attended..., dim}; steps: the sizes of those attended. */
static flow_tensor *arrange(flow_expression *e, flow_tensor *x, const plan *p, int64_t *steps)
{
  if (e->status != FLOW_OK) return NULL;
  for (int i = 0; i < p->attended; i++) steps[i] = x->shape[p->permutation[p->rank - 1 - p->attended + i]];
  return transpose(e, x, p->permutation);
}

/* x with its `count` axes from `from` on as the dim_count in dims, which have the same product; x itself where they are the same. Fails
 * if the result would have too many axes: several attended axes in the weights or a mask, or a long output_shape. */
static flow_tensor *replace(flow_expression *e, flow_tensor *x, int from, int count, const int64_t *dims, int dim_count)
{
  int64_t all[FLOW_MAX_RANK];
  int rank = 0;
  if (e->status != FLOW_OK || (count == dim_count && memcmp(x->shape + from, dims, sizeof *dims * (size_t)count) == 0)) return x;
  if (x->rank - count + dim_count > FLOW_MAX_RANK) {
    e->status = flow_fail(FLOW_UNSUPPORTED, "a result or a mask would have %d dimensions, at most %d are possible",
                          x->rank - count + dim_count, FLOW_MAX_RANK);
    return NULL;
  }
  for (int i = 0; i < from; i++) all[rank++] = x->shape[i];
  for (int i = 0; i < dim_count; i++) all[rank++] = dims[i];
  for (int i = from + count; i < x->rank; i++) all[rank++] = x->shape[i];
  return flow_express_reshape(e, x, rank, all);
}

/* {batch, ..., heads, dim} with each head `times` times, one after the other; x itself for 1. */
static flow_tensor *repeat_heads(flow_expression *e, flow_tensor *x, int64_t times)
{
  flow_tensor *ones = NULL;
  if (e->status != FLOW_OK || times == 1) return x;
  const int axis = x->rank - 2;
  const int64_t apart[] = { x->shape[axis], 1 }, repeated = x->shape[axis] * times;
  flow_status status = flow_tensor_new(x->dtype, 2, (const int64_t[]){ times, 1 }, &ones);
  if (status == FLOW_OK) status = flow_tensor_fill(ones, 1);
  ones = flow_express_keep(e, status, ones);
  x = e_mul(e, replace(e, x, axis, 1, apart, 2), ones);
  return replace(e, x, axis, 2, &repeated, 1);
}

/* Of sizes of tensors that exist, or of a trace. */
static int64_t product_of(const int64_t *dims, int count)
{
  int64_t product = 1;      /* at most one is a multiple of the batch's rows, which is negative */
  for (int i = 0; i < count; i++) product *= dims[i];
  return product;
}

/* Masks may have any dtype: what is not 0 counts. */
static flow_tensor *as_bool(flow_expression *e, flow_tensor *mask)
{
  return mask ? flow_express_cast(e, mask, FLOW_BOOL) : NULL;
}

/* All masks of a call in one that broadcasts to the scores {batch, others, heads, queries..., keys...}; NULL: none. start: as in
 * flow_attention_band. */
static flow_status make_mask(flow_expression *e, const flow_layer *layer, const plan *p, const flow_named_call *call, int score_rank,
                             const int64_t *queries, const int64_t *keys, flow_tensor *start, flow_tensor **out)
{
  int causal = flow_argument_boolean(call->options, "use_causal_mask");
  int has_window = !flow_argument_is_null(layer->arguments, "sliding_window");
  int64_t window = has_window ? flow_argument_integer(layer->arguments, "sliding_window") : 0;
  flow_tensor *const *in = call->inputs, *mask = NULL, *given = as_bool(e, in[ATTENTION_MASK]);
  if ((causal || window || in[QUERY_MASK] || in[VALUE_MASK] || in[KEY_MASK]) && p->attended != 1)
    return flow_layer_fail(layer, "with several attention_axes the only mask is attention_mask: a causal mask, a window and masks of "
                                  "inputs are not supported");
  if (in[QUERY_MASK]) mask = flow_attention_expand(e, as_bool(e, in[QUERY_MASK]), -1);
  if (in[VALUE_MASK]) mask = flow_attention_both(e, mask, flow_attention_expand(e, as_bool(e, in[VALUE_MASK]), -2));
  if (in[KEY_MASK]) mask = flow_attention_both(e, mask, flow_attention_expand(e, as_bool(e, in[KEY_MASK]), -2));
  if (causal || window) mask = flow_attention_both(e, mask, flow_attention_band(e, queries[0], keys[0], causal, window, start));
  if (mask && given && given->rank > mask->rank)
    while (e->status == FLOW_OK && mask->rank > 2 && mask->rank < given->rank) mask = flow_attention_expand(e, mask, -3);
  mask = flow_attention_both(e, mask, given);
  while (e->status == FLOW_OK && mask && mask->rank > 2 && mask->rank < score_rank)
    mask = flow_attention_expand(e, mask, -2 * p->attended - 1);
  if (e->status == FLOW_OK && mask && mask->rank > score_rank)
    return flow_layer_fail(layer, "attention_mask has shape %s, expected {batch, query steps, key steps}", flow_tensor_shape_text(mask));
  *out = mask;
  return e->status;
}

/* softmax(scores) in float32, without what the mask leaves out. zero: that weighs nothing even where the mask leaves all out, in place of
 * the same for all. */
static flow_tensor *weights_of(flow_expression *e, flow_tensor *scores, flow_tensor *mask, int zero)
{
  if (e->status != FLOW_OK) return NULL;
  int dtype = scores->dtype;
  if (dtype != FLOW_FLOAT64) scores = flow_express_cast(e, scores, FLOW_FLOAT32);
  if (mask && scores) scores = e_where(e, mask, scores, flow_express_number(e, scores, LEFT_OUT));
  flow_tensor *weights = flow_attention_softmax(e, scores);
  if (mask && zero && weights) weights = e_where(e, mask, weights, flow_express_number(e, weights, 0));
  return weights ? flow_express_cast(e, weights, dtype) : NULL;
}

/* A mask for scores whose attended axes are one each: with several, it is repeated to their sizes first. */
static flow_tensor *broadcast_flat(flow_expression *e, flow_tensor *mask, flow_tensor *scores, int head_axis, const int64_t *steps,
                                   int attended, const int64_t *flat)
{
  if (attended == 1 || e->status != FLOW_OK) return mask;
  flow_tensor *like = replace(e, scores, head_axis + 1, 2, steps, 2 * attended);
  mask = like ? flow_express_broadcast_like(e, mask, like) : NULL;
  return replace(e, mask, head_axis + 1, 2 * attended, flat, 2);
}

/* {..., heads * value_dim} by the last kernel: {..., what output_shape says}. */
static flow_tensor *project_back(flow_expression *e, flow_layer *layer, flow_tensor *y, int training)
{
  flow_tensor *kernel = flow_express_variable(e, layer->variables[kernel_of(layer, OF_OUTPUT)]),
              *out = project(e, layer, OF_OUTPUT, 2, y, training);
  return out && kernel ? replace(e, out, out->rank - 1, 1, kernel->shape + 2, kernel->rank - 2) : NULL;
}

/* In order: projections; those of earlier steps from the cache; axes so that {..., heads, steps, channels} are matrices; scores
 * q k^T / sqrt(key_dim); masks; softmax in float32; dropout; weights times values; axes back; gate; output projection. Several attended
 * axes are one axis in the products, and are taken apart again in the result and in the scores. */
flow_status flow_attention_call(flow_context *context, flow_layer *layer, const flow_attention_heads *heads, const int *axes,
                                int axis_count, const flow_attention_cache *cache, const flow_named_call *call, flow_tensor **outputs)
{
  flow_tensor *query = call->inputs[QUERY], *value = call->inputs[VALUE], *key = call->inputs[KEY] ? call->inputs[KEY] : value;
  flow_tensor *mask = NULL, *start = NULL, *next = NULL;
  flow_signature inputs[] = { flow_signature_of(query), flow_signature_of(value), flow_signature_of(key) };
  plan p;
  FLOW_TRY(check_inputs(layer, inputs));
  FLOW_TRY(flow_layer_check_channels(layer, &inputs[QUERY], "features"));
  FLOW_TRY(plan_axes(layer, query->rank, axes, axis_count, &p));
  if (cache) FLOW_TRY(flow_attention_check_cache(layer, heads, cache, query, axes, axis_count));
  flow_expression e = flow_expression_of(context);
  int64_t queries[FLOW_MAX_RANK], keys[FLOW_MAX_RANK];
  int head_axis = p.rank - 2 - p.attended;
  flow_tensor *gate = flow_argument_boolean(layer->arguments, "use_gate") ? project(&e, layer, OF_GATE, 1, query, call->training) : NULL;
  flow_tensor *q = project(&e, layer, OF_QUERY, 1, query, call->training);
  q = split(&e, e_mul(&e, q, flow_express_number(&e, q, 1 / sqrt((double)heads->key_dim))), heads->heads, heads->key_dim);
  flow_tensor *k = NULL, *v = NULL;
  if (!cache || cache->index) {
    k = split(&e, project(&e, layer, OF_KEY, 1, key, call->training), heads->key_heads, heads->key_dim);
    v = split(&e, project(&e, layer, OF_VALUE, 1, value, call->training), heads->key_heads, heads->value_dim);
  }
  if (cache) {
    next = cache->held;
    if (cache->index) {
      start = flow_attention_start(&e, cache, key);
      next = flow_attention_store(&e, next, start, k, v);
    }
    k = flow_attention_stored(&e, next, 0);
    v = flow_attention_stored(&e, next, 1);
  }
  q = arrange(&e, q, &p, queries);
  k = arrange(&e, repeat_heads(&e, k, heads->heads / heads->key_heads), &p, keys);
  v = arrange(&e, repeat_heads(&e, v, heads->heads / heads->key_heads), &p, keys);
  if (e.status != FLOW_OK) return flow_expression_end(&e);
  const int64_t all_queries = product_of(queries, p.attended), all_keys = product_of(keys, p.attended);
  q = replace(&e, q, head_axis + 1, p.attended, &all_queries, 1);
  k = replace(&e, k, head_axis + 1, p.attended, &all_keys, 1);
  v = replace(&e, v, head_axis + 1, p.attended, &all_keys, 1);
  flow_tensor *scores = flow_attention_multiply(&e, q, k, 1); /* {batch, others, heads, all queries, all keys} */
  flow_status status = make_mask(&e, layer, &p, call, head_axis + 1 + 2 * p.attended, queries, keys, start, &mask);
  if (status != FLOW_OK) {
    flow_expression_end(&e);
    return status;
  }
  /* Keras has two ways: the first leaves the mean of all values where a mask leaves out every key, the second, which it takes for what it
   * has no fused product for, leaves zeros. */
  int zero = flow_argument_number(layer->arguments, "dropout") > 0 || query->rank != 3 ||
             flow_argument_boolean(call->options, "return_attention_scores");
  int64_t steps[FLOW_MAX_RANK * 2];
  const int64_t flat[2] = { all_queries, all_keys };
  memcpy(steps, queries, sizeof *steps * (size_t)p.attended);
  memcpy(steps + p.attended, keys, sizeof *steps * (size_t)p.attended);
  if (mask) mask = broadcast_flat(&e, mask, scores, head_axis, steps, p.attended, flat);
  flow_tensor *weights = weights_of(&e, scores, mask, zero);
  flow_tensor *used = flow_attention_dropout(&e, layer, weights, call->training);
  flow_tensor *y = flow_attention_multiply(&e, used, v, 0);
  y = transpose(&e, replace(&e, y, head_axis + 1, 1, queries, p.attended), p.back);
  const int64_t width = heads->heads * heads->value_dim; /* heads side by side, as the last kernel has them */
  y = replace(&e, y, p.rank - 2, 2, &width, 1);
  if (gate) y = e_mul(&e, y, gate);
  y = project_back(&e, layer, y, call->training);
  if (flow_argument_boolean(call->options, "return_attention_scores"))
    weights = replace(&e, weights, head_axis + 1, 2, steps, 2 * p.attended);
  if (e.status == FLOW_OK && next) flow_tensor_retain(next); /* beyond the end of the expression */
  else next = NULL;
  status = flow_attention_give(&e, call, y, weights, outputs);
  if (status != FLOW_OK) flow_tensor_release(next);
  else if (cache) outputs[outputs[1] ? 2 : 1] = next;
  return status;
}
