/* fuse.c: patterns of nodes that one fused op does better. The pass knows shapes of graphs, never models or algorithms;
 * which kernel variant runs a fused op is the device's choice.
 *
 *   convolution(x, w) + b                     -> convolution(x, w, b)
 *   convolution(x * number, w)                -> convolution(x, w), input scale
 *   convolution(cast(cast(x) * number), w), x uint8 -> convolution(x, w), input scale; each of the three may be missing
 *   convolution(zeros around x, w)            -> convolution(x, w), padding
 *   relu(convolution(...))                    -> convolution(..., activation relu)
 *   max_pool(convolution(...)), no padding    -> convolution(..., pool)
 *   matmul(x, w) + b, w {k, n}, b {n}         -> dense(x, w, b)
 *   relu(dense(...))                          -> dense(..., activation relu)
 *
 * The last node of a pattern is rewritten in place, so the order of nodes stays valid and its results keep their readers. The nodes before
 * it lose their readers and are dropped with the dead ones. A pattern is not fused if another node reads a value inside it: computing the
 * value twice would cost more than fusion saves. */
#include <math.h>
#include <string.h>

#include "plan/passes/fusion.h"

typedef struct fusion { flow_graph *graph; int *uses; } fusion;

static const flow_node *sole_producer(const fusion *f, int value, int op) { return flow_sole_producer(f->graph, f->uses, value, op); }

static const flow_signature *signature_of(const fusion *f, int value) { return &f->graph->values[value].signature; }

/* Rewrites node `index` as `op`, which includes the node that makes the value `made`. Updates the counts of uses. */
static flow_status rewrite(fusion *f, int index, int made, int op, const int *inputs, int count, const flow_attributes *attributes)
{
  flow_signature signatures[4] = { 0 }, operands[3];
  for (int i = 0; i < count; i++) operands[i] = *signature_of(f, inputs[i]);
  FLOW_TRY(flow_op_infer(op, attributes, operands, count, signatures));
  const flow_node *node = &f->graph->nodes[index];
  for (int i = 0; i < node->input_count; i++) f->uses[node->inputs[i]]--;
  for (int i = 0; i < count; i++) f->uses[inputs[i]]++;
  const flow_node *dead = &f->graph->nodes[f->graph->values[made].node];
  for (int i = 0; i < dead->input_count && f->uses[made] == 0; i++) f->uses[dead->inputs[i]]--;
  f->graph->values[made].swallowed = 1;
  f->graph->nodes[index].bfloat16 = dead->bfloat16;
  return flow_graph_rewrite(f->graph, index, op, inputs, count, attributes, signatures, flow_op(op)->outputs);
}

/* An addition of one number a channel to the only use of a convolution or product: the op takes it as its bias. */
static flow_status fuse_bias(fusion *f, int index)
{
  for (int side = 0; side < 2; side++) {
    int made = f->graph->nodes[index].inputs[side], bias = f->graph->nodes[index].inputs[1 - side];
    if (!flow_is_per_channel(f->graph, bias, made)) continue;
    const flow_node *conv = sole_producer(f, made, FLOW_OP_convolution);
    if (conv && conv->input_count == 2 && conv->attributes.convolution.activation == FLOW_LINEAR && !conv->attributes.convolution.pool[0]) {
      flow_attributes attributes = conv->attributes;
      attributes.convolution.has_bias = 1;
      return rewrite(f, index, made, FLOW_OP_convolution, (int[]){ conv->inputs[0], conv->inputs[1], bias }, 3, &attributes);
    }
    const flow_node *product = sole_producer(f, made, FLOW_OP_matmul);
    if (product && signature_of(f, product->inputs[1])->rank == 2 && signature_of(f, product->inputs[0])->rank >= 2 &&
        !product->attributes.matmul.transpose_a && !product->attributes.matmul.transpose_b &&
        flow_dtype_is_float(signature_of(f, made)->dtype))
      return rewrite(f, index, made, FLOW_OP_dense, (int[]){ product->inputs[0], product->inputs[1], bias }, 3, &product->attributes);
  }
  return FLOW_OK;
}

/* A product with a number before a convolution: the weights have fewer elements than the input. */
static flow_status fuse_scale(fusion *f, int index)
{
  const flow_node *node = &f->graph->nodes[index];
  const flow_node *product = sole_producer(f, node->inputs[0], FLOW_OP_mul);
  for (int side = 0; product && side < 2; side++) {
    int x = product->inputs[side];
    double scale = flow_constant_number(f->graph, product->inputs[1 - side]);
    const flow_signature *input = signature_of(f, x), *scaled = signature_of(f, node->inputs[0]);
    if (scale == 0 || !isfinite(scale) || node->attributes.convolution.input_scale != 0 || input->dtype != scaled->dtype ||
        !flow_shape_equal(input->rank, input->dims, scaled->rank, scaled->dims)) continue;
    flow_attributes attributes = node->attributes;
    attributes.convolution.input_scale = scale;
    int inputs[3];
    memcpy(inputs, node->inputs, sizeof(int) * (size_t)node->input_count);
    int made = inputs[0];
    inputs[0] = x;
    return rewrite(f, index, made, FLOW_OP_convolution, inputs, node->input_count, &attributes);
  }
  return FLOW_OK;
}

static int is_half(int dtype) { return dtype == FLOW_FLOAT16 || dtype == FLOW_BFLOAT16; }

/* The uint8 value of which `value` is a cast, through floats that hold all bytes; -1: it is not such a cast. */
static int find_bytes(const fusion *f, int value)
{
  for (;;) {
    const flow_node *cast = sole_producer(f, value, FLOW_OP_cast);
    int dtype = signature_of(f, value)->dtype;
    if (dtype == FLOW_UINT8) return value;
    if (!cast || (dtype != FLOW_FLOAT32 && !is_half(dtype))) return -1;
    value = cast->inputs[0];
  }
}

/* Images as they come from files: the kernel converts and scales them where it copies them anyway. Scaled, they are rounded to the dtype
 * of the kernel at once. */
static flow_status fuse_bytes(fusion *f, int index)
{
  const flow_node *node = &f->graph->nodes[index];
  int made = node->inputs[0], scaled = made, inputs[3];
  flow_attributes attributes = node->attributes;
  const flow_node *cast = sole_producer(f, made, FLOW_OP_cast);
  if (cast && is_half(signature_of(f, made)->dtype) && signature_of(f, cast->inputs[0])->dtype == FLOW_FLOAT32) scaled = cast->inputs[0];
  const flow_node *product = sole_producer(f, scaled, FLOW_OP_mul);
  int bytes = find_bytes(f, made);
  for (int side = 0; product && bytes < 0 && side < 2; side++) {
    double scale = flow_constant_number(f->graph, product->inputs[1 - side]);
    if (scale == 0 || !isfinite(scale) || attributes.convolution.input_scale != 0) continue;
    bytes = find_bytes(f, product->inputs[side]);
    attributes.convolution.input_scale = scale;
  }
  if (bytes < 0 || bytes == made) return FLOW_OK;
  if (signature_of(f, made)->dtype == FLOW_FLOAT64 || signature_of(f, bytes)->rank != 4) return FLOW_OK;
  for (int at = made; at != bytes;) {
    const flow_node *dead = &f->graph->nodes[f->graph->values[at].node];
    f->graph->values[at].swallowed = 1;
    at = dead->inputs[dead->op == FLOW_OP_mul && flow_constant_number(f->graph, dead->inputs[0]) != 0];
  }
  memcpy(inputs, node->inputs, sizeof(int) * (size_t)node->input_count);
  inputs[0] = bytes;
  return rewrite(f, index, made, FLOW_OP_convolution, inputs, node->input_count, &attributes);
}

/* Rows and columns of zeros around images, as layers with strides of Keras' applications have them before a convolution without padding:
 * the kernel leaves them out. Not more than its windows reach over, so that each of them holds a pixel. */
static flow_status fuse_padding(fusion *f, int index)
{
  const flow_node *node = &f->graph->nodes[index];
  const flow_node *zeros = sole_producer(f, node->inputs[0], FLOW_OP_slice_gradient);
  if (!zeros) return FLOW_OK;
  const flow_signature *x = signature_of(f, zeros->inputs[0]), *padded = signature_of(f, node->inputs[0]);
  const flow_signature *w = signature_of(f, node->inputs[1]);
  if (x->rank != 4 || x->dims[0] != padded->dims[0] || x->dims[3] != padded->dims[3]) return FLOW_OK;
  flow_attributes attributes = node->attributes;
  for (int i = 0; i < 2; i++) {
    int64_t before = zeros->attributes.slice.begin[i + 1], after = padded->dims[i + 1] - x->dims[i + 1] - before;
    int64_t reach = (w->dims[i] - 1) * attributes.convolution.dilation[i];
    int32_t *padding = &attributes.convolution.padding[2 * i];
    if (x->dims[i + 1] < 1 || (x->dims[i + 1] > 1 && zeros->attributes.slice.step[i + 1] != 1)) return FLOW_OK;
    if (before < 0 || after < 0 || padding[0] + before > reach || padding[1] + after > reach) return FLOW_OK;
    padding[0] += (int32_t)before;
    padding[1] += (int32_t)after;
  }
  int inputs[3], made = node->inputs[0];
  memcpy(inputs, node->inputs, sizeof(int) * (size_t)node->input_count);
  inputs[0] = zeros->inputs[0];
  return rewrite(f, index, made, FLOW_OP_convolution, inputs, node->input_count, &attributes);
}

static flow_status fuse_input(fusion *f, int index)
{
  FLOW_TRY(fuse_padding(f, index));
  FLOW_TRY(fuse_bytes(f, index));
  return fuse_scale(f, index);
}

/* The only use of a convolution or product is relu: the op does it. */
static flow_status fuse_relu(fusion *f, int index)
{
  int made = f->graph->nodes[index].inputs[0];
  const flow_node *conv = sole_producer(f, made, FLOW_OP_convolution);
  if (conv && conv->attributes.convolution.activation == FLOW_LINEAR && !conv->attributes.convolution.pool[0]) {
    flow_attributes attributes = conv->attributes;
    attributes.convolution.activation = FLOW_RELU;
    return rewrite(f, index, made, FLOW_OP_convolution, conv->inputs, conv->input_count, &attributes);
  }
  const flow_node *dense = sole_producer(f, made, FLOW_OP_dense);
  if (dense && dense->attributes.matmul.activation == FLOW_LINEAR) {
    flow_attributes attributes = dense->attributes;
    attributes.matmul.activation = FLOW_RELU;
    return rewrite(f, index, made, FLOW_OP_dense, dense->inputs, 3, &attributes);
  }
  return FLOW_OK;
}

/* The only use of a convolution is a max pooling without padding: the op does it, and its index says where each maximum was. */
static flow_status fuse_pool(fusion *f, int index)
{
  const flow_node *pool = &f->graph->nodes[index];
  const flow_node *conv = sole_producer(f, pool->inputs[0], FLOW_OP_convolution);
  for (int i = 0; i < 4; i++)
    if (pool->attributes.pool.padding[i]) return FLOW_OK;
  if (!conv || conv->attributes.convolution.pool[0] || flow_dtype_size(signature_of(f, pool->inputs[0])->dtype) > 4) return FLOW_OK;
  flow_attributes attributes = conv->attributes;
  for (int i = 0; i < 2; i++) {
    /* With overlapping windows one pixel can get two gradients, and one byte of index cannot say that relu stopped one of them. */
    if (pool->attributes.pool.stride[i] < pool->attributes.pool.size[i]) return FLOW_OK;
    attributes.convolution.pool[i] = pool->attributes.pool.size[i];
    attributes.convolution.pool_stride[i] = pool->attributes.pool.stride[i];
  }
  return rewrite(f, index, pool->inputs[0], FLOW_OP_convolution, conv->inputs, conv->input_count, &attributes);
}

static const struct { int op; flow_status (*fuse)(fusion *f, int index); } patterns[] = {
  { FLOW_OP_convolution, fuse_input }, { FLOW_OP_add, fuse_bias }, { FLOW_OP_relu, fuse_relu }, { FLOW_OP_max_pool, fuse_pool },
};

flow_status flow_graph_fuse(flow_graph *graph, const char *live, int begin, const int *kept, int kept_count)
{
  void *block;
  /* A rewrite adds at most one value (the index of a convolution) per node. */
  FLOW_TRY(flow_alloc_zero(sizeof(int) * (size_t)(graph->value_count + graph->node_count + 1), &block));
  fusion f = { .graph = graph, .uses = block };
  if (live) {
    flow_graph_count_live_uses(graph, live, kept, kept_count, f.uses);
  } else {
    flow_graph_count_uses(graph, f.uses);
    for (int i = 0; i < kept_count; i++) f.uses[kept[i]] += 2; /* so that they never have a sole reader */
  }
  for (int n = graph->node_count - 1; n >= begin && !live; n--) { /* what a policy rounds and nothing reads is not wanted */
    const flow_node *node = &graph->nodes[n];
    if (node->op == FLOW_OP_cast && graph->values[node->outputs[0]].loose && !f.uses[node->outputs[0]]) f.uses[node->inputs[0]]--;
  }
  flow_status status = FLOW_OK;
  for (int n = begin; n < graph->node_count && status == FLOW_OK; n++)
    for (size_t p = 0; p < sizeof patterns / sizeof patterns[0] && status == FLOW_OK; p++)
      if (graph->nodes[n].op == patterns[p].op && (!live || live[n])) {
        status = patterns[p].fuse(&f, n);
        break;
      }
  flow_free(block);
  return status;
}
