/* movement.h: kernels that move elements and never compute with them.
 *   move_strided     between two views of one element size
 *   transpose_tiles       a transposition through a tile of the block's memory, so that both sides are read and written in lines
 *   join_arrays      many small arrays one after the other
 *   spread_slice     slice_gradient: each element of the output finds the one that fell on it, or is 0 */
#ifndef FLOW_CUDA_OPS_MOVEMENT_H
#define FLOW_CUDA_OPS_MOVEMENT_H

#include "cuda/ops/elementwise/elementwise.h"   /* move_element */

/* size: bytes of an element. */
typedef struct move_strided_arguments { view from, to; int32_t size, unused; } move_strided_arguments;

BODY void move_strided(int64_t i, const move_strided_arguments *p)
{
  move_element(p->size, p->from.data, view_offset(&p->from, i), p->to.data, view_offset(&p->to, i));
}

/* ---- transpositions --------------------------------------------------------------------------------------------------------- */

enum { TRANSPOSE_TILE = 32, TRANSPOSE_ROWS = BLOCK_THREADS / TRANSPOSE_TILE };

/* Matrices {outer, rows, columns}: element (r, c) of `to` is element (c, r) of `from`, whose lines run along r. Steps in elements. */
typedef struct transpose_tiles_arguments {
  const void *from;
  void       *to;
  int64_t     rows, columns, from_column, to_row, from_outer, to_outer;
  int32_t     size, row_tiles, column_tiles, unused;
} transpose_tiles_arguments;

/* Columns of a tile are transposed by their row, so that neither its lines nor its columns meet in one bank of the block's memory. */
BODY int transpose_place(int row, int column) { return row * TRANSPOSE_TILE + ((column + row) & (TRANSPOSE_TILE - 1)); }

/* A block moves a tile: in phase 0 into its memory, in phase 1 out of it. In both, threads that are neighbours have neighbouring x, the
 * axis that is packed. */
BODY void transpose_tiles(int phase, int thread, int64_t block, void *shared, const transpose_tiles_arguments *p)
{
  int64_t tiles = (int64_t)p->row_tiles * p->column_tiles, outer = block / tiles, tile = block - outer * tiles;
  int64_t first_row = tile / p->column_tiles * TRANSPOSE_TILE, first_column = tile % p->column_tiles * TRANSPOSE_TILE;
  int x = thread % TRANSPOSE_TILE;
  for (int y = thread / TRANSPOSE_TILE; y < TRANSPOSE_TILE; y += TRANSPOSE_ROWS) {
    if (phase == 0) {          /* y: column of `to`, x: its row */
      int64_t row = first_row + x, column = first_column + y;
      if (row < p->rows && column < p->columns)
        move_element(p->size, p->from, outer * p->from_outer + column * p->from_column + row, shared, transpose_place(x, y));
    } else {
      int64_t row = first_row + y, column = first_column + x;
      if (row < p->rows && column < p->columns)
        move_element(p->size, shared, transpose_place(y, x), p->to, outer * p->to_outer + row * p->to_row + column);
    }
  }
}

/* ---- joining ------------------------------------------------------------------------------------------------------------------ */

enum { JOIN_PARTS = 96 };

/* Part k is elements first[k] .. first[k + 1] - 1 of this launch, from from[k] to to[k]. */
typedef struct join_arrays_arguments {
  const void *from[JOIN_PARTS];
  void       *to[JOIN_PARTS];
  int64_t     first[JOIN_PARTS + 1];
  int32_t     parts, size;
} join_arrays_arguments;

/* i: an element of the launch; bisection finds its part. */
BODY void join_arrays(int64_t i, const join_arrays_arguments *p)
{
  int low = 0, high = p->parts;             /* first[low] <= i < first[high] */
  while (high - low > 1) {
    int middle = (low + high) / 2;
    if (p->first[middle] <= i) low = middle;
    else high = middle;
  }
  move_element(p->size, p->from[low], i - p->first[low], p->to[low], i - p->first[low]);
}

/* ---- slices --------------------------------------------------------------------------------------------------------------------- */

/* Zero is the same bits in every dtype. */
BODY void clear_element(int size, void *to, int64_t i)
{
  switch (size) {
    case 1: ((uint8_t *)to)[i] = 0; return;
    case 2: ((uint16_t *)to)[i] = 0; return;
    case 4: ((uint32_t *)to)[i] = 0; return;
    default: ((uint64_t *)to)[i] = 0; return;
  }
}

typedef struct spread_slice_arguments {
  const void *g;
  void       *y;
  int32_t     rank, size;
  int64_t     dims[FLOW_MAX_RANK], begin[FLOW_MAX_RANK], step[FLOW_MAX_RANK], taken[FLOW_MAX_RANK];   /* taken: g's shape */
} spread_slice_arguments;

/* i: an element of y. It was taken if along each axis it is begin + k step, 0 <= k < taken; then k is its place in g. A step is not 0. */
BODY void spread_slice(int64_t i, const spread_slice_arguments *p)
{
  int64_t left = i, offset = 0, stride = 1;
  int hit = 1;
  for (int axis = p->rank - 1; axis >= 0; axis--) {
    int64_t above = left / p->dims[axis], position = left - above * p->dims[axis] - p->begin[axis];
    int64_t index = p->step[axis] == 1 ? position : position / p->step[axis];
    if (index < 0 || index >= p->taken[axis] || index * p->step[axis] != position) hit = 0;
    offset += index * stride;
    stride *= p->taken[axis];
    left = above;
  }
  if (hit) move_element(p->size, p->g, offset, p->y, i);
  else clear_element(p->size, p->y, i);
}

#define MOVEMENT_KERNELS(ELEMENT, BLOCK) ELEMENT(move_strided) BLOCK(transpose_tiles, 2) ELEMENT(join_arrays) ELEMENT(spread_slice)

#endif
