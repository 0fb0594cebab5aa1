/* gather_dense.c: the op gather_dense, a dense layer of rows that are gathered from a table. A row of the table is multiplied when it is
 * first named, and its product kept in `shared`: within a batch each row is multiplied once, however often it is named, and while table,
 * matrix and bias stay what they are, rows that earlier runs have named are only copied.
 *
 * Products lie in the order in which their rows were first named, so that no more memory is touched than they need. Their bits depend
 * neither on that order nor on the runs before: these products are exact, in which a row's bits do not depend on the number of rows
 * (gemm.h). */
#include <string.h>

#include "cpu/cost.h"
#include "cpu/index.h"
#include "cpu/matrix_product/gemm.h"
#include "cpu/movement/movement.h"

/* MULTIPLIED: rows of a part of phase MULTIPLY. COPIED: rows of a part of phase COPY. */
enum { MULTIPLIED = 96, COPIED = 64 };

enum { FORGET, NAME, MULTIPLY, COPY, PHASES };

/* What `shared` holds. It keeps its layout for calls of fewer rows. */
typedef struct products {
  int32_t *known;      /* two numbers: how many products there are with this run's, and how many there were before */
  int32_t *place;      /* [row of the table]: 1 + the place of its product; 0: there is none */
  int32_t *rows;       /* [place]: the row of the table */
  float   *values;     /* [place][column] */
} products;

static int64_t rows_of(const flow_call *call)    { return call->inputs[0].shape[0]; }
static int64_t width_of(const flow_call *call)   { return call->inputs[0].shape[1]; }
static int64_t columns_of(const flow_call *call) { return call->inputs[2].shape[1]; }
static int64_t count_of(const flow_call *call)   { return flow_shape_size(call->inputs[1].rank, call->inputs[1].shape); }

static products products_of(const flow_call *call)
{
  size_t numbers = gemm_to_lines(sizeof(int32_t) * (size_t)rows_of(call));
  char *at = call->shared;
  return (products){ .known = (int32_t *)at,
                     .place = (int32_t *)(at + GEMM_LINE),
                     .rows = (int32_t *)(at + GEMM_LINE + numbers),
                     .values = (float *)(at + GEMM_LINE + 2 * numbers) };
}

static size_t shared_bytes(const flow_call *call)
{
  size_t rows = (size_t)rows_of(call);
  return GEMM_LINE + 2 * gemm_to_lines(sizeof(int32_t) * rows) + sizeof(float) * rows * (size_t)columns_of(call);
}

static gemm product_of(const flow_call *call, const float *a, float *c, int64_t m)
{
  int64_t n = columns_of(call), k = width_of(call);
  return (gemm){ .m = m, .n = n, .k = k, .lda = k, .ldb = n, .ldc = n, .a = a, .b = call->inputs[2].data, .c = c,
                 .bias = call->inputs[3].data, .relu = call->attributes->matmul.activation == FLOW_RELU, .exact = 1 };
}

/* A member's block: rows that it multiplies, their partial sums, and what gemm_run packs. */
static size_t taken_bytes(const flow_call *call)
{
  return gemm_to_lines(sizeof(float) * MULTIPLIED * (size_t)width_of(call));
}
static size_t sums_bytes(const flow_call *call)
{
  gemm g = product_of(call, NULL, NULL, MULTIPLIED);
  return gemm_to_lines(gemm_shared_bytes(&g));
}
static size_t scratch_bytes(const flow_call *call) { return taken_bytes(call) + sums_bytes(call) + gemm_scratch_bytes(); }

/* Every row is copied. Those of a run that keeps nothing are multiplied as well. */
static double cost(const flow_call *call)
{
  double copied = flow_cost_stream(2.0 * sizeof(float) * (double)count_of(call) * (double)columns_of(call));
  int64_t most = count_of(call) < rows_of(call) ? count_of(call) : rows_of(call);
  gemm all = product_of(call, NULL, NULL, most);
  return call->kept ? copied : copied + gemm_cost(&all);
}

static int64_t parts(const flow_call *call, int phase)
{
  int64_t count = count_of(call), most = count < rows_of(call) ? count : rows_of(call);
  if (phase == MULTIPLY) return (most + MULTIPLIED - 1) / MULTIPLIED;
  return phase == COPY ? (count + COPIED - 1) / COPIED : 1;
}

static void forget(const flow_call *call)
{
  products p = products_of(call);
  p.known[0] = p.known[1] = 0;
  memset(p.place, 0, sizeof(int32_t) * (size_t)rows_of(call));
}

/* Gives a place to each row that has none. After a wrong index the run fails, and what was kept counts for nothing. */
static flow_status name_rows(const flow_call *call)
{
  const flow_operand *indices = &call->inputs[1];
  int64_t count = count_of(call), size = rows_of(call);
  int64_t per_row = indices->rank > 0 ? flow_shape_size(indices->rank - 1, indices->shape + 1) : 1;
  products p = products_of(call);
  int32_t known = p.known[0];
  p.known[1] = known;
  for (int64_t i = 0; i < count; i++) {
    int64_t index = index_at(indices, i);
    if (index < 0 || index >= size) return fail_index(call, "index", indices, i, per_row, size);
    if (p.place[index]) continue;
    p.rows[known] = (int32_t)index;
    p.place[index] = ++known;
  }
  p.known[0] = known;
  return FLOW_OK;
}

/* Products of the new rows from number `first` of them on, MULTIPLIED at most. */
static void multiply(const flow_call *call, int64_t first)
{
  products p = products_of(call);
  int64_t begin = p.known[1] + first, m = p.known[0] - begin, k = width_of(call);
  if (m > MULTIPLIED) m = MULTIPLIED;
  if (m <= 0) return;
  float *taken = call->scratch;
  for (int64_t i = 0; i < m; i++)
    copy_bytes((char *)(taken + i * k), (const char *)((const float *)call->inputs[0].data + p.rows[begin + i] * k),
               sizeof(float) * (size_t)k);
  gemm g = product_of(call, taken, p.values + begin * columns_of(call), m);
  char *sums = (char *)call->scratch + taken_bytes(call), *packed = sums + sums_bytes(call);
  for (int phase = 0; phase < GEMM_PHASES; phase++)
    for (int64_t part = 0; part < gemm_parts(&g, phase); part++) gemm_run(&g, phase, part, sums, packed);
}

static void copy(const flow_call *call, int64_t begin, int64_t end)
{
  products p = products_of(call);
  size_t bytes = sizeof(float) * (size_t)columns_of(call);
  char *to = call->outputs[0].data;
  for (int64_t i = begin; i < end && to; i++) {
    int64_t place = p.place[index_at(&call->inputs[1], i)] - 1;
    copy_bytes(to + (size_t)i * bytes, (const char *)p.values + (size_t)place * bytes, bytes);
  }
}

static flow_status run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  if (phase == FORGET) forget(call);
  if (phase == NAME) return name_rows(call);
  for (int64_t part = begin; part < end; part++) {
    int64_t last = (part + 1) * COPIED;
    if (phase == MULTIPLY) multiply(call, part * MULTIPLIED);
    if (phase == COPY) copy(call, part * COPIED, last < count_of(call) ? last : count_of(call));
  }
  return FLOW_OK;
}

/* first_phase_reads: table, matrix and bias. */
const flow_kernel FLOW_KERNELS(gather_dense)[] = {
  { .variant = "kept", .cost = cost, .shared_bytes = shared_bytes, .scratch_bytes = scratch_bytes, .phases = PHASES, .parts = parts,
    .first_phase_reads = 1 << 0 | 1 << 2 | 1 << 3, .run = run },
  { 0 }
};
