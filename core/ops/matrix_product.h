/* matrix_product.h: what a call of matmul (NumPy's rules: the last two axes are matrices, leading axes broadcast) or dense multiplies; for
 * the kernels of all devices. */
#ifndef FLOW_OPS_MATRIX_PRODUCT_H
#define FLOW_OPS_MATRIX_PRODUCT_H

#include "kernels.h"
#include "ops/op.h"

/* A product of matrices: `matrices` of them, each {m, k} . {k, n}. Pointers are borrowed from the call; sizes and steps are elements. */
typedef struct product {
  int64_t matrices, m, n, k;                    /* any may be 0 */
  int transpose_a, transpose_b;                 /* A lies in memory as {k, m}, B as {n, k} */
  int64_t     lda, ldb;                         /* elements between rows of A and of B as they lie in memory, before any transposition */
  const void *a, *b, *bias;                     /* bias {n}: of dense, else NULL */
  void *c;                                      /* NULL: nothing reads it */
  int relu;                                     /* dense: negative results become 0 */
  int         batch_rank;                       /* leading axes of C, */
  int64_t     batch[FLOW_MAX_RANK];             /* their sizes, */
  int64_t     a_step[FLOW_MAX_RANK], b_step[FLOW_MAX_RANK];   /* and the elements between matrices along each; 0: broadcast */
  int64_t ldc, c_step[FLOW_MAX_RANK];                         /* the same of C */
} product;

/* attributes.matmul.swapped: an operand {..., k, rows, columns}, of rank 4 or more, lies in memory as {..., rows, k, columns}: rows of k
 * matrices side by side. The operands' shapes are those in memory. */
typedef enum flow_swapped { FLOW_SWAPPED_A = 1, FLOW_SWAPPED_B = 2, FLOW_SWAPPED_C = 4 } flow_swapped;

/* The same of the op attention: which of its operands lie in memory that way; of attention_gradient Y is g, and DQ to DV are its results.
 * KEPT: its last two operands are the results of attention, KEPT_Y: of which the first lies so. */
typedef enum flow_attention_swapped {
  FLOW_ATTENTION_Q = 1,
  FLOW_ATTENTION_K = 2,
  FLOW_ATTENTION_V = 4,
  FLOW_ATTENTION_Y = 8,
  FLOW_ATTENTION_DQ = 16,
  FLOW_ATTENTION_DK = 32,
  FLOW_ATTENTION_DV = 64,
  FLOW_ATTENTION_KEPT = 128,
  FLOW_ATTENTION_KEPT_Y = 256
} flow_attention_swapped;

/* The matrices of an operand: their rows as stored, and elements from one row to the next. */
static inline int64_t matrix_rows(const flow_operand *x, int swapped) { return x->shape[x->rank - (swapped ? 3 : 2)]; }
static inline int64_t matrix_row_step(const flow_operand *x, int swapped)
{
  return x->shape[x->rank - 1] * (swapped ? x->shape[x->rank - 2] : 1);
}

/* Elements between matrices of an operand along the leading axes of C, batch_rank of them, which its own are aligned with at the last one.
 * Operands are contiguous, so that steps follow from the shape. */
static inline void batch_steps(const flow_operand *x, int batch_rank, int swapped, int64_t *step)
{
  int own = x->rank > 2 ? x->rank - 2 : 0;
  int64_t next = x->rank >= 2 ? x->shape[x->rank - 1] * x->shape[x->rank - 2] : 0;
  for (int axis = batch_rank - 1; axis >= 0; axis--) {
    int of_x = axis - (batch_rank - own);
    if (swapped && axis == batch_rank - 1) {      /* `next` is a row of all matrices so far */
      step[axis] = x->shape[x->rank - 2] == 1 ? 0 : x->shape[x->rank - 1];
    } else {
      step[axis] = of_x < 0 || x->shape[of_x] == 1 ? 0 : next;
    }
    if (of_x >= 0) next *= x->shape[of_x];
  }
}

/* Elements from the first matrix of an operand to the one that C's matrix number `matrix` is computed from. */
static inline int64_t batch_offset(const product *p, const int64_t *step, int64_t matrix)
{
  int64_t offset = 0;
  if (p->matrices == 0) return 0;   /* an empty batch has sizes to divide by that are 0 */
  for (int axis = p->batch_rank - 1; axis >= 0; axis--) {
    offset += matrix % p->batch[axis] * step[axis];
    matrix /= p->batch[axis];
  }
  return offset;
}
static inline int64_t a_offset(const product *p, int64_t matrix) { return batch_offset(p, p->a_step, matrix); }
static inline int64_t b_offset(const product *p, int64_t matrix) { return batch_offset(p, p->b_step, matrix); }
static inline int64_t c_offset(const product *p, int64_t matrix) { return batch_offset(p, p->c_step, matrix); }

/* What a call of matmul multiplies. A vector counts as one row of A or one column of B, as in NumPy; its transposition is ignored. Where
 * all matrices of A meet the same B they become one tall matrix: one large product instead of many small ones. */
static inline product describe_matmul(const flow_call *call)
{
  const flow_operand *a = &call->inputs[0], *b = &call->inputs[1], *c = &call->outputs[0];
  product p = { .a = a->data, .b = b->data, .c = c->data, .matrices = 1 };
  p.transpose_a = a->rank >= 2 && call->attributes->matmul.transpose_a;
  p.transpose_b = b->rank >= 2 && call->attributes->matmul.transpose_b;
  const int swapped = call->attributes->matmul.swapped;
  const int swapped_a = swapped & FLOW_SWAPPED_A, swapped_b = swapped & FLOW_SWAPPED_B, swapped_c = swapped & FLOW_SWAPPED_C;
  int64_t a_rows = a->rank >= 2 ? matrix_rows(a, swapped_a) : 1, a_columns = a->shape[a->rank - 1];
  int64_t b_columns = b->rank >= 2 ? b->shape[b->rank - 1] : 1;
  p.lda = a->rank >= 2 ? matrix_row_step(a, swapped_a) : a_columns;
  p.ldb = b->rank >= 2 ? matrix_row_step(b, swapped_b) : b_columns;
  p.m = p.transpose_a ? a_columns : a_rows;
  p.k = p.transpose_a ? a_rows : a_columns;
  p.n = p.transpose_b ? matrix_rows(b, swapped_b) : b_columns;
  p.ldc = swapped_c ? matrix_row_step(c, 1) : p.n;
  int rank = a->rank > b->rank ? a->rank : b->rank;
  p.batch_rank = rank > 2 ? rank - 2 : 0;
  for (int axis = 0; axis < p.batch_rank; axis++)
    p.matrices *= p.batch[axis] = c->shape[swapped_c && axis == p.batch_rank - 1 ? c->rank - 2 : axis];
  batch_steps(a, p.batch_rank, swapped_a, p.a_step);
  batch_steps(b, p.batch_rank, swapped_b, p.b_step);
  int64_t matrix = p.m * p.n;
  for (int axis = p.batch_rank - 1; axis >= 0 && !swapped_c; axis--) {      /* c may have fewer axes: those of vectors are gone */
    p.c_step[axis] = matrix;
    matrix *= p.batch[axis];
  }
  if (swapped_c) batch_steps(c, p.batch_rank, 1, p.c_step);
  if (!p.transpose_a && !swapped && p.matrices > 1 && b_offset(&p, p.matrices - 1) == 0) {   /* one B: the matrices A are one tall matrix */
    int folds = 1;
    for (int axis = 0; axis < p.batch_rank; axis++) folds &= p.b_step[axis] == 0 && (p.a_step[axis] != 0 || p.batch[axis] == 1);
    if (folds) {
      p.m *= p.matrices;
      p.matrices = 1;
      p.batch_rank = 0;
    }
  }
  return p;
}

/* All axes of x but the last are rows of one matrix. */
static inline product describe_dense(const flow_call *call)
{
  const flow_operand *x = &call->inputs[0], *w = &call->inputs[1];
  product p = { .a = x->data, .b = w->data, .bias = call->inputs[2].data, .c = call->outputs[0].data, .matrices = 1, .m = 1 };
  for (int axis = 0; axis < x->rank - 1; axis++) p.m *= x->shape[axis];
  p.k = w->shape[0];
  p.n = w->shape[1];
  p.lda = p.k;
  p.ldb = p.ldc = p.n;
  p.relu = call->attributes->matmul.activation == FLOW_RELU;
  return p;
}

/* The product of a call of either op. */
static inline product describe(const flow_call *call)
{
  return call->op == FLOW_OP_dense ? describe_dense(call) : describe_matmul(call);
}

#endif
