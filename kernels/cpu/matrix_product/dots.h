/* dots.h: products of float64 with one column, which are dot products of rows that lie as they are read: each is the sum of the same
 * partial sums in the same order, whichever variant, chunk or part it belongs to. */
#ifndef FLOW_CPU_MATRIX_PRODUCT_DOTS_H
#define FLOW_CPU_MATRIX_PRODUCT_DOTS_H

#include "cpu/vector.h"
#include "ops/matrix_product.h"

/* By sizes and the way the operands lie alone. */
static inline int is_dots(const product *p)
{
  return p->n == 1 && !p->transpose_a && (p->transpose_b || p->ldb == 1);
}

/* Eight vectors of partial sums, since an addition takes about four steps of the processor and two of them begin in each. */
static inline double dot_of_doubles(const double *a, const double *b, int64_t n)
{
  enum { LANES = VL / 2, SUMS = 8 };
  vd sums[SUMS] = { { 0 } };
  int64_t i = 0;
  for (; i + SUMS * LANES <= n; i += SUMS * LANES) {
    FLOW_UNROLL(8)
    for (int s = 0; s < SUMS; s++) sums[s] += vd_load(a + i + s * LANES) * vd_load(b + i + s * LANES);
  }
  for (; i + LANES <= n; i += LANES) sums[0] += vd_load(a + i) * vd_load(b + i);
  double rest = 0;
  for (; i < n; i++) rest += a[i] * b[i];
  return vd_sum(((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]))) + rest;
}

/* Rows [begin, end) of all matrices of the product, counted through. */
static inline void run_dots(const product *p, int64_t begin, int64_t end)
{
  for (int64_t row = begin; row < end; row++) {
    int64_t matrix = row / p->m, i = row % p->m;
    const double *a = (const double *)p->a + a_offset(p, matrix) + i * p->lda;
    double y = dot_of_doubles(a, (const double *)p->b + b_offset(p, matrix), p->k);
    if (p->bias) y += ((const double *)p->bias)[0];
    ((double *)p->c)[c_offset(p, matrix) + i * p->ldc] = p->relu && y < 0 ? 0 : y; /* NaN stays */
  }
}

#endif
