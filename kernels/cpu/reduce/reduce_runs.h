/* reduce_runs.h: reductions of packed elements into one accumulator, and of many short rows of these into one each; reduce_blocks.h says
 * what accumulators are. The order of operations follows from the number of elements alone.
 *
 * A run has four vectors of lanes; what is left over is padded with the identity. In the end the upper half of the lanes is combined into
 * the lower one, and so on. */
#ifndef FLOW_CPU_REDUCE_REDUCE_RUNS_H
#define FLOW_CPU_REDUCE_REDUCE_RUNS_H

#include <math.h>
#include "cpu/vector.h"

typedef void (*flow_run_function)(const void *x, int64_t n, void *accumulator);
/* rows of n elements each; accumulators are set, not added to. */
typedef void (*flow_few_function)(const void *x, int64_t rows, int64_t row_stride, int64_t n, void *accumulators);

enum { ROWS_sum = 4 }; /* vectors of floats that a sum adds in float: reduce_blocks.h */

/* combine_OP for scalars of any type. A NaN wins: x != x. */
#define combine_sum(a, b) ((a) + (b))
#define combine_prod(a, b) ((a) * (b))
#define combine_max(a, b) ((b) > (a) || (b) != (b) ? (b) : (a))
#define combine_min(a, b) ((b) < (a) || (b) != (b) ? (b) : (a))

/* The type integers are combined in: unsigned where they may overflow. */
#define INTEGER_sum uint64_t
#define INTEGER_prod uint64_t
#define INTEGER_max int64_t
#define INTEGER_min int64_t

typedef int64_t vl __attribute__((vector_size(sizeof(vi))));
typedef uint64_t vul __attribute__((vector_size(sizeof(vi))));
typedef int64_t vl_unaligned __attribute__((vector_size(sizeof(vi)), aligned(8), may_alias));
typedef int32_t vi_unaligned __attribute__((vector_size(sizeof(vi)), aligned(4), may_alias));

/* The larger and the smaller of each lane, b > a ? b : a: as an instruction on operands of type R gives them, whose comparison has
 * the second one where one is NaN, and where they are equal; or as select() does. */
#define BY_INSTRUCTION(KIND, V, R, max, min) \
  ALWAYS_INLINE V larger_##KIND(V a, V b)    \
  {                                          \
    return (V)max((R)b, (R)a);               \
  }                                          \
  ALWAYS_INLINE V smaller_##KIND(V a, V b)   \
  {                                          \
    return (V)min((R)b, (R)a);               \
  }
#define BY_SELECTION(KIND, V, select)      \
  ALWAYS_INLINE V larger_##KIND(V a, V b)  \
  {                                        \
    return select(b > a, b, a);            \
  }                                        \
  ALWAYS_INLINE V smaller_##KIND(V a, V b) \
  {                                        \
    return select(b < a, b, a);            \
  }

#if defined(FLOW_ISA_AVX512) && defined(__AVX512F__)
BY_INSTRUCTION(FLOAT, vf, __m512, _mm512_max_ps, _mm512_min_ps)
BY_INSTRUCTION(DOUBLE, vd, __m512d, _mm512_max_pd, _mm512_min_pd)
BY_INSTRUCTION(INTEGER, vl, __m512i, _mm512_max_epi64, _mm512_min_epi64)
BY_INSTRUCTION(WORD, vi, __m512i, _mm512_max_epi32, _mm512_min_epi32)
/* Whether a lane of either is NaN, joined to what was found before. */
typedef uint32_t found_nans;
ALWAYS_INLINE found_nans nans_FLOAT(found_nans found, vf a, vf b)
{
  return found | _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_UNORD_Q);
}
ALWAYS_INLINE found_nans nans_DOUBLE(found_nans found, vd a, vd b)
{
  return found | _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_UNORD_Q);
}
ALWAYS_INLINE int any_nan(found_nans found)
{
  return found != 0;
}
#else
/* a where the mask is set, else b. */
#define SELECT_BITS(mask, a, b) (((a) & (mask)) | ((b) & ~(mask)))
#define SELECT_DOUBLES(mask, a, b) ((vd)SELECT_BITS(mask, (vl)(a), (vl)(b)))
#if defined(FLOW_ISA_AVX2)
BY_INSTRUCTION(FLOAT, vf, __m256, _mm256_max_ps, _mm256_min_ps)
BY_INSTRUCTION(DOUBLE, vd, __m256d, _mm256_max_pd, _mm256_min_pd)
#else
BY_SELECTION(FLOAT, vf, vf_select)
BY_SELECTION(DOUBLE, vd, SELECT_DOUBLES)
#endif
BY_SELECTION(INTEGER, vl, SELECT_BITS)
BY_SELECTION(WORD, vi, SELECT_BITS)
typedef vi found_nans;
ALWAYS_INLINE found_nans nans_FLOAT(found_nans found, vf a, vf b)
{
  return found | (a != a) | (b != b); /* NOLINT(misc-redundant-expression): a NaN */
}
ALWAYS_INLINE found_nans nans_DOUBLE(found_nans found, vd a, vd b)
{
  return found | (vi)(a != a) | (vi)(b != b); /* NOLINT(misc-redundant-expression): a NaN */
}
ALWAYS_INLINE int any_nan(found_nans found)
{
  return vi_differs(found, 0) != 0;
}
#endif

/* Vectors by kind. */
enum { LANES_FLOAT = VL, LANES_DOUBLE = VL / 2, LANES_INTEGER = VL / 2, LANES_WORD = VL };
#define VECTOR_FLOAT vf
#define VECTOR_DOUBLE vd
#define VECTOR_INTEGER vl
#define VECTOR_WORD vi
#define LOAD_FLOAT(p) (*(const vf_unaligned *)(p))
#define LOAD_DOUBLE(p) (*(const vd_unaligned *)(p))
#define LOAD_INTEGER(p) (*(const vl_unaligned *)(p))
#define LOAD_WORD(p) (*(const vi_unaligned *)(p))

/* combine_OP where no operand is NaN. */
#define plain_sum combine_sum
#define plain_prod combine_prod
#define plain_max(a, b) ((b) > (a) ? (b) : (a))
#define plain_min(a, b) ((b) < (a) ? (b) : (a))

#define add_DOUBLE(a, b) ((a) + (b))
#define multiply_DOUBLE(a, b) ((a) * (b))
#define add_INTEGER(a, b) ((vl)((vul)(a) + (vul)(b)))
#define multiply_INTEGER(a, b) ((vl)((vul)(a) * (vul)(b)))
#define NO_NANS(found, a, b) (found)

/* n packed floats: ROWS_sum times four vectors at a time, then single vectors, the last one padded. */
static void run_sum_FLOAT(const void *x_, int64_t n, void *accumulator)
{
  const float *x = x_;
  double *to = accumulator;
  vd low[4] = { { 0 } }, high[4] = { { 0 } };
  int64_t i = 0;
  for (; i + ROWS_sum * 4 * VL <= n; i += ROWS_sum * 4 * VL) {
    FLOW_UNROLL(4)
    for (int v = 0; v < 4; v++) {
      vf a = vf_load(x + i + v * VL);
      FLOW_UNROLL(4)
      for (int r = 1; r < ROWS_sum; r++) a += vf_load(x + i + (r * 4 + v) * VL);
      low[v] += vd_low(a);
      high[v] += vd_high(a);
    }
  }
  for (; i + VL <= n; i += VL) {
    low[0] += vd_widen(x + i);
    high[0] += vd_widen(x + i + VL / 2);
  }
  if (i < n) {
    vf rest = vf_load_part(x + i, (int)(n - i));
    low[1] += vd_low(rest);
    high[1] += vd_high(rest);
  }
  *to += vd_sum(((low[0] + low[1]) + (low[2] + low[3])) + ((high[0] + high[1]) + (high[2] + high[3])));
}

/* n packed floats: four vectors of doubles, which are multiplied lane by lane in the end, then single floats. The order follows from n
 * alone. */
static void run_prod_FLOAT(const void *x_, int64_t n, void *accumulator)
{
  enum { LANES = VL / 2 };
  const float *x = x_;
  double *to = accumulator;
  const vd none = { 0 };
  vd product[4];
  double lanes[LANES];
  int64_t i = 0;
  for (int v = 0; v < 4; v++) product[v] = none + 1;
  for (; i + 4 * LANES <= n; i += 4 * LANES) {
    FLOW_UNROLL(4)
    for (int v = 0; v < 4; v++) product[v] *= vd_widen(x + i + v * LANES);
  }
  vd_store(lanes, (product[0] * product[1]) * (product[2] * product[3]));
  for (int l = 0; l < LANES; l++) *to *= lanes[l];
  for (; i < n; i++) *to *= (double)x[i];
}

/* T, U and A: types of elements, of what combines lanes, and of the accumulator. step combines vectors; nans: nans_KIND, or NO_NANS. Of
 * elements with NaNs the first of these results. */
#define RUN(op, KIND, T, U, A, step, nans, none)                                                                       \
  static void run_##op##_##KIND(const void *x_, int64_t n, void *accumulator)                                          \
  {                                                                                                                    \
    enum { LANES = LANES_##KIND };                                                                                     \
    const T *x = x_;                                                                                                   \
    A *to = accumulator;                                                                                               \
    VECTOR_##KIND a0, a1, a2, a3, rest;                                                                                \
    found_nans found = (found_nans){ 0 };                                                                              \
    int64_t i = 0;                                                                                                     \
    for (int l = 0; l < LANES; l++) rest[l] = none;                                                                    \
    a0 = a1 = a2 = a3 = rest;                                                                                          \
    for (; i + 4 * LANES <= n; i += 4 * LANES) {                                                                       \
      const VECTOR_##KIND b0 = LOAD_##KIND(x + i), b1 = LOAD_##KIND(x + i + LANES);                                    \
      const VECTOR_##KIND b2 = LOAD_##KIND(x + i + 2 * LANES), b3 = LOAD_##KIND(x + i + 3 * LANES);                    \
      a0 = step(a0, b0);                                                                                               \
      a1 = step(a1, b1);                                                                                               \
      a2 = step(a2, b2);                                                                                               \
      a3 = step(a3, b3);                                                                                               \
      found = nans(nans(found, b0, b1), b2, b3);                                                                       \
    }                                                                                                                  \
    for (; i + LANES <= n; i += LANES) {                                                                               \
      const VECTOR_##KIND b = LOAD_##KIND(x + i);                                                                      \
      a0 = step(a0, b);                                                                                                \
      found = nans(found, b, b);                                                                                       \
    }                                                                                                                  \
    if (i < n) {                                                                                                       \
      rest = (VECTOR_##KIND)vf_load_over((vf)rest, (const float *)(const void *)(x + i), (int)(n - i) * (VL / LANES)); \
      a1 = step(a1, rest);                                                                                             \
      found = nans(found, rest, rest);                                                                                 \
    }                                                                                                                  \
    if (any_nan(found)) {                                                                                              \
      for (i = 0; x[i] == x[i];) i++;                                                                                  \
      *to = (A)combine_##op((A)*to, (A)x[i]);                                                                          \
      return;                                                                                                          \
    }                                                                                                                  \
    a0 = step(step(a0, a1), step(a2, a3));                                                                             \
    T lanes[LANES];                                                                                                    \
    memcpy(lanes, &a0, sizeof a0);                                                                                     \
    for (int width = LANES / 2; width > 0; width /= 2)                                                                 \
      for (int l = 0; l < width; l++) lanes[l] = (T)plain_##op((U)lanes[l], (U)lanes[l + width]);                      \
    *to = (A)combine_##op((U)*to, (U)lanes[0]);                                                                        \
  }

/* Many rows of a few packed elements each, {n, 3} to {n}, in order. count 0: any number of columns, as the loop finds it; the others are
 * unrolled. */
#define FEW_ROWS(op, KIND, T, U, A, count)                                                                                 \
  static void few_##op##_##KIND##_##count(const void *x_, int64_t rows, int64_t row_stride, int64_t n, void *accumulators) \
  {                                                                                                                        \
    const int64_t columns = count ? count : n;                                                                             \
    const T *x = x_;                                                                                                       \
    A *to = accumulators;                                                                                                  \
    FLOW_NO_OVERLAP                                                                                                        \
    for (int64_t r = 0; r < rows; r++) {                                                                                   \
      U a = (U)x[r * row_stride];                                                                                          \
      for (int64_t j = 1; j < columns; j++) a = combine_##op(a, (U)x[r * row_stride + j]);                                 \
      to[r] = (A)a;                                                                                                        \
    }                                                                                                                      \
  }
#define FEW(op, KIND, T, U, A)                                                                                  \
  FEW_ROWS(op, KIND, T, U, A, 2)                                                                                \
  FEW_ROWS(op, KIND, T, U, A, 3)                                                                                \
  FEW_ROWS(op, KIND, T, U, A, 4)                                                                                \
  FEW_ROWS(op, KIND, T, U, A, 0)                                                                                \
  static void few_##op##_##KIND(const void *x, int64_t rows, int64_t row_stride, int64_t n, void *accumulators) \
  {                                                                                                             \
    if (n == 2) few_##op##_##KIND##_2(x, rows, row_stride, n, accumulators);                                    \
    else if (n == 3) few_##op##_##KIND##_3(x, rows, row_stride, n, accumulators);                               \
    else if (n == 4) few_##op##_##KIND##_4(x, rows, row_stride, n, accumulators);                               \
    else few_##op##_##KIND##_0(x, rows, row_stride, n, accumulators);                                           \
  }

/* Rows of n packed conditions each. */
#define BOOL_ROWS(op, start)                                                                                    \
  static void rows_##op##_BOOL(const void *x_, int64_t rows, int64_t row_stride, int64_t n, void *accumulators) \
  {                                                                                                             \
    const uint8_t *x = x_;                                                                                      \
    uint8_t *to = accumulators;                                                                                 \
    for (int64_t r = 0; r < rows; r++, x += row_stride) {                                                       \
      uint8_t a = start;                                                                                        \
      for (int64_t j = 0; j < n; j++) a = combine_##op(a, x[j]);                                                \
      to[r] = a;                                                                                                \
    }                                                                                                           \
  }

RUN(sum, DOUBLE, double, double, double, add_DOUBLE, NO_NANS, 0)
RUN(sum, INTEGER, int64_t, uint64_t, int64_t, add_INTEGER, NO_NANS, 0)
RUN(prod, DOUBLE, double, double, double, multiply_DOUBLE, NO_NANS, 1)
RUN(prod, INTEGER, int64_t, uint64_t, int64_t, multiply_INTEGER, NO_NANS, 1)
/* name, the function of vectors, what changes nothing. */
#define EXTREME(op, step, infinity, most, most_word)                            \
  RUN(op, FLOAT, float, double, double, step##_FLOAT, nans_FLOAT, infinity)     \
  RUN(op, DOUBLE, double, double, double, step##_DOUBLE, nans_DOUBLE, infinity) \
  RUN(op, INTEGER, int64_t, int64_t, int64_t, step##_INTEGER, NO_NANS, most)    \
  RUN(op, WORD, int32_t, int32_t, int32_t, step##_WORD, NO_NANS, most_word)     \
  FEW(op, FLOAT, float, float, double)                                          \
  FEW(op, WORD, int32_t, int32_t, int32_t)
EXTREME(max, larger, -INFINITY, INT64_MIN, INT32_MIN)
EXTREME(min, smaller, INFINITY, INT64_MAX, INT32_MAX)
FEW(sum, FLOAT, float, double, double)
FEW(prod, FLOAT, float, double, double)
#define FEW_WIDE(op)                      \
  FEW(op, DOUBLE, double, double, double) \
  FEW(op, INTEGER, int64_t, INTEGER_##op, int64_t)
FEW_WIDE(sum)
FEW_WIDE(prod)
FEW_WIDE(max)
FEW_WIDE(min)

#endif
