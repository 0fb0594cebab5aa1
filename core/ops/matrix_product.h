/* matrix_product.h: what a call of matmul (NumPy's rules: the last two axes are matrices, leading axes broadcast) or dense multiplies; for
 * the kernels of all devices. */
#ifndef FLOW_OPS_MATRIX_PRODUCT_H
#define FLOW_OPS_MATRIX_PRODUCT_H

#include "kernels.h"
#include "ops/op.h"

/* A product of matrices: `matrices` of them, each {m, k} . {k, n}. Pointers are borrowed from the call. C is packed. */
typedef struct product {
  int64_t     matrices, m, n, k;
  int         transpose_a, transpose_b;
  int64_t     lda, ldb;                         /* elements between rows of A and of B as they lie in memory, before any transposition */
  const void *a, *b, *bias;
  void       *c;
  int         relu;
  int         batch_rank;                       /* leading axes of C, */
  int64_t     batch[FLOW_MAX_RANK];             /* their sizes, */
  int64_t     a_step[FLOW_MAX_RANK], b_step[FLOW_MAX_RANK];   /* and the elements between matrices along each; 0: broadcast */
} product;

/* Elements between matrices of an operand along the leading axes of C. */
static inline void batch_steps(const flow_operand *x, int batch_rank, int64_t *step)
{
  int own = x->rank > 2 ? x->rank - 2 : 0;
  int64_t next = x->rank >= 2 ? x->shape[x->rank - 1] * x->shape[x->rank - 2] : 0;
  for (int axis = batch_rank - 1; axis >= 0; axis--) {
    int of_x = axis - (batch_rank - own);
    step[axis] = of_x < 0 || x->shape[of_x] == 1 ? 0 : next;
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

/* What a call of matmul multiplies. A vector counts as one row of A or one column of B, as in NumPy; its transposition is ignored. Where
 * all matrices of A meet the same B they become one tall matrix: one large product instead of many small ones. */
static inline product describe_matmul(const flow_call *call)
{
  const flow_operand *a = &call->inputs[0], *b = &call->inputs[1], *c = &call->outputs[0];
  product p = { .a = a->data, .b = b->data, .c = c->data, .matrices = 1 };
  p.transpose_a = a->rank >= 2 && call->attributes->matmul.transpose_a;
  p.transpose_b = b->rank >= 2 && call->attributes->matmul.transpose_b;
  int64_t a_rows = a->rank >= 2 ? a->shape[a->rank - 2] : 1, b_columns = b->rank >= 2 ? b->shape[b->rank - 1] : 1;
  p.lda = a->shape[a->rank - 1];
  p.ldb = b_columns;
  p.m = p.transpose_a ? p.lda : a_rows;
  p.k = p.transpose_a ? a_rows : p.lda;
  p.n = p.transpose_b ? b->shape[b->rank - 2] : b_columns;
  int rank = a->rank > b->rank ? a->rank : b->rank;
  p.batch_rank = rank > 2 ? rank - 2 : 0;
  for (int axis = 0; axis < p.batch_rank; axis++) p.matrices *= p.batch[axis] = c->shape[axis];
  batch_steps(a, p.batch_rank, p.a_step);
  batch_steps(b, p.batch_rank, p.b_step);
  if (!p.transpose_a && p.matrices > 1 && b_offset(&p, p.matrices - 1) == 0) {   /* one B: the matrices A are one tall matrix */
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
  p.ldb = p.n;
  p.relu = call->attributes->matmul.activation == FLOW_RELU;
  return p;
}

/* The product of a call of either op. */
static inline product describe(const flow_call *call)
{
  return call->op == FLOW_OP_dense ? describe_dense(call) : describe_matmul(call);
}

#endif
