/* gemm_tile.h: the innermost pieces of gemm.c: copying of panels of B and stacks of A, and the tiles that multiply them. */
#ifndef FLOW_CPU_MATRIX_PRODUCT_GEMM_TILE_H
#define FLOW_CPU_MATRIX_PRODUCT_GEMM_TILE_H

#include "cpu/matrix_product/gemm_block.h"
#include "cpu/matrix_product/transpose.h"

/* ---- packing ---------------------------------------------------------------------------------------------------- */

/* B {k, n}: `depth` rows of `columns` <= PANEL floats, the missing columns zero. */
static inline void pack_rows(const float *b, int64_t ldb, int64_t depth, int64_t columns, float *panel)
{
  for (int64_t k = 0; k < depth && columns == PANEL; k++) {
    vf_store(panel + k * PANEL, vf_load(b + k * ldb));
    vf_store(panel + k * PANEL + VL, vf_load(b + k * ldb + VL));
  }
  if (columns == PANEL) return;
  memset(panel, 0, (size_t)depth * PANEL * sizeof(float));
  for (int64_t k = 0; k < depth; k++)
    for (int64_t j = 0; j < columns; j++) panel[k * PANEL + j] = b[k * ldb + j];
}

/* B {n, k}: the same panel out of `columns` rows of `depth` floats. */
static inline void pack_columns(const float *b, int64_t ldb, int64_t depth, int64_t columns, float *panel)
{
  if (columns < PANEL) memset(panel, 0, (size_t)depth * PANEL * sizeof(float));
  int64_t whole_columns = columns / VL * VL, whole_depth = depth / VL * VL;
  for (int64_t j = 0; j < whole_columns; j += VL)
    for (int64_t k = 0; k < whole_depth; k += VL) {
      vf r[VL];
      FLOW_UNROLL(16)
      for (int i = 0; i < VL; i++) r[i] = vf_load(b + (j + i) * ldb + k);
      vf_transpose(r);
      FLOW_UNROLL(16)
      for (int i = 0; i < VL; i++) vf_store(panel + (k + i) * PANEL + j, r[i]);
    }
  /* What the whole tiles of VL x VL left: the last steps of k, and all of k for the last columns. */
  for (int64_t j = 0; j < columns; j++)
    for (int64_t k = j < whole_columns ? whole_depth : 0; k < depth; k++) panel[k * PANEL + j] = b[j * ldb + k];
}

/* A {k, m}: the columns start[0] to start[count] of it, as `count` stacks of depth x TILE_ROWS, one for each tile. Of every row a piece is
 * read, which the processor's prefetchers do not see coming: it is asked for AHEAD rows before. */
static inline void pack_a(const float *a, int64_t lda, int64_t depth, const int *start, int count, float *packed)
{
  enum { AHEAD = 12 };
  int rows = start[count];
  for (int64_t k = 0; k < depth; k++) {
    const float *from = a + k * lda;
    float *to = packed + k * TILE_ROWS;
    for (int t = 0; t < count; t++, to += TILE_ROWS * depth) {
      __builtin_prefetch(from + AHEAD * lda + start[t]);
      if (start[t] + TILE_ROWS <= rows) memcpy(to, from + start[t], TILE_ROWS * sizeof(float));
      else for (int r = 0; start[t] + r < rows; r++) to[r] = from[start[t] + r];
    }
  }
}

/* ---- tiles ------------------------------------------------------------------------------------------------------ */

#define EACH_SUM(statement)                             \
  do {                                                  \
    FLOW_UNROLL(8)                                      \
    for (int i = 0; i < rows; i++) {                    \
      FLOW_UNROLL(2)                                    \
      for (int v = 0; v < 2; v++) statement;            \
    }                                                   \
  } while (0)

/* C[rows][PANEL] (+)= A[rows][depth] B[depth][PANEL]. a_row, a_k: floats between rows and between steps of k of A; one of
 * them is 1. B is read in steps of b_k; keep: and copied to `panel` on the way, which costs nothing beside the products. */
ALWAYS_INLINE void tile(const int rows, const int keep, int64_t depth, const float *a, int64_t a_row, int64_t a_k, const float *b,
                        int64_t b_k, float *panel, float *c, int64_t ldc, const epilogue *e)
{
  vf sum[TILE_ROWS][2];
  const int add = e->add, relu = e->relu;
  const float scale = e->scale;
  /* Without lines to ask for, a line of A is: it is there, and no branch stands in the loop. */
  const float *start = c + e->from, *bias = e->bias, *ahead = e->ahead ? e->ahead : a;
  const int64_t ahead_step = e->ahead ? e->ahead_step : 0;
  FLOW_UNROLL(8)
  for (int i = 0; i < rows; i++) sum[i][0] = sum[i][1] = (vf){ 0 };
  for (int64_t k = 0; k < depth; k++) {
    vf b0 = vf_load(b), b1 = vf_load(b + VL);
    if (keep) {
      vf_store(panel, b0);
      vf_store(panel + VL, b1);
      panel += PANEL;
    }
    FLOW_UNROLL(8)
    for (int i = 0; i < rows; i++) {
      vf x = vf_set(a[i * a_row]);
      sum[i][0] += x * b0;
      sum[i][1] += x * b1;
    }
    __builtin_prefetch(ahead, 0, 2);
    ahead += ahead_step;
    a += a_k;
    b += b_k;
  }
  /* One branch for all accumulators each. */
  if (scale != 0) EACH_SUM(sum[i][v] *= scale);
  if (add) EACH_SUM(sum[i][v] += vf_load(start + i * ldc + v * VL));
  if (bias) EACH_SUM(sum[i][v] += vf_load(bias + v * VL));
  if (relu) EACH_SUM(sum[i][v] = vf_relu(sum[i][v]));
  EACH_SUM(vf_store(c + i * ldc + v * VL, sum[i][v]));
}

#undef EACH_SUM

/* lda: floats between rows of A where it is stored as {m, k}; unused where it was packed. ldb: 0 for a packed panel, else
 * floats between rows of B as it is, which are then copied to the panel. */
typedef void (*tile_function)(int64_t depth, const float *a, int64_t lda, const float *b, int64_t ldb, float *panel, float *c,
                              int64_t ldc, const epilogue *e);

#define TILE(name, rows, a_row, a_k)                                                                                   \
  static void name(int64_t depth, const float *a, int64_t lda, const float *b, int64_t ldb, float *panel, float *c,    \
                   int64_t ldc, const epilogue *e)                                                                     \
  {                                                                                                                    \
    (void)lda;                                                                                                         \
    if (ldb) tile(rows, 1, depth, a, a_row, a_k, b, ldb, panel, c, ldc, e);                                            \
    else tile(rows, 0, depth, a, a_row, a_k, panel, PANEL, NULL, c, ldc, e);                                           \
  }
#define TILES(rows) TILE(tile_##rows##_plain, rows, lda, 1) TILE(tile_##rows##_packed, rows, 1, TILE_ROWS)
TILES(1) TILES(2) TILES(3) TILES(4) TILES(5) TILES(6)
#if defined(FLOW_ISA_AVX512)
TILES(7) TILES(8)
#endif

static const tile_function tiles[TILE_ROWS + 1][2] = {    /* [rows][A is packed] */
  { NULL, NULL }, { tile_1_plain, tile_1_packed }, { tile_2_plain, tile_2_packed }, { tile_3_plain, tile_3_packed },
  { tile_4_plain, tile_4_packed }, { tile_5_plain, tile_5_packed }, { tile_6_plain, tile_6_packed },
#if defined(FLOW_ISA_AVX512)
  { tile_7_plain, tile_7_packed }, { tile_8_plain, tile_8_packed },
#endif
};

/* A tile with fewer than PANEL columns: through a buffer, so that nothing beside C is touched. */
static inline void edge_tile(tile_function function, int64_t depth, const float *a, int64_t lda, float *panel, float *c, int64_t ldc,
                      int64_t rows, int64_t columns, const epilogue *e)
{
  float buffer[TILE_ROWS * PANEL], bias[PANEL] = { 0 };
  epilogue inner = { .add = e->add, .relu = e->relu, .scale = e->scale };
  if (e->bias) {
    for (int64_t j = 0; j < columns; j++) bias[j] = e->bias[j];
    inner.bias = bias;
  }
  if (e->add) {
    memset(buffer, 0, sizeof buffer);
    for (int64_t i = 0; i < rows; i++)
      for (int64_t j = 0; j < columns; j++) buffer[i * PANEL + j] = c[e->from + i * ldc + j];
  }
  function(depth, a, lda, NULL, 0, panel, buffer, PANEL, &inner);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) c[i * ldc + j] = buffer[i * PANEL + j];
}

#endif
