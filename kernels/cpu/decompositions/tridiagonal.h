/* tridiagonal.h: eigenvalues and eigenvectors of a symmetric matrix by way of a tridiagonal one, which takes about a tenth of the time of
 * rotations from some rows on (Golub and Van Loan, "Matrix Computations", 2013, 8.3; the implicit QL steps are those of EISPACK's tql2).
 * Included by decompositions.c after matrix_decompositions.h, in whose terms it is written: doubles, by rows. */
#ifndef FLOW_CPU_TRIDIAGONAL_H
#define FLOW_CPU_TRIDIAGONAL_H

#include <float.h>

enum { MOST_STEPS = 60 }; /* for an eigenvalue; two are usual */

/* a {n, n}, symmetric and full, becomes tridiagonal by reflections of the rows and columns after the first, the second, ...: its diagonal
 * goes to d {n}, the elements beside it to e {n - 1}, of row k the reflection's vector stays in columns k + 1 to n - 1, and its factor goes
 * to factors {n}. sums: room for n. */
static void make_tridiagonal(double *a, double *d, double *e, double *factors, double *sums, int64_t n)
{
  for (int64_t k = 0; k < n; k++) {
    double *v = a + k * n;
    d[k] = v[k];
    factors[k] = 0;
    if (k == n - 1) break;
    double head = v[k + 1], square = dot_rows(v + k + 1, v + k + 1, n - k - 1), length = sqrt(square);
    e[k] = head;
    if (k == n - 2 || square == head * head) continue; /* nothing is beside */
    e[k] = head >= 0 ? -length : length;
    v[k + 1] = head - e[k];
    double factor = 1 / (square - head * e[k]), product = 0; /* 2 / (v . v) */
    for (int64_t i = k + 1; i < n; i++) {
      sums[i] = factor * dot_rows(a + i * n + k + 1, v + k + 1, n - k - 1);
      product += sums[i] * v[i];
    }
    add_row(sums + k + 1, v + k + 1, -0.5 * factor * product, n - k - 1);
    for (int64_t i = k + 1; i < n; i++) {
      double *row = a + i * n, by_sums = v[i], by_vector = sums[i];
      for (int64_t j = k + 1; j < n; j++) row[j] -= by_sums * sums[j] + by_vector * v[j];
    }
    factors[k] = factor;
  }
}

/* The product of the reflections, transposed, to q {n, n}: row by row, whose columns from k + 1 on reflection k changes. Those with smaller
 * numbers come last, so that rows and columns up to k are still those of the identity. */
static void reflected_rows(const double *a, const double *factors, double *q, int64_t n)
{
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++) q[i * n + j] = i == j;
  for (int64_t k = n - 3; k >= 0; k--) {
    const double *v = a + k * n + k + 1;
    for (int64_t i = k + 1; i < n && factors[k] != 0; i++) {
      double *row = q + i * n + k + 1;
      add_row(row, v, -factors[k] * dot_rows(row, v, n - k - 1), n - k - 1);
    }
  }
}

/* One QL step with a shift, of the part of the tridiagonal matrix from row `first` to row `last`; the rows of v are turned with it. Returns
 * by how much the shift is more. */
static double ql_step(double *d, double *e, double *v, int64_t n, int64_t first, int64_t last)
{
  double g = d[first], p = (d[first + 1] - g) / (2 * e[first]), r = sqrt(p * p + 1), root = p < 0 ? p - r : p + r;
  d[first] = e[first] / root;
  d[first + 1] = e[first] * root;
  double next = d[first + 1], shift = g - d[first], next_beside = e[first + 1];
  for (int64_t i = first + 2; i < n; i++) d[i] -= shift;
  p = d[last];
  double c = 1, c_before = 1, c_first = 1, s = 0, s_before = 0;
  for (int64_t i = last - 1; i >= first; i--) {
    c_first = c_before;
    c_before = c;
    s_before = s;
    g = c * e[i];
    double h = c * p;
    r = sqrt(p * p + e[i] * e[i]);
    e[i + 1] = s * r;
    s = e[i] / r;
    c = p / r;
    p = c * d[i] - s * g;
    d[i + 1] = h + s * (c * g + s * d[i]);
    rotate_rows(v + i * n, v + (i + 1) * n, n, c, s);
  }
  p = -s * s_before * c_first * next_beside * e[first] / next;
  e[first] = s * p;
  d[first] = c * p;
  return shift;
}

/* The same as symmetric_eigen. room: for 3 n doubles. */
static void tridiagonal_eigen(double *a, double *w, double *v, double *room, int64_t n)
{
  double *e = room, *factors = room + n, *sums = room + 2 * n, size = 0, shift = 0;
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < i; j++) a[j * n + i] = a[i * n + j];
  double scale = factor_for_squares(a, n * n);
  scale_row(a, scale, n * n);
  make_tridiagonal(a, w, e, factors, sums, n);
  reflected_rows(a, factors, v, n);
  e[n - 1] = 0;
  for (int64_t i = 0; i < n; i++) size = fmax(size, fabs(w[i]) + fabs(e[i]));
  for (int64_t first = 0; first < n; first++) {
    int64_t last = first;
    while (last < n - 1 && fabs(e[last]) > DBL_EPSILON * size) last++;
    for (int step = 0; last > first && step < MOST_STEPS && fabs(e[first]) > DBL_EPSILON * size; step++)
      shift += ql_step(w, e, v, n, first, last);
    w[first] += shift;
    e[first] = 0;
  }
  for (int64_t i = 0; i < n; i++) w[i] /= scale;
  sort_rows(w, v, n, n, v, 0, 0);
}

/* to {k, k} = x x^T, of the rows of x {k, m}. */
static void products_of_rows(const double *x, double *to, int64_t k, int64_t m)
{
  for (int64_t i = 0; i < k; i++)
    for (int64_t j = 0; j <= i; j++) to[i * k + j] = to[j * k + i] = dot_rows(x + i * m, x + j * m, m);
}

/* v x to y {k, m}. */
static void turned_rows(const double *v, const double *x, double *y, int64_t k, int64_t m)
{
  for (int64_t i = 0; i < k; i++) {
    double *row = y + i * m;
    for (int64_t j = 0; j < m; j++) row[j] = 0;
    for (int64_t j = 0; j < k; j++) add_row(row, x + j * m, v[i * k + j], m);
  }
}

#endif
