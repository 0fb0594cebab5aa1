/* normalize.h: normalize, layer_norm and normalize_gradient, along lines of n neighbouring elements.
 *
 * A line is read by a team of threads of one block, four neighbouring elements a thread at a time. Of a forward line each thread takes the
 * moments of its own elements, from their own mean, so that nothing cancels; the team combines them in an order that depends on n alone
 * (Chan, Golub and LeVeque, 1983). */
#ifndef FLOW_CUDA_OPS_NORMALIZE_H
#define FLOW_CUDA_OPS_NORMALIZE_H

#include "cuda/device/numbers.h"

/* g NULL: forward, of x; else the gradient: x is y, r is read. gamma, beta, r may be NULL, and y, where nobody reads it. */
typedef struct normalize_arguments {
  const void *g, *x, *gamma, *beta;
  void *y, *r;
  double epsilon;
  int64_t lines, n;
  int team, together, uncentered, g_dtype, x_dtype, gamma_dtype, beta_dtype, y_dtype, r_dtype;
} normalize_arguments;
typedef normalize_arguments normalize_lines_float32_arguments, normalize_lines_half_floats_arguments, normalize_lines_other_arguments;

/* Of some elements of a line: how many, their mean and the sum of squared differences from it. Of a gradient: the sums of g and of g y. */
typedef struct line_moments {
  double count, first, second;
} line_moments;

BODY line_moments combine_moments(int gradient, line_moments a, line_moments b)
{
  line_moments both;
  both.count = a.count + b.count;
  if (gradient || both.count == 0) {
    both.first = a.first + b.first;
    both.second = a.second + b.second;
  } else {
    double delta = b.first - a.first, share = b.count / both.count;
    both.first = a.first + delta * share;
    both.second = a.second + b.second + delta * delta * a.count * share;
  }
  return both;
}

/* As in softmax.h: TEAM_FEW threads combine every TEAM_FEW-th result, then each thread combines those few. */
enum { NORMALIZE_FEW = 16 };

#define BODIES "cuda/ops/network/normalize_bodies.h"
#include "cuda/device/for_float32.h"
#include "cuda/device/for_half_floats.h"
#include "cuda/device/for_other.h"
#undef BODIES

#define NORMALIZE_KERNELS(ELEMENT, BLOCK) \
  BLOCK(normalize_lines_float32, 3) BLOCK(normalize_lines_half_floats, 3) BLOCK(normalize_lines_other, 3)

#endif
