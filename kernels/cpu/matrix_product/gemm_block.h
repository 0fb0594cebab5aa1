/* gemm_block.h: what the ways to compute a block of C share: sizes, where a block lies, what memory is needed next. gemm.c computes a
 * block of float32 numbers as they are, gemm_bfloat16.c rounds what it multiplies. */
#ifndef FLOW_CPU_MATRIX_PRODUCT_GEMM_BLOCK_H
#define FLOW_CPU_MATRIX_PRODUCT_GEMM_BLOCK_H

#include "cpu/elementwise/fetch.h"
#include "cpu/matrix_product/gemm.h"

/* TILE_ROWS x 2 accumulators, two vectors of B and one broadcast fill the registers; a panel of DEPTH x PANEL takes half of the
 * first-level cache. */
#if defined(FLOW_ISA_AVX512)
enum { TILE_ROWS = 8, DEPTH = 160 };
#elif defined(FLOW_ISA_AVX2)
enum { TILE_ROWS = 6, DEPTH = 256 };
#else
enum { TILE_ROWS = 6, DEPTH = 512 };
#endif
enum {
  PANEL = 2 * VL,
  GEMM_BLOCK_ROWS = 192,   /* a block of A, GEMM_BLOCK_ROWS x DEPTH, stays in half of the second-level cache */
};

/* What happens to a tile of C around the sum over this step of k. */
typedef struct epilogue {
  int          add;       /* start from C, not from 0 */
  int64_t from;           /* with add: floats from there to what is started from instead */
  const float *bias;      /* of the tile's PANEL columns; NULL: none */
  int          relu;
  float        scale;     /* the sum is multiplied by it before all else; 0: it is not */
  const float *ahead;     /* what else is asked for on the way, a line with each step of k; NULL: nothing */
  int64_t      ahead_step;   /* floats from line to line */
} epilogue;

/* A block of C as one part computes it: rows [row, row + rows), columns and steps of k likewise. */
typedef struct gemm_block {
  int64_t      row, rows, column, columns, k, depth;
  float       *c;          /* of the block: C itself or a partial sum */
  int64_t      ldc;
  const float *bias;       /* of the block's columns */
  int          relu;
} gemm_block;

static inline int64_t gemm_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t gemm_blocks_of(int64_t n, int64_t size) { return (n + size - 1) / size; }

/* The block size that cuts n evenly into blocks of at most `size`, a multiple of `unit`. */
static inline int64_t gemm_even_block(int64_t n, int64_t size, int64_t unit)
{
  int64_t each = gemm_blocks_of(n, gemm_blocks_of(n, size));
  return gemm_blocks_of(each, unit) * unit;
}

/* op(A)[i][k] and op(B)[k][j]. */
static inline const float *gemm_a_at(const gemm *g, int64_t i, int64_t k)
{
  return g->a + (g->transpose_a ? k * g->lda + i : i * g->lda + k);
}
static inline const float *gemm_b_at(const gemm *g, int64_t k, int64_t j)
{
  return g->b + (g->transpose_b ? j * g->ldb + k : k * g->ldb + j);
}

/* The part of B that is packed after panel j of step k: the next panel, or the first one of the next step. */
static inline region gemm_next_panel(const gemm *g, const gemm_block *w, int64_t k, int64_t depth, int64_t j)
{
  if (j + PANEL < w->columns) {
    j += PANEL;
  } else {
    j = 0;
    k += depth;
    depth = gemm_min(depth, w->depth - k);
  }
  int64_t columns = gemm_min(PANEL, w->columns - j);
  region r = { .at = gemm_b_at(g, w->k + k, w->column + j), .ld = g->ldb, .rows = depth, .floats = columns };
  if (g->transpose_b) {
    r.rows = columns;
    r.floats = depth;
  }
  if (depth <= 0) r.rows = 0;
  return r;
}

/* The part of A that is read after step k: the next step, or, after the last one, the first of the next block of rows. */
static inline region gemm_next_rows(const gemm *g, const gemm_block *w, int64_t k, int64_t depth)
{
  int64_t row = w->row, rows = w->rows;
  if (k + depth == w->depth) {
    row += rows;
    rows = gemm_min(rows, g->m - row);
    k = 0;
  } else {
    k += depth;
    depth = gemm_min(depth, w->depth - k);
  }
  region r = { .at = gemm_a_at(g, row, w->k + k), .ld = g->lda, .rows = rows, .floats = depth };
  if (g->transpose_a) {
    r.rows = depth;
    r.floats = rows;
  }
  if (rows <= 0 || depth <= 0) r.rows = 0;
  return r;
}

#endif
