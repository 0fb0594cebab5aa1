/* fold_affine.c: numbers per channel after a convolution go into its weights and bias.
 *
 *   convolution(x, w [, b]) * s   ->  convolution(x, w * s [, b * s])     s {channels}
 *   (convolution(x, w) + b) * s   ->  convolution(x, w * s, b * s)        b {channels}
 *   convolution(x, w, b) + t      ->  convolution(x, w, b + t)            t {channels}
 *
 * BatchNormalization by its moving averages is such a pair. Runs when a plan is made, after gradients were taken; what
 * something else reads of the convolution is left alone. (fuse.c gives a bias to a convolution that has none.) */
#include "plan/passes/fusion.h"
#include <string.h>

/* The most weights per element of a row of the result for which the product is faster on the weights: it is computed once a run. */
enum { MOST_WEIGHTS = 16 };

typedef struct folding { flow_graph *graph; int *uses; } folding;

static const flow_signature *signature_of(const folding *f, int value) { return &f->graph->values[value].signature; }

/* The convolution that makes `value` for one reader, without activation or pooling; else NULL. */
static const flow_node *bare_convolution(const folding *f, int value)
{
  const flow_node *node = flow_sole_producer(f->graph, f->uses, value, FLOW_OP_convolution);
  if (!node || signature_of(f, value)->dtype != FLOW_FLOAT32) return NULL;
  return node->attributes.convolution.activation == FLOW_LINEAR && !node->attributes.convolution.pool[0] ? node : NULL;
}

/* The same where a bias is added to the convolution, for one reader, before that of `value`, too: *bias, else -1 or that of the
 * convolution itself. */
static const flow_node *biased_convolution(const folding *f, int value, int *bias)
{
  const flow_node *convolution = bare_convolution(f, value);
  const flow_node *sum = flow_sole_producer(f->graph, f->uses, value, FLOW_OP_add);
  *bias = convolution && convolution->input_count == 3 ? convolution->inputs[2] : -1;
  for (int side = 0; sum && side < 2; side++) {
    convolution = bare_convolution(f, sum->inputs[side]);
    if (!convolution || convolution->input_count == 3 || !flow_is_per_channel(f->graph, sum->inputs[1 - side], value)) continue;
    *bias = sum->inputs[1 - side];
    return convolution;
  }
  return sum ? NULL : convolution;
}

static int few_weights(const folding *f, int weights, int result)
{
  const flow_signature *w = signature_of(f, weights), *y = signature_of(f, result);
  return (double)flow_shape_size(4, w->dims) <= MOST_WEIGHTS * (double)(y->dims[1] * y->dims[2] * y->dims[3]);
}

/* Inserts a node `op`(a, b) before node *index, which moves by one. The result will have one reader. */
static flow_status insert(folding *f, int *index, int op, int a, int b, int *value)
{
  FLOW_TRY(flow_graph_insert_pair(f->graph, index, op, a, b, value));
  f->uses[*value] = 1;
  return FLOW_OK;
}

/* Rewrites node `index`, which alone reads `made`, as the convolution of x with these weights and, unless it is -1, this bias. */
static flow_status replace(folding *f, int index, int made, int x, flow_attributes attributes, int weights, int bias)
{
  int inputs[3] = { x, weights, bias }, count = bias < 0 ? 2 : 3;
  flow_signature operands[3], results[2];
  attributes.convolution.has_bias = bias >= 0;
  for (int i = 0; i < count; i++) operands[i] = *signature_of(f, inputs[i]);
  FLOW_TRY(flow_op_infer(FLOW_OP_convolution, &attributes, operands, count, results));
  f->uses[made] = 0;
  return flow_graph_rewrite(f->graph, index, FLOW_OP_convolution, inputs, count, &attributes, results, 2);
}

/* (convolution(x, w) + b) * scale becomes convolution(x, w * scale) + b * scale, where scale has one number for each output channel: the
 * product over the weights costs less than the one over the pictures. Either factor may be the convolution. */
static flow_status fold_scale(folding *f, int *index)
{
  for (int side = 0; side < 2; side++) {
    const flow_node *node = &f->graph->nodes[*index];
    int made = node->inputs[side], scale = node->inputs[1 - side], bias;
    const flow_node *convolution = biased_convolution(f, made, &bias);
    if (!convolution || !flow_is_per_channel(f->graph, scale, made) || !few_weights(f, convolution->inputs[1], made)) continue;
    int x = convolution->inputs[0], weights = convolution->inputs[1];
    flow_attributes attributes = convolution->attributes;
    FLOW_TRY(insert(f, index, FLOW_OP_mul, weights, scale, &weights));
    if (bias >= 0) FLOW_TRY(insert(f, index, FLOW_OP_mul, bias, scale, &bias));
    return replace(f, *index, made, x, attributes, weights, bias);
  }
  return FLOW_OK;
}

/* convolution(x, w) + b + shift becomes convolution(x, w) + (b + shift), where shift has one number for each output channel and the
 * convolution has a bias to add it to. */
static flow_status fold_shift(folding *f, int *index)
{
  for (int side = 0; side < 2; side++) {
    const flow_node *node = &f->graph->nodes[*index];
    int made = node->inputs[side], shift = node->inputs[1 - side];
    const flow_node *convolution = bare_convolution(f, made);
    if (!convolution || convolution->input_count != 3 || !flow_is_per_channel(f->graph, shift, made)) continue;
    int x = convolution->inputs[0], weights = convolution->inputs[1], bias;
    flow_attributes attributes = convolution->attributes;
    FLOW_TRY(insert(f, index, FLOW_OP_add, convolution->inputs[2], shift, &bias));
    return replace(f, *index, made, x, attributes, weights, bias);
  }
  return FLOW_OK;
}

flow_status flow_graph_fold_affine(flow_graph *graph, const char *live, const int *outputs, int output_count)
{
  void *block;
  /* Every fold adds at most two nodes with a value each, and the index of a convolution. */
  FLOW_TRY(flow_alloc_zero(sizeof(int) * (size_t)(graph->value_count + 3 * graph->node_count + 1), &block));
  folding f = { .graph = graph, .uses = block };
  flow_graph_count_live_uses(graph, live, outputs, output_count, f.uses);
  flow_status status = FLOW_OK;
  for (int n = 0; n < graph->node_count && status == FLOW_OK; n++) {
    int op = graph->nodes[n].op;
    if ((op != FLOW_OP_mul && op != FLOW_OP_add) || f.uses[graph->nodes[n].outputs[0]] == 0) continue;   /* or it is dead */
    status = op == FLOW_OP_mul ? fold_scale(&f, &n) : fold_shift(&f, &n);
  }
  flow_free(block);
  return status;
}
