/* batch_norm.h: batch_norm, batch_norm_relu and batch_norm_gradient over x {rows, channels}.
 *
 *   forward    xhat = (x - mean) / sqrt(variance + epsilon)      y = gamma xhat + beta, or max(gamma xhat + beta + addend, 0)
 *   gradient   dbeta = sum g     dgamma = sum g xhat     dx = gamma / sqrt(variance + epsilon) (g - dbeta / n - xhat dgamma / n)
 *
 * Two launches: sums of parts of rows, which the last block of each group of parts combines, and the last block of all groups; then the
 * result. A thread sums differences from the mean of SUM_RUN rows, and their squares, as numbers, and such sums in double, so that nothing
 * cancels wherever the rows are; two threads' sums are combined by the rule of moments.h. Parts and the order of combination depend on the
 * shape alone. */
#ifndef FLOW_CUDA_OPS_BATCH_NORM_H
#define FLOW_CUDA_OPS_BATCH_NORM_H

#include "cuda/device/arrival.h"
#include "cuda/device/moments.h"
#include "cuda/device/numbers.h"

enum { SUM_RUN = 16, GRADIENT_RUN = 32, SUM_FEW = 16, PARTS_TOGETHER = 32, FINISH_PHASES = 6 };

/* Of some rows of one channel; of the gradient the sums of g and of g (x - mean). */
typedef element_moments channel_sum;

/* Each launch has the pointers that it uses, others are NULL. A block takes rows_per_part rows of `lanes` channels, a power of two of at
 * most 32. */
typedef struct batch_norm_arguments {
  const void  *g, *x, *addend, *gamma, *beta, *given_mean, *given_variance;
  void        *y, *mean, *variance, *dgamma, *dbeta;
  channel_sum *sums, *group_sums;    /* [parts][channels], [groups][channels] */
  uint32_t    *counters;             /* [pieces of channels][groups + 1] */
  void        *coefficients;         /* [4][channels] NUMBERs, as aligned as fours need: mean, scale, shift, slope */
  int64_t      rows, channels, parts, groups, rows_per_part, channel_blocks, fours;
  double       epsilon;
  int          gradient, relu, lanes, together;
  int          g_dtype, x_dtype, addend_dtype, gamma_dtype, beta_dtype, mean_dtype, variance_dtype, y_dtype, dgamma_dtype;
} batch_norm_arguments;
typedef batch_norm_arguments batch_norm_sums_float32_arguments, batch_norm_sums_half_floats_arguments, batch_norm_sums_other_arguments;
typedef batch_norm_arguments batch_norm_apply_float32_arguments, batch_norm_apply_half_floats_arguments, batch_norm_apply_other_arguments;

#define BODIES "cuda/ops/network/batch_norm_bodies.h"
#include "cuda/device/for_float32.h"
#include "cuda/device/for_half_floats.h"
#include "cuda/device/for_other.h"
#undef BODIES

#define BATCH_NORM_KERNELS(ELEMENT, BLOCK)                                                                                        \
  BLOCK(batch_norm_sums_float32, 3 + FINISH_PHASES) BLOCK(batch_norm_sums_half_floats, 3 + FINISH_PHASES)                         \
  BLOCK(batch_norm_sums_other, 3 + FINISH_PHASES)                                                                                 \
  ELEMENT(batch_norm_apply_float32) ELEMENT(batch_norm_apply_half_floats) ELEMENT(batch_norm_apply_other)

#endif
