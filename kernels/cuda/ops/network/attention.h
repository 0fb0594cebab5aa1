/* attention.h: softmax(q k^T) v and its gradients by tiles of keys, without the matrix of scores (T. Dao: FlashAttention-2, 2023).
 *
 * Forward: a block has BLOCK_ROWS rows of a query, a warp 16 of them, whose words stay in registers where there is room. Tile by tile keys
 * and values come into the block's memory; scores of a tile are sums of tensor cores, and their exponentials, relative to the largest score
 * so far, are the next product's operand, in 16 bits where the values have 16.
 *
 * The gradients compute the exponentials again, from the largest score and the sum of each row, which the forward kernel has kept; if
 * it has not, it runs again. A launch of its own adds up the rows of g y. Each gradient has a launch of one kernel, in which
 * blocks own rows of the result, so that no sum is shared and the order of terms follows from shapes alone:
 *   dq = ds k      own: q, g   tile: k, v
 *   dk = ds^T q    own: k, v   tile: q, g
 *   dv = w^T g     own: k      tile: q, g
 * with w the weights and ds = w (g v^T - delta), where delta is the sum of a row of g y.
 *
 * Each dtype is a family, attention_DTYPE.h, with kernels for up to 64, 128 and 256 columns.
 *
 * A tile of which the mask lets nothing through is left out. Where that would change a result, because a row sees nothing at all or what
 * the mask puts in place of scores is not small, no tile is. */
#ifndef FLOW_CUDA_OPS_ATTENTION_H
#define FLOW_CUDA_OPS_ATTENTION_H

#include "cuda/device/numbers.h"
#include "cuda/device/warps.h"

enum { ATTENTION_MOST_COLUMNS = 256, ATTENTION_SHARED = 36864 };
#if defined(__CUDACC__)
#define BLOCK_SHARED ATTENTION_SHARED /* of these families, which are compiled by themselves */
#endif

/* Matrices {rows, columns} in the device's memory. Elements between rows; between the first ones of matrices: matrix m is `m % heads` steps
 * of one kind and `m / heads` of the other from the first. together: rows are whole 16 bytes, and begin at multiples of them. */
typedef struct attention_matrices {
  const void *data;
  int64_t rows, row_step, head_step, outer_step;
  int columns, together;
} attention_matrices;

/* What the gradients need of a row of scores: the largest, what exponentials are multiplied with, and the sum of g y. */
typedef struct attention_row {
  float largest, scale, delta;
} attention_row;

/* own, tile: of the forward kernel q and, where rows are asked for, g; k and v. mask NULL: none; its steps are 0 where it repeats, and
 * axes before the last two are those of the matrices. row_blocks: blocks of a matrix. by_key: own rows are keys; of_weights: the
 * result is w^T g. kept: largest and scale of each row, which the forward kernel writes, if it is not NULL; rows_from_kept makes rows
 * of them, g and y, own[1] and out. */
typedef struct attention_arguments {
  attention_matrices own[2], tile[2], out;
  attention_row *rows; /* forward: written in place of out */
  float *kept;
  const uint8_t *mask;
  const float *left_out; /* a score that the mask leaves out */
  int64_t mask_row, mask_key, mask_shape[FLOW_MAX_RANK], mask_step[FLOW_MAX_RANK];
  int64_t heads, row_blocks;
  int mask_rank, exact, by_key, of_weights;
} attention_arguments;

#include "cuda/ops/network/attention_bodies.h"
#include "cuda/ops/network/attention_forward.h"
#include "cuda/ops/network/attention_gradients.h"

/* Two blocks are on a multiprocessor where a kernel needs few registers: one loads its tiles while the other multiplies. */
#if defined(__CUDACC__)
#define BLOCKS_TOGETHER(name) name##_together
#endif

/* The kernels of a dtype: for any number of columns, and for this many. */
#define ATTENTION_ROWS(name, dtype)                                                                               \
  enum { attention_rows_##name##_together = 2 };                                                                  \
  typedef attention_arguments attention_rows_##name##_arguments;                                                  \
  BODY void attention_rows_##name(int phase, int self, int64_t block, void *shared, const attention_arguments *a) \
  {                                                                                                               \
    (void)phase, (void)shared;                                                                                    \
    rows_from_kept(dtype, self, block, a);                                                                        \
  }

#define ATTENTION_BLOCKS(name, dtype, columns)                                                                                         \
  enum { attention_##name##_together = (dtype) != FLOW_FLOAT32 && (columns) == 64 ? 2 : 1, attention_gradient_##name##_together = 1 }; \
  typedef attention_arguments attention_##name##_arguments, attention_gradient_##name##_arguments;                                     \
  BODY void attention_##name(int phase, int self, int64_t block, void *shared, const attention_arguments *a)                           \
  {                                                                                                                                    \
    (void)phase;                                                                                                                       \
    attend(dtype, columns, self, block, (uint32_t *)shared, a);                                                                        \
  }                                                                                                                                    \
  BODY void attention_gradient_##name(int phase, int self, int64_t block, void *shared, const attention_arguments *a)                  \
  {                                                                                                                                    \
    (void)phase;                                                                                                                       \
    differentiate(dtype, columns, self, block, (uint32_t *)shared, a);                                                                 \
  }

#endif
