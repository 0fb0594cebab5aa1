/* strips.h: maxima of lines, such as the classes of a row, and sums of their exponentials, as softmax, cross entropy and logsumexp need
 * them. There are two ways to use the lanes of a vector:
 *   row     the elements of one line are neighbours in memory: vectors run along it, and the lanes are combined at the end
 *   strip   lines are neighbours: each lane has its own line, and nothing is combined across lanes
 * Rows of few elements, which would fill only a part of a vector, are copied into a strip first. */
#ifndef FLOW_CPU_NETWORK_STRIPS_H
#define FLOW_CPU_NETWORK_STRIPS_H

#include <math.h>
#include "cpu/math.h"

enum {
  RUN = 8,       /* vectors, or terms of a lane, that are added as floats; their sums are added in double */
  SHORT_ROW = 24 /* rows of at most this many elements are copied into a strip */
};

/* -infinity in the lanes that a line does not fill: it changes neither a maximum nor a sum of exponentials. */
ALWAYS_INLINE vf load_lanes(const float *p, int64_t lanes)
{
  return vf_load_lanes(p, lanes, vf_set(-INFINITY));
}

/* The largest of a row of n floats; -infinity if there is none. NaNs are skipped: the exponential of a NaN is NaN, and so is the sum that
 * contains it, whatever is subtracted. */
static inline float row_max(const float *x, int64_t n)
{
  vf largest[2] = { vf_set(-INFINITY), vf_set(-INFINITY) }; /* two, so that a maximum does not wait for the one before it */
  int64_t i = 0;
  for (; i + 2 * VL <= n; i += 2 * VL)
    for (int v = 0; v < 2; v++) largest[v] = vf_max(vf_load(x + i + v * VL), largest[v]); /* of a NaN, the second operand */
  for (; i < n; i += VL) largest[0] = vf_max(load_lanes(x + i, n - i), largest[0]);
  return vf_largest(vf_max(largest[0], largest[1]));
}

/* The sum of e^(x[i] - shift) over a row of n floats; NaN if an element is. */
static inline double row_exponential_sum(const float *x, int64_t n, vf shift)
{
  double total = 0;
  for (int64_t i = 0; i < n;) {
    int64_t end = i + RUN * VL < n ? i + RUN * VL : n;
    vf sum = { 0 };
    for (; i < end; i += VL) sum += vf_exp(load_lanes(x + i, n - i) - shift);
    total += (double)vf_sum(sum);
  }
  return total;
}

/* The largest of each of the lines of a strip. step: floats from one element of a line to the next. */
ALWAYS_INLINE vf strip_max(const float *x, int64_t n, int64_t step, int64_t lanes)
{
  vf largest = vf_set(-INFINITY);
  for (int64_t i = 0; i < n; i++) largest = vf_max(load_lanes(x + i * step, lanes), largest);
  return largest;
}

/* The sum of n terms in each lane: terms are added in runs, and those as doubles. */
#define STRIP_SUM(sum, n, term)                                       \
  vf sum;                                                             \
  do {                                                                \
    vd low = { 0 }, high = { 0 };                                     \
    for (int64_t i = 0; i < (n);) {                                   \
      int64_t end = i + RUN < (n) ? i + RUN : (n);                    \
      vf run = { 0 };                                                 \
      for (; i < end; i++) run += (term);                             \
      low += vd_low(run);                                             \
      high += vd_high(run);                                           \
    }                                                                 \
    sum = vf_narrow(low, high);                                       \
  } while (0)

/* Stores e and is it. */
ALWAYS_INLINE vf kept(float *y, vf e, int64_t lanes)
{
  vf_store_lanes(y, e, lanes);
  return e;
}

/* Rows of n <= SHORT_ROW elements, at most VL of them, as a strip: element i of row r, x[r * stride + i], is strip[i * VL + r]. Lanes
 * without a row are not written. */
ALWAYS_INLINE void rows_to_strip(const float *x, int64_t stride, float *strip, int64_t n, int64_t rows)
{
  for (int64_t r = 0; r < rows; r++)
    for (int64_t i = 0; i < n; i++) strip[i * VL + r] = x[r * stride + i];
}

/* Back into rows without gaps, stride n. */
ALWAYS_INLINE void strip_to_rows(const float *strip, float *x, int64_t n, int64_t rows)
{
  for (int64_t r = 0; r < rows; r++)
    for (int64_t i = 0; i < n; i++) x[r * n + i] = strip[i * VL + r];
}

#endif
