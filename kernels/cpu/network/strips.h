/* strips.h: exponentials of lines, such as the classes of a row, with a line in each lane of a vector. Lines that lie side by side in
 * memory are read as they are; rows of few elements, which would fill a part of a vector, are laid side by side first. */
#ifndef FLOW_CPU_NETWORK_STRIPS_H
#define FLOW_CPU_NETWORK_STRIPS_H

#include "cpu/math.h"

enum {
  RUN = 8,           /* vectors, or terms of a lane, that are added as floats; their sums are added in double */
  SHORT_ROW = 24           /* rows of as many elements at most are laid side by side */
};

/* -infinity in the lanes that a line does not fill: it changes neither a maximum nor a sum of exponentials. */
ALWAYS_INLINE vf load_lanes(const float *p, int64_t lanes)
{
  return vf_load_lanes(p, lanes, vf_set(-INFINITY));
}

/* The largest of each of the lines. step: floats from one element of a line to the next. */
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

/* Rows of n <= SHORT_ROW elements, VL of them at most, as lines side by side: element i of row r is strip[i * VL + r]. Lanes without a
 * row are not written. */
ALWAYS_INLINE void rows_to_strip(const float *x, float *strip, int64_t n, int64_t rows)
{
  for (int64_t r = 0; r < rows; r++)
    for (int64_t i = 0; i < n; i++) strip[i * VL + r] = x[r * n + i];
}

ALWAYS_INLINE void strip_to_rows(const float *strip, float *x, int64_t n, int64_t rows)
{
  for (int64_t r = 0; r < rows; r++)
    for (int64_t i = 0; i < n; i++) x[r * n + i] = strip[i * VL + r];
}

#endif
