/* gemm_transposed.h: C = A B for B {n, k}, when A {m, k} is small and B long, as the gradient of a dense layer's input has it.
 *
 * Packing would transpose all of B for few products with it. So C is computed as the transpose of B A^T: B is read where it
 * is, A^T is packed once into panels that stay in the first-level cache, and tiles of C are transposed on their way out:
 * m n elements instead of n k. */
#ifndef FLOW_CPU_MATRIX_PRODUCT_GEMM_TRANSPOSED_H
#define FLOW_CPU_MATRIX_PRODUCT_GEMM_TRANSPOSED_H

#include "cpu/elementwise/fetch.h"
#include "cpu/matrix_product/gemm.h"
#include "cpu/matrix_product/gemm_tile.h"

/* Rows of B done together: whole tiles, and whole vectors of C. */
enum { TRANSPOSED_ROWS = VL % TILE_ROWS == 0 ? VL : 3 * VL };

/* Writes buffer[rows][PANEL], a piece of C's transpose, to `columns` <= PANEL rows of C. */
static inline void store_transposed(const float *buffer, int64_t rows, int64_t columns, float *c, int64_t ldc)
{
  int64_t whole = rows / VL * VL;
  for (int64_t j = 0; j < columns; j += VL) {
    int64_t lanes = columns - j < VL ? columns - j : VL;
    for (int64_t i = 0; i < whole; i += VL) {
      vf r[VL];
      FLOW_UNROLL(16)
      for (int q = 0; q < VL; q++) r[q] = vf_load(buffer + (i + q) * PANEL + j);
      vf_transpose(r);
      if (lanes == VL) {
        FLOW_UNROLL(16)
        for (int q = 0; q < VL; q++) vf_store(c + (j + q) * ldc + i, r[q]);
      } else {
        float transposed[VL * VL];
        FLOW_UNROLL(16)
        for (int q = 0; q < VL; q++) vf_store(transposed + q * VL, r[q]);
        for (int64_t q = 0; q < lanes; q++) memcpy(c + (j + q) * ldc + i, transposed + q * VL, sizeof(vf));
      }
    }
    for (int64_t q = j; q < j + lanes; q++)
      for (int64_t i = whole; i < rows; i++) c[q * ldc + i] = buffer[i * PANEL + q];
  }
}

/* Columns [column, column + columns) of C. scratch: a panel of k x PANEL floats for every PANEL rows of A. */
static inline void block_transposed(const gemm *g, int64_t column, int64_t columns, float *scratch)
{
  float buffer[TRANSPOSED_ROWS * PANEL];
  /* Bias and relu belong to columns of C, which are rows here: make_plan() takes this way only for products that have neither. */
  const epilogue none = { 0 };
  int64_t panels = (g->m + PANEL - 1) / PANEL;
  for (int64_t p = 0; p < panels; p++) {
    int64_t width = g->m - p * PANEL < PANEL ? g->m - p * PANEL : PANEL;
    pack_columns(g->a + p * PANEL * g->lda, g->lda, g->k, width, scratch + p * g->k * PANEL);
  }
  for (int64_t i = 0; i < columns; i += TRANSPOSED_ROWS) {
    int rows = (int)(columns - i < TRANSPOSED_ROWS ? columns - i : TRANSPOSED_ROWS), count = (rows + TILE_ROWS - 1) / TILE_ROWS;
    const float *b = g->b + (column + i) * g->ldb;
    int64_t left = columns - i - rows;
    region next = { .at = b + rows * g->ldb, .ld = g->ldb, .rows = left < TRANSPOSED_ROWS ? left : TRANSPOSED_ROWS, .floats = g->k };
    /* Each tile asks for some of the rows of B that come after these, so that all have been asked for when the last tile is done. */
    next.at_once = (next.rows + count * panels - 1) / (count * panels);
    for (int64_t p = 0; p < panels; p++) {
      for (int t = 0; t < count; t++) {
        int first = rows * t / count, height = rows * (t + 1) / count - first;
        fetch_some(&next);
        tiles[height][0](g->k, b + first * g->ldb, g->ldb, NULL, 0, scratch + p * g->k * PANEL, buffer + first * PANEL, PANEL, &none);
      }
      store_transposed(buffer, rows, g->m - p * PANEL < PANEL ? g->m - p * PANEL : PANEL, g->c + p * PANEL * g->ldc + column + i, g->ldc);
    }
  }
}

#endif
