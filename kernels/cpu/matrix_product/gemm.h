/* gemm.h: float32 matrix product C = act(op(A) op(B) + bias), split into independent parts.
 *
 * Every rounding depends on m, n, k and the flags only; `members` changes where C is cut, not what is added in which order. Phase 0
 * computes blocks of C. When k is long and C small, phase 0 computes partial sums over ranges of k into `shared`, and phase 1 adds them in
 * order. */
#ifndef FLOW_CPU_MATRIX_PRODUCT_GEMM_H
#define FLOW_CPU_MATRIX_PRODUCT_GEMM_H

#include "cpu/vector.h"

#define gemm_parts         FLOW_ISA_NAME(gemm_parts)
#define gemm_shared_bytes  FLOW_ISA_NAME(gemm_shared_bytes)
#define gemm_scratch_bytes FLOW_ISA_NAME(gemm_scratch_bytes)
#define gemm_run           FLOW_ISA_NAME(gemm_run)
#define gemm_cost          FLOW_ISA_NAME(gemm_cost)

typedef struct gemm {
  int64_t      m, n, k;
  int          transpose_a;   /* 0: A is {m, k}; 1: A is {k, m} */
  int          transpose_b;   /* 0: B is {k, n}; 1: B is {n, k} */
  int64_t      lda, ldb, ldc; /* floats between rows as stored */
  const float *a, *b;
  float       *c;             /* {m, n}; must not overlap a, b or bias */
  const float *bias;          /* {n}; may be NULL */
  int          relu;
  int          exact;         /* the bits of a row of C do not depend on m */
  int unsplit;                /* nor with this, since k is never split: nothing is shared, and parts may be few */
  int          bfloat16;      /* A and B may be rounded to bfloat16; not if exact */
  int members;                /* among whom the parts are shared out, to each some that follow one another; up to 1: not known */
} gemm;

enum { GEMM_PHASES = 2, GEMM_LINE = 64 };

/* Bytes of a block after which another one may follow that has to be aligned for gemm_run. */
static inline size_t gemm_to_lines(size_t bytes)
{
  return (bytes + GEMM_LINE - 1) / GEMM_LINE * GEMM_LINE;
}

int64_t gemm_parts(const gemm *g, int phase);            /* 0 for phase 1 when k is not split, and for an empty C */
size_t  gemm_shared_bytes(const gemm *g);                /* enough for this m and every smaller one */
size_t gemm_scratch_bytes(void);                         /* the same for every shape; both blocks are aligned to GEMM_LINE bytes */
double  gemm_cost(const gemm *g);                        /* see kernels.h */
void    gemm_run(const gemm *g, int phase, int64_t part, void *shared, void *scratch);

#endif
