/* reduce_blocks.h: reductions of packed blocks, the inner loops of reduce.c.
 *
 * A column function reduces `rows` rows of `columns` elements into one accumulator per column:
 *   accumulators[j] = op(accumulators[j], x[0][j], x[1][j], ...), row r at x + r * row_stride elements.
 * Accumulators are doubles for FLOAT and DOUBLE, int64_t for INTEGER, int32_t for WORD, uint8_t for BOOL.
 * Floats are combined in float for a few rows and then in double. Of a sum these are 4: four equal numbers add up exactly, so that the
 * mean of equal numbers is that number, and the error stays below 2e-7 of the sum of magnitudes however long the sum is. Products
 * are of doubles: rounded to float, factors near 1 would all err to one side. */
#ifndef FLOW_CPU_REDUCE_REDUCE_BLOCKS_H
#define FLOW_CPU_REDUCE_REDUCE_BLOCKS_H

#include <math.h>
#include "cpu/movement/convert.h"
#include "cpu/reduce/log_of_sums.h"
#include "cpu/reduce/reduce_runs.h"

typedef void (*flow_columns_function)(const void *x, int64_t rows, int64_t row_stride, int64_t columns, void *accumulators);

/* How many rows of floats are combined in float. */
enum { ROWS_max = 32, ROWS_min = 32 };

/* combine_OP for scalars of any type (reduce_runs.h), vector_OP for vectors of floats. A NaN wins; of two zeros the first. */
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

/* Columns of numbers that are combined in their own type; max and min have them of 32-bit integers, too, which cannot overflow there. */
#define WIDE_COLUMNS(op)                       \
  COLUMNS(op, DOUBLE, double, double)          \
  COLUMNS(op, INTEGER, int64_t, INTEGER_##op)
#define EXTREME_COLUMNS(op) \
  FLOAT_COLUMNS(op)         \
  WIDE_COLUMNS(op)          \
  COLUMNS(op, WORD, int32_t, int32_t)

WIDE_COLUMNS(sum)
WIDE_COLUMNS(prod)
EXTREME_COLUMNS(max)
EXTREME_COLUMNS(min)
COLUMNS(logsumexp, DOUBLE, double, double)
COLUMNS(any, BOOL, uint8_t, uint8_t)
COLUMNS(all, BOOL, uint8_t, uint8_t)
BOOL_ROWS(any, 0)
BOOL_ROWS(all, 1)

/* What reduce.c knows of each op, by kinds; see `reduction` there. */
#define OF_NUMBERS(what, op)                                         \
  {                                                                  \
    what##_##op##_FLOAT, what##_##op##_DOUBLE, what##_##op##_INTEGER \
  }
#define OF_EXTREMES(what, op)                                                                  \
  {                                                                                            \
    what##_##op##_FLOAT, what##_##op##_DOUBLE, what##_##op##_INTEGER, NULL, what##_##op##_WORD \
  }
#define REDUCTION_sum OF_NUMBERS(columns, sum), OF_NUMBERS(run, sum), OF_NUMBERS(few, sum), .identity = 0
#define REDUCTION_prod OF_NUMBERS(columns, prod), OF_NUMBERS(run, prod), OF_NUMBERS(few, prod), .identity = 1, .integer_identity = 1
#define REDUCTION_max                                                      \
  OF_EXTREMES(columns, max), OF_EXTREMES(run, max), OF_EXTREMES(few, max), \
      .identity = -INFINITY, .integer_identity = INT64_MIN, .word_identity = INT32_MIN, .needs_elements = 1
#define REDUCTION_min                                                      \
  OF_EXTREMES(columns, min), OF_EXTREMES(run, min), OF_EXTREMES(few, min), \
      .identity = INFINITY, .integer_identity = INT64_MAX, .word_identity = INT32_MAX, .needs_elements = 1
#define REDUCTION_logsumexp \
  { columns_logsumexp_FLOAT, columns_logsumexp_DOUBLE }, { run_logsumexp_FLOAT }, { few_logsumexp_FLOAT }, .identity = -INFINITY
#define REDUCTION_any { [FLOW_KIND_BOOL] = columns_any_BOOL }, .few = { [FLOW_KIND_BOOL] = rows_any_BOOL }, .identity = 0
#define REDUCTION_all { [FLOW_KIND_BOOL] = columns_all_BOOL }, .few = { [FLOW_KIND_BOOL] = rows_all_BOOL }, .identity = 1

#endif
