/* fuse_attention.c: attention without the matrix of its scores:
 *
 *   s = matmul(q, k^T), which where(mask, s, a) may follow; w = softmax(s); matmul(w, v)  ->  attention(q, k, v [, mask, a])
 *
 * and where gradients were taken, in whose formulas w is read twice more,
 *
 *   dv = matmul(w^T, g); ds = softmax_gradient(matmul(g, v^T), w), which where(mask, ds, 0) may follow;
 *   dq = matmul(ds, k); dk = matmul(ds^T, q)                 ->  dv, dq, dk = attention_gradient(g, q, k, v [, mask, a])
 *
 * if nothing else reads scores, weights or their gradients. On a GPU q, k and v may have 16 bits beside scores of float32: weights and the
 * gradients of scores are then cast to 16 bits for the products that read them. There the gradient reads what attention gave, too, which
 * costs little memory and saves two products of ten. On the CPU small matrices are not fused: they are in the
 * cache from one op to the next, which go on with the rows that the ops before them have made. Runs when a plan is made, after gradients
 * were taken. */
#include "ops/matrix_product.h"
#include "plan/passes/fusion.h"

/* MOST_IN_CACHE: scores of a matrix up to which it stays in the cache, as in flow_kind_matmul. FEWEST_UNMASKED: in training the scores are
 * computed a second time, a sixth more work. A mask often saves twice that; without one the saved memory, 4 MB for each matrix, is worth it
 * from this number of scores on. */
enum { MOST_IN_CACHE = 1 << 16, FEWEST_UNMASKED = 1 << 20 };

/* Of kernels for GPUs (kernels/cuda/ops/network/attention.h). MOST_COLUMNS: of q or v. FEWEST_ROWS: a warp has that many at a time, and
 * blocks share no row's keys; with fewer rows, as where one step is computed after those in a cache, libraries use more of the GPU. */
enum { MOST_COLUMNS = 256, FEWEST_ROWS = 16 };

/* The nodes that the new ones replace; where: NULL without a mask; cast: of the weights, or NULL; to_query, to_key: NULL where nobody asks
 * for that gradient. */
typedef struct forward {
  const flow_node *scores, *where, *softmax, *cast, *result;
} forward;
typedef struct backward { const flow_node *to_weights, *where, *to_value, *to_query, *to_key; } backward;

static const flow_signature *signature_of(const flow_graph *graph, int value) { return &graph->values[value].signature; }

/* ---- products ----------------------------------------------------------------------------------------------------------------------- */

/* Whether the node is a product of float32 matrices that transposes this operand and no other, or none (0). swapped: the operands that may
 * be swapped, a sum of flow_swapped. */
static int is_product(const flow_node *node, int transposed, int swapped)
{
  return node->op == FLOW_OP_matmul && !node->bfloat16 && (node->attributes.matmul.transpose_a != 0) == (transposed == FLOW_SWAPPED_A) &&
         (node->attributes.matmul.transpose_b != 0) == (transposed == FLOW_SWAPPED_B) && !(node->attributes.matmul.swapped & ~swapped);
}

static int has(const flow_node *node, int bit) { return (node->attributes.matmul.swapped & bit) != 0; }

/* The size of an axis before rows and columns. */
static int64_t leading(const flow_signature *x, int swapped, int axis)
{
  return x->dims[swapped && axis == x->rank - 3 ? x->rank - 2 : axis];
}

/* Whether no matrix of either operand meets several of the other. */
static int pairs(const flow_graph *graph, const flow_node *node)
{
  const flow_signature *a = signature_of(graph, node->inputs[0]), *b = signature_of(graph, node->inputs[1]);
  if (a->rank != b->rank || a->rank < 3) return 0;
  for (int axis = 0; axis < a->rank - 2; axis++)
    if (leading(a, has(node, FLOW_SWAPPED_A), axis) != leading(b, has(node, FLOW_SWAPPED_B), axis)) return 0;
  return 1;
}

/* ---- forward ------------------------------------------------------------------------------------------------------------------------ */

static int has_columns(const flow_signature *x)
{
  return x->dims[x->rank - 1] > 0 && x->dims[x->rank - 1] <= MOST_COLUMNS;
}

/* Whether q, k, v and the result have one dtype, and a device's kernels have room for a row of each. */
static int is_served(const flow_graph *graph, const forward *p)
{
  const flow_signature *q = signature_of(graph, p->scores->inputs[0]), *k = signature_of(graph, p->scores->inputs[1]);
  const flow_signature *v = signature_of(graph, p->result->inputs[1]), *y = signature_of(graph, p->result->outputs[0]);
  if (!graph->place) return 1;
  if (signature_of(graph, p->scores->outputs[0])->dims[q->rank - 2] < FEWEST_ROWS) return 0;
  return (q->dtype == FLOW_FLOAT32 || q->dtype == FLOW_FLOAT16 || q->dtype == FLOW_BFLOAT16) && k->dtype == q->dtype &&
         v->dtype == q->dtype && y->dtype == q->dtype && has_columns(q) && has_columns(v);
}

/* Whether the scores are float32 and more than `most`, of one shape with the weights, and the softmax is over the keys. */
static int is_large(const flow_graph *graph, const forward *p, int64_t most)
{
  const flow_signature *s = signature_of(graph, p->scores->outputs[0]), *w = signature_of(graph, p->softmax->outputs[0]);
  int64_t rows = s->rank >= 3 ? s->dims[s->rank - 2] : -1, keys = rows < 0 ? -1 : s->dims[s->rank - 1];
  int axis = p->softmax->attributes.axis.axis;
  if (rows <= 0 || keys <= 0 || rows > INT32_MAX || keys > INT32_MAX || rows * keys <= most) return 0;
  return s->dtype == FLOW_FLOAT32 && flow_shape_equal(s->rank, s->dims, w->rank, w->dims) && (axis == -1 || axis == s->rank - 1);
}

/* The mask's condition is of bools, and what it leaves out is one number. */
static int is_mask(const flow_graph *graph, const flow_node *where)
{
  const flow_signature *condition = signature_of(graph, where->inputs[0]), *other = signature_of(graph, where->inputs[2]);
  return condition->dtype == FLOW_BOOL && other->rank == 0 && other->dtype == FLOW_FLOAT32;
}

/* Sets p's scores and mask, given its softmax and result. Whether they are the pattern: nothing else reads them, and matrices are large. */
static int find_forward(const flow_graph *graph, const int *readers, forward *p, int trains)
{
  p->where = flow_sole_producer(graph, readers, p->softmax->inputs[0], FLOW_OP_where);
  p->scores = flow_sole_producer(graph, readers, p->where ? p->where->inputs[1] : p->softmax->inputs[0], FLOW_OP_matmul);
  return p->scores && (!p->where || is_mask(graph, p->where)) && is_product(p->scores, FLOW_SWAPPED_B, FLOW_SWAPPED_A | FLOW_SWAPPED_B) &&
         is_product(p->result, 0, FLOW_SWAPPED_B | FLOW_SWAPPED_C) && pairs(graph, p->scores) && pairs(graph, p->result) &&
         is_large(graph, p,
                  graph->place          ? 0
                  : trains && !p->where ? FEWEST_UNMASKED - 1
                                        : MOST_IN_CACHE) &&
         is_served(graph, p);
}

/* Writes q, k, v, and the mask and what it puts in place of scores; returns how many operands these are. */
static int operands_of(const forward *p, int *inputs)
{
  inputs[0] = p->scores->inputs[0];
  inputs[1] = p->scores->inputs[1];
  inputs[2] = p->result->inputs[1];
  if (!p->where) return 3;
  inputs[3] = p->where->inputs[0];
  inputs[4] = p->where->inputs[2];
  return 5;
}

static int swapped_of(const forward *p)
{
  return (has(p->scores, FLOW_SWAPPED_A) ? FLOW_ATTENTION_Q : 0) | (has(p->scores, FLOW_SWAPPED_B) ? FLOW_ATTENTION_K : 0) |
         (has(p->result, FLOW_SWAPPED_B) ? FLOW_ATTENTION_V : 0) | (has(p->result, FLOW_SWAPPED_C) ? FLOW_ATTENTION_Y : 0);
}

static int index_of(const flow_graph *graph, const flow_node *node) { return (int)(node - graph->nodes); }

static flow_status replace_forward(flow_graph *graph, const forward *p)
{
  int inputs[5], count = operands_of(p, inputs);
  const flow_attributes attributes = { .matmul = { .swapped = swapped_of(p) } };
  flow_signature results[2] = { *signature_of(graph, p->result->outputs[0]), *signature_of(graph, p->scores->outputs[0]) };
  results[1].dims[results[1].rank - 1] = 2;
  return flow_graph_rewrite(graph, index_of(graph, p->result), FLOW_OP_attention, inputs, count, &attributes, results, 2);
}

static flow_status fuse_forward(flow_graph *graph, const int *readers, int n)
{
  forward p = { .result = &graph->nodes[n] };
  p.cast = flow_sole_producer(graph, readers, p.result->inputs[0], FLOW_OP_cast);
  p.softmax = flow_sole_producer(graph, readers, p.cast ? p.cast->inputs[0] : p.result->inputs[0], FLOW_OP_softmax);
  return p.softmax && find_forward(graph, readers, &p, 0) ? replace_forward(graph, &p) : FLOW_OK;
}

/* ---- backward ----------------------------------------------------------------------------------------------------------------------- */

/* The node that reads `value` as its first operand and is such a product; NULL: there is none. */
static const flow_node *product_reading(const flow_fusion *f, int value, int transposed, int swapped)
{
  for (int n = 0; n < f->graph->node_count; n++) {
    const flow_node *node = &f->graph->nodes[n];
    if (f->live[n] && node->input_count > 0 && node->inputs[0] == value && is_product(node, transposed, swapped)) return node;
  }
  return NULL;
}

/* The cast that reads `value`, which has this many readers; NULL: they are others. */
static const flow_node *cast_reading(const flow_fusion *f, int value, int readers)
{
  for (int n = 0; n < f->graph->node_count && f->readers[value] == readers; n++) {
    const flow_node *node = &f->graph->nodes[n];
    if (f->live[n] && node->op == FLOW_OP_cast && node->inputs[0] == value) return node;
  }
  return NULL;
}

/* The node that puts 0 into the gradient of the scores where the mask leaves one out, if nothing else reads that gradient; else NULL. */
static const flow_node *masked_gradient(const flow_fusion *f, int ds, int mask)
{
  for (int n = 0; n < f->graph->node_count; n++) {
    const flow_node *node = &f->graph->nodes[n];
    if (!f->live[n] || node->op != FLOW_OP_where || node->inputs[1] != ds) continue;
    const flow_value *other = &f->graph->values[node->inputs[2]];
    int is_zero = other->kind == FLOW_VALUE_CONSTANT && other->signature.rank == 0 && flow_constant_number(f->graph, node->inputs[2]) == 0;
    return node->inputs[0] == mask && is_zero && f->readers[ds] == 1 ? node : NULL;
  }
  return NULL;
}

/* Whether an operand of one product is that of another, and lies the same way. */
static int is_same(const flow_node *a, int of_a, const flow_node *b, int of_b)
{
  static const int bits[] = { FLOW_SWAPPED_A, FLOW_SWAPPED_B };
  return a->inputs[of_a] == b->inputs[of_b] && has(a, bits[of_a]) == has(b, bits[of_b]);
}

/* Whether the node that is to make the results of both may replace a product of the scores' gradient: there is no such product, or its
 * second operand is this one of the scores, it comes after that node, and the plan does not return its result. */
static int is_follower(const flow_fusion *f, const backward *b, const flow_node *node, const flow_node *scores, int operand)
{
  return !node || (is_same(node, 1, scores, operand) && b->to_value < node && !f->returned[node->outputs[0]]);
}

/* Sets *b, given the gradient of the softmax. Whether its nodes are the pattern. */
static int find_backward(const flow_fusion *f, const flow_node *gradient, const forward *p, backward *b)
{
  enum { B = FLOW_SWAPPED_B, BOTH = FLOW_SWAPPED_A | FLOW_SWAPPED_B, RESULTS = FLOW_SWAPPED_B | FLOW_SWAPPED_C };
  int ds = gradient->outputs[0];
  b->to_weights = flow_sole_producer(f->graph, f->readers, gradient->inputs[0], FLOW_OP_matmul);
  b->where = p->where ? masked_gradient(f, ds, p->where->inputs[0]) : NULL;
  if (!b->to_weights || !is_product(b->to_weights, B, BOTH) || (p->where && !b->where)) return 0;
  if (b->where) ds = b->where->outputs[0];
  const flow_node *cast = cast_reading(f, ds, 1);
  if (cast) ds = cast->outputs[0];
  b->to_value = product_reading(f, p->result->inputs[0], FLOW_SWAPPED_A, RESULTS);
  b->to_query = product_reading(f, ds, 0, RESULTS);
  b->to_key = product_reading(f, ds, FLOW_SWAPPED_A, RESULTS);
  if (!b->to_value || (!b->to_query && !b->to_key) || f->readers[ds] != (b->to_query != NULL) + (b->to_key != NULL)) return 0;
  return is_follower(f, b, b->to_query, p->scores, 1) && is_follower(f, b, b->to_key, p->scores, 0) &&
         is_same(b->to_weights, 0, b->to_value, 1) && is_same(b->to_weights, 1, p->result, 1) &&
         has(b->to_weights, FLOW_SWAPPED_A) == has(p->result, FLOW_SWAPPED_C);
}

/* The node of dv, the first of the three, becomes the node of all of them. */
static flow_status replace_backward(flow_fusion *f, const forward *p, const backward *b)
{
  int inputs[6] = { b->to_weights->inputs[0] }, count = 1 + operands_of(p, inputs + 1);
  const int index = index_of(f->graph, b->to_value);
  const int dq = b->to_query ? b->to_query->outputs[0] : -1, dk = b->to_key ? b->to_key->outputs[0] : -1;
  const flow_signature results[] = { *signature_of(f->graph, b->to_value->outputs[0]), *signature_of(f->graph, dq < 0 ? inputs[1] : dq),
                                     *signature_of(f->graph, dk < 0 ? inputs[2] : dk) };
  const int to_q = dq < 0 ? has(p->scores, FLOW_SWAPPED_A) : has(b->to_query, FLOW_SWAPPED_C);
  const int to_k = dk < 0 ? has(p->scores, FLOW_SWAPPED_B) : has(b->to_key, FLOW_SWAPPED_C);
  const flow_attributes attributes = { .matmul = { .swapped = swapped_of(p) | (has(b->to_value, FLOW_SWAPPED_C) ? FLOW_ATTENTION_DV : 0) |
                                                              (to_q ? FLOW_ATTENTION_DQ : 0) | (to_k ? FLOW_ATTENTION_DK : 0) } };
  FLOW_TRY(flow_graph_rewrite(f->graph, index, FLOW_OP_attention_gradient, inputs, count, &attributes, results, 3));
  if (dq >= 0) f->same[dq] = f->graph->nodes[index].outputs[1];
  if (dk >= 0) f->same[dk] = f->graph->nodes[index].outputs[2];
  return FLOW_OK;
}

/* Whether what the new node makes has the dtype of q, as its kernels do. */
static int is_alike(const flow_fusion *f, const forward *p, const flow_node *node)
{
  return !node || signature_of(f->graph, node->outputs[0])->dtype == signature_of(f->graph, p->scores->inputs[0])->dtype;
}

/* The weights must have three readers: the result, the gradient of the values and this node; or this node and a cast, which the others
 * read. */
static flow_status fuse_backward(flow_fusion *f, int n)
{
  enum { RESULTS = FLOW_SWAPPED_B | FLOW_SWAPPED_C };
  const flow_node *gradient = &f->graph->nodes[n];
  const int weights = gradient->inputs[1];
  const flow_value *value = &f->graph->values[weights];
  forward p = { .cast = cast_reading(f, weights, 2) };
  const int read = p.cast ? p.cast->outputs[0] : weights;
  if (value->kind != FLOW_VALUE_RESULT || f->readers[read] != (p.cast ? 2 : 3)) return FLOW_OK;
  p.softmax = &f->graph->nodes[value->node];
  p.result = product_reading(f, read, 0, RESULTS);
  backward b;
  if (p.softmax->op != FLOW_OP_softmax || !p.result || !find_forward(f->graph, f->readers, &p, 1)) return FLOW_OK;
  if (!find_backward(f, gradient, &p, &b)) return FLOW_OK;
  if (!is_alike(f, &p, b.to_value) || !is_alike(f, &p, b.to_query) || !is_alike(f, &p, b.to_key)) return FLOW_OK;
  FLOW_TRY(replace_backward(f, &p, &b));
  return replace_forward(f->graph, &p);
}

/* ---- what the gradient need not compute again ------------------------------------------------------------------------------------ */

/* The attention before node n that has computed the same; NULL: there is none. */
static const flow_node *attention_before(const flow_fusion *f, int n)
{
  enum { OPERANDS = FLOW_ATTENTION_Q | FLOW_ATTENTION_K | FLOW_ATTENTION_V };
  const flow_node *gradient = &f->graph->nodes[n];
  for (const flow_node *node = f->graph->nodes; node < gradient; node++) {
    int same = node->op == FLOW_OP_attention && f->live[index_of(f->graph, node)] && node->input_count == gradient->input_count - 1 &&
               !((node->attributes.matmul.swapped ^ gradient->attributes.matmul.swapped) & OPERANDS);
    for (int i = 0; same && i < node->input_count; i++) same = node->inputs[i] == gradient->inputs[i + 1];
    if (same) return node;
  }
  return NULL;
}

static flow_status keep(flow_fusion *f, int n)
{
  flow_node *gradient = &f->graph->nodes[n];
  const flow_node *made = attention_before(f, n);
  int inputs[8];
  if (!made || gradient->attributes.matmul.swapped & FLOW_ATTENTION_KEPT) return FLOW_OK;
  for (int i = 0; i < gradient->input_count; i++) inputs[i] = gradient->inputs[i];
  for (int i = 0; i < 2; i++) inputs[gradient->input_count + i] = made->outputs[i];
  flow_attributes attributes = gradient->attributes;
  attributes.matmul.swapped |= FLOW_ATTENTION_KEPT | (has(made, FLOW_ATTENTION_Y) ? FLOW_ATTENTION_KEPT_Y : 0);
  return flow_graph_rewrite(f->graph, n, gradient->op, inputs, gradient->input_count + 2, &attributes, NULL, gradient->output_count);
}

/* On the CPU a gradient computes weights of rows in any case, and nothing is kept. */
flow_status flow_graph_keep_attention(flow_graph *graph, const char *live, const int *outputs, int output_count)
{
  return flow_fusion_run(graph, live, outputs, output_count, FLOW_OP_attention_gradient, keep);
}

flow_status flow_graph_fuse_attention(flow_graph *graph, const char *live, const int *outputs, int output_count)
{
  FLOW_TRY(flow_fusion_run_anywhere(graph, live, outputs, output_count, FLOW_OP_softmax_gradient, fuse_backward));
  return flow_rewrite_each(graph, live, outputs, output_count, FLOW_OP_matmul, fuse_forward);
}
