/* filters.h: many kernels of convolutions between {height, width, in, out} and {out, height, width, in}, in one launch: each is a matrix,
 * which is transposed. A block moves a tile of one by way of its own memory, so that neighbouring threads read neighbours, and write
 * them: a thread four of a row, and four of a column. */
#ifndef FLOW_CUDA_OPS_FILTERS_H
#define FLOW_CUDA_OPS_FILTERS_H

#include "cuda/device/numbers.h"

enum { MOST_MATRICES = 256, TILE_SIDE = 32, TILE_FOURS = TILE_SIDE / 4, TILE_PITCH = TILE_SIDE + 1 };

/* Matrix k, {rows, columns}, has the tiles [first_tile, the next one's first_tile) of all, row by row. */
typedef struct transposed_matrix { const void *from; void *to; int64_t first_tile, rows, columns; } transposed_matrix;
typedef struct transpose_matrices_arguments { transposed_matrix matrix[MOST_MATRICES]; int32_t matrices, from_dtype, to_dtype, unused; }
  transpose_matrices_arguments;

/* reads_in_fours (numbers.h), on the device. */
BODY int begins_in_fours(const void *p, int64_t step) { return (uintptr_t)p % sizeof(four_floats) == 0 && step % 4 == 0; }

/* Of float32 or 16-bit floats. */
BODY void transpose_matrices(int phase, int thread, int64_t block, void *shared, const transpose_matrices_arguments *a)
{
  float *tile = (float *)shared;
  int low = 0, high = a->matrices, four = 4 * (thread % TILE_FOURS), line = thread / TILE_FOURS;
  while (high - low > 1) {
    int middle = (low + high) / 2;
    if (a->matrix[middle].first_tile <= block) low = middle;
    else high = middle;
  }
  const transposed_matrix *m = &a->matrix[low];
  int64_t column, row = TILE_SIDE * split(block - m->first_tile, (m->columns + TILE_SIDE - 1) / TILE_SIDE, &column);
  column *= TILE_SIDE;
  float v[4];
  if (phase == 0) {
    if (row + line >= m->rows || column + four >= m->columns) return;
    int valid = (int)smaller(4, m->columns - column - four), together = begins_in_fours(m->from, m->columns);
    load_four_half_floats(m->from, a->from_dtype, (row + line) * m->columns + column + four, valid, together, v);
    UNROLL for (int k = 0; k < 4; k++) tile[line * TILE_PITCH + four + k] = v[k];
  } else {
    if (row + four >= m->rows || column + line >= m->columns) return;
    int valid = (int)smaller(4, m->rows - row - four), together = begins_in_fours(m->to, m->rows);
    UNROLL for (int k = 0; k < 4; k++) v[k] = tile[(four + k) * TILE_PITCH + line];
    store_four_half_floats(m->to, a->to_dtype, (column + line) * m->rows + row + four, valid, together, v);
  }
}

#define FILTERS_KERNELS(ELEMENT, BLOCK) BLOCK(transpose_matrices, 2)

#endif
