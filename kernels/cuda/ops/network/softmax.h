/* softmax.h: softmax, log_softmax, softmax_gradient and the cross entropy of sparse labels, along lines of n elements.
 *
 * Lines along the last axis are read by teams of threads of one block, so that neighbouring threads read neighbouring elements, eight at
 * a time where lines are whole eights (at multiples of 16 bytes by wide accesses, else one by one, in the same order): a thread takes the
 * largest of its elements and the sum of exponentials below it, the team combines them (M. Milakov, N. Gimelshein: Online normalizer
 * calculation for softmax, 2018) in an order that depends on n alone. Lines along other axes have a thread each. */
#ifndef FLOW_CUDA_OPS_SOFTMAX_H
#define FLOW_CUDA_OPS_SOFTMAX_H

#include "cuda/runtime/fault.h"
#include "cuda/device/eight.h"
#include "cuda/device/numbers.h"

typedef enum softmax_kind { SOFTMAX, LOG_SOFTMAX, SOFTMAX_GRADIENT } softmax_kind;

enum { LINE_GROUP = 8 };
/* Which operands' groups are at multiples of 16 bytes; x is also z. */
typedef enum groups_together { X_TOGETHER = 1, Y_TOGETHER = 2, OUT_TOGETHER = 4 } groups_together;

/* {outer, n, inner}. x: of the gradient g. A team is a power of two of threads, at most BLOCK_THREADS; of lines it has inner = 1.
 * grouped: lines are whole groups; together: groups_together. */
typedef struct softmax_arguments {
  const void *x, *y;
  void       *out;
  int64_t     lines, n, inner;
  int         team, kind, x_dtype, y_dtype, out_dtype, grouped, together;
} softmax_arguments;
typedef softmax_arguments softmax_rows_float32_arguments, softmax_rows_half_floats_arguments, softmax_rows_other_arguments;
typedef softmax_arguments softmax_lines_float32_arguments, softmax_lines_half_floats_arguments, softmax_lines_other_arguments;

/* g NULL: the loss. */
typedef struct cross_entropy_arguments {
  const void *z, *labels, *g;
  void       *out;                  /* NULL: labels are checked only */
  flow_device_fault *fault;
  const flow_scalars *scalars;
  int64_t     lines, classes, row_lines;    /* row_lines: of a row of the batch */
  int         team, op, z_dtype, label_dtype, g_dtype, out_dtype, grouped, together;
} cross_entropy_arguments;
typedef cross_entropy_arguments cross_entropy_float32_arguments, cross_entropy_half_floats_arguments, cross_entropy_other_arguments;

/* Results of up to 256 threads are combined in two steps: TEAM_FEW threads take every TEAM_FEW-th one, then each takes those few. */
enum { TEAM_FEW = 16 };
/* Terms of a sum that a thread adds as they are; their sums it adds in double, so that a million terms cost no digits. */
enum { SUM_OF_NUMBERS = 8 };

#define BODIES "cuda/ops/network/softmax_bodies.h"
#include "cuda/device/for_float32.h"
#include "cuda/device/for_half_floats.h"
#include "cuda/device/for_other.h"
#undef BODIES

#define SOFTMAX_KERNELS(ELEMENT, BLOCK)                                                                       \
  BLOCK(softmax_rows_float32, 3) BLOCK(softmax_rows_half_floats, 3) BLOCK(softmax_rows_other, 3)                   \
  BLOCK(cross_entropy_float32, 3) BLOCK(cross_entropy_half_floats, 3) BLOCK(cross_entropy_other, 3)                \
  ELEMENT(softmax_lines_float32) ELEMENT(softmax_lines_half_floats) ELEMENT(softmax_lines_other)

#endif
