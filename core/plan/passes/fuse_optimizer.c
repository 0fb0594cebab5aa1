/* fuse_optimizer.c: the gradient of a large matrix reaches its optimizer as two factors.
 *
 *   sgd(pack(a, matmul(x, g; transpose_a), b), w, ...)  ->  sgd(pack(a, b), w, ..., x, g)
 *
 * Of several replicas whose rows can be put together (graph->gathers), the factors are the rows of all of them:
 *   sgd(all_reduce(pack(a, matmul(x, g; transpose_a))), w, ...)  ->  sgd(all_reduce(pack(a)), w, ..., all_gather(x), all_gather(g))
 *
 * Workers that share no memory send each other the rows. Then every worker does the arithmetic of all, which pays where that and the rows
 * take less time than a sum of the gradient: see is_worth_sending.
 *
 * The kernel computes a block of x^T g and updates its parameters at once, so that the gradient, which is as large as the
 * parameters, is never written to memory. x and g live until the commit tail; the update itself stays the effect that it
 * was. Devices whose kernels take 16-bit floats take such factors, too. Runs when a plan is made, after gradients were taken. */
#include "graph/graph.h"
#include <string.h>
#include "ops/optimizer_layout.h"
#include "tensor/place.h"

enum {
  SMALLEST      = 1 << 15,   /* elements: a gradient that stays in the first caches anyway gains nothing */
  SMALLEST_SIDE = 8
};

/* A machine and a network as they are common, by which workers decide: what they measured could differ between them and between runs, which
 * would then have other bits. Bytes a second through the network, each way, and through memory; operations a second of a worker. */
static const double NETWORK = 1.25e9, MEMORY = 10e9, ARITHMETIC = 100e9;

typedef struct fusion { flow_graph *graph; int *uses; } fusion;

/* The node of this op whose result `value` is, if the value has no other reader; else NULL. */
static const flow_node *maker(const fusion *f, int value, int op)
{
  const flow_value *v = &f->graph->values[value];
  if (v->kind != FLOW_VALUE_RESULT || f->uses[value] != 1 || f->graph->nodes[v->node].op != op) return NULL;
  return &f->graph->nodes[v->node];
}

static int takes_factors_of(const flow_graph *graph, int dtype)
{
  if (dtype == FLOW_FLOAT16 || dtype == FLOW_BFLOAT16) return graph->place && flow_place_accelerator(graph->place)->device.half_floats;
  return dtype == FLOW_FLOAT32;
}

/* A matrix that is the same whenever it is read: a variable may be written before the optimizer's turn comes. */
static int is_factor(const flow_graph *graph, int value)
{
  const flow_signature *s = &graph->values[value].signature;
  return s->rank == 2 && takes_factors_of(graph, s->dtype) && s->dims[1] >= SMALLEST_SIDE &&
         graph->values[flow_graph_root(graph, value)].kind != FLOW_VALUE_VARIABLE;
}

/* Workers hand each other rows of parameters and slots as a whole (sharded_update.c). */
static int is_too_wide(const flow_graph *graph, int gradient)
{
  const flow_signature *s = &graph->values[gradient].signature;
  return graph->gathers == FLOW_GATHERS_WORKERS && s->dims[1] > FLOW_MOST_SHARDED_COLUMNS;
}

/* Of p workers with n rows each, a sum of a matrix's gradient {in, out} moves 2 (p - 1) / p of its bytes (Patarasuk, Yuan 2009, section 3),
 * and the gradient goes through memory six times more than as factors: made, packed, joined, read by the update. The rows that a worker
 * gets of the others are (p - 1) n (in + out) numbers, for which it does 2 (p - 1) n in out operations. */
static int is_worth_sending(const flow_graph *graph, double in, double out)
{
  enum { PASSES = 6 };
  const flow_network *network = &graph->network;
  if (graph->gathers != FLOW_GATHERS_MESSAGES || network->rows <= 0 || network->workers < 1) return 1;
  double others = network->workers - 1, rows = network->rows * graph->replicas / network->workers, size = in * out;
  double moved = 2 * others / network->workers * size * network->gradient_bytes;
  double sum = moved / NETWORK + PASSES * size * sizeof(float) / MEMORY;
  return others * rows * ((in + out) * sizeof(float) / NETWORK + 2 * size / ARITHMETIC) < sum;
}

/* Workers hand each other factors of a row for each sample: how many rows others have may follow from sizes that differ from theirs. */
static int rows_may_differ(const fusion *f, int factor)
{
  int workers = f->graph->gathers == FLOW_GATHERS_WORKERS || f->graph->gathers == FLOW_GATHERS_MESSAGES;
  return workers && f->graph->values[factor].signature.dims[0] != -1;
}

/* Elements of a gradient that can be handed over as factors; else 0. summed: factors of several replicas go as float32. */
static int64_t product_size(const fusion *f, int gradient, int summed)
{
  const flow_node *node = maker(f, gradient, FLOW_OP_matmul);
  if (!node || !node->attributes.matmul.transpose_a || node->attributes.matmul.transpose_b) return 0;
  if (is_too_wide(f->graph, gradient)) return 0;
  if (!is_factor(f->graph, node->inputs[0]) || !is_factor(f->graph, node->inputs[1])) return 0;
  if (summed && f->graph->values[node->inputs[0]].signature.dtype != FLOW_FLOAT32) return 0;
  if (summed && (rows_may_differ(f, node->inputs[0]) || rows_may_differ(f, node->inputs[1]))) return 0;
  const flow_signature *s = &f->graph->values[gradient].signature;
  int64_t size = flow_shape_size(s->rank, s->dims);
  if (summed && !is_worth_sending(f->graph, (double)s->dims[0], (double)s->dims[1])) return 0;
  return s->dtype == FLOW_FLOAT32 && size >= SMALLEST ? size : 0;
}

/* ---- gradients that replicas sum ----------------------------------------------------------------------------------------------------- */

/* The flat gradient of an update as the gradients that it is packed of, through sums over replicas. */
typedef struct leaves { int *values; int count, capacity, summed; } leaves;

/* Appends the inputs of a pack that nothing else reads. 0: `value` is not such a pack. */
static int add_leaves(const fusion *f, int value, leaves *l, flow_status *status)
{
  const flow_node *pack = maker(f, value, FLOW_OP_pack);
  if (!pack) return 0;
  *status = flow_grow(&l->values, sizeof(int), l->count + pack->input_count, &l->capacity);
  if (*status != FLOW_OK) return 0;
  memcpy(l->values + l->count, pack->inputs, sizeof(int) * (size_t)pack->input_count);
  l->count += pack->input_count;
  return 1;
}

/* pack(...), all_reduce(pack(...)) or pack(all_reduce(pack(...)), ...). 0: the gradient is made in another way. */
static int find_leaves(const fusion *f, int value, leaves *l, flow_status *status)
{
  const flow_node *sum = maker(f, value, FLOW_OP_all_reduce), *buckets = maker(f, value, FLOW_OP_pack);
  if (sum) {
    l->summed = 1;
    return add_leaves(f, sum->inputs[0], l, status);
  }
  if (!buckets) return 0;
  if (!buckets->input_count || !maker(f, buckets->inputs[0], FLOW_OP_all_reduce)) return add_leaves(f, value, l, status);
  l->summed = 1;
  for (int i = 0; i < buckets->input_count; i++) {
    sum = maker(f, buckets->inputs[i], FLOW_OP_all_reduce);
    if (!sum || !add_leaves(f, sum->inputs[0], l, status)) return 0;
  }
  return 1;
}

/* Marks the largest products among the leaves in chosen[]; returns their number. At most FLOW_MAX_PRODUCTS: the largest save most. */
static int choose(const fusion *f, const leaves *l, char *chosen)
{
  int count = 0;
  for (; count < FLOW_MAX_PRODUCTS; count++) {
    int best = -1;
    int64_t most = 0;
    for (int i = 0; i < l->count; i++) {
      int64_t size = chosen[i] ? 0 : product_size(f, l->values[i], l->summed);
      if (size <= most) continue;
      most = size;
      best = i;
    }
    if (best < 0) break;
    chosen[best] = 1;
  }
  return count;
}

/* Inserts an op with one output in front of the effect, which moves by one. */
static flow_status insert(fusion *f, int *effect, int op, const int *inputs, int count, const flow_attributes *attributes,
                          const flow_signature *signature, int *value)
{
  FLOW_TRY(flow_graph_insert(f->graph, *effect, op, inputs, count, attributes, signature, value));
  ++*effect;
  return FLOW_OK;
}

/* What is left to pack, in its own tensor; nothing: an empty vector. */
static flow_status pack_rest(fusion *f, int *effect, const int *inputs, int count, int summed, int *value)
{
  flow_signature rest = { .dtype = FLOW_FLOAT32, .rank = 1 };
  flow_attributes attributes;
  memset(&attributes, 0, sizeof attributes);
  for (int i = 0; i < count; i++) {
    const flow_signature *s = &f->graph->values[inputs[i]].signature;
    rest.dims[0] += flow_shape_size(s->rank, s->dims);
  }
  if (!count) {
    attributes.fill.dtype = rest.dtype;
    attributes.fill.rank = rest.rank;
    return insert(f, effect, FLOW_OP_fill, inputs, 0, &attributes, &rest, value);
  }
  FLOW_TRY(insert(f, effect, FLOW_OP_pack, inputs, count, &attributes, &rest, value));
  if (!summed) return FLOW_OK;
  int packed = *value;
  return insert(f, effect, FLOW_OP_all_reduce, &packed, 1, &attributes, &rest, value);
}

/* A factor as the kernel takes it: with the rows of all replicas where there are several. */
static flow_status take_factor(fusion *f, int *effect, int factor, int summed, int *value)
{
  *value = factor;
  if (!summed) return FLOW_OK;
  flow_attributes attributes;
  memset(&attributes, 0, sizeof attributes);
  attributes.axis.axis = f->graph->replicas;
  flow_signature gathered = f->graph->values[factor].signature;
  gathered.dims[0] *= f->graph->replicas;
  return insert(f, effect, FLOW_OP_all_gather, &factor, 1, &attributes, &gathered, value);
}

/* Hands the chosen gradients over as factors; *index: of the effect, which moves by what is inserted before it. first[product] is the
 * offset of its parameters in the flat arena, which does not change: only the packed gradient has a gap there. left: work space, a value
 * for each leaf. */
static flow_status hand_over(fusion *f, int *index, const leaves *l, const char *chosen, int *left)
{
  int inputs[FLOW_MAX_OPERANDS], count = f->graph->nodes[*index].input_count, rest = 0, op = f->graph->nodes[*index].op;
  flow_attributes attributes = f->graph->nodes[*index].attributes;
  int64_t offset = 0;
  int bfloat16 = 0;
  memcpy(inputs, f->graph->nodes[*index].inputs, sizeof(int) * (size_t)count);
  for (int i = 0; i < l->count; i++) {
    flow_signature s = f->graph->values[l->values[i]].signature;
    if (chosen[i]) {
      const flow_node *made = &f->graph->nodes[f->graph->values[l->values[i]].node];
      int factors[2] = { made->inputs[0], made->inputs[1] };
      bfloat16 |= made->bfloat16 << attributes.optimizer.products;
      attributes.optimizer.first[attributes.optimizer.products++] = offset;
      for (int k = 0; k < 2; k++) FLOW_TRY(take_factor(f, index, factors[k], l->summed, &inputs[count++]));
    } else {
      left[rest++] = l->values[i];
    }
    offset += flow_shape_size(s.rank, s.dims);
  }
  FLOW_TRY(pack_rest(f, index, left, rest, l->summed, &inputs[0]));
  f->graph->nodes[*index].bfloat16 = bfloat16;
  return flow_graph_rewrite(f->graph, *index, op, inputs, count, &attributes, NULL, 0);
}

/* Rewrites an update whose gradients are products, if there are any. *index: of the effect, which moves after what is inserted. */
static flow_status fuse_update(fusion *f, int *index)
{
  const flow_node *effect = &f->graph->nodes[*index];
  leaves l = { .count = 0 };
  void *block = NULL;
  flow_status status = FLOW_OK;
  if (effect->attributes.optimizer.products || !find_leaves(f, effect->inputs[0], &l, &status) || (l.summed && !f->graph->gathers)) {
    flow_free(l.values);
    return status;
  }
  status = flow_alloc_zero((sizeof(int) + 1) * (size_t)(l.count + 1), &block);
  int *left = block;
  char *chosen = status == FLOW_OK ? (char *)(left + l.count + 1) : NULL;
  if (chosen && choose(f, &l, chosen)) status = hand_over(f, index, &l, chosen, left);
  flow_free(block);
  flow_free(l.values);
  return status;
}

flow_status flow_graph_fuse_optimizers(flow_graph *graph, const char *live, const int *outputs, int output_count)
{
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(int) * (size_t)(graph->value_count + 1), &block));
  fusion f = { .graph = graph, .uses = block };
  flow_graph_count_live_uses(graph, live, outputs, output_count, f.uses);
  flow_status status = FLOW_OK;
  for (int n = 0; n < graph->node_count && status == FLOW_OK; n++)
    if (flow_optimizer_layout_of(graph->nodes[n].op)) status = fuse_update(&f, &n);
  flow_free(block);
  return status;
}
