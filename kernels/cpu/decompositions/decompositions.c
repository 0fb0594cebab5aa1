/* decompositions.c: ops that take the matrices of the last two axes apart, in doubles, one matrix after the other: cholesky, solve,
 * solve_triangle, lu, qr, eigh, svd. One variant of each; what they compute is in matrix_decompositions.h. */
#include "cpu/cost.h"
#include "tensor/tensor.h"

#define FORMULA static inline
#include "matrix_decompositions.h"
#include "cpu/decompositions/tridiagonal.h"

/* Rows and columns of an operand's matrices; of all operands there are as many, `count`. */
typedef struct matrices {
  int64_t count, m, n;
} matrices;

static matrices matrices_of(const flow_operand *x)
{
  return (matrices){ flow_shape_size(x->rank - 2, x->shape), x->shape[x->rank - 2], x->shape[x->rank - 1] };
}

static int64_t least(int64_t a, int64_t b)
{
  return a < b ? a : b;
}
static int64_t most(int64_t a, int64_t b)
{
  return a > b ? a : b;
}

/* Floats of operand x, `size` a matrix: those of matrix number `number` as doubles, and back. */
static void load(const flow_operand *x, int64_t number, int64_t size, double *to)
{
  if (size == 0) return;
  if (x->dtype == FLOW_FLOAT64) {
    memcpy(to, (const double *)x->data + number * size, sizeof *to * (size_t)size);
    return;
  }
  const float *from = (const float *)x->data + number * size;
  for (int64_t i = 0; i < size; i++) to[i] = (double)from[i];
}

static void store(const flow_operand *y, int64_t number, int64_t size, const double *from)
{
  if (y->data == NULL || size == 0) return;
  if (y->dtype == FLOW_FLOAT64) {
    memcpy((double *)y->data + number * size, from, sizeof *from * (size_t)size);
    return;
  }
  float *to = (float *)y->data + number * size;
  for (int64_t i = 0; i < size; i++) to[i] = (float)from[i];
}

/* A matrix {m, n} in place of its transpose {n, m}. */
static void load_turned(const flow_operand *x, int64_t number, int64_t m, int64_t n, double *to)
{
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      int64_t at = number * m * n + i * n + j;
      to[j * m + i] = x->dtype == FLOW_FLOAT64 ? ((const double *)x->data)[at] : (double)((const float *)x->data)[at];
    }
}

static void store_turned(const flow_operand *y, int64_t number, int64_t m, int64_t n, const double *from)
{
  if (y->data == NULL) return;
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      int64_t at = number * m * n + i * n + j;
      if (y->dtype == FLOW_FLOAT64) ((double *)y->data)[at] = from[j * m + i];
      else ((float *)y->data)[at] = (float)from[j * m + i];
    }
}

static void fill(double *x, int64_t n, double value)
{
  for (int64_t i = 0; i < n; i++) x[i] = value;
}

/* n^2 times the larger size, `times`, as vectors of doubles do it. */
static double decomposition_cost(const flow_call *call, double times)
{
  matrices x = matrices_of(&call->inputs[0]);
  double n = (double)least(x.m, x.n), m = (double)most(x.m, x.n);
  return flow_cost_arithmetic((double)x.count * times * (n * n * m + 20 * m), 0.1);
}

/* ---- triangles ------------------------------------------------------------------------------------------------------------- */

static double few_steps_cost(const flow_call *call)
{
  return decomposition_cost(call, 1);
}
static size_t square_scratch(const flow_call *call)
{
  matrices x = matrices_of(&call->inputs[0]);
  return sizeof(double) * (size_t)(x.n * x.n);
}

static flow_status cholesky_run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  matrices x = matrices_of(&call->inputs[0]);
  double *a = call->scratch;
  for (int64_t i = 0; i < x.count; i++) {
    load_turned(&call->inputs[0], i, x.n, x.n, a);
    cholesky_upper(a, x.n);
    store_turned(&call->outputs[0], i, x.n, x.n, a);
  }
  return FLOW_OK;
}
const flow_kernel FLOW_KERNELS(cholesky)[] = {
  { .variant = "rows", .cost = few_steps_cost, .scratch_bytes = square_scratch, .run = cholesky_run }, { 0 }
};

static double solve_cost(const flow_call *call)
{
  matrices b = matrices_of(&call->inputs[1]);
  double n = (double)b.m;
  return flow_cost_arithmetic((double)b.count * (n * n * n + n * n * (double)b.n + 20 * n), 0.1);
}

static size_t solve_scratch(const flow_call *call)
{
  matrices b = matrices_of(&call->inputs[1]);
  return sizeof(double) * (size_t)(b.m * (b.m + b.n));
}

static flow_status solve_triangle_run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  matrices b = matrices_of(&call->inputs[1]);
  double *a = call->scratch, *x = a + b.m * b.m;
  for (int64_t i = 0; i < b.count; i++) {
    load(&call->inputs[0], i, b.m * b.m, a);
    load(&call->inputs[1], i, b.m * b.n, x);
    solve_triangle_rows(a, x, b.m, b.n, call->attributes->matrix.lower, call->attributes->matrix.transposed);
    store(&call->outputs[0], i, b.m * b.n, x);
  }
  return FLOW_OK;
}
const flow_kernel FLOW_KERNELS(solve_triangle)[] = {
  { .variant = "rows", .cost = solve_cost, .scratch_bytes = solve_scratch, .run = solve_triangle_run }, { 0 }
};

/* ---- elimination ------------------------------------------------------------------------------------------------------------ */

static flow_status solve_run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  matrices b = matrices_of(&call->inputs[1]);
  double *a = call->scratch, *x = a + b.m * b.m;
  for (int64_t i = 0; i < b.count; i++) {
    if (call->attributes->matrix.transposed) load_turned(&call->inputs[0], i, b.m, b.m, a);
    else load(&call->inputs[0], i, b.m * b.m, a);
    load(&call->inputs[1], i, b.m * b.n, x);
    solve_rows(a, x, b.m, b.n);
    store(&call->outputs[0], i, b.m * b.n, x);
  }
  return FLOW_OK;
}
const flow_kernel FLOW_KERNELS(solve)[] = { { .variant = "rows", .cost = solve_cost, .scratch_bytes = solve_scratch, .run = solve_run },
                                            { 0 } };

static size_t lu_scratch(const flow_call *call)
{
  matrices x = matrices_of(&call->inputs[0]);
  return (size_t)x.n * ((size_t)x.n * sizeof(double) + 2 * sizeof(int32_t));
}

static flow_status lu_run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  matrices x = matrices_of(&call->inputs[0]);
  double *a = call->scratch;
  int32_t *pivots = (int32_t *)(void *)(a + x.n * x.n), *order = pivots + x.n;
  for (int64_t i = 0; i < x.count; i++) {
    load(&call->inputs[0], i, x.n * x.n, a);
    eliminate(a, x.n, pivots);
    order_of_pivots(pivots, order, x.n);
    store(&call->outputs[0], i, x.n * x.n, a);
    if (x.n == 0) continue;
    size_t bytes = sizeof *pivots * (size_t)x.n;
    if (call->outputs[1].data) memcpy((int32_t *)call->outputs[1].data + i * x.n, pivots, bytes);
    if (call->outputs[2].data) memcpy((int32_t *)call->outputs[2].data + i * x.n, order, bytes);
  }
  return FLOW_OK;
}
const flow_kernel FLOW_KERNELS(lu)[] = { { .variant = "rows", .cost = few_steps_cost, .scratch_bytes = lu_scratch, .run = lu_run }, { 0 } };

/* ---- orthogonal factors ------------------------------------------------------------------------------------------------------ */

/* Columns of Q. */
static int64_t qr_columns(const flow_call *call, const matrices *x)
{
  return call->attributes->matrix.full ? x->m : least(x->m, x->n);
}

static double qr_cost(const flow_call *call)
{
  return decomposition_cost(call, 4);
}
static size_t qr_scratch(const flow_call *call)
{
  matrices x = matrices_of(&call->inputs[0]);
  int64_t columns = qr_columns(call, &x), places = least(x.m, x.n);
  return sizeof(double) * (size_t)(x.m * x.n + x.m * columns + places * (x.m + 1) + most(x.n, columns));
}

static flow_status qr_run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  matrices x = matrices_of(&call->inputs[0]);
  int64_t columns = qr_columns(call, &x), places = least(x.m, x.n);
  double *a = call->scratch, *q = a + x.m * x.n, *vectors = q + x.m * columns;
  for (int64_t i = 0; i < x.count; i++) {
    load(&call->inputs[0], i, x.m * x.n, a);
    reflect(a, q, x.m, x.n, columns, vectors, vectors + places * (x.m + 1));
    store(&call->outputs[0], i, x.m * columns, q);
    store(&call->outputs[1], i, columns * x.n, a);
  }
  return FLOW_OK;
}
const flow_kernel FLOW_KERNELS(qr)[] = { { .variant = "reflections", .cost = qr_cost, .scratch_bytes = qr_scratch, .run = qr_run }, { 0 } };

/* ---- eigenvalues and singular values ------------------------------------------------------------------------------------------ */

/* A matrix of at most this many rows is diagonalized by rotations alone: for so few they take no longer than its tridiagonal form. */
enum { FEW_ROWS = 6 };

static double eigh_cost(const flow_call *call)
{
  return decomposition_cost(call, 4);
}
static size_t eigh_scratch(const flow_call *call)
{
  matrices x = matrices_of(&call->inputs[0]);
  return sizeof(double) * (size_t)(x.n * (2 * x.n + 4));
}

static void any_symmetric_eigen(double *a, double *w, double *v, double *room, int64_t n)
{
  if (n <= FEW_ROWS) symmetric_eigen(a, w, v, n);
  else tridiagonal_eigen(a, w, v, room, n);
}

/* Matrices with elements that are not finite have no eigenvalues: NaN. */
static flow_status eigh_run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  matrices x = matrices_of(&call->inputs[0]);
  double *a = call->scratch, *v = a + x.n * x.n, *w = v + x.n * x.n;
  for (int64_t i = 0; i < x.count; i++) {
    load(&call->inputs[0], i, x.n * x.n, a);
    if (all_finite(a, x.n * x.n)) any_symmetric_eigen(a, w, v, w + x.n, x.n);
    else fill(v, x.n * x.n + x.n, NAN);
    store(&call->outputs[0], i, x.n, w);
    store_turned(&call->outputs[1], i, x.n, x.n, v);
  }
  return FLOW_OK;
}
const flow_kernel FLOW_KERNELS(eigh)[] = { { .variant = "tridiagonal", .cost = eigh_cost, .scratch_bytes = eigh_scratch, .run = eigh_run },
                                           { 0 } };

static double svd_cost(const flow_call *call)
{
  return decomposition_cost(call, 8);
}
static size_t svd_scratch(const flow_call *call)
{
  matrices x = matrices_of(&call->inputs[0]);
  int64_t k = least(x.m, x.n), larger = most(x.m, x.n), width = call->attributes->matrix.full ? larger : k;
  return sizeof(double) * (size_t)(k * larger + width * larger + 2 * k * k + 4 * k);
}

/* Rotations alone are slow where rows are far from orthogonal. So these are first turned by the eigenvectors of their products, which makes
 * them orthogonal up to rounding errors of the largest; few rotations are left, which see to the digits of the small ones. x {k, m}
 * becomes what the rotations begin with, and v {k, k} how it was turned; other: room for x. room: for k (k + 3) doubles. */
static void turn_rows(double *x, double *other, double *s, double *v, double *room, int64_t k, int64_t m)
{
  identity_rows(v, k);
  if (k <= FEW_ROWS) return;
  products_of_rows(x, room, k, m);
  tridiagonal_eigen(room, s, v, room + k * k, k);
  turned_rows(v, x, other, k, m);
  memcpy(x, other, sizeof *x * (size_t)(k * m));
}

static flow_status svd_run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  matrices x = matrices_of(&call->inputs[0]);
  int tall = x.m >= x.n;
  int64_t k = least(x.m, x.n), larger = most(x.m, x.n), width = call->attributes->matrix.full ? larger : k;
  double *a = call->scratch, *long_side = a + k * larger, *short_side = long_side + width * larger, *s = short_side + k * k;
  for (int64_t i = 0; i < x.count; i++) {
    if (tall) load_turned(&call->inputs[0], i, x.m, x.n, a);
    else load(&call->inputs[0], i, x.m * x.n, a);
    if (all_finite(a, k * larger)) {
      double scale = factor_for_squares(a, k * larger);
      scale_row(a, scale, k * larger);
      turn_rows(a, long_side, s, short_side, s + k, k, larger);
      singular_values(a, s, short_side, long_side, k, larger, width);
      scale_row(s, 1 / scale, k);
    } else fill(long_side, width * larger + k * k + k, NAN);
    store(&call->outputs[1], i, k, s);
    if (tall) {
      store_turned(&call->outputs[0], i, larger, width, long_side);
      store(&call->outputs[2], i, k * k, short_side);
    } else {
      store_turned(&call->outputs[0], i, k, k, short_side);
      store(&call->outputs[2], i, width * larger, long_side);
    }
  }
  return FLOW_OK;
}
const flow_kernel FLOW_KERNELS(svd)[] = { { .variant = "rotations", .cost = svd_cost, .scratch_bytes = svd_scratch, .run = svd_run },
                                          { 0 } };
