/* matrix_decompositions.h: one matrix taken apart, in doubles, for the kernels of every device: by rows, in memory that may be written to.
 * The includer defines FORMULA, how functions are declared. Inner loops go along rows, so that compilers make vectors of them. Golub and
 * Van Loan, "Matrix Computations", 2013, has all of these but the one-sided rotations: chapters 3, 4.2, 5.2 and 8.5. Within C11 and
 * C++17. */
#ifndef FLOW_MATRIX_DECOMPOSITIONS_H
#define FLOW_MATRIX_DECOMPOSITIONS_H

#include <math.h>
#include <stdint.h>

enum { MOST_SWEEPS = 60 };   /* of rotations; ten are many */
#define ROTATED_ENOUGH 1e-15 /* what is left beside the diagonal, in proportion */

/* to += factor from. */
FORMULA void add_row(double *to, const double *from, double factor, int64_t n)
{
  for (int64_t k = 0; k < n; k++) to[k] += factor * from[k];
}

/* The sum of x[k] y[k]: eight sums, which are a vector, and that of what is left. */
FORMULA double dot_rows(const double *x, const double *y, int64_t n)
{
  double sums[8] = { 0, 0, 0, 0, 0, 0, 0, 0 }, rest = 0;
  int64_t k = 0;
  for (; k + 8 <= n; k += 8)
    for (int i = 0; i < 8; i++) sums[i] += x[k + i] * y[k + i];
  for (; k < n; k++) rest += x[k] * y[k];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7])) + rest;
}

/* Powers of two, so that the bits of a result are those of any scale: 1 unless squares of the n elements could overflow or vanish. */
FORMULA double factor_for_squares(const double *x, int64_t n)
{
  double largest = 0;
  for (int64_t k = 0; k < n; k++) largest = fabs(x[k]) > largest ? fabs(x[k]) : largest;
  return largest > 1e140 ? 0x1p-600 : largest < 1e-140 && largest > 0 ? 0x1p600 : 1;
}

FORMULA void scale_row(double *x, double factor, int64_t n)
{
  if (factor == 1) return;
  for (int64_t k = 0; k < n; k++) x[k] *= factor;
}

/* ---- elimination --------------------------------------------------------------------------------------------------------- */

FORMULA void swap_rows(double *x, double *y, int64_t n)
{
  for (int64_t k = 0; k < n; k++) {
    double swap = x[k];
    x[k] = y[k];
    y[k] = swap;
  }
}

/* One step of Gauss' elimination of n rows: the row with the largest element of column j, or the first NaN, from row j on, is swapped with
 * row j and taken from those below so that the column becomes zero there; the factors stay in its place. A column of zeros is passed over.
 * Returns the row that was swapped. */
FORMULA int64_t eliminate_column(double *a, int64_t j, int64_t n)
{
  int64_t pivot = j;
  double best = -1;
  for (int64_t i = j; i < n; i++) {
    double size = fabs(a[i * n + j]);
    if (size > best || (size != size && best == best)) {
      pivot = i;
      best = size;
    }
  }
  if (pivot != j) swap_rows(a + j * n, a + pivot * n, n);
  double head = a[j * n + j];
  for (int64_t i = j + 1; i < n; i++) {
    double factor = head == 0 ? 0 : a[i * n + j] / head;
    a[i * n + j] = factor;
    add_row(a + i * n + j + 1, a + j * n + j + 1, -factor, n - j - 1);
  }
  return pivot;
}

/* All steps; pivots[j]: the row that row j was swapped with. */
FORMULA void eliminate(double *a, int64_t n, int32_t *pivots)
{
  for (int64_t j = 0; j < n; j++) pivots[j] = (int32_t)eliminate_column(a, j, n);
}

/* b {n, count} becomes x with a x = b, of which one triangle is read, or a^T x = b. */
FORMULA void solve_triangle_rows(const double *a, double *b, int64_t n, int64_t count, int lower, int transposed)
{
  int forward = lower != transposed;
  for (int64_t step = 0; step < n; step++) {
    int64_t i = forward ? step : n - 1 - step;
    for (int64_t j = forward ? 0 : i + 1; j < (forward ? i : n); j++)
      add_row(b + i * count, b + j * count, transposed ? -a[j * n + i] : -a[i * n + j], count);
    double head = a[i * n + i];
    for (int64_t k = 0; k < count; k++) b[i * count + k] /= head;
  }
}

/* b {n, count} becomes x with a x = b; a is eliminated, and its rows of factors take part in what happens to b. */
FORMULA void solve_rows(double *a, double *b, int64_t n, int64_t count)
{
  for (int64_t j = 0; j < n; j++) {
    int64_t pivot = eliminate_column(a, j, n);
    if (pivot != j) swap_rows(b + j * count, b + pivot * count, count);
    for (int64_t i = j + 1; i < n; i++) add_row(b + i * count, b + j * count, -a[i * n + j], count);
  }
  solve_triangle_rows(a, b, n, count, 0, 0);
}

/* The upper triangle U with U^T U = a, of which the upper one is read; zeros below. Where a is not positive definite, NaN from that row
 * on: also where a pivot is zero, by which the rest of the row cannot be divided. */
FORMULA void cholesky_upper(double *a, int64_t n)
{
  for (int64_t j = 0; j < n; j++) {
    double *row = a + j * n;
    for (int64_t k = 0; k < j; k++) {
      add_row(row + j, a + k * n + j, -a[k * n + j], n - j);
      row[k] = 0;
    }
    double root = row[j] > 0 ? sqrt(row[j]) : (double)NAN;
    row[j] = root;
    for (int64_t k = j + 1; k < n; k++) row[k] /= root;
  }
}

/* ---- reflections --------------------------------------------------------------------------------------------------------- */

/* x {., n} loses factor v (v^T x): rows from `from` to m. sums: room for n. */
FORMULA void reflect_rows(double *x, int64_t n, int64_t first_column, const double *v, double factor, int64_t from, int64_t m, double *sums)
{
  for (int64_t k = first_column; k < n; k++) sums[k] = 0;
  for (int64_t i = from; i < m; i++) add_row(sums + first_column, x + i * n + first_column, v[i], n - first_column);
  for (int64_t i = from; i < m; i++) add_row(x + i * n + first_column, sums + first_column, -factor * v[i], n - first_column);
}

/* a {m, n} becomes R, and q {m, count} the first columns of Q, by Householder's reflections with LAPACK's signs. vectors: room for
 * min(m, n) of m elements and for as many factors; sums: room for max(n, count). */
FORMULA void reflect(double *a, double *q, int64_t m, int64_t n, int64_t count, double *vectors, double *sums)
{
  int64_t steps = m - 1 < n ? m - 1 : n, places = m < n ? m : n;
  double *factors = vectors + places * m, scale = factor_for_squares(a, m * n);
  scale_row(a, scale, m * n);
  for (int64_t j = 0; j < steps; j++) {
    double *v = vectors + j * m, square = 0, head = a[j * n + j];
    for (int64_t i = j; i < m; i++) {
      v[i] = a[i * n + j];
      square += v[i] * v[i];
    }
    double length = sqrt(square);
    factors[j] = 0;
    if (length == fabs(head)) continue; /* nothing is below */
    v[j] = head >= 0 ? head + length : head - length;
    factors[j] = 2 / dot_rows(v + j, v + j, m - j);
    reflect_rows(a, n, j, v, factors[j], j, m, sums);
    for (int64_t i = j + 1; i < m; i++) a[i * n + j] = 0;
  }
  scale_row(a, 1 / scale, m * n);
  for (int64_t i = 0; i < m; i++)
    for (int64_t k = 0; k < count; k++) q[i * count + k] = i == k;
  for (int64_t j = steps - 1; j >= 0; j--)
    if (factors[j] != 0) reflect_rows(q, count, 0, vectors + j * m, factors[j], j, m, sums);
}

/* ---- rotations ------------------------------------------------------------------------------------------------------------ */

/* The cosine and the sine that make the element beside the diagonal of {{p, r}, {r, q}} zero. */
FORMULA void rotation_of(double p, double q, double r, double *c, double *s)
{
  double zeta = (q - p) / (2 * r), t = (zeta >= 0 ? 1 : -1) / (fabs(zeta) + sqrt(1 + zeta * zeta));
  *c = 1 / sqrt(1 + t * t);
  *s = *c * t;
}

FORMULA void rotate_rows(double *x, double *y, int64_t n, double c, double s)
{
  for (int64_t k = 0; k < n; k++) {
    double a = x[k], b = y[k];
    x[k] = c * a - s * b;
    y[k] = s * a + c * b;
  }
}

/* Rows of x {n, m}, and the numbers beside them, in the order of these: rising, or falling. Equal ones keep their order. */
FORMULA void sort_rows(double *values, double *x, int64_t n, int64_t m, double *y, int64_t width, int falling)
{
  for (int64_t i = 0; i < n; i++) {
    int64_t best = i;
    for (int64_t j = i + 1; j < n; j++)
      if (falling ? values[j] > values[best] : values[j] < values[best]) best = j;
    for (int64_t j = best; j > i; j--) { /* those between move on by one */
      double value = values[j];
      values[j] = values[j - 1];
      values[j - 1] = value;
      swap_rows(x + j * m, x + (j - 1) * m, m);
      swap_rows(y + j * width, y + (j - 1) * width, width);
    }
  }
}

/* Eigenvalues w {n}, rising, and eigenvectors, the rows of v {n, n}, of a symmetric matrix, of which the lower triangle is read: Jacobi's
 * rotations. */
FORMULA void symmetric_eigen(double *a, double *w, double *v, int64_t n)
{
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = i + 1; j < n; j++) a[i * n + j] = a[j * n + i];
    for (int64_t j = 0; j < n; j++) v[i * n + j] = i == j;
  }
  double scale = factor_for_squares(a, n * n);
  scale_row(a, scale, n * n);
  for (int sweep = 0; sweep < MOST_SWEEPS; sweep++) {
    double off = 0, all = dot_rows(a, a, n * n);
    for (int64_t i = 0; i < n; i++) off += dot_rows(a + i * n, a + i * n, i) * 2;
    if (off <= ROTATED_ENOUGH * ROTATED_ENOUGH * all) break;
    for (int64_t i = 0; i < n - 1; i++) {
      for (int64_t j = i + 1; j < n; j++) {
        double p = a[i * n + i], q = a[j * n + j], r = a[i * n + j], c, s;
        if (r == 0) continue;
        rotation_of(p, q, r, &c, &s);
        rotate_rows(a + i * n, a + j * n, n, c, s);
        rotate_rows(v + i * n, v + j * n, n, c, s);
        a[i * n + i] = p - s / c * r;
        a[j * n + j] = q + s / c * r;
        a[i * n + j] = a[j * n + i] = 0;
        for (int64_t k = 0; k < n; k++) {
          if (k == i || k == j) continue;
          a[k * n + i] = a[i * n + k];
          a[k * n + j] = a[j * n + k];
        }
      }
    }
  }
  for (int64_t i = 0; i < n; i++) w[i] = a[i * n + i] / scale;
  sort_rows(w, v, n, n, v, 0, 0);
}

FORMULA void identity_rows(double *v, int64_t n)
{
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++) v[i * n + j] = i == j;
}

/* The rows of x {n, m}, n <= m, become orthogonal by rotations that v {n, n} gets, too (M. Hestenes, "Inversion of matrices by
 * biorthogonalization", 1958), and s {n} their lengths, falling. From v as the identity: x = diag(s) U^T, v = V^T of the singular value
 * decomposition of the transpose of x. */
FORMULA void orthogonal_rows(double *x, double *s, double *v, int64_t n, int64_t m)
{
  for (int sweep = 0, done = 0; sweep < MOST_SWEEPS && !done; sweep++) {
    done = 1;
    for (int64_t i = 0; i < n; i++) s[i] = dot_rows(x + i * m, x + i * m, m);
    for (int64_t i = 0; i < n - 1; i++) {
      for (int64_t j = i + 1; j < n; j++) {
        double *a = x + i * m, *b = x + j * m, c, sine;
        double p = s[i], q = s[j], r = dot_rows(a, b, m);
        if (r == 0 || fabs(r) <= ROTATED_ENOUGH * sqrt(p) * sqrt(q)) continue;
        done = 0;
        rotation_of(p, q, r, &c, &sine);
        rotate_rows(a, b, m, c, sine);
        rotate_rows(v + i * n, v + j * n, n, c, sine);
        s[i] = dot_rows(a, a, m);
        s[j] = dot_rows(b, b, m);
      }
    }
  }
  for (int64_t i = 0; i < n; i++) s[i] = sqrt(dot_rows(x + i * m, x + i * m, m));
  sort_rows(s, x, n, m, v, n, 1);
}

/* Rows `first` to `count` of u {count, m} become unit vectors that are orthogonal to those before: Gram and Schmidt's method, twice. */
FORMULA void complete_rows(double *u, int64_t first, int64_t count, int64_t m)
{
  int64_t candidate = 0;
  for (int64_t j = first; j < count; j++) {
    double *row = u + j * m, size = 0;
    while (size <= 1e-8 && candidate < m) {
      for (int64_t i = 0; i < m; i++) row[i] = i == candidate;
      for (int round = 0; round < 2; round++)
        for (int64_t k = 0; k < j; k++) add_row(row, u + k * m, -dot_rows(row, u + k * m, m), m);
      size = sqrt(dot_rows(row, row, m));
      candidate++;
    }
    for (int64_t i = 0; i < m; i++) row[i] /= size;
  }
}

/* ---- what the ops give ---------------------------------------------------------------------------------------------------- */

/* Which rows of the matrix the rows of its triangles are, from the swaps. */
FORMULA void order_of_pivots(const int32_t *pivots, int32_t *order, int64_t n)
{
  for (int64_t i = 0; i < n; i++) order[i] = (int32_t)i;
  for (int64_t j = 0; j < n; j++) {
    int32_t swap = order[j];
    order[j] = order[pivots[j]];
    order[pivots[j]] = swap;
  }
}

/* The singular value decomposition of the matrix whose columns, or rows if these are fewer, are the k rows of x {k, larger}: s, falling,
 * and as rows the singular vectors of the smaller side, {k, k}, and `width` of those of the larger one, {width, larger}. short_side: the
 * identity, or the rotations that x already had. */
FORMULA void singular_values(double *x, double *s, double *short_side, double *long_side, int64_t k, int64_t larger, int64_t width)
{
  int64_t rank = 0;
  double scale = factor_for_squares(x, k * larger);
  scale_row(x, scale, k * larger);
  orthogonal_rows(x, s, short_side, k, larger);
  for (; rank < k && s[rank] > 0; rank++)
    for (int64_t i = 0; i < larger; i++) long_side[rank * larger + i] = x[rank * larger + i] / s[rank];
  scale_row(s, 1 / scale, k);
  complete_rows(long_side, rank, width, larger);
}

FORMULA int all_finite(const double *x, int64_t n)
{
  double zero = 0;
  for (int64_t i = 0; i < n; i++) zero += x[i] - x[i];
  return zero == 0;
}

#endif
