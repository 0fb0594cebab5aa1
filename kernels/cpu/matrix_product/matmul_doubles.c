/* matmul_doubles.c: float64 products. A part is a block of C. For BLOCK_K of k at a time, its columns of B are copied into panels of 2
 * vectors, which stay in the first-level cache, as the block's rows of A stay in the second; tiles of a few rows go along k with their sums
 * in registers. Each sum is added up in the order of k, as in the plain variant, whatever the other rows are. Products with one column are
 * dots.h's in both. */
#include "cpu/cost.h"
#include "cpu/matrix_product/dots.h"

/* A panel of BLOCK_K x PANEL doubles is 16 KB with AVX2 and 32 KB with AVX-512, PART_ROWS x BLOCK_K of A 192 KB (within a
 * second-level cache of 256 KB or more). TILE_ROWS x 2 sums fill half of the registers; the rest holds B and the broadcast of A. */
enum { LANES = VL / 2, PANEL = 2 * LANES, TILE_ROWS = REGISTERS == 32 ? 8 : 4, PART_ROWS = 96, PART_COLUMNS = 64, BLOCK_K = 256 };
_Static_assert(PART_ROWS % TILE_ROWS == 0, "parts are whole tiles");

int         FLOW_ISA_NAME(matmul_doubles_supports)(const flow_call *call);
double      FLOW_ISA_NAME(matmul_doubles_cost)(const flow_call *call);
size_t      FLOW_ISA_NAME(matmul_doubles_scratch_bytes)(const flow_call *call);
flow_status FLOW_ISA_NAME(matmul_doubles_run)(const flow_call *call, int phase, int64_t begin, int64_t end);
int64_t     FLOW_ISA_NAME(matmul_doubles_parts)(const flow_call *call, int phase);

int FLOW_ISA_NAME(matmul_doubles_supports)(const flow_call *call)
{
  return call->inputs[0].dtype == FLOW_FLOAT64;
}

/* A vector has half as many doubles as floats, hence the factor 2. */
double FLOW_ISA_NAME(matmul_doubles_cost)(const flow_call *call)
{
  product p = describe(call);
  return flow_cost_arithmetic(2.0 * (double)p.matrices * (double)p.m * (double)p.n * (double)p.k, 0.5);
}

/* The panels of B for BLOCK_K steps of k, all columns of a part. */
size_t FLOW_ISA_NAME(matmul_doubles_scratch_bytes)(const flow_call *call)
{
  return (void)call, (size_t)BLOCK_K * PART_COLUMNS * sizeof(double);
}

/* Parts of a matrix: blocks of rows count fastest. */
static int64_t row_parts(const product *p)       { return (p->m + PART_ROWS - 1) / PART_ROWS; }
static int64_t parts_of_matrix(const product *p) { return row_parts(p) * ((p->n + PART_COLUMNS - 1) / PART_COLUMNS); }
static int64_t at_most(int64_t n, int64_t most)  { return n < most ? n : most; }

int64_t FLOW_ISA_NAME(matmul_doubles_parts)(const flow_call *call, int phase)
{
  (void)phase;
  product p = describe(call);
  return p.matrices * parts_of_matrix(&p);
}

/* `depth` rows of `columns` columns of B, from element b on, as panels of BLOCK_K rows, filled up with zeros. */
static void copy_panels(const product *p, const double *b, int64_t depth, int64_t columns, double *panels)
{
  for (int64_t k = 0; k < depth; k++)
    for (int64_t first = 0; first < columns; first += PANEL) {
      double *to = panels + first * BLOCK_K + k * PANEL;
      int64_t n = at_most(columns - first, PANEL);
      for (int64_t j = 0; j < n; j++) to[j] = p->transpose_b ? b[(first + j) * p->ldb + k] : b[k * p->ldb + first + j];
      for (int64_t j = n; j < PANEL; j++) to[j] = 0;
    }
}

/* What a tile needs besides its place: steps of A, how far it goes along k, and whether it begins and ends there. */
typedef struct task { const product *p; int64_t row_step, k_step, depth; int first, last; } task;

/* rows x PANEL sums from element c on, of which `columns` are stored. */
ALWAYS_INLINE void tile(const int rows, const task *t, const double *a, const double *panel, const double *bias, double *c, int64_t columns)
{
  const int64_t row_step = t->row_step, k_step = t->k_step, n = t->p->ldc;
  vd sums[TILE_ROWS][2];
  double y[PANEL] = { 0 };
  for (int r = 0; r < rows; r++) {
    for (int64_t j = 0; j < columns && !t->first; j++) y[j] = c[r * n + j];
    sums[r][0] = vd_load(y);
    sums[r][1] = vd_load(y + LANES);
  }
  for (int64_t k = 0; k < t->depth; k++, a += k_step, panel += PANEL) {
    vd left = vd_load(panel), right = vd_load(panel + LANES);
    FLOW_UNROLL(8)
    for (int r = 0; r < rows; r++) {
      double x = a[r * row_step];
      sums[r][0] += x * left;
      sums[r][1] += x * right;
    }
  }
  for (int r = 0; r < rows; r++) {
    vd_store(y, sums[r][0]);
    vd_store(y + LANES, sums[r][1]);
    for (int64_t j = 0; j < columns; j++) {
      double value = bias && t->last ? y[j] + bias[j] : y[j];
      c[r * n + j] = t->last && t->p->relu && value < 0 ? 0 : value;    /* NaN stays */
    }
  }
}

/* A part's block of C: for each BLOCK_K of k its panels of B are copied once and used by all of its rows. Bias and relu belong to the
 * last BLOCK_K; the first one begins with zeros, so that k = 0 gives act(bias). */
static void run_part(const product *p, int64_t part, double *panels)
{
  int64_t matrix = part / parts_of_matrix(p), block = part % parts_of_matrix(p);
  int64_t begin = block % row_parts(p) * PART_ROWS, end = at_most(begin + PART_ROWS, p->m);
  int64_t column = block / row_parts(p) * PART_COLUMNS, columns = at_most(p->n - column, PART_COLUMNS);
  if (is_dots(p)) {
    run_dots(p, matrix * p->m + begin, matrix * p->m + end);
    return;
  }
  const double *a = (const double *)p->a + a_offset(p, matrix), *bias = p->bias ? (const double *)p->bias + column : NULL;
  const double *b = (const double *)p->b + b_offset(p, matrix) + column * (p->transpose_b ? p->ldb : 1);
  double *c = (double *)p->c + c_offset(p, matrix) + column;
  task t = { .p = p, .row_step = p->transpose_a ? 1 : p->lda, .k_step = p->transpose_a ? p->lda : 1 };
  for (int64_t k = 0; k == 0 || k < p->k; k += BLOCK_K) {
    t.depth = at_most(p->k - k, BLOCK_K);
    t.first = k == 0;
    t.last = k + BLOCK_K >= p->k;
    copy_panels(p, b + k * (p->transpose_b ? 1 : p->ldb), t.depth, columns, panels);
    for (int64_t first = 0; first < columns; first += PANEL) {
      int64_t n = at_most(columns - first, PANEL), row = begin;
      const double *panel = panels + first * BLOCK_K, *from = a + k * t.k_step, *own_bias = bias ? bias + first : NULL;
      for (; row + TILE_ROWS <= end; row += TILE_ROWS)
        tile(TILE_ROWS, &t, from + row * t.row_step, panel, own_bias, c + row * p->ldc + first, n);
      /* Only the last part of a matrix has rows that are not whole tiles (PART_ROWS): they go one by one. */
      for (; row < end; row++) tile(1, &t, from + row * t.row_step, panel, own_bias, c + row * p->ldc + first, n);
    }
  }
}

flow_status FLOW_ISA_NAME(matmul_doubles_run)(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase;
  product p = describe(call);
  for (int64_t part = begin; part < end && p.c; part++) run_part(&p, part, call->scratch);
  return FLOW_OK;
}
