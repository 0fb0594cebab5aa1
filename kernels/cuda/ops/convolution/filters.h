/* filters.h: many kernels of convolutions between {height, width, in, out} and {out, height, width, in}, in one launch: each is a matrix,
 * which is transposed. A block moves a tile of one by way of its own memory, so that neighbouring threads read neighbours, and write them. */
#ifndef FLOW_CUDA_OPS_FILTERS_H
#define FLOW_CUDA_OPS_FILTERS_H

#include "cuda/device/numbers.h"

enum { MOST_MATRICES = 256, TILE_SIDE = 32, TILE_LINES = BLOCK_THREADS / TILE_SIDE, TILE_PITCH = TILE_SIDE + 1 };

/* Matrix k, {rows, columns}, has the tiles [first_tile, the next one's first_tile) of all, row by row. */
typedef struct transposed_matrix { const void *from; void *to; int64_t first_tile, rows, columns; } transposed_matrix;
typedef struct transpose_matrices_arguments { transposed_matrix matrix[MOST_MATRICES]; int32_t matrices, from_dtype, to_dtype, unused; }
  transpose_matrices_arguments;

/* Of float32 or 16-bit floats. */
BODY void transpose_matrices(int phase, int thread, int64_t block, void *shared, const transpose_matrices_arguments *a)
{
  float *tile = (float *)shared;
  int low = 0, high = a->matrices, lane = thread % TILE_SIDE, line = thread / TILE_SIDE;
  while (high - low > 1) {
    int middle = (low + high) / 2;
    if (a->matrix[middle].first_tile <= block) low = middle;
    else high = middle;
  }
  const transposed_matrix *m = &a->matrix[low];
  int64_t column, row = TILE_SIDE * split(block - m->first_tile, (m->columns + TILE_SIDE - 1) / TILE_SIDE, &column);
  column *= TILE_SIDE;
  for (int k = line; k < TILE_SIDE; k += TILE_LINES) {
    if (phase == 0) {
      if (row + k < m->rows && column + lane < m->columns)
        tile[k * TILE_PITCH + lane] = load_half(m->from, a->from_dtype, (row + k) * m->columns + column + lane);
    } else if (row + lane < m->rows && column + k < m->columns) {
      store_half(m->to, a->to_dtype, (column + k) * m->rows + row + lane, tile[lane * TILE_PITCH + k]);
    }
  }
}

#define FILTERS_KERNELS(ELEMENT, BLOCK) BLOCK(transpose_matrices, 2)

#endif
