/* fuse_optimizer.c: the gradient of a large matrix reaches its optimizer as two factors.
 *
 *   sgd(pack(a, matmul(x, g; transpose_a), b), w, ...)  ->  sgd(pack(a, b), w, ..., x, g)
 *
 * The kernel computes a block of x^T g and updates its parameters at once, so that the gradient, which is as large as the
 * parameters, is never written to memory. x and g live until the commit tail; the update itself stays the effect that it
 * was. Runs when a plan is made, after gradients were taken. */
#include "graph/graph.h"
#include <string.h>
#include "ops/optimizer_layout.h"

enum {
  SMALLEST      = 1 << 15,   /* elements: a gradient that stays in the first caches anyway gains nothing */
  SMALLEST_SIDE = 8
};

typedef struct fusion { flow_graph *graph; int *uses; } fusion;

static const flow_node *maker(const fusion *f, int value, int op)
{
  const flow_value *v = &f->graph->values[value];
  if (v->kind != FLOW_VALUE_RESULT || f->uses[value] != 1 || f->graph->nodes[v->node].op != op) return NULL;
  return &f->graph->nodes[v->node];
}

/* A matrix of float32 that is the same whenever it is read: a variable may be written before the optimizer's turn comes. */
static int is_factor(const flow_graph *graph, int value)
{
  const flow_signature *s = &graph->values[value].signature;
  return s->rank == 2 && s->dtype == FLOW_FLOAT32 && s->dims[1] >= SMALLEST_SIDE &&
         graph->values[flow_graph_root(graph, value)].kind != FLOW_VALUE_VARIABLE;
}

/* Elements of a gradient that can be handed over as factors; else 0. */
static int64_t product_size(const fusion *f, int gradient)
{
  const flow_node *node = maker(f, gradient, FLOW_OP_matmul);
  if (!node || !node->attributes.matmul.transpose_a || node->attributes.matmul.transpose_b) return 0;
  if (!is_factor(f->graph, node->inputs[0]) || !is_factor(f->graph, node->inputs[1])) return 0;
  const flow_signature *s = &f->graph->values[gradient].signature;
  int64_t size = flow_shape_size(s->rank, s->dims);
  return size >= SMALLEST ? size : 0;
}

/* Marks the largest products among the inputs of a pack in chosen[]; returns their number. */
static int choose(const fusion *f, const flow_node *pack, char *chosen)
{
  int count = 0;
  for (; count < FLOW_MAX_PRODUCTS; count++) {
    int best = -1;
    int64_t most = 0;
    for (int i = 0; i < pack->input_count; i++) {
      int64_t size = chosen[i] ? 0 : product_size(f, pack->inputs[i]);
      if (size <= most) continue;
      most = size;
      best = i;
    }
    if (best < 0) break;
    chosen[best] = 1;
  }
  return count;
}

/* Leaves the `count` gradients in inputs[] to a pack; none: an empty vector. */
static flow_status shorten_pack(fusion *f, int value, const int *inputs, int count)
{
  flow_signature rest = { .dtype = FLOW_FLOAT32, .rank = 1 };
  for (int i = 0; i < count; i++) {
    const flow_signature *s = &f->graph->values[inputs[i]].signature;
    rest.dims[0] += flow_shape_size(s->rank, s->dims);
  }
  flow_attributes attributes;
  memset(&attributes, 0, sizeof attributes);
  if (!count) {
    attributes.fill.dtype = rest.dtype;
    attributes.fill.rank = rest.rank;
  }
  f->graph->values[value].signature = rest;
  return flow_graph_rewrite(f->graph, f->graph->values[value].node, count ? FLOW_OP_pack : FLOW_OP_fill, inputs, count, &attributes,
                            &rest, 1);
}

static flow_status fuse_update(fusion *f, int index)
{
  const flow_node *effect = &f->graph->nodes[index], *pack = maker(f, effect->inputs[0], FLOW_OP_pack);
  int packed = effect->inputs[0], inputs[FLOW_MAX_OPERANDS], count = effect->input_count, rest = 0;
  void *block;
  if (!pack || effect->attributes.optimizer.products) return FLOW_OK;
  FLOW_TRY(flow_alloc_zero((sizeof(int) + 1) * (size_t)(pack->input_count + 1), &block));
  int *left = block;
  char *chosen = (char *)(left + pack->input_count + 1);
  flow_status status = FLOW_OK;
  if (choose(f, pack, chosen)) {
    flow_attributes attributes = effect->attributes;
    int64_t offset = 0;
    memcpy(inputs, effect->inputs, sizeof(int) * (size_t)count);
    for (int i = 0; i < pack->input_count; i++) {
      const flow_value *v = &f->graph->values[pack->inputs[i]];
      if (chosen[i]) {
        const flow_node *product = &f->graph->nodes[v->node];
        attributes.optimizer.first[attributes.optimizer.products++] = offset;
        inputs[count++] = product->inputs[0];
        inputs[count++] = product->inputs[1];
      } else {
        left[rest++] = pack->inputs[i];
      }
      offset += flow_shape_size(v->signature.rank, v->signature.dims);
    }
    status = shorten_pack(f, packed, left, rest);
    if (status == FLOW_OK) status = flow_graph_rewrite(f->graph, index, effect->op, inputs, count, &attributes, NULL, 0);
  }
  flow_free(block);
  return status;
}

flow_status flow_graph_fuse_optimizers(flow_graph *graph, const char *live, const int *outputs, int output_count)
{
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(int) * (size_t)(graph->value_count + 1), &block));
  fusion f = { .graph = graph, .uses = block };
  for (int n = 0; n < graph->node_count; n++)
    for (int i = 0; live[n] && i < graph->nodes[n].input_count; i++) f.uses[graph->nodes[n].inputs[i]]++;
  for (int i = 0; i < output_count; i++) f.uses[outputs[i]]++;
  flow_status status = FLOW_OK;
  for (int n = 0; n < graph->node_count && status == FLOW_OK; n++)
    if (flow_optimizer_layout_of(graph->nodes[n].op)) status = fuse_update(&f, n);
  flow_free(block);
  return status;
}
