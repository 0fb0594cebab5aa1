/* fuse_quantized.c: nodes before and after quantized convolutions become part of them, so that bytes go from one to the next.
 *
 *   quantize(x), quantize(x), same range                 ->  quantize(x), once
 *   quantized_convolution(x, w, scales [, b]) * s        ->  quantized_convolution(x, w, scales * s [, b * s])       s {channels}
 *   quantized_convolution(x, w, scales [, b]) + t        ->  quantized_convolution(x, w, scales, t [+ b])            t {channels}
 *   quantized_convolution(x, w, scales, b) + r           ->  quantized_convolution(x, w, scales, b, r)               r of its shape
 *   relu(quantized_convolution(...))                     ->  quantized_convolution(..., activation relu)
 *   quantize(relu(x)), low 0                             ->  quantize(x)
 *   quantize(minimum(x, number)), high at most that      ->  quantize(x)
 *   quantize(quantized_convolution(...))                 ->  quantized_convolution(...) of bytes
 *   quantize(max_pool(quantized_convolution(...)))       ->  max_pool(quantized_convolution(...) of bytes)
 *   any of these after a reshape of the convolution      ->  a reshape of it, as Dense layers leave one
 *
 * BatchNormalization by its moving averages is such a product and sum; a relu with a maximum is the minimum. A node that another
 * node also reads stays. Runs when a plan is made, before other fusions. */

#include "plan/passes/fusion.h"

/* The pass over one graph. uses[value]: readers among live nodes and outputs, kept up to date by the pass, since nodes whose results are
 * not read any more are skipped. same[value], of the first `values`: what is read in its place. */
typedef struct fusion { flow_graph *graph; const char *live; int *uses, *same; int values; } fusion;

static const flow_signature *signature_of(const fusion *f, int value) { return &f->graph->values[value].signature; }

static const flow_node *sole_producer(const fusion *f, int value, int op) { return flow_sole_producer(f->graph, f->uses, value, op); }

/* The convolution that makes `value`, float32, for one reader, without an activation; else NULL. */
static const flow_node *bare_convolution(const fusion *f, int value)
{
  const flow_node *node = sole_producer(f, value, FLOW_OP_quantized_convolution);
  return node && node->attributes.convolution.activation == FLOW_LINEAR && signature_of(f, value)->dtype == FLOW_FLOAT32 ? node : NULL;
}

static int per_channel(const fusion *f, int value, int like)
{
  return flow_is_per_channel(f->graph, value, like) && signature_of(f, value)->dtype == FLOW_FLOAT32;
}

/* Inserts a node `op`(a, b) of vectors before node *index, which moves by one. The result will have one reader. */
static flow_status insert(fusion *f, int *index, int op, int a, int b, int *value)
{
  FLOW_TRY(flow_graph_insert_pair(f->graph, index, op, a, b, value));
  f->uses[*value] = 1;
  return FLOW_OK;
}

/* What a convolution adds to its sums: values, or -1. */
typedef struct terms { int bias, residual; } terms;

static terms terms_of(const flow_node *convolution)
{
  int count = convolution->input_count;
  return (terms){ .bias = count > 3 ? convolution->inputs[3] : -1, .residual = count > 4 ? convolution->inputs[4] : -1 };
}

/* Rewrites node `index` as the convolution that makes `made`, with other attributes, scales and terms. A residual has a bias beside it. */
static flow_status replace(fusion *f, int index, int made, const flow_attributes *attributes, int scales, terms added)
{
  const flow_node *old = &f->graph->nodes[f->graph->values[made].node];
  const int inputs[5] = { old->inputs[0], old->inputs[1], scales, added.bias, added.residual };
  int count = added.bias < 0 ? 3 : added.residual < 0 ? 4 : 5;
  flow_attributes with_bias = *attributes;
  flow_signature operands[5], result;
  with_bias.convolution.has_bias = added.bias >= 0;
  for (int i = 0; i < count; i++) operands[i] = *signature_of(f, inputs[i]);
  FLOW_TRY(flow_op_infer(FLOW_OP_quantized_convolution, &with_bias, operands, count, &result));
  f->uses[made] = 0;
  f->graph->values[made].swallowed = 1;
  return flow_graph_rewrite(f->graph, index, FLOW_OP_quantized_convolution, inputs, count, &with_bias, &result, 1);
}

/* And of the same dtype. */
static int same_shape(const fusion *f, int a, int b)
{
  const flow_signature *s = signature_of(f, a), *t = signature_of(f, b);
  return s->dtype == t->dtype && flow_shape_equal(s->rank, s->dims, t->rank, t->dims);
}

/* A product or sum by channel after a convolution of bytes goes into its scales and bias; a sum with a tensor of its shape becomes its
 * residual, once. */
static flow_status fold_affine(fusion *f, int *index)
{
  int is_scale = f->graph->nodes[*index].op == FLOW_OP_mul;
  for (int side = 0; side < 2; side++) {
    int made = f->graph->nodes[*index].inputs[side], other = f->graph->nodes[*index].inputs[1 - side];
    const flow_node *convolution = bare_convolution(f, made);
    if (!convolution) continue;
    terms added = terms_of(convolution);
    flow_attributes attributes = convolution->attributes;
    int scales = convolution->inputs[2], is_residual = !is_scale && added.bias >= 0 && same_shape(f, other, made);
    if (added.residual >= 0 || (!is_residual && !per_channel(f, other, made))) continue;
    if (is_residual) added.residual = other;
    else {
      if (is_scale) FLOW_TRY(insert(f, index, FLOW_OP_mul, scales, other, &scales));
      if (added.bias >= 0) FLOW_TRY(insert(f, index, is_scale ? FLOW_OP_mul : FLOW_OP_add, added.bias, other, &added.bias));
      else if (!is_scale) added.bias = other;
    }
    return replace(f, *index, made, &attributes, scales, added);
  }
  return FLOW_OK;
}

/* The result stays float32, and a quantize after it can still join: that asks for no activation in particular. */
static flow_status fuse_relu(fusion *f, int *index)
{
  int made = f->graph->nodes[*index].inputs[0];
  const flow_node *convolution = bare_convolution(f, made);
  if (!convolution) return FLOW_OK;
  flow_attributes attributes = convolution->attributes;
  attributes.convolution.activation = FLOW_RELU;
  return replace(f, *index, made, &attributes, convolution->inputs[2], terms_of(convolution));
}

static int is_number(const fusion *f, int value, double *number)
{
  const flow_value *v = &f->graph->values[value];
  return v->kind == FLOW_VALUE_CONSTANT && v->signature.rank == 0 && flow_tensor_item(v->tensor, number) == FLOW_OK;
}

/* The value before relu and minimum nodes that cut off only what the range low to high cuts off anyway. */
static int before_caps(const fusion *f, int value, double low, double high)
{
  for (;;) {
    const flow_node *relu = sole_producer(f, value, FLOW_OP_relu), *cap = sole_producer(f, value, FLOW_OP_minimum);
    double number;
    int side = cap ? !is_number(f, cap->inputs[0], &number) : 0;      /* of the number */
    if (relu && low == 0) value = relu->inputs[0];
    else if (cap && is_number(f, cap->inputs[side], &number) && number >= high) value = cap->inputs[1 - side];
    else return value;
  }
}

/* The pooling that makes `value` of a convolution's result, whose largest bytes are the bytes of its largest numbers; else NULL. With a
 * residual some numbers could be NaN, which is the largest number but not the largest byte. */
static const flow_node *pooled_convolution(const fusion *f, int value)
{
  const flow_node *pool = sole_producer(f, value, FLOW_OP_max_pool);
  if (!pool || f->uses[pool->outputs[1]] > 0 || f->graph->place) return NULL;
  const flow_node *convolution = sole_producer(f, pool->inputs[0], FLOW_OP_quantized_convolution);
  int is_fit = convolution && signature_of(f, pool->inputs[0])->dtype == FLOW_FLOAT32 && terms_of(convolution).residual < 0;
  return is_fit ? pool : NULL;
}

/* Node *index, quantize(max_pool(convolution)), becomes the pooling; the convolution of bytes is inserted before it. */
static flow_status pool_bytes(fusion *f, int *index, const flow_node *pool)
{
  const int convolved = pool->inputs[0], pooled = pool->outputs[0];
  const flow_node *convolution = &f->graph->nodes[f->graph->values[convolved].node];
  flow_attributes attributes = convolution->attributes, window = pool->attributes;
  flow_signature operands[5], bytes, results[2];
  int count = convolution->input_count, inputs[5], value;
  for (int i = 0; i < count; i++) {
    inputs[i] = convolution->inputs[i];
    operands[i] = *signature_of(f, inputs[i]);
  }
  attributes.convolution.low = f->graph->nodes[*index].attributes.quantization.low;
  attributes.convolution.high = f->graph->nodes[*index].attributes.quantization.high;
  FLOW_TRY(flow_op_infer(FLOW_OP_quantized_convolution, &attributes, operands, count, &bytes));
  FLOW_TRY(flow_op_infer(FLOW_OP_max_pool, &window, &bytes, 1, results));
  FLOW_TRY(flow_graph_insert(f->graph, *index, FLOW_OP_quantized_convolution, inputs, count, &attributes, &bytes, &value));
  f->uses[value] = 1;
  f->uses[convolved] = f->uses[pooled] = 0;
  f->graph->values[convolved].swallowed = f->graph->values[pooled].swallowed = 1;
  ++*index;
  return flow_graph_rewrite(f->graph, *index, FLOW_OP_max_pool, &value, 1, &window, results, 2);
}

/* What is asked for last is found last: caps go first, then a pooling, then the convolution itself, whose residual and activation are
 * known by now since their nodes come before this one. */
static flow_status fuse_quantize(fusion *f, int *index)
{
  flow_node *node = &f->graph->nodes[*index];
  double low = node->attributes.quantization.low, high = node->attributes.quantization.high;
  node->inputs[0] = before_caps(f, node->inputs[0], low, high);
  int made = node->inputs[0];
  const flow_node *pool = pooled_convolution(f, made);
  if (pool) return pool_bytes(f, index, pool);
  const flow_node *convolution = sole_producer(f, made, FLOW_OP_quantized_convolution);
  if (!convolution || signature_of(f, made)->dtype != FLOW_FLOAT32) return FLOW_OK;
  flow_attributes attributes = convolution->attributes;
  attributes.convolution.low = low;
  attributes.convolution.high = high;
  return replace(f, *index, made, &attributes, convolution->inputs[2], terms_of(convolution));
}

static int same_range(const flow_node *a, const flow_node *b)
{
  return a->attributes.quantization.low == b->attributes.quantization.low &&
         a->attributes.quantization.high == b->attributes.quantization.high;
}

/* If two nodes quantize the same value to the same range, readers of the second one read the first. All pairs are compared: a model has
 * few tensors of bytes. */
static void join(fusion *f)
{
  for (int n = 0; n < f->graph->node_count; n++) {
    const flow_node *node = &f->graph->nodes[n];
    if (!f->live[n] || node->op != FLOW_OP_quantize) continue;
    for (int m = 0; m < n; m++) {
      const flow_node *other = &f->graph->nodes[m];
      if (!f->live[m] || other->op != FLOW_OP_quantize || other->inputs[0] != node->inputs[0] ||
          f->same[other->outputs[0]] != other->outputs[0] || !same_range(other, node))
        continue;
      f->same[node->outputs[0]] = other->outputs[0];
      f->uses[other->outputs[0]] += f->uses[node->outputs[0]];
      f->uses[node->outputs[0]] = 0;
      f->uses[node->inputs[0]]--;
      break;
    }
  }
  flow_graph_redirect(f->graph, f->same, f->values);
}

/* The result of a convolution of which `value` is a reshape, if nothing else reads it, or, for `op` quantize, of its pooling; else -1. */
static int before_reshapes(const fusion *f, int value, int op)
{
  int base = value;
  const flow_node *reshape;
  while ((reshape = sole_producer(f, base, FLOW_OP_reshape)) != NULL) base = reshape->inputs[0];
  int fits = sole_producer(f, base, FLOW_OP_quantized_convolution) || (op == FLOW_OP_quantize && pooled_convolution(f, base));
  return base != value && fits ? base : -1;
}

/* Moves the work of node `index` before the reshapes of its operand: it becomes the reshape of a node that does it. */
static flow_status sink_reshape(fusion *f, int index)
{
  const flow_node *node = &f->graph->nodes[index];
  for (int side = 0; side < node->input_count; side++) {
    int base = before_reshapes(f, node->inputs[side], node->op), inputs[2] = { 0 }, value, op = node->op, count = node->input_count;
    if (base < 0) continue;
    for (int i = 0; i < count; i++) inputs[i] = i == side ? base : node->inputs[i];
    if (count == 2 && (!per_channel(f, inputs[1 - side], base) || !per_channel(f, inputs[1 - side], node->inputs[side]))) continue;
    flow_attributes attributes = node->attributes, shape = { .shape = { 0 } };
    flow_signature operands[2] = { *signature_of(f, inputs[0]), *signature_of(f, inputs[count - 1]) }, made;
    flow_signature result = *signature_of(f, node->outputs[0]);
    FLOW_TRY(flow_op_infer(op, &attributes, operands, count, &made));
    FLOW_TRY(flow_graph_insert(f->graph, index, op, inputs, count, &attributes, &made, &value));
    f->uses[value] = 1;
    shape.shape.rank = result.rank;
    for (int axis = 0; axis < result.rank; axis++) shape.shape.dims[axis] = result.dims[axis];
    return flow_graph_rewrite(f->graph, index + 1, FLOW_OP_reshape, &value, 1, &shape, &result, 1);
  }
  return FLOW_OK;
}

/* What is tried at a node of each op, after reshapes of its operands were moved to its result. */
static const struct { int op; flow_status (*fuse)(fusion *f, int *index); } patterns[] = {
  { FLOW_OP_mul, fold_affine }, { FLOW_OP_add, fold_affine }, { FLOW_OP_relu, fuse_relu }, { FLOW_OP_quantize, fuse_quantize },
};

/* Most plans have no bytes, and then nothing is allocated. */
static int has_bytes(const flow_graph *graph)
{
  for (int n = 0; n < graph->node_count; n++)
    if (graph->nodes[n].op == FLOW_OP_quantize) return 1;
  return 0;
}

flow_status flow_graph_fuse_quantized(flow_graph *graph, const char *live, const int *outputs, int output_count)
{
  void *block;
  if (!has_bytes(graph)) return FLOW_OK;
  /* Each of the present nodes adds at most one, which has two values. */
  size_t values = (size_t)graph->value_count + 3 * (size_t)graph->node_count + 1;
  FLOW_TRY(flow_alloc_zero(2 * sizeof(int) * values, &block));
  fusion f = { .graph = graph, .live = live, .uses = block, .same = (int *)block + values, .values = graph->value_count };
  for (int v = 0; v < graph->value_count; v++) f.same[v] = v;
  flow_graph_count_live_uses(graph, live, outputs, output_count, f.uses);
  join(&f);
  flow_status status = FLOW_OK;
  for (int n = 0; n < graph->node_count && status == FLOW_OK; n++)
    for (size_t p = 0; p < sizeof patterns / sizeof patterns[0] && status == FLOW_OK; p++)
      if (graph->nodes[n].op == patterns[p].op && f.uses[graph->nodes[n].outputs[0]] > 0) {
        status = sink_reshape(&f, n);
        if (status == FLOW_OK) status = patterns[p].fuse(&f, &n);
        break;
      }
  flow_free(block);
  return status;
}
