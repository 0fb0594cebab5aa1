/* normalize.h: normalize, layer_norm and normalize_gradient, along lines of n neighbouring elements.
 *
 * A line is read by a team of threads of one block, four neighbouring elements a thread at a time. Of a forward line each thread takes the
 * moments of its own elements, from their own mean, so that nothing cancels; the team combines them (moments.h) in an order that depends on
 * n alone. */
#ifndef FLOW_CUDA_OPS_NORMALIZE_H
#define FLOW_CUDA_OPS_NORMALIZE_H

#include "cuda/device/moments.h"
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

/* Of some elements of a line; of a gradient the sums of g and of g y. */
typedef element_moments line_moments;

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
