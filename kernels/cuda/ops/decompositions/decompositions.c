/* decompositions.c: ops that take matrices apart: cholesky, solve, solve_triangle, lu, qr, eigh, svd. A thread takes one matrix, in
 * doubles, in memory of its own, by the functions of matrix_decompositions.h, which the CPU's kernels call, too. Many small
 * matrices at once are fast therefore; a large one alone is as slow as one thread. */
#ifndef FLOW_CUDA_OPS_DECOMPOSITIONS
#define FLOW_CUDA_OPS_DECOMPOSITIONS

#include "cuda/ops/elementwise/elementwise.h"

#define FORMULA BODY
#include "matrix_decompositions.h"

typedef struct decomposition_arguments {
  const void *a, *b;
  void *first, *second, *third; /* outputs; each may be NULL */
  double *memory;               /* `room` doubles for each matrix */
  int64_t m, n, k, room;        /* rows and columns of a; columns of b, or of what is asked for */
  int32_t dtype, lower, transposed, unused;
} decomposition_arguments;
typedef decomposition_arguments cholesky_arguments, solve_arguments, solve_triangle_arguments, lu_arguments, qr_arguments, eigh_arguments,
    svd_arguments;

/* Matrix i {m, n} of an operand; turned: its transpose. */
BODY void load_matrix(const decomposition_arguments *a, const void *x, int64_t i, int64_t m, int64_t n, int turned, double *to)
{
  for (int64_t j = 0; j < m; j++)
    for (int64_t k = 0; k < n; k++) to[turned ? k * m + j : j * n + k] = load_double(a->dtype, x, (i * m + j) * n + k);
}

BODY void store_matrix(const decomposition_arguments *a, void *y, int64_t i, int64_t m, int64_t n, int turned, const double *from)
{
  if (y == NULL) return;
  for (int64_t j = 0; j < m; j++)
    for (int64_t k = 0; k < n; k++) store_double(a->dtype, y, (i * m + j) * n + k, from[turned ? k * m + j : j * n + k]);
}

BODY void fill_with_nan(double *x, int64_t n)
{
  for (int64_t i = 0; i < n; i++) x[i] = (double)NAN;
}

/* i: a matrix, here and below. */
BODY void cholesky(int64_t i, const cholesky_arguments *a)
{
  double *x = a->memory + i * a->room;
  load_matrix(a, a->a, i, a->n, a->n, 1, x);
  cholesky_upper(x, a->n);
  store_matrix(a, a->first, i, a->n, a->n, 1, x);
}

BODY void solve_one(int64_t i, const solve_triangle_arguments *a, int whole)
{
  double *x = a->memory + i * a->room, *y = x + a->n * a->n;
  load_matrix(a, a->a, i, a->n, a->n, whole && a->transposed, x);
  load_matrix(a, a->b, i, a->n, a->k, 0, y);
  if (whole) solve_rows(x, y, a->n, a->k);
  else solve_triangle_rows(x, y, a->n, a->k, a->lower, a->transposed);
  store_matrix(a, a->first, i, a->n, a->k, 0, y);
}
BODY void solve(int64_t i, const solve_arguments *a)
{
  solve_one(i, a, 1);
}
BODY void solve_triangle(int64_t i, const solve_triangle_arguments *a)
{
  solve_one(i, a, 0);
}

BODY void lu(int64_t i, const lu_arguments *a)
{
  double *x = a->memory + i * a->room;
  int32_t *pivots = (int32_t *)(x + a->n * a->n), *order = pivots + a->n;
  load_matrix(a, a->a, i, a->n, a->n, 0, x);
  eliminate(x, a->n, pivots);
  order_of_pivots(pivots, order, a->n);
  store_matrix(a, a->first, i, a->n, a->n, 0, x);
  for (int64_t j = 0; j < a->n; j++) {
    if (a->second) ((int32_t *)a->second)[i * a->n + j] = pivots[j];
    if (a->third) ((int32_t *)a->third)[i * a->n + j] = order[j];
  }
}

BODY void qr(int64_t i, const qr_arguments *a)
{
  int64_t places = a->m < a->n ? a->m : a->n;
  double *x = a->memory + i * a->room, *q = x + a->m * a->n, *vectors = q + a->m * a->k;
  load_matrix(a, a->a, i, a->m, a->n, 0, x);
  reflect(x, q, a->m, a->n, a->k, vectors, vectors + places * (a->m + 1));
  store_matrix(a, a->first, i, a->m, a->k, 0, q);
  store_matrix(a, a->second, i, a->k, a->n, 0, x);
}

BODY void eigh(int64_t i, const eigh_arguments *a)
{
  double *x = a->memory + i * a->room, *v = x + a->n * a->n, *w = v + a->n * a->n;
  load_matrix(a, a->a, i, a->n, a->n, 0, x);
  if (all_finite(x, a->n * a->n)) symmetric_eigen(x, w, v, a->n);
  else fill_with_nan(v, a->n * a->n + a->n);
  store_matrix(a, a->first, i, 1, a->n, 0, w);
  store_matrix(a, a->second, i, a->n, a->n, 1, v);
}

/* k: of the larger side's vectors. */
BODY void svd(int64_t i, const svd_arguments *a)
{
  int tall = a->m >= a->n;
  int64_t small = tall ? a->n : a->m, larger = tall ? a->m : a->n;
  double *x = a->memory + i * a->room, *long_side = x + small * larger, *short_side = long_side + a->k * larger;
  double *s = short_side + small * small;
  load_matrix(a, a->a, i, a->m, a->n, tall, x);
  identity_rows(short_side, small);
  if (all_finite(x, small * larger)) singular_values(x, s, short_side, long_side, small, larger, a->k);
  else fill_with_nan(long_side, a->k * larger + small * small + small);
  store_matrix(a, a->second, i, 1, small, 0, s);
  if (tall) {
    store_matrix(a, a->first, i, larger, a->k, 1, long_side);
    store_matrix(a, a->third, i, small, small, 0, short_side);
  } else {
    store_matrix(a, a->first, i, small, small, 1, short_side);
    store_matrix(a, a->third, i, a->k, larger, 0, long_side);
  }
}

#define DECOMPOSITION_KERNELS(ELEMENT, BLOCK) \
  ELEMENT(cholesky) ELEMENT(solve) ELEMENT(solve_triangle) ELEMENT(lu) ELEMENT(qr) ELEMENT(eigh) ELEMENT(svd)

#endif

#if __INCLUDE_LEVEL__ == 0 /* the launches: families.h */
#include "cuda/runtime/launch.h"
#include "ops/op.h"
#include "tensor/tensor.h"

static int64_t least_of(int64_t a, int64_t b)
{
  return a < b ? a : b;
}

/* Sizes; room: doubles of one matrix. */
static decomposition_arguments arguments_of(const flow_call *call)
{
  const flow_operand *x = &call->inputs[0];
  const flow_attributes *attributes = call->attributes;
  decomposition_arguments a = { .m = x->shape[x->rank - 2],
                                .n = x->shape[x->rank - 1],
                                .dtype = x->dtype,
                                .lower = attributes->matrix.lower,
                                .transposed = attributes->matrix.transposed };
  int64_t least = least_of(a.m, a.n), most = a.m + a.n - least;
  switch (call->op) {
  case FLOW_OP_solve:
  case FLOW_OP_solve_triangle:
    a.k = call->inputs[1].shape[call->inputs[1].rank - 1];
    a.room = a.n * (a.n + a.k);
    break;
  case FLOW_OP_qr:
    a.k = attributes->matrix.full ? a.m : least;
    a.room = a.m * (a.n + a.k) + least * (a.m + 1) + most;
    break;
  case FLOW_OP_svd:
    a.k = attributes->matrix.full ? most : least;
    a.room = most * (least + a.k) + least * (least + 1);
    break;
  default: a.room = 2 * a.n * (a.n + 1); break;
  }
  return a;
}

static int64_t matrices_of(const flow_call *call)
{
  return flow_shape_size(call->inputs[0].rank - 2, call->inputs[0].shape);
}

static size_t decomposition_shared(const flow_call *call)
{
  return sizeof(double) * (size_t)(matrices_of(call) * arguments_of(call).room);
}

static flow_status launch(const flow_call *call, flow_cuda_kernel kernel)
{
  decomposition_arguments a = arguments_of(call);
  a.a = call->inputs[0].data;
  if (call->input_count > 1) a.b = call->inputs[1].data;
  a.first = call->outputs[0].data;
  if (call->output_count > 1) a.second = call->outputs[1].data;
  if (call->output_count > 2) a.third = call->outputs[2].data;
  a.memory = (double *)call->shared;
  return flow_cuda_launch(call, kernel, matrices_of(call), &a, sizeof a);
}

#define DECOMPOSITION(op)                                                                   \
  static flow_status run_##op(const flow_call *call, int phase, int64_t begin, int64_t end) \
  {                                                                                         \
    (void)phase, (void)begin, (void)end;                                                    \
    return launch(call, CUDA_##op);                                                         \
  }                                                                                         \
  const flow_kernel flow_cuda_##op##_kernels[] = { { .variant = "threads", .shared_bytes = decomposition_shared, .run = run_##op }, { 0 } };
DECOMPOSITION(cholesky)
DECOMPOSITION(solve)
DECOMPOSITION(solve_triangle)
DECOMPOSITION(lu)
DECOMPOSITION(qr)
DECOMPOSITION(eigh)
DECOMPOSITION(svd)
#endif
