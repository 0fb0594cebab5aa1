/* fold_affine.c: numbers per channel after a convolution go into its weights and bias.
 *
 *   convolution(x, w [, b]) * s   ->  convolution(x, w * s [, b * s])     s {channels}
 *   convolution(x, w, b) + t      ->  convolution(x, w, b + t)            t {channels}
 *
 * BatchNormalization by its moving averages is such a pair. Runs when a plan is made, after gradients were taken; what
 * something else reads of the convolution is left alone. (fuse.c gives a bias to a convolution that has none.) */
#include "graph/graph.h"
#include <string.h>

/* Weights per element of a row of the result up to which multiplying them is worth it: weights are multiplied once a run. */
enum { MOST_WEIGHTS = 16 };

typedef struct folding { flow_graph *graph; int *uses; } folding;

static const flow_signature *signature_of(const folding *f, int value) { return &f->graph->values[value].signature; }

/* The convolution that makes `value` for one reader, with nothing after it yet; else NULL. */
static const flow_node *bare_convolution(const folding *f, int value)
{
  const flow_value *v = &f->graph->values[value];
  if (v->kind != FLOW_VALUE_RESULT || v->output != 0 || f->uses[value] != 1) return NULL;
  const flow_node *node = &f->graph->nodes[v->node];
  if (node->op != FLOW_OP_convolution || v->signature.dtype != FLOW_FLOAT32) return NULL;
  return node->attributes.convolution.activation == FLOW_LINEAR && !node->attributes.convolution.pool[0] ? node : NULL;
}

static int per_channel(const folding *f, int value, int like)
{
  const flow_signature *s = signature_of(f, value), *y = signature_of(f, like);
  return s->rank == 1 && s->dims[0] == y->dims[3] && s->dtype == y->dtype;
}

static int few_weights(const folding *f, int weights, int result)
{
  const flow_signature *w = signature_of(f, weights), *y = signature_of(f, result);
  return (double)flow_shape_size(4, w->dims) <= MOST_WEIGHTS * (double)(y->dims[1] * y->dims[2] * y->dims[3]);
}

/* A node `op`(a, b) in front of node *index, which moves on; who asks will read it alone. */
static flow_status insert(folding *f, int *index, int op, int a, int b, int *value)
{
  FLOW_TRY(flow_graph_insert_pair(f->graph, index, op, a, b, value));
  f->uses[*value] = 1;
  return FLOW_OK;
}

/* Node *index becomes the convolution that `made` was, over other weights and bias. */
static flow_status replace(folding *f, int index, int made, int weights, int bias)
{
  const flow_node *old = &f->graph->nodes[f->graph->values[made].node];
  flow_attributes attributes = old->attributes;
  int inputs[3] = { old->inputs[0], weights, bias }, count = old->input_count;
  flow_signature operands[3], results[2];
  for (int i = 0; i < count; i++) operands[i] = *signature_of(f, inputs[i]);
  FLOW_TRY(flow_op(FLOW_OP_convolution)->shape(FLOW_OP_convolution, &attributes, operands, count, results));
  f->uses[made] = 0;
  return flow_graph_rewrite(f->graph, index, FLOW_OP_convolution, inputs, count, &attributes, results, 2);
}

static flow_status fold_scale(folding *f, int *index)
{
  for (int side = 0; side < 2; side++) {
    const flow_node *node = &f->graph->nodes[*index];
    int made = node->inputs[side], scale = node->inputs[1 - side];
    const flow_node *convolution = bare_convolution(f, made);
    if (!convolution || !per_channel(f, scale, made) || !few_weights(f, convolution->inputs[1], made)) continue;
    int weights = convolution->inputs[1], bias = convolution->input_count == 3 ? convolution->inputs[2] : -1;
    FLOW_TRY(insert(f, index, FLOW_OP_mul, weights, scale, &weights));
    if (bias >= 0) FLOW_TRY(insert(f, index, FLOW_OP_mul, bias, scale, &bias));
    return replace(f, *index, made, weights, bias);
  }
  return FLOW_OK;
}

static flow_status fold_shift(folding *f, int *index)
{
  for (int side = 0; side < 2; side++) {
    const flow_node *node = &f->graph->nodes[*index];
    int made = node->inputs[side], shift = node->inputs[1 - side];
    const flow_node *convolution = bare_convolution(f, made);
    if (!convolution || convolution->input_count != 3 || !per_channel(f, shift, made)) continue;
    int weights = convolution->inputs[1], bias;
    FLOW_TRY(insert(f, index, FLOW_OP_add, convolution->inputs[2], shift, &bias));
    return replace(f, *index, made, weights, bias);
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
    if ((op != FLOW_OP_mul && op != FLOW_OP_add) || f.uses[graph->nodes[n].outputs[0]] == 0) continue;   /* dead ones, too */
    status = op == FLOW_OP_mul ? fold_scale(&f, &n) : fold_shift(&f, &n);
  }
  flow_free(block);
  return status;
}
