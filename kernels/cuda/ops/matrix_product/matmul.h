/* matmul.h: matrix products. A thread makes a tile of four rows and four columns, and neighbouring threads neighbouring tiles, whose
 * operands the first-level cache holds together. Where that gives few threads, k is cut into slices, as many as the shape asks for, whose
 * sums a second launch adds in order. Sums run over MATMUL_BLOCK products, and then over such sums. */
#ifndef FLOW_CUDA_OPS_MATMUL_H
#define FLOW_CUDA_OPS_MATMUL_H

#include "cuda/device/numbers.h"

enum { MATMUL_BLOCK = 256 };

/* `matrices` products {m, k} . {k, n}; elements of a and b are a_row, a_k, b_k, b_column apart. */
typedef struct matmul_arguments {
  const void *a, *b, *bias;           /* bias may be NULL */
  void       *c, *partial;            /* partial: NUMBERs [slices][matrices][m][n]; NULL: one slice */
  int64_t     matrices, m, n, k, a_row, a_k, b_k, b_column;
  int64_t     slices, slice, row_tiles, column_tiles;
  int64_t     batch[FLOW_MAX_RANK], a_step[FLOW_MAX_RANK], b_step[FLOW_MAX_RANK];
  int         batch_rank, relu, a_together, b_together, c_together, a_dtype, b_dtype, bias_dtype, c_dtype;
} matmul_arguments;
typedef matmul_arguments matmul_tiles_float32_arguments, matmul_tiles_other_arguments, matmul_tiles_integers_arguments;
typedef matmul_arguments matmul_slices_float32_arguments, matmul_slices_other_arguments, matmul_slices_integers_arguments;

#define BODIES "cuda/ops/matrix_product/matmul_bodies.h"
#include "cuda/device/for_float32.h"
#include "cuda/device/for_other.h"
#include "cuda/device/for_integers.h"
#undef BODIES

#define MATMUL_KERNELS(ELEMENT, BLOCK)                                                                    \
  ELEMENT(matmul_tiles_float32) ELEMENT(matmul_tiles_other) ELEMENT(matmul_tiles_integers)                \
  ELEMENT(matmul_slices_float32) ELEMENT(matmul_slices_other) ELEMENT(matmul_slices_integers)

#endif
