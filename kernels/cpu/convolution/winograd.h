/* winograd.h: the one-dimensional transforms of the minimal filtering algorithms F(2,3), F(4,3) and F(2,5) for vectors of channels.
 *
 * Source: A. Lavin, S. Gray: Fast Algorithms for Convolutional Neural Networks, 2015 (arXiv:1509.09308), sections 4.1 and
 * 4.3. In F(f,r), f outputs of a kernel of r taps come out of f + r - 1 inputs, the side of a tile, by as many multiplications:
 *   y  = A^T [(G w) * (B^T x)]
 * and, since that is bilinear, the gradient of the taps under the gradient dy of the outputs is
 *   dw = G^T [(B^T x) * (A dy)]
 * Nested for two dimensions: B^T x B and so on.
 *
 * The matrices follow from the points at which polynomials are evaluated: 0, infinity and, for F(2,3), +-1, which makes
 * factors of 1 and 1/2 only. For F(4,3) the article takes +-1 and +-2, with factors up to 8; points +-a and +-b with a b near
 * 1 round better (B. Barabasz et al.: Error Analysis and Improving the Accuracy of Winograd Convolution for Deep Neural
 * Networks, 2018, arXiv:1803.10986, on the choice of points), and with a = 5/8 and b = 3/2 all factors of A and B are floats
 * without rounding. F(2,5) has as many points, so the same ones. Largest errors over the largest value, of outputs and both gradients,
 * 16 to 128 channels: 2e-7 to 5e-7 for F(2,3), which is what direct sums in float32 reach, 6e-7 to 3e-6 for F(4,3), 7e-7 to 1.9e-6 for
 * F(2,5). */
#ifndef FLOW_CPU_CONVOLUTION_WINOGRAD_H
#define FLOW_CPU_CONVOLUTION_WINOGRAD_H

#include "cpu/vector.h"

enum { WINOGRAD_SIDE = 6 }; /* the largest side */

/* Outputs, and taps of the kernel. */
typedef enum winograd_form { WINOGRAD_2_3, WINOGRAD_4_3, WINOGRAD_2_5 } winograd_form;

static inline int winograd_outputs(const winograd_form form)
{
  return form == WINOGRAD_4_3 ? 4 : 2;
}
static inline int winograd_taps(const winograd_form form)
{
  return form == WINOGRAD_2_5 ? 5 : 3;
}
static inline int winograd_side(const winograd_form form)
{
  return winograd_outputs(form) + winograd_taps(form) - 1;
}

/* Calls a function whose first argument is the form with it as a constant, so that its transforms are unrolled. */
#define WINOGRAD_WITH_FORM(form, function, ...)                           \
  do {                                                                    \
    if ((form) == WINOGRAD_2_3) function(WINOGRAD_2_3, __VA_ARGS__);      \
    else if ((form) == WINOGRAD_4_3) function(WINOGRAD_4_3, __VA_ARGS__); \
    else function(WINOGRAD_2_5, __VA_ARGS__);                             \
  } while (0)

typedef enum winograd_transform {
  WINOGRAD_INPUT,           /* B^T: side -> side */
  WINOGRAD_WEIGHTS,         /* G:   taps -> side */
  WINOGRAD_OUTPUT,          /* A^T: side -> outputs */
  WINOGRAD_GRADIENT,        /* A:   outputs -> side */
  WINOGRAD_WEIGHT_GRADIENT, /* G^T: side -> taps */
} winograd_transform;

/* How many values a transform reads and writes. */
ALWAYS_INLINE int winograd_reads(const winograd_transform t, const winograd_form form)
{
  return t == WINOGRAD_WEIGHTS ? winograd_taps(form) : t == WINOGRAD_GRADIENT ? winograd_outputs(form) : winograd_side(form);
}
ALWAYS_INLINE int winograd_writes(const winograd_transform t, const winograd_form form)
{
  return t == WINOGRAD_WEIGHT_GRADIENT ? winograd_taps(form) : t == WINOGRAD_OUTPUT ? winograd_outputs(form) : winograd_side(form);
}

/* The one-dimensional transform t of F(2,3), from the values x to `to`. */
ALWAYS_INLINE void winograd_2_3(const winograd_transform t, const vf *x, vf *to)
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

/* The points 0, +-a, +-b, infinity. They come in pairs: the rows of a matrix for +a and -a have equal even and opposite odd terms, which
 * are computed once for both. n0, na and nb are the denominators of Lagrange's interpolation at 0, +-a and +-b. They are factors of G
 * alone, so that inputs and outputs, of which there are many more than weights, are not multiplied by them. */
#define SIX_POINTS                                                                                                                       \
  const float a = 0.625f, b = 1.5f, a2 = a * a, b2 = b * b, a3 = a2 * a, b3 = b2 * b, n0 = 1 / (a2 * b2), na = 1 / (2 * a2 * (a2 - b2)), \
              nb = 1 / (2 * b2 * (b2 - a2));

/* The same of F(4,3). */
ALWAYS_INLINE void winograd_4_3(const winograd_transform t, const vf *x, vf *to)
{
  SIX_POINTS
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

/* The same of F(2,5), which takes inputs as F(4,3) does. */
ALWAYS_INLINE void winograd_2_5(const winograd_transform t, const vf *x, vf *to)
{
  SIX_POINTS
  switch (t) {
  case WINOGRAD_INPUT: winograd_4_3(t, x, to); break;
  case WINOGRAD_WEIGHTS: {
    vf even_a = na * x[0] + (na * a2 * x[2] + na * a2 * a2 * x[4]), odd_a = na * a * x[1] + na * a3 * x[3];
    vf even_b = nb * x[0] + (nb * b2 * x[2] + nb * b2 * b2 * x[4]), odd_b = nb * b * x[1] + nb * b3 * x[3];
    to[0] = n0 * x[0];
    to[1] = even_a + odd_a;
    to[2] = even_a - odd_a;
    to[3] = even_b + odd_b;
    to[4] = even_b - odd_b;
    to[5] = x[4];
    break;
  }
  case WINOGRAD_OUTPUT:
    to[0] = (x[0] + (x[1] + x[2])) + (x[3] + x[4]);
    to[1] = (a * (x[1] - x[2]) + b * (x[3] - x[4])) + x[5];
    break;
  case WINOGRAD_GRADIENT:
    to[0] = x[0];
    to[1] = x[0] + a * x[1];
    to[2] = x[0] - a * x[1];
    to[3] = x[0] + b * x[1];
    to[4] = x[0] - b * x[1];
    to[5] = x[1];
    break;
  case WINOGRAD_WEIGHT_GRADIENT: {
    vf sum_a = na * (x[1] + x[2]), difference_a = na * a * (x[1] - x[2]), sum_b = nb * (x[3] + x[4]), difference_b = nb * b * (x[3] - x[4]);
    to[0] = n0 * x[0] + (sum_a + sum_b);
    to[1] = difference_a + difference_b;
    to[2] = a2 * sum_a + b2 * sum_b;
    to[3] = a2 * difference_a + b2 * difference_b;
    to[4] = (a2 * a2 * sum_a + b2 * b2 * sum_b) + x[5];
    break;
  }
  }
}
#undef SIX_POINTS

ALWAYS_INLINE void winograd_line(const winograd_transform t, const winograd_form form, const vf *x, vf *to)
{
  if (form == WINOGRAD_2_3) winograd_2_3(t, x, to);
  else if (form == WINOGRAD_4_3) winograd_4_3(t, x, to);
  else winograd_2_5(t, x, to);
}

/* The first half of a transform in two dimensions: every column of from[row * row_step + column * column_step]. The
 * caller transforms each row of `half` with winograd_line. */
ALWAYS_INLINE void winograd_columns(const winograd_transform t, const winograd_form form, const float *from, int64_t row_step,
                                    int64_t column_step, vf half[WINOGRAD_SIDE][WINOGRAD_SIDE])
{
  FLOW_UNROLL(6)
  for (int j = 0; j < winograd_reads(t, form); j++) {
    vf column[WINOGRAD_SIDE], transformed[WINOGRAD_SIDE];
    FLOW_UNROLL(6)
    for (int i = 0; i < winograd_reads(t, form); i++) column[i] = vf_load(from + i * row_step + j * column_step);
    winograd_line(t, form, column, transformed);
    FLOW_UNROLL(6)
    for (int i = 0; i < winograd_writes(t, form); i++) half[i][j] = transformed[i];
  }
}

/* Both halves, written to to[(row * columns + column) * plane]. */
ALWAYS_INLINE void winograd_square(const winograd_transform t, const winograd_form form, const float *from, int64_t row_step,
                                   int64_t column_step, float *to, int64_t plane)
{
  vf half[WINOGRAD_SIDE][WINOGRAD_SIDE];
  winograd_columns(t, form, from, row_step, column_step, half);
  FLOW_UNROLL(6)
  for (int i = 0; i < winograd_writes(t, form); i++) {
    vf row[WINOGRAD_SIDE];
    winograd_line(t, form, half[i], row);
    FLOW_UNROLL(6)
    for (int j = 0; j < winograd_writes(t, form); j++) vf_store(to + (i * winograd_writes(t, form) + j) * plane, row[j]);
  }
}

#endif
