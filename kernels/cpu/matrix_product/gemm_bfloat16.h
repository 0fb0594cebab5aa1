/* gemm_bfloat16.h: products of numbers that are rounded to bfloat16, by AVX512-BF16: vdpbf16ps adds two products to each float32 sum,
 * twice what a multiply-add of float32 does.
 *
 * Where gemm_tile.h has one number along k these functions have a pair of neighbours: the earlier one is in the lower half, and a k that is
 * odd ends with a pair whose second number is 0. So a panel of DEPTH pairs takes as many bytes as one of DEPTH numbers. Rounding is to
 * nearest, ties to even; subnormal numbers count as 0. All of it is there only where bfloat16_available() says so. */
#ifndef FLOW_CPU_MATRIX_PRODUCT_GEMM_BFLOAT16_H
#define FLOW_CPU_MATRIX_PRODUCT_GEMM_BFLOAT16_H

#include "cpu/matrix_product/gemm_block.h"

#define bfloat16_available    FLOW_ISA_NAME(bfloat16_available)
#define bfloat16_pack_rows    FLOW_ISA_NAME(bfloat16_pack_rows)
#define bfloat16_pack_columns FLOW_ISA_NAME(bfloat16_pack_columns)
#define bfloat16_pack_stack   FLOW_ISA_NAME(bfloat16_pack_stack)
#define bfloat16_pack_stacks  FLOW_ISA_NAME(bfloat16_pack_stacks)
#define bfloat16_tile         FLOW_ISA_NAME(bfloat16_tile)
#define bfloat16_few_rows     FLOW_ISA_NAME(bfloat16_few_rows)

/* Two numbers, the earlier one in the lower half. */
typedef uint32_t bfloat16_pair;

/* Pairs of a row of numbers. */
static inline int64_t bfloat16_pairs(int64_t numbers) { return (numbers + 1) / 2; }
/* Pairs from row to row of a stack, which end with whole vectors. */
static inline int64_t bfloat16_stack_step(int64_t depth) { return gemm_blocks_of(bfloat16_pairs(depth), VL) * VL; }

/* Whether this machine has AVX512-BF16, and the instruction set that this is compiled for may use it. */
int bfloat16_available(void);

/* B {k, n} as a panel: [pair][PANEL] of `depth` rows of `columns` <= PANEL floats; the missing columns are zeros. */
void bfloat16_pack_rows(const float *b, int64_t ldb, int64_t depth, int64_t columns, bfloat16_pair *panel);
/* B {n, k}: the same panel of `columns` rows of `depth` floats. */
void bfloat16_pack_columns(const float *b, int64_t ldb, int64_t depth, int64_t columns, bfloat16_pair *panel);
/* A {m, k}: `rows` rows of `depth` floats, bfloat16_stack_step(depth) pairs each. */
void bfloat16_pack_stack(const float *a, int64_t lda, int64_t depth, int64_t rows, bfloat16_pair *packed);
/* A {k, m}: its columns start[0] to start[count], at most GEMM_BLOCK_ROWS, as [tile][pair][TILE_ROWS]. */
void bfloat16_pack_stacks(const float *a, int64_t lda, int64_t depth, const int *start, int count, bfloat16_pair *packed);

/* C[rows][columns] = A[rows][pairs] panel[pairs][PANEL], as the epilogue says, which asks for nothing ahead. rows <= TILE_ROWS, columns <=
 * PANEL. a_row, a_step: from row to row and from pair to pair of A. */
void bfloat16_tile(int rows, int64_t columns, int64_t pairs, const bfloat16_pair *a, int64_t a_row, int64_t a_step,
                   const bfloat16_pair *panel, float *c, int64_t ldc, const epilogue *e);

enum { BFLOAT16_FEW_ROWS = 3, BFLOAT16_FEW_DEPTH = 8192 };

/* C[rows][columns] = A[rows][depth] op(B), B where it is: {depth, columns}, or transposed {columns, depth}. rows <= BFLOAT16_FEW_ROWS.
 * stack: room for BFLOAT16_FEW_ROWS rows of BFLOAT16_FEW_DEPTH / 2 pairs. */
void bfloat16_few_rows(int rows, int64_t depth, int64_t columns, const float *a, int64_t lda, const float *b, int64_t ldb, int transpose_b,
                       float *c, int64_t ldc, bfloat16_pair *stack);

#endif
