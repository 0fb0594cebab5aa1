/* log_of_sums.h: logsumexp of floats. The largest term is subtracted first, as in softmax, so that nothing overflows; exponentials are
 * added as floats in runs, and those in double. Accumulators are doubles, as of all reductions, and hold the logarithm. */
#ifndef FLOW_CPU_REDUCE_LOG_OF_SUMS_H
#define FLOW_CPU_REDUCE_LOG_OF_SUMS_H

#include <math.h>

#include "cpu/network/strips.h"

/* log(e^a + e^b) without overflow; equal ones apart, as infinities have no difference. NaN passes through. */
static inline double log_of_sum(double a, double b)
{
  if (a == b) return a + M_LN2;
  return (a > b ? a : b) + log1p(exp(-fabs(a - b)));
}

/* What is subtracted of terms of which the largest is this: nothing if it is infinite. */
ALWAYS_INLINE vf shift_of(vf largest)
{
  return vf_select(vf_abs(largest) < vf_set(INFINITY), largest, (vf){ 0 });
}

/* The logarithm of the sum of n terms in each lane, in two parts: a NaN is left out of the largest and makes the sum NaN. */
ALWAYS_INLINE vf strip_log_sum(const float *x, int64_t n, int64_t step, int64_t lanes, vf *shift)
{
  const vf subtracted = shift_of(strip_max(x, n, step, lanes));
  STRIP_SUM(sum, n, vf_exp(load_lanes(x + i * step, lanes) - subtracted));
  *shift = subtracted;
  return vf_log(sum);
}

/* Columns of `rows` elements; a column's bits do not depend on its lane, since the last vector takes the same way. */
static void columns_logsumexp_FLOAT(const void *x_, int64_t rows, int64_t row_stride, int64_t columns, void *accumulators)
{
  const float *x = x_;
  double *to = accumulators;
  for (int64_t j = 0; rows > 0 && j < columns; j += VL) {
    vf shift, log_sum = strip_log_sum(x + j, rows, row_stride, columns - j, &shift);
    for (int64_t i = 0; i < VL && j + i < columns; i++) {
      double term = (double)shift[i] + (double)log_sum[i];
      to[j + i] = to[j + i] == -INFINITY ? term : log_of_sum(to[j + i], term);
    }
  }
}

/* n packed floats into one accumulator. */
static void run_logsumexp_FLOAT(const void *x_, int64_t n, void *accumulator)
{
  const float *x = x_;
  double *to = accumulator;
  const vf shift = shift_of(vf_set(row_max(x, n)));
  double term = (double)shift[0] + log(row_exponential_sum(x, n, shift));
  *to = *to == -INFINITY ? term : log_of_sum(*to, term);
}

/* Rows of n <= SHORT_ROW floats, VL of them as a strip. */
static void few_logsumexp_FLOAT(const void *x_, int64_t rows, int64_t row_stride, int64_t n, void *accumulators)
{
  const float *x = x_;
  double *to = accumulators;
  float lanes[SHORT_ROW * VL];
  for (int64_t row = 0; row < rows; row += VL, x += VL * row_stride) {
    int64_t count = rows - row < VL ? rows - row : VL;
    rows_to_strip(x, row_stride, lanes, n, count);
    vf shift, log_sum = strip_log_sum(lanes, n, VL, count, &shift);
    for (int64_t r = 0; r < count; r++) to[row + r] = (double)shift[r] + (double)log_sum[r];
  }
}

#endif
