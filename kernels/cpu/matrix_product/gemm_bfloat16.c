/* gemm_bfloat16.c: see gemm_bfloat16.h. */
#include "cpu/matrix_product/gemm_bfloat16.h"
#include "cpu/matrix_product/transpose.h"

#if defined(FLOW_ISA_AVX512)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512bf16"))), apply_to = function)
#else
#pragma GCC target("avx512bf16")
#endif

/* Contracts of functions that other files call are in the header. What is compiled here for AVX512-BF16 runs only where
 * bfloat16_available() says so. */
typedef bfloat16_pair pair;

int bfloat16_available(void) { return __builtin_cpu_supports("avx512bf16") != 0; }

/* The two instructions, on pairs as integers. clang 16 recurses without end where it looks for the cost of a cast between these and vectors
 * of __bf16 in a loop, so that it gets no such vectors.
 *
 * sum + x y: two products for each sum, the earlier k of the pair in the lower half of both factors. */
ALWAYS_INLINE __m512 add_products(__m512 sum, __m512i x, __m512i y)
{
#if defined(__clang__) && __clang_major__ == 16
  __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y));
  return sum;
#else
  return _mm512_dpbf16_ps(sum, (__m512bh)x, (__m512bh)y);
#endif
}

/* Numbers of `low`, rounded, then those of `high`. */
ALWAYS_INLINE __m512i rounded(__m512 high, __m512 low)
{
#if defined(__clang__) && __clang_major__ == 16
  __m512i pairs;
  __asm__("vcvtne2ps2bf16 %2, %1, %0" : "=v"(pairs) : "v"(high), "v"(low));
  return pairs;
#else
  return (__m512i)_mm512_cvtne2ps_pbh(high, low);
#endif
}

/* ---- packing ---------------------------------------------------------------------------------------------------- */

/* The lanes below n. */
ALWAYS_INLINE __mmask16 lanes(int64_t n) { return n >= VL ? (__mmask16)-1 : n <= 0 ? 0 : (__mmask16)((1u << n) - 1); }

/* VL pairs along k: p[0] to p[n - 1], then zeros. Rounded to nearest, ties to even, as all conversions here. The earlier k is in the lower
 * half of a pair. */
ALWAYS_INLINE __m512i along(const float *p, int64_t n)
{
  __m512 low = _mm512_maskz_loadu_ps(lanes(n), p), high = _mm512_maskz_loadu_ps(lanes(n - VL), p + VL);
  return rounded(high, low);
}

/* VL pairs of two rows of k. Lanes that are not in `even` or `odd` are zeros. */
ALWAYS_INLINE __m512i across(const float *row, int64_t ld, __mmask16 even, __mmask16 odd)
{
  /* cvtne2ps puts the numbers of the first row into the lower half and those of the second into the upper one: this interleaves them. */
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3,
                                         18, 2, 17, 1, 16, 0);
  __m512 low = _mm512_maskz_loadu_ps(even, row), high = _mm512_maskz_loadu_ps(odd, row + ld);
  return _mm512_permutexvar_epi16(order, rounded(high, low));
}

ALWAYS_INLINE void store(pair *to, __m512i pairs) { _mm512_storeu_si512(to, pairs); }

/* B {k, n} as it is: panel[pair][PANEL], each element two neighbours along k of one column. Columns and steps beyond B are zeros. */
void bfloat16_pack_rows(const float *b, int64_t ldb, int64_t depth, int64_t columns, pair *panel)
{
  const __mmask16 first = lanes(columns), second = lanes(columns - VL);
  for (int64_t k = 0; k < depth; k += 2, panel += PANEL) {
    const __mmask16 odd = k + 1 < depth ? (__mmask16)-1 : 0;
    store(panel, across(b + k * ldb, ldb, first, first & odd));
    store(panel + VL, across(b + k * ldb + VL, ldb, second, second & odd));
  }
}

/* B {n, k}: pairs lie one after the other along k, so that blocks of VL columns are rounded and transposed in registers. */
void bfloat16_pack_columns(const float *b, int64_t ldb, int64_t depth, int64_t columns, pair *panel)
{
  int64_t pairs = bfloat16_pairs(depth);
  for (int64_t j = 0; j < PANEL; j += VL)
    for (int64_t p = 0; p < pairs; p += VL) {
      vf r[VL];
      FLOW_UNROLL(16)
      for (int i = 0; i < VL; i++)
        r[i] = j + i < columns ? (vf)along(b + (j + i) * ldb + 2 * p, depth - 2 * p) : (vf){ 0 };
      vf_transpose(r);
      for (int64_t i = 0; i < gemm_min(VL, pairs - p); i++) store(panel + (p + i) * PANEL + j, (__m512i)r[i]);
    }
}

/* A {m, k}: every row as pairs, bfloat16_stack_step(depth) apart. */
void bfloat16_pack_stack(const float *a, int64_t lda, int64_t depth, int64_t rows, pair *packed)
{
  const int64_t ld = bfloat16_stack_step(depth);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = 0; k < depth; k += 2 * VL) store(packed + i * ld + k / 2, along(a + i * lda + k, depth - k));
}

/* A {k, m}: for each tile its rows' pairs, TILE_ROWS of them for each step. A row of pairs is made whole first, since tiles begin anywhere
 * in it; what follows the last row is zeros. */
void bfloat16_pack_stacks(const float *a, int64_t lda, int64_t depth, const int *start, int count, pair *packed)
{
  enum { AHEAD = 12 };
  pair row[GEMM_BLOCK_ROWS + VL + TILE_ROWS] = { 0 };
  int64_t pairs = bfloat16_pairs(depth);
  int rows = start[count];
  for (int64_t p = 0; p < pairs; p++) {
    const float *from = a + 2 * p * lda;
    for (int i = 0; i < rows; i += VL) {
      __mmask16 even = lanes(rows - i);
      __builtin_prefetch(from + AHEAD * lda + i);
      __builtin_prefetch(from + (AHEAD + 1) * lda + i);
      store(row + i, across(from + i, lda, even, 2 * p + 1 < depth ? even : 0));
    }
    for (int t = 0; t < count; t++) memcpy(packed + (t * pairs + p) * TILE_ROWS, row + start[t], TILE_ROWS * sizeof(pair));
  }
}

/* ---- tiles ------------------------------------------------------------------------------------------------------ */

/* C[rows][PANEL] (+)= A[rows][pairs] panel[pairs][PANEL]. a_row, a_step: from row to row and from pair to pair of A. The sums are in
 * registers from the first pair to the last, in the order of k. */
ALWAYS_INLINE void tile(const int rows, int64_t pairs, const pair *a, int64_t a_row, int64_t a_step, const pair *panel, float *c,
                        int64_t ldc, const epilogue *e)
{
  __m512 sum[TILE_ROWS][2];
  FLOW_UNROLL(8)
  for (int i = 0; i < rows; i++) sum[i][0] = sum[i][1] = _mm512_setzero_ps();
  for (int64_t p = 0; p < pairs; p++, a += a_step, panel += PANEL) {
    __m512i b0 = _mm512_loadu_si512(panel), b1 = _mm512_loadu_si512(panel + VL);
    FLOW_UNROLL(8)
    for (int i = 0; i < rows; i++) {
      __m512i x = _mm512_set1_epi32((int)a[i * a_row]);
      sum[i][0] = add_products(sum[i][0], b0, x);
      sum[i][1] = add_products(sum[i][1], b1, x);
    }
  }
  const vf scale = vf_set(e->scale == 0 ? 1 : e->scale);
  FLOW_UNROLL(8)
  for (int i = 0; i < rows; i++) {
    FLOW_UNROLL(2)
    for (int v = 0; v < 2; v++) {
      float *to = c + i * ldc + v * VL;
      vf result = (vf)sum[i][v] * scale;
      if (e->add) result += vf_load(to + e->from);
      if (e->bias) result += vf_load(e->bias + v * VL);
      vf_store(to, e->relu ? vf_relu(result) : result);
    }
  }
}

typedef void (*tile_function)(int64_t pairs, const pair *a, int64_t a_row, int64_t a_step, const pair *panel, float *c, int64_t ldc,
                              const epilogue *e);

#define TILE(rows)                                                                                                              \
  static void tile_##rows(int64_t pairs, const pair *a, int64_t a_row, int64_t a_step, const pair *panel, float *c, int64_t ldc, \
                          const epilogue *e)                                                                                    \
  {                                                                                                                             \
    tile(rows, pairs, a, a_row, a_step, panel, c, ldc, e);                                                                      \
  }
TILE(1) TILE(2) TILE(3) TILE(4) TILE(5) TILE(6) TILE(7) TILE(8)
static const tile_function tiles[TILE_ROWS + 1] = { NULL, tile_1, tile_2, tile_3, tile_4, tile_5, tile_6, tile_7, tile_8 };

/* Fewer than PANEL columns go through a buffer, so that nothing beside C is touched. */
void bfloat16_tile(int rows, int64_t columns, int64_t pairs, const pair *a, int64_t a_row, int64_t a_step, const pair *panel, float *c,
                   int64_t ldc, const epilogue *e)
{
  if (columns == PANEL) {
    tiles[rows](pairs, a, a_row, a_step, panel, c, ldc, e);
    return;
  }
  float buffer[TILE_ROWS * PANEL] = { 0 }, bias[PANEL] = { 0 };
  epilogue inner = { .add = e->add, .relu = e->relu, .scale = e->scale };
  if (e->bias) {
    memcpy(bias, e->bias, (size_t)columns * sizeof(float));
    inner.bias = bias;
  }
  for (int64_t i = 0; e->add && i < rows; i++) memcpy(buffer + i * PANEL, c + e->from + i * ldc, (size_t)columns * sizeof(float));
  tiles[rows](pairs, a, a_row, a_step, panel, buffer, PANEL, &inner);
  for (int64_t i = 0; i < rows; i++) memcpy(c + i * ldc, buffer + i * PANEL, (size_t)columns * sizeof(float));
}

/* ---- a few rows -------------------------------------------------------------------------------------------------- */

/* `vectors` vectors of columns, the last ones cut off at `columns`: two rows of B become pairs in registers. B is read once for all rows,
 * so that packing it would not pay. */
ALWAYS_INLINE void few_by_rows(const int rows, const int vectors, int64_t depth, int64_t columns, const pair *stack, int64_t step,
                               const float *b, int64_t ldb, float *c, int64_t ldc, int add)
{
  __m512 sum[BFLOAT16_FEW_ROWS][8];
  __mmask16 mask[8];
  FLOW_UNROLL(8)
  for (int v = 0; v < vectors; v++) {
    mask[v] = lanes(columns - v * VL);
    FLOW_UNROLL(3)
    for (int r = 0; r < rows; r++) sum[r][v] = add ? _mm512_maskz_loadu_ps(mask[v], c + r * ldc + v * VL) : _mm512_setzero_ps();
  }
  for (int64_t k = 0; k < depth; k += 2, b += 2 * ldb) {
    const __mmask16 odd = k + 1 < depth ? (__mmask16)-1 : 0;
    FLOW_UNROLL(8)
    for (int v = 0; v < vectors; v++) {
      __m512i y = across(b + v * VL, ldb, mask[v], mask[v] & odd);
      FLOW_UNROLL(3)
      for (int r = 0; r < rows; r++)
        sum[r][v] = add_products(sum[r][v], y, _mm512_set1_epi32((int)stack[r * step + k / 2]));
    }
  }
  FLOW_UNROLL(8)
  for (int v = 0; v < vectors; v++) {
    FLOW_UNROLL(3)
    for (int r = 0; r < rows; r++) _mm512_mask_storeu_ps(c + r * ldc + v * VL, mask[v], sum[r][v]);
  }
}

/* Four columns of B {columns, depth} at a time, each a scalar product with every row. Lanes hold different k, so that a sum ends with the
 * sum of its lanes, in a fixed order. Columns beyond the last repeat it; their sums are dropped. */
ALWAYS_INLINE void few_by_columns(const int rows, int64_t depth, int64_t columns, const pair *stack, int64_t step, const float *b,
                                  int64_t ldb, float *c, int64_t ldc, int add)
{
  for (int64_t j = 0; j < columns; j += 4) {
    const int64_t together = gemm_min(4, columns - j);
    __m512 sum[BFLOAT16_FEW_ROWS][4];
    FLOW_UNROLL(12)
    for (int i = 0; i < rows * 4; i++) sum[i / 4][i % 4] = _mm512_setzero_ps();
    for (int64_t k = 0; k < depth; k += 2 * VL) {
      FLOW_UNROLL(4)
      for (int v = 0; v < 4; v++) {
        __m512i y = along(b + (j + gemm_min(v, together - 1)) * ldb + k, depth - k);
        FLOW_UNROLL(3)
        for (int r = 0; r < rows; r++)
          sum[r][v] = add_products(sum[r][v], y, _mm512_loadu_si512(stack + r * step + k / 2));
      }
    }
    for (int r = 0; r < rows; r++)
      for (int64_t v = 0; v < together; v++) {
        float *to = c + r * ldc + j + v;
        *to = (add ? *to : 0) + _mm512_reduce_add_ps(sum[r][v]);
      }
  }
}

/* One range of k. add: C has the sums of the ranges before. */
ALWAYS_INLINE void few_rows(const int rows, int64_t depth, int64_t columns, const pair *stack, const float *b, int64_t ldb, int transpose_b,
                            float *c, int64_t ldc, int add)
{
  const int64_t step = bfloat16_stack_step(depth);
  int64_t j = 0;
  if (transpose_b) {
    few_by_columns(rows, depth, columns, stack, step, b, ldb, c, ldc, add);
    return;
  }
  /* Strips of eight vectors, the last of which may be masked away, while more than half of them have columns; then single vectors. */
  for (; columns - j > 4 * VL; j += 8 * VL) few_by_rows(rows, 8, depth, columns - j, stack, step, b + j, ldb, c + j, ldc, add);
  for (; j < columns; j += VL) few_by_rows(rows, 1, depth, columns - j, stack, step, b + j, ldb, c + j, ldc, add);
}

/* Ranges of BFLOAT16_FEW_DEPTH steps of k, whose packed rows fit the scratch; every range after the first adds to C. */
void bfloat16_few_rows(int rows, int64_t depth, int64_t columns, const float *a, int64_t lda, const float *b, int64_t ldb, int transpose_b,
                       float *c, int64_t ldc, pair *stack)
{
  for (int64_t k = 0; k < depth; k += BFLOAT16_FEW_DEPTH) {
    const int64_t range = gemm_min(BFLOAT16_FEW_DEPTH, depth - k);
    const float *from = b + (transpose_b ? k : k * ldb);
    bfloat16_pack_stack(a + k, lda, range, rows, stack);
    if (rows == 1) few_rows(1, range, columns, stack, from, ldb, transpose_b, c, ldc, k > 0);
    else if (rows == 2) few_rows(2, range, columns, stack, from, ldb, transpose_b, c, ldc, k > 0);
    else few_rows(3, range, columns, stack, from, ldb, transpose_b, c, ldc, k > 0);
  }
}

#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
int bfloat16_available(void) { return 0; }

/* Nobody calls these: without the instructions no product is rounded. */
void bfloat16_pack_rows(const float *b, int64_t ldb, int64_t depth, int64_t columns, bfloat16_pair *panel)
{
  (void)b, (void)ldb, (void)depth, (void)columns, (void)panel;
}

void bfloat16_pack_columns(const float *b, int64_t ldb, int64_t depth, int64_t columns, bfloat16_pair *panel)
{
  (void)b, (void)ldb, (void)depth, (void)columns, (void)panel;
}

void bfloat16_pack_stack(const float *a, int64_t lda, int64_t depth, int64_t rows, bfloat16_pair *packed)
{
  (void)a, (void)lda, (void)depth, (void)rows, (void)packed;
}

void bfloat16_pack_stacks(const float *a, int64_t lda, int64_t depth, const int *start, int count, bfloat16_pair *packed)
{
  (void)a, (void)lda, (void)depth, (void)start, (void)count, (void)packed;
}

void bfloat16_tile(int rows, int64_t columns, int64_t pairs, const bfloat16_pair *a, int64_t a_row, int64_t a_step,
                   const bfloat16_pair *panel, float *c, int64_t ldc, const epilogue *e)
{
  (void)rows, (void)columns, (void)pairs, (void)a, (void)a_row, (void)a_step, (void)panel, (void)c, (void)ldc, (void)e;
}

void bfloat16_few_rows(int rows, int64_t depth, int64_t columns, const float *a, int64_t lda, const float *b, int64_t ldb, int transpose_b,
                       float *c, int64_t ldc, bfloat16_pair *stack)
{
  (void)rows, (void)depth, (void)columns, (void)a, (void)lda, (void)b, (void)ldb, (void)transpose_b, (void)c, (void)ldc, (void)stack;
}
#endif
