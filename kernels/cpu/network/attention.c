/* attention.c: the ops attention, softmax(q k^T) v, and attention_gradient, by blocks of the query's rows. All scores of a block fit into a
 * core's cache; the whole matrix of scores is never in memory. The gradient computes them again, as in Dao et al., "FlashAttention" (2022).
 * If a mask, such as a causal one, lets a block see some of the keys only, scores of the others are not computed.
 *
 * Products are exact: the bits of a row depend neither on its block nor on the number of threads. The gradient adds up over rows in their
 * order. */
#include <string.h>

#include "cpu/matrix_product/gemm.h"
#include "cpu/network/softmax_rows.h"
#include "ops/matrix_product.h"

/* MOST_SCORES: of a block, 512 KB. FEWEST_ROWS: with fewer, packing the keys for each block would take a noticeable time. MOST_ROWS: 128
 * to 320 take the same time; with smaller blocks more threads have work. */
enum { MOST_SCORES = 1 << 17, FEWEST_ROWS = 64, MOST_ROWS = 192 };

/* The inputs of attention. Those of attention_gradient are g and these. */
enum { QUERY, KEY, VALUE, MASK, LEFT_OUT };

/* The outputs of attention_gradient. */
enum { VALUE_GRADIENT, QUERY_GRADIENT, KEY_GRADIENT };

/* A call: its products, described as calls of the op matmul for all matrices, and how it is cut. */
typedef struct attention {
  const flow_operand *inputs;       /* from QUERY on */
  int is_masked;
  flow_operand scores;              /* {..., rows, keys}: shape only, no memory holds it */
  product first, second;            /* q k^T, weights v */
  product to_weights;               /* g v^T: of the gradient, as the rest */
  product to_value, to_query, to_key;
  int64_t rows, keys, matrices;
  int64_t block, blocks;            /* rows of a block; blocks of a matrix */
  float *row_numbers;               /* of attention: two for each row; NULL: nobody reads them */
} attention;

/* A call of matmul with these operands. */
static product product_of(const flow_operand *a, const flow_operand *b, const flow_operand *c, flow_attributes attributes)
{
  flow_operand inputs[2] = { *a, *b }, output = *c;
  const flow_call call = { .op = FLOW_OP_matmul, .attributes = &attributes, .inputs = inputs, .outputs = &output,
                           .input_count = 2, .output_count = 1 };
  return describe_matmul(&call);
}

/* Whether the operand of this bit lies in memory as {..., rows, heads, columns}. */
static int is_swapped(const flow_call *call, int bit) { return (call->attributes->matmul.swapped & bit) != 0; }

/* keys: scores that a row has in memory. */
static int64_t block_for(int64_t rows, int64_t keys)
{
  int64_t most = keys > 0 ? MOST_SCORES / keys : MOST_ROWS;
  if (most < FEWEST_ROWS) most = FEWEST_ROWS;
  if (most > MOST_ROWS) most = MOST_ROWS;
  return most < rows ? most : rows > 0 ? rows : 1;
}

/* The products of the gradient. Those that add up over rows transpose the weights or the scores. */
static void describe_gradient(const flow_call *call, attention *a)
{
  const flow_operand *g = &call->inputs[0], *q = &a->inputs[QUERY], *k = &a->inputs[KEY], *v = &a->inputs[VALUE];
  const int of_g = is_swapped(call, FLOW_ATTENTION_Y), of_q = is_swapped(call, FLOW_ATTENTION_Q);
  const int of_k = is_swapped(call, FLOW_ATTENTION_K), of_v = is_swapped(call, FLOW_ATTENTION_V);
  const int to_q = is_swapped(call, FLOW_ATTENTION_DQ), to_k = is_swapped(call, FLOW_ATTENTION_DK);
  const int to_v = is_swapped(call, FLOW_ATTENTION_DV);
  const flow_operand *s = &a->scores, *outputs = call->outputs;
  a->to_weights = product_of(g, v, s, (flow_attributes){ .matmul = { .transpose_b = 1, .swapped = of_g | of_v << 1 } });
  a->to_value = product_of(s, g, &outputs[VALUE_GRADIENT],
                           (flow_attributes){ .matmul = { .transpose_a = 1, .swapped = of_g << 1 | to_v << 2 } });
  a->to_query = product_of(s, k, &outputs[QUERY_GRADIENT], (flow_attributes){ .matmul = { .swapped = of_k << 1 | to_q << 2 } });
  a->to_key = product_of(s, q, &outputs[KEY_GRADIENT],
                         (flow_attributes){ .matmul = { .transpose_a = 1, .swapped = of_q << 1 | to_k << 2 } });
}

static attention describe_attention(const flow_call *call)
{
  const int is_gradient = call->op == FLOW_OP_attention_gradient;
  const flow_operand *inputs = call->inputs + is_gradient, *q = &inputs[QUERY], *k = &inputs[KEY], *v = &inputs[VALUE];
  const int of_q = is_swapped(call, FLOW_ATTENTION_Q), of_k = is_swapped(call, FLOW_ATTENTION_K);
  const int of_v = is_swapped(call, FLOW_ATTENTION_V), of_y = is_swapped(call, FLOW_ATTENTION_Y);
  const int kept = is_gradient && is_swapped(call, FLOW_ATTENTION_KEPT) ? 2 : 0; /* which are not read here */
  attention a = { .inputs = inputs,
                  .is_masked = call->input_count - is_gradient - kept > MASK,
                  .scores = { .dtype = FLOW_FLOAT32, .rank = q->rank },
                  .rows = matrix_rows(q, of_q),
                  .keys = matrix_rows(k, of_k),
                  .matrices = 1 };
  const int last = q->rank - 2;
  for (int axis = 0; axis < last; axis++) {
    a.scores.shape[axis] = q->shape[of_q && axis == last - 1 ? last : axis];
    a.matrices *= a.scores.shape[axis];
  }
  a.scores.shape[last] = a.rows;
  a.scores.shape[last + 1] = a.keys;
  a.first = product_of(q, k, &a.scores, (flow_attributes){ .matmul = { .transpose_b = 1, .swapped = of_q | of_k << 1 } });
  a.second = product_of(&a.scores, v, is_gradient ? &call->inputs[0] : &call->outputs[0],
                        (flow_attributes){ .matmul = { .swapped = of_v << 1 | of_y << 2 } });
  if (is_gradient) describe_gradient(call, &a);
  else a.row_numbers = call->outputs[1].data;
  a.block = block_for(a.rows, is_gradient ? 2 * a.keys : a.keys);
  a.blocks = (a.rows + a.block - 1) / a.block;
  return a;
}

/* ---- memory --------------------------------------------------------------------------------------------------------------------- */

/* A member's scratch memory: the weights of a block; for the gradient also their gradients and a sum over the block's rows; partial sums of
 * a product, and what gemm_run packs. */
typedef struct memory { float *weights, *gradients, *sum; void *partial, *packed; } memory;

static size_t scores_bytes(const attention *a)
{
  return gemm_to_lines(sizeof(float) * (size_t)a->block * (size_t)a->keys);
}
static size_t sum_bytes(const attention *a)
{
  int64_t columns = a->first.k > a->second.n ? a->first.k : a->second.n;
  return gemm_to_lines(sizeof(float) * (size_t)a->keys * (size_t)columns);
}

/* The most that a product of a block needs. */
static size_t partial_bytes(const attention *a)
{
  const int64_t d = a->first.k, e = a->second.n;
  const gemm products[] = {
    { .m = a->block, .n = a->keys, .k = d > e ? d : e, .transpose_b = 1, .exact = 1 },
    { .m = a->block, .n = d > e ? d : e, .k = a->keys, .exact = 1 },
    { .m = a->keys, .n = d > e ? d : e, .k = a->block, .transpose_a = 1, .exact = 1 },
  };
  size_t most = 0;
  for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
    size_t bytes = gemm_shared_bytes(&products[i]);
    if (bytes > most) most = bytes;
  }
  return gemm_to_lines(most);
}

static size_t scratch_bytes(const flow_call *call)
{
  attention a = describe_attention(call);
  size_t more = call->op == FLOW_OP_attention_gradient ? scores_bytes(&a) + sum_bytes(&a) : 0;
  return scores_bytes(&a) + more + partial_bytes(&a) + gemm_scratch_bytes();
}

static memory memory_of(const flow_call *call, const attention *a)
{
  char *at = call->scratch, *next = at + scores_bytes(a);
  memory m = { .weights = (float *)at };
  if (call->op == FLOW_OP_attention_gradient) {
    m.gradients = (float *)next;
    m.sum = (float *)(next + scores_bytes(a));
    next += scores_bytes(a) + sum_bytes(a);
  }
  m.partial = next;
  m.packed = next + partial_bytes(a);
  return m;
}

static void multiply(const gemm *g, const memory *m)
{
  for (int phase = 0; phase < GEMM_PHASES; phase++)
    for (int64_t part = 0; part < gemm_parts(g, phase); part++) gemm_run(g, phase, part, m->partial, m->packed);
}

/* ---- masks ----------------------------------------------------------------------------------------------------------------------- */

/* A matrix of a mask that broadcasts to the scores: steps of 0 repeat. `at` NULL: there is none. */
typedef struct mask { const uint8_t *at; int64_t row_step, key_step; } mask;

static mask mask_of(const attention *a, int64_t matrix)
{
  if (!a->is_masked) return (mask){ .at = NULL };
  const flow_operand *x = &a->inputs[MASK];
  const int rank = a->scores.rank, more = rank - x->rank;
  int64_t steps[FLOW_MAX_RANK] = { 0 }, next = 1, offset = 0;
  for (int axis = rank - 1; axis >= more; axis--) {
    steps[axis] = x->shape[axis - more] == 1 ? 0 : next;
    next *= x->shape[axis - more];
  }
  for (int axis = rank - 3; axis >= 0; axis--) {
    offset += matrix % a->scores.shape[axis] * steps[axis];
    matrix /= a->scores.shape[axis];
  }
  return (mask){ .at = (const uint8_t *)x->data + offset, .row_step = steps[rank - 2], .key_step = steps[rank - 1] };
}

/* Bytes of a line that are looked at together: most lines of long masks begin or end with many zeros. */
enum { TOGETHER = 32 };

static int has_any(const uint8_t *bytes)
{
  uint64_t words[TOGETHER / sizeof(uint64_t)];
  memcpy(words, bytes, TOGETHER);
  return (words[0] | words[1] | words[2] | words[3]) != 0;
}

/* The first of `keys` keys that a line of the mask lets through; `keys` if it lets none through. */
static int64_t first_seen(const uint8_t *line, int64_t keys)
{
  int64_t key = 0;
  while (key + TOGETHER <= keys && !has_any(line + key)) key += TOGETHER;
  while (key < keys && !line[key]) key++;
  return key;
}

/* One more than the last key that a line of the mask lets through; 0 if it lets none through. */
static int64_t end_seen(const uint8_t *line, int64_t keys)
{
  int64_t end = keys;
  while (end >= TOGETHER && !has_any(line + end - TOGETHER)) end -= TOGETHER;
  while (end > 0 && !line[end - 1]) end--;
  return end;
}

/* The keys [*first, *end) outside of which the mask lets none of `rows` rows see anything. All of them where a row sees no key at all: its
 * weights are then those of equal scores. */
static void find_keys(const mask *m, int64_t row, int64_t rows, int64_t keys, int64_t *first, int64_t *end)
{
  *first = keys;
  *end = 0;
  for (int64_t i = row; i < row + rows; i++) {
    const uint8_t *line = m->at + i * m->row_step;
    const int64_t begin = m->key_step ? first_seen(line, keys) : 0;
    if (!m->key_step || begin == keys) {
      *first = 0;
      *end = keys;
      return;
    }
    const int64_t last = end_seen(line, keys);
    if (begin < *first) *first = begin;
    if (last > *end) *end = last;
  }
}

static void leave_out(const mask *m, int64_t row, int64_t first, int64_t end, float value, float *scores)
{
  const uint8_t *line = m->at + row * m->row_step + first * m->key_step;
  if (m->key_step) {
    for (int64_t j = 0; j < end - first; j++) scores[j] = line[j] ? scores[j] : value;
  } else if (!line[0]) {
    for (int64_t j = 0; j < end - first; j++) scores[j] = value;
  }
}

/* ---- a block --------------------------------------------------------------------------------------------------------------------- */

/* Scores of a mask that are not below this may weigh something beside those that it lets through. */
#define WEIGHS_NOTHING (-1e5f)

/* Rows [row, row + rows) of a matrix, and the keys [first, end) that they see; others weigh nothing. */
typedef struct block { int64_t matrix, row, rows, first, end; mask seen; } block;

static block block_of(const attention *a, int64_t matrix, int64_t number)
{
  block b = { .matrix = matrix, .row = number * a->block, .end = a->keys, .seen = mask_of(a, matrix) };
  b.rows = a->rows - b.row < a->block ? a->rows - b.row : a->block;
  if (b.seen.at && *(const float *)a->inputs[LEFT_OUT].data < WEIGHS_NOTHING) find_keys(&b.seen, b.row, b.rows, a->keys, &b.first, &b.end);
  return b;
}

/* Scores of a block, or gradients of its weights: rows of one operand times the keys that they see of another. */
static void multiply_rows(const attention *a, const product *p, const block *b, float *to, const memory *m)
{
  const gemm g = { .m = b->rows, .n = b->end - b->first, .k = p->k, .transpose_b = 1, .lda = p->lda, .ldb = p->ldb, .ldc = a->keys,
                   .exact = 1, .a = (const float *)p->a + a_offset(p, b->matrix) + b->row * p->lda,
                   .b = (const float *)p->b + b_offset(p, b->matrix) + b->first * p->ldb, .c = to };
  multiply(&g, m);
}

/* Rows of the result: `weights` of the block times the keys that they see. */
static void multiply_weights(const attention *a, const product *p, const block *b, const float *weights, const memory *m)
{
  const gemm g = { .m = b->rows, .n = p->n, .k = b->end - b->first, .lda = a->keys, .ldb = p->ldb, .ldc = p->ldc, .exact = 1,
                   .a = weights, .b = (const float *)p->b + b_offset(p, b->matrix) + b->first * p->ldb,
                   .c = (float *)p->c + c_offset(p, b->matrix) + b->row * p->ldc };
  multiply(&g, m);
}

/* The weights of a block, to m->weights. The largest score weighs what exponentials are multiplied with. */
static void weigh(const attention *a, const block *b, const memory *m)
{
  multiply_rows(a, &a->first, b, m->weights, m);
  for (int64_t i = 0; i < b->rows; i++) {
    float *line = m->weights + i * a->keys;
    if (b->seen.at) leave_out(&b->seen, b->row + i, b->first, b->end, *(const float *)a->inputs[LEFT_OUT].data, line);
    float *numbers = a->row_numbers ? a->row_numbers + 2 * (b->matrix * a->rows + b->row + i) : NULL;
    if (numbers) numbers[0] = row_max(line, b->end - b->first);
    softmax_row(line, line, b->end - b->first);
    if (numbers) numbers[1] = row_max(line, b->end - b->first);
  }
}

static void attend(const attention *a, int64_t part, const memory *m)
{
  const block b = block_of(a, part / a->blocks, part % a->blocks);
  weigh(a, &b, m);
  if (a->second.c) multiply_weights(a, &a->second, &b, m->weights, m);
}

/* ---- the gradient ---------------------------------------------------------------------------------------------------------------- */

/* Rows of a matrix of an output, which may lie apart. */
static void clear(const product *p, int64_t matrix, int64_t rows)
{
  for (int64_t i = 0; i < rows; i++) memset((float *)p->c + c_offset(p, matrix) + i * p->ldc, 0, sizeof(float) * (size_t)p->n);
}

/* Adds to the keys that the block sees what its rows give them: transposed weights, or gradients of scores, times these rows. */
static void add_to_keys(const attention *a, const product *p, const block *b, const float *weights, const memory *m)
{
  const int64_t keys = b->end - b->first;
  const gemm g = { .m = keys, .n = p->n, .k = b->rows, .transpose_a = 1, .lda = a->keys, .ldb = p->ldb, .ldc = p->n, .exact = 1,
                   .a = weights, .b = (const float *)p->b + b_offset(p, b->matrix) + b->row * p->ldb, .c = m->sum };
  multiply(&g, m);
  for (int64_t j = 0; j < keys; j++) {
    float *to = (float *)p->c + c_offset(p, b->matrix) + (b->first + j) * p->ldc;
    const float *sum = m->sum + j * p->n;
    for (int64_t i = 0; i < p->n; i++) to[i] += sum[i];
  }
}

/* The gradients of a block's scores, to m->gradients: none where the mask leaves a score out. */
static void weigh_gradients(const attention *a, const block *b, const memory *m)
{
  multiply_rows(a, &a->to_weights, b, m->gradients, m);
  for (int64_t i = 0; i < b->rows; i++) {
    float *line = m->gradients + i * a->keys;
    softmax_gradient_row(line, m->weights + i * a->keys, line, b->end - b->first);
    if (b->seen.at) leave_out(&b->seen, b->row + i, b->first, b->end, 0, line);
  }
}

/* All of a matrix, block by block. */
static void differentiate(const attention *a, int64_t matrix, const memory *m)
{
  if (a->to_value.c) clear(&a->to_value, matrix, a->keys);
  if (a->to_key.c) clear(&a->to_key, matrix, a->keys);
  for (int64_t number = 0; number < a->blocks; number++) {
    const block b = block_of(a, matrix, number);
    weigh(a, &b, m);
    if (a->to_value.c) add_to_keys(a, &a->to_value, &b, m->weights, m);
    weigh_gradients(a, &b, m);
    if (a->to_query.c) multiply_weights(a, &a->to_query, &b, m->gradients, m);
    if (a->to_key.c) add_to_keys(a, &a->to_key, &b, m->gradients, m);
  }
}

/* ---- entries --------------------------------------------------------------------------------------------------------------------- */

/* Two products for a block's rows, and five for its gradient. */
static double cost(const flow_call *call)
{
  enum { EXPONENTIAL = 16 };        /* a score is worth that many multiply-adds */
  const double products = call->op == FLOW_OP_attention_gradient ? 2.5 : 1;
  attention a = describe_attention(call);
  const gemm first = { .m = a.block, .n = a.keys, .k = a.first.k, .transpose_b = 1, .exact = 1 };
  const gemm second = { .m = a.block, .n = a.second.n, .k = a.keys, .exact = 1 };
  double scores = (double)a.block * (double)a.keys * EXPONENTIAL;
  return (products * (gemm_cost(&first) + gemm_cost(&second)) + scores) * (double)(a.blocks * a.matrices);
}

static int64_t block_parts(const flow_call *call, int phase)
{
  (void)phase;
  attention a = describe_attention(call);
  return a.matrices * a.blocks;
}

static int64_t matrix_parts(const flow_call *call, int phase)
{
  (void)phase;
  return describe_attention(call).matrices;
}

static flow_status run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase;
  attention a = describe_attention(call);
  const memory m = memory_of(call, &a);
  for (int64_t part = begin; part < end; part++) {
    if (call->op == FLOW_OP_attention_gradient) differentiate(&a, part, &m);
    else if (a.second.c || a.row_numbers) attend(&a, part, &m);
  }
  return FLOW_OK;
}

const flow_kernel FLOW_KERNELS(attention)[] = {
  { .variant = "blocks", .cost = cost, .scratch_bytes = scratch_bytes, .parts = block_parts, .run = run }, { 0 }
};
const flow_kernel FLOW_KERNELS(attention_gradient)[] = {
  { .variant = "blocks", .cost = cost, .scratch_bytes = scratch_bytes, .parts = matrix_parts, .run = run }, { 0 }
};
