/* softmax_rows.h: softmax of a row of floats that are neighbours in memory, and its gradient. Sums are floats over RUN vectors, then
 * double, so that a million terms cost no digits. */
#ifndef FLOW_CPU_NETWORK_SOFTMAX_ROWS_H
#define FLOW_CPU_NETWORK_SOFTMAX_ROWS_H

#include "cpu/network/strips.h"

/* y = e^(x - largest) for n elements, a whole number of vectors; their sum. */
ALWAYS_INLINE double exponentials(const float *x, float *y, int64_t n, vf largest)
{
  vf sum = { 0 };
  for (int64_t i = 0; i < n; i += VL) {
    vf e = vf_exp(vf_load(x + i) - largest);
    sum += e;
    vf_store(y + i, e);
  }
  return (double)vf_sum(sum);
}

/* y may be x: the largest is found before anything is written. Exponentials are stored, then scaled in place by the reciprocal of their
 * sum: one division for the row. */
static inline void softmax_row(const float *x, float *y, int64_t n)
{
  vf largest = vf_set(row_max(x, n));
  double total = 0;
  int64_t i = 0;
  for (; i + RUN * VL <= n; i += RUN * VL) total += exponentials(x + i, y + i, RUN * VL, largest);
  if (i < n) {
    vf sum = { 0 };
    for (; i < n; i += VL) {
      vf e = vf_exp(load_lanes(x + i, n - i) - largest);
      sum += e;
      vf_store_lanes(y + i, e, n - i);
    }
    total += (double)vf_sum(sum);
  }
  vf scale = vf_set(1.0f / (float)total);
  for (i = 0; i + VL <= n; i += VL) vf_store(y + i, vf_load(y + i) * scale);
  if (i < n) vf_store_part(y + i, vf_load_part(y + i, (int)(n - i)) * scale, (int)(n - i));
}

/* dx = (g - sum(g y)) y, with y what softmax gave. */
static inline void softmax_gradient_row(const float *g, const float *y, float *dx, int64_t n)
{
  double products = 0;
  int64_t i = 0, whole = n / VL * VL;
  while (i < whole) {
    int64_t end = i + RUN * VL < whole ? i + RUN * VL : whole;
    vf sum = { 0 };
    for (; i < end; i += VL) sum += vf_load(g + i) * vf_load(y + i);
    products += (double)vf_sum(sum);
  }
  for (; i < n; i++) products += (double)(g[i] * y[i]);
  float total = (float)products;
  for (i = 0; i + VL <= n; i += VL) vf_store(dx + i, (vf_load(g + i) - vf_set(total)) * vf_load(y + i));
  for (; i < n; i++) dx[i] = (g[i] - total) * y[i];
}

#endif
