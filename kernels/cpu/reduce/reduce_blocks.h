/* reduce_blocks.h: reductions of packed blocks, the inner loops of reduce.c.
 *
 * A column function reduces `rows` rows of `columns` elements into one accumulator per column:
 *   accumulators[j] = op(accumulators[j], x[0][j], x[1][j], ...), row r at x + r * row_stride elements.
 * Accumulators are doubles for FLOAT and DOUBLE, int64_t for INTEGER, uint8_t for BOOL.
 * Floats are combined in float for a few rows and then in double. Of a sum these are 4: four equal numbers add up exactly, so that the
 * mean of equal numbers is that number, and the error stays below 2e-7 of the sum of magnitudes however long the sum is. Products
 * are of doubles: rounded to float, factors near 1 would all err to one side. */
#ifndef FLOW_CPU_REDUCE_REDUCE_BLOCKS_H
#define FLOW_CPU_REDUCE_REDUCE_BLOCKS_H

#include <math.h>
#include "cpu/movement/convert.h"
#include "cpu/reduce/log_of_sums.h"

typedef void (*flow_columns_function)(const void *x, int64_t rows, int64_t row_stride, int64_t columns, void *accumulators);

enum { ROWS_sum = 4, ROWS_max = 32, ROWS_min = 32 };

/* combine_OP for scalars of any type, vector_OP for vectors of floats. A NaN wins: x != x. */
#define combine_sum(a, b)  ((a) + (b))
#define combine_prod(a, b) ((a) * (b))
#define combine_max(a, b)  ((b) > (a) || (b) != (b) ? (b) : (a))
#define combine_min(a, b)  ((b) < (a) || (b) != (b) ? (b) : (a))
#define combine_logsumexp(a, b) log_of_sum(a, b)
#define combine_any(a, b)  ((uint8_t)((a) | (b)))
#define combine_all(a, b)  ((uint8_t)((a) & (b)))
#define vector_max(a, b)   vf_select(((b) > (a)) | ((b) != (b)), b, a)
#define vector_min(a, b)   vf_select(((b) < (a)) | ((b) != (b)), b, a)

/* Integers wrap. One row after the other, in order: the compiler makes vectors of the columns. */
#define COLUMNS(op, KIND, T, U)                                                                                        \
  static void columns_##op##_##KIND(const void *x_, int64_t rows, int64_t row_stride, int64_t columns, void *accumulators) \
  {                                                                                                                    \
    T *to = accumulators;                                                                                              \
    const T *x = x_;                                                                                                   \
    for (int64_t r = 0; r < rows; r++, x += row_stride) {                                                              \
      FLOW_NO_OVERLAP                                                                                                  \
      for (int64_t j = 0; j < columns; j++) to[j] = (T)combine_##op((U)to[j], (U)x[j]);                                \
    }                                                                                                                  \
  }

/* Four vectors of columns at a time, then one, then single columns. Each column's terms are taken in the same groups of ROWS_op rows on all
 * three ways, so that its bits do not depend on its place. */
#define FLOAT_COLUMNS(op)                                                                                              \
  static void columns_##op##_FLOAT(const void *x_, int64_t rows, int64_t row_stride, int64_t columns, void *accumulators) \
  {                                                                                                                    \
    double *to = accumulators;                                                                                         \
    const float *x = x_;                                                                                               \
    for (int64_t left = rows; left > 0; left -= ROWS_##op, x += ROWS_##op * row_stride) {                              \
      int64_t n = left < ROWS_##op ? left : ROWS_##op, j = 0;                                                          \
      float lanes[4 * VL];                                                                                             \
      for (; j + 4 * VL <= columns; j += 4 * VL) {                                                                     \
        vf a0 = vf_load(x + j), a1 = vf_load(x + j + VL), a2 = vf_load(x + j + 2 * VL), a3 = vf_load(x + j + 3 * VL);  \
        for (int64_t r = 1; r < n; r++) {                                                                              \
          const float *row = x + r * row_stride + j;                                                                   \
          vf b0 = vf_load(row), b1 = vf_load(row + VL), b2 = vf_load(row + 2 * VL), b3 = vf_load(row + 3 * VL);        \
          a0 = vector_##op(a0, b0);                                                                                    \
          a1 = vector_##op(a1, b1);                                                                                    \
          a2 = vector_##op(a2, b2);                                                                                    \
          a3 = vector_##op(a3, b3);                                                                                    \
        }                                                                                                              \
        vf_store(lanes, a0);                                                                                           \
        vf_store(lanes + VL, a1);                                                                                      \
        vf_store(lanes + 2 * VL, a2);                                                                                  \
        vf_store(lanes + 3 * VL, a3);                                                                                  \
        for (int i = 0; i < 4 * VL; i++) to[j + i] = combine_##op(to[j + i], (double)lanes[i]);                        \
      }                                                                                                                \
      for (; j + VL <= columns; j += VL) {                                                                             \
        vf a = vf_load(x + j);                                                                                         \
        for (int64_t r = 1; r < n; r++) {                                                                              \
          vf b = vf_load(x + r * row_stride + j);                                                                      \
          a = vector_##op(a, b);                                                                                       \
        }                                                                                                              \
        vf_store(lanes, a);                                                                                            \
        for (int i = 0; i < VL; i++) to[j + i] = combine_##op(to[j + i], (double)lanes[i]);                            \
      }                                                                                                                \
      for (; j < columns; j++) {                                                                                       \
        float a = x[j];                                                                                                \
        for (int64_t r = 1; r < n; r++) a = combine_##op(a, x[r * row_stride + j]);                                    \
        to[j] = combine_##op(to[j], (double)a);                                                                        \
      }                                                                                                                \
    }                                                                                                                  \
  }

/* n packed floats into one accumulator: four vectors of lanes, what is left over is padded with the identity. The order follows from n
 * alone. */
#define FLOAT_RUN(op, identity)                                                                                        \
  static void run_##op##_FLOAT(const float *x, int64_t n, double *accumulator)                                         \
  {                                                                                                                    \
    const vf none = vf_set(identity);                                                                                  \
    while (n > 0) {                                                                                                    \
      int64_t count = n < ROWS_##op * 4 * VL ? n : ROWS_##op * 4 * VL, i = 0;                                          \
      vf a0 = none, a1 = none, a2 = none, a3 = none;                                                                   \
      for (; i + 4 * VL <= count; i += 4 * VL) {                                                                       \
        vf b0 = vf_load(x + i), b1 = vf_load(x + i + VL), b2 = vf_load(x + i + 2 * VL), b3 = vf_load(x + i + 3 * VL);  \
        a0 = vector_##op(a0, b0);                                                                                      \
        a1 = vector_##op(a1, b1);                                                                                      \
        a2 = vector_##op(a2, b2);                                                                                      \
        a3 = vector_##op(a3, b3);                                                                                      \
      }                                                                                                                \
      for (; i + VL <= count; i += VL) {                                                                               \
        vf b = vf_load(x + i);                                                                                         \
        a0 = vector_##op(a0, b);                                                                                       \
      }                                                                                                                \
      if (i < count) {                                                                                                 \
        vf b = none;                                                                                                   \
        memcpy(&b, x + i, (size_t)(count - i) * sizeof(float));                                                        \
        a1 = vector_##op(a1, b);                                                                                       \
      }                                                                                                                \
      a0 = vector_##op(a0, a1);                                                                                        \
      a2 = vector_##op(a2, a3);                                                                                        \
      a0 = vector_##op(a0, a2);                                                                                        \
      float lanes[VL];                                                                                                 \
      vf_store(lanes, a0);                                                                                             \
      for (int width = VL / 2; width > 0; width /= 2)                                                                  \
        for (int l = 0; l < width; l++) lanes[l] = combine_##op(lanes[l], lanes[l + width]);                           \
      *accumulator = combine_##op(*accumulator, (double)lanes[0]);                                                     \
      x += count;                                                                                                      \
      n -= count;                                                                                                      \
    }                                                                                                                  \
  }

/* count vectors of columns, whose accumulators stay in registers. count is a constant at each call: 1 or 2. */
ALWAYS_INLINE void sum_strip(const int count, const float *x, int64_t rows, int64_t row_stride, double *to)
{
  vd low[2], high[2];
  for (int v = 0; v < count; v++) {
    low[v] = vd_load(to + v * VL);
    high[v] = vd_load(to + v * VL + VL / 2);
  }
  for (int64_t left = rows; left > 0; left -= ROWS_sum, x += ROWS_sum * row_stride) {
    for (int v = 0; v < count; v++) {
      vf a = vf_load(x + v * VL);
      if (left >= ROWS_sum)
        for (int64_t r = 1; r < ROWS_sum; r++) a += vf_load(x + r * row_stride + v * VL);
      else
        for (int64_t r = 1; r < left; r++) a += vf_load(x + r * row_stride + v * VL);
      low[v] += vd_low(a);
      high[v] += vd_high(a);
    }
  }
  for (int v = 0; v < count; v++) {
    vd_store(to + v * VL, low[v]);
    vd_store(to + v * VL + VL / 2, high[v]);
  }
}

/* Strips of two vectors, one, then single columns. A column has the same bits in each of them: floats of ROWS_sum rows, then doubles. */
static void columns_sum_FLOAT(const void *x_, int64_t rows, int64_t row_stride, int64_t columns, void *accumulators)
{
  const float *x = x_;
  double *to = accumulators;
  int64_t j = 0;
  for (; j + 2 * VL <= columns; j += 2 * VL) sum_strip(2, x + j, rows, row_stride, to + j);
  if (j + VL <= columns) sum_strip(1, x + j, rows, row_stride, to + j), j += VL;
  for (; j < columns; j++) {
    const float *column = x + j;
    for (int64_t left = rows; left > 0; left -= ROWS_sum, column += ROWS_sum * row_stride) {
      float a = column[0];
      for (int64_t r = 1; r < ROWS_sum && r < left; r++) a += column[r * row_stride];
      to[j] += (double)a;
    }
  }
}

/* n packed floats: ROWS_sum times four vectors at a time, then single vectors, the last one padded. */
static void run_sum_FLOAT(const float *x, int64_t n, double *accumulator)
{
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
  *accumulator += vd_sum(((low[0] + low[1]) + (low[2] + low[3])) + ((high[0] + high[1]) + (high[2] + high[3])));
}

/* Products are of doubles from the first factor on: each column in the order of its rows, vectors of columns first, then single ones. */
static void columns_prod_FLOAT(const void *x_, int64_t rows, int64_t row_stride, int64_t columns, void *accumulators)
{
  const float *x = x_;
  double *to = accumulators;
  int64_t j = 0;
  for (; j + VL <= columns; j += VL) {
    vd low = vd_load(to + j), high = vd_load(to + j + VL / 2);
    for (int64_t r = 0; r < rows; r++) {
      low *= vd_widen(x + r * row_stride + j);
      high *= vd_widen(x + r * row_stride + j + VL / 2);
    }
    vd_store(to + j, low);
    vd_store(to + j + VL / 2, high);
  }
  for (; j < columns; j++)
    for (int64_t r = 0; r < rows; r++) to[j] *= (double)x[r * row_stride + j];
}

/* n packed floats: four vectors of doubles, which are multiplied lane by lane in the end, then single floats. The order follows from n
 * alone. */
static void run_prod_FLOAT(const float *x, int64_t n, double *accumulator)
{
  enum { LANES = VL / 2 };
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
  for (int l = 0; l < LANES; l++) *accumulator *= lanes[l];
  for (; i < n; i++) *accumulator *= (double)x[i];
}

/* Rows of n packed conditions each: accumulators[row] = op(x[row][0], x[row][1], ...). */
#define BOOL_ROWS(op, start)                                                                                         \
  static void rows_##op##_BOOL(const uint8_t *x, int64_t rows, int64_t row_stride, int64_t n, uint8_t *accumulators) \
  {                                                                                                                  \
    for (int64_t r = 0; r < rows; r++, x += row_stride) {                                                            \
      uint8_t a = start;                                                                                             \
      for (int64_t j = 0; j < n; j++) a = combine_##op(a, x[j]);                                                     \
      accumulators[r] = a;                                                                                           \
    }                                                                                                                \
  }

/* Many rows of a few packed floats each, {n, 3} to {n}: accumulators[row] = op(x[row][0], x[row][1], ...), in order. count 0: any number of
 * columns, as the loop finds it; the others are unrolled. */
#define FEW_ROWS(op, T, count)                                                                                         \
  static void few_##op##_##count(const float *x, int64_t rows, int64_t row_stride, int64_t n, double *accumulators)    \
  {                                                                                                                    \
    const int64_t columns = count ? count : n;                                                                         \
    FLOW_NO_OVERLAP                                                                                                    \
    for (int64_t r = 0; r < rows; r++) {                                                                               \
      T a = (T)x[r * row_stride];                                                                                      \
      for (int64_t j = 1; j < columns; j++) a = combine_##op(a, (T)x[r * row_stride + j]);                             \
      accumulators[r] = (double)a;                                                                                     \
    }                                                                                                                  \
  }
#define FEW_FLOATS(op, T)                                                                                              \
  FEW_ROWS(op, T, 2)                                                                                                   \
  FEW_ROWS(op, T, 3)                                                                                                   \
  FEW_ROWS(op, T, 4)                                                                                                   \
  FEW_ROWS(op, T, 0)                                                                                                   \
  static void few_##op##_FLOAT(const float *x, int64_t rows, int64_t row_stride, int64_t n, double *accumulators)      \
  {                                                                                                                    \
    if (n == 2) few_##op##_2(x, rows, row_stride, n, accumulators);                                                    \
    else if (n == 3) few_##op##_3(x, rows, row_stride, n, accumulators);                                               \
    else if (n == 4) few_##op##_4(x, rows, row_stride, n, accumulators);                                               \
    else few_##op##_0(x, rows, row_stride, n, accumulators);                                                           \
  }

/* What an op with columns of all numbers needs, and, in NUMBER_BLOCKS, one whose floats are combined as floats. */
#define WIDE_COLUMNS(op)                       \
  COLUMNS(op, DOUBLE, double, double)          \
  COLUMNS(op, INTEGER, int64_t, INTEGER_##op)
#define NUMBER_BLOCKS(op, identity)            \
  FLOAT_COLUMNS(op)                            \
  FLOAT_RUN(op, identity)                      \
  FEW_FLOATS(op, float)                        \
  WIDE_COLUMNS(op)

/* The type integers are combined in: unsigned where they may overflow. */
#define INTEGER_sum  uint64_t
#define INTEGER_prod uint64_t
#define INTEGER_max  int64_t
#define INTEGER_min  int64_t

WIDE_COLUMNS(sum)
FEW_FLOATS(sum, double)
WIDE_COLUMNS(prod)
FEW_FLOATS(prod, double)
NUMBER_BLOCKS(max, -INFINITY)
NUMBER_BLOCKS(min, INFINITY)
COLUMNS(logsumexp, DOUBLE, double, double)
COLUMNS(any, BOOL, uint8_t, uint8_t)
COLUMNS(all, BOOL, uint8_t, uint8_t)
BOOL_ROWS(any, 0)
BOOL_ROWS(all, 1)

/* What reduce.c knows of each op: column functions by kind, the run of floats, identities; see `reduction` there. */
#define OF_NUMBERS(op)  { columns_##op##_FLOAT, columns_##op##_DOUBLE, columns_##op##_INTEGER, NULL }, run_##op##_FLOAT, few_##op##_FLOAT
#define REDUCTION_sum   OF_NUMBERS(sum), .identity = 0
#define REDUCTION_prod OF_NUMBERS(prod), .identity = 1, .integer_identity = 1
#define REDUCTION_max   OF_NUMBERS(max), .identity = -INFINITY, .integer_identity = INT64_MIN, .needs_elements = 1
#define REDUCTION_min   OF_NUMBERS(min), .identity = INFINITY, .integer_identity = INT64_MAX, .needs_elements = 1
#define REDUCTION_logsumexp                                                                                                    \
  { columns_logsumexp_FLOAT, columns_logsumexp_DOUBLE, NULL, NULL }, run_logsumexp_FLOAT, few_logsumexp_FLOAT, .identity = -INFINITY
#define REDUCTION_any { NULL, NULL, NULL, columns_any_BOOL }, .bools = rows_any_BOOL, .identity = 0
#define REDUCTION_all { NULL, NULL, NULL, columns_all_BOOL }, .bools = rows_all_BOOL, .identity = 1

#endif
