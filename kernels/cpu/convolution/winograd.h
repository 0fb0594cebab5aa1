/* winograd.h: the one-dimensional transforms of the minimal filtering algorithms F(2,3) and F(4,3) for vectors of channels.
 *
 * Source: A. Lavin, S. Gray: Fast Algorithms for Convolutional Neural Networks, 2015 (arXiv:1509.09308), sections 4.1 and
 * 4.3. f outputs of a kernel of three taps come out of f + 2 inputs by f + 2 multiplications:
 *   y  = A^T [(G w) * (B^T x)]
 * and, since that is bilinear, the gradient of the taps under the gradient dy of the outputs is
 *   dw = G^T [(B^T x) * (A dy)]
 * Nested for two dimensions: B^T x B and so on.
 *
 * The matrices follow from the points at which polynomials are evaluated: 0, infinity and, for f = 2, +-1, which makes
 * factors of 1 and 1/2 only. For f = 4 the article takes +-1 and +-2, with factors up to 8; points +-a and +-b with a b near
 * 1 round better (B. Barabasz et al.: Error Analysis and Improving the Accuracy of Winograd Convolution for Deep Neural
 * Networks, 2018, arXiv:1803.10986, on the choice of points), and with a = 5/8 and b = 3/2 all factors of A and B are floats
 * without rounding. Largest errors over the largest value, of outputs and both gradients, 16 to 128 channels: 2e-7 to 5e-7
 * for f = 2, which is what direct sums in float32 reach, 6e-7 to 2.3e-6 for f = 4. */
#ifndef FLOW_CPU_CONVOLUTION_WINOGRAD_H
#define FLOW_CPU_CONVOLUTION_WINOGRAD_H

#include "cpu/vector.h"

enum { WINOGRAD_SIDE = 6 };          /* f + 2 at most */

typedef enum winograd_transform {
  WINOGRAD_INPUT,                    /* B^T: f + 2 -> f + 2 */
  WINOGRAD_WEIGHTS,                  /* G:   3     -> f + 2 */
  WINOGRAD_OUTPUT,                   /* A^T: f + 2 -> f */
  WINOGRAD_GRADIENT,                 /* A:   f     -> f + 2 */
  WINOGRAD_WEIGHT_GRADIENT,          /* G^T: f + 2 -> 3 */
} winograd_transform;

/* How many values a transform reads and writes. */
ALWAYS_INLINE int winograd_reads(const winograd_transform t, const int f)
{
  return t == WINOGRAD_WEIGHTS ? 3 : t == WINOGRAD_GRADIENT ? f : f + 2;
}
ALWAYS_INLINE int winograd_writes(const winograd_transform t, const int f)
{
  return t == WINOGRAD_WEIGHT_GRADIENT ? 3 : t == WINOGRAD_OUTPUT ? f : f + 2;
}

/* The one-dimensional transform t of F(2,3), from the values x to `to`. */
ALWAYS_INLINE void winograd_2(const winograd_transform t, const vf *x, vf *to)
{
  switch (t) {
    case WINOGRAD_INPUT:
      to[0] = x[0] - x[2]; to[1] = x[1] + x[2]; to[2] = x[2] - x[1]; to[3] = x[1] - x[3];
      break;
    case WINOGRAD_WEIGHTS: {
      vf ends = x[0] + x[2];
      to[0] = x[0]; to[1] = (ends + x[1]) * 0.5f; to[2] = (ends - x[1]) * 0.5f; to[3] = x[2];
      break;
    }
    case WINOGRAD_OUTPUT:
      to[0] = x[0] + (x[1] + x[2]); to[1] = (x[1] - x[2]) - x[3];
      break;
    case WINOGRAD_GRADIENT:
      to[0] = x[0]; to[1] = x[0] + x[1]; to[2] = x[0] - x[1]; to[3] = -x[1];
      break;
    case WINOGRAD_WEIGHT_GRADIENT: {
      vf sum = (x[1] + x[2]) * 0.5f;
      to[0] = x[0] + sum; to[1] = (x[1] - x[2]) * 0.5f; to[2] = sum + x[3];
      break;
    }
  }
}

/* The same of F(4,3), for points 0, +-a, +-b, infinity. */
ALWAYS_INLINE void winograd_4(const winograd_transform t, const vf *x, vf *to)
{
  /* Points come in pairs: the rows of a matrix for +a and -a have equal even and opposite odd terms, which are computed once for both. n0,
   * na and nb are the denominators of Lagrange's interpolation at 0, +-a and +-b. They are factors of G alone, so that inputs and outputs,
   * of which there are many more than weights, are not multiplied by them. */
  const float a = 0.625f, b = 1.5f, a2 = a * a, b2 = b * b, a3 = a2 * a, b3 = b2 * b;
  const float n0 = 1 / (a2 * b2), na = 1 / (2 * a2 * (a2 - b2)), nb = 1 / (2 * b2 * (b2 - a2));
  switch (t) {
    case WINOGRAD_INPUT: {
      vf even_a = x[4] - b2 * x[2], odd_a = x[3] - b2 * x[1], even_b = x[4] - a2 * x[2], odd_b = x[3] - a2 * x[1];
      to[0] = a2 * b2 * x[0] + (x[4] - (a2 + b2) * x[2]);
      to[1] = even_a + a * odd_a; to[2] = even_a - a * odd_a;
      to[3] = even_b + b * odd_b; to[4] = even_b - b * odd_b;
      to[5] = a2 * b2 * x[1] + (x[5] - (a2 + b2) * x[3]);
      break;
    }
    case WINOGRAD_WEIGHTS: {
      vf even_a = na * x[0] + na * a2 * x[2], even_b = nb * x[0] + nb * b2 * x[2];
      to[0] = n0 * x[0];
      to[1] = even_a + na * a * x[1]; to[2] = even_a - na * a * x[1];
      to[3] = even_b + nb * b * x[1]; to[4] = even_b - nb * b * x[1];
      to[5] = x[2];
      break;
    }
    case WINOGRAD_OUTPUT: {
      vf sum_a = x[1] + x[2], difference_a = x[1] - x[2], sum_b = x[3] + x[4], difference_b = x[3] - x[4];
      to[0] = (x[0] + sum_a) + sum_b;
      to[1] = a * difference_a + b * difference_b;
      to[2] = a2 * sum_a + b2 * sum_b;
      to[3] = (a3 * difference_a + b3 * difference_b) + x[5];
      break;
    }
    case WINOGRAD_GRADIENT: {
      vf even_a = x[0] + a2 * x[2], odd_a = x[1] + a2 * x[3], even_b = x[0] + b2 * x[2], odd_b = x[1] + b2 * x[3];
      to[0] = x[0];
      to[1] = even_a + a * odd_a; to[2] = even_a - a * odd_a;
      to[3] = even_b + b * odd_b; to[4] = even_b - b * odd_b;
      to[5] = x[3];
      break;
    }
    case WINOGRAD_WEIGHT_GRADIENT: {
      vf sum_a = x[1] + x[2], sum_b = x[3] + x[4];
      to[0] = n0 * x[0] + (na * sum_a + nb * sum_b);
      to[1] = na * a * (x[1] - x[2]) + nb * b * (x[3] - x[4]);
      to[2] = (na * a2 * sum_a + nb * b2 * sum_b) + x[5];
      break;
    }
  }
}

ALWAYS_INLINE void winograd_line(const winograd_transform t, const int f, const vf *x, vf *to)
{
  if (f == 2) winograd_2(t, x, to);
  else winograd_4(t, x, to);
}

/* The first half of a transform in two dimensions: every column of from[row * row_step + column * column_step]. The
 * caller transforms each row of `half` with winograd_line. */
ALWAYS_INLINE void winograd_columns(const winograd_transform t, const int f, const float *from, int64_t row_step, int64_t column_step,
                                    vf half[WINOGRAD_SIDE][WINOGRAD_SIDE])
{
  FLOW_UNROLL(6)
  for (int j = 0; j < winograd_reads(t, f); j++) {
    vf column[WINOGRAD_SIDE], transformed[WINOGRAD_SIDE];
    FLOW_UNROLL(6)
    for (int i = 0; i < winograd_reads(t, f); i++) column[i] = vf_load(from + i * row_step + j * column_step);
    winograd_line(t, f, column, transformed);
    FLOW_UNROLL(6)
    for (int i = 0; i < winograd_writes(t, f); i++) half[i][j] = transformed[i];
  }
}

/* Both halves, written to to[(row * columns + column) * plane]. */
ALWAYS_INLINE void winograd_square(const winograd_transform t, const int f, const float *from, int64_t row_step, int64_t column_step,
                                   float *to, int64_t plane)
{
  vf half[WINOGRAD_SIDE][WINOGRAD_SIDE];
  winograd_columns(t, f, from, row_step, column_step, half);
  FLOW_UNROLL(6)
  for (int i = 0; i < winograd_writes(t, f); i++) {
    vf row[WINOGRAD_SIDE];
    winograd_line(t, f, half[i], row);
    FLOW_UNROLL(6)
    for (int j = 0; j < winograd_writes(t, f); j++) vf_store(to + (i * winograd_writes(t, f) + j) * plane, row[j]);
  }
}

#endif
