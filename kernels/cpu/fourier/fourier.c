/* fourier.c: the op fourier, discrete Fourier transforms of lines. One variant, plain C whose loops over neighbouring elements the
 * compiler turns into vectors.
 *
 * A length n = a b is transformed as a lines of b elements that lie side by side: the transforms of length a down the columns, each result
 * times w_n^(k j), the transforms of length b down the columns of what is turned (Bailey, "FFTs in external or hierarchical memory", 1990;
 * w_n = e^(-2 pi i / n)). Those are Stockham's passes, a radix at a time, so that nothing is put in order afterwards. Real lines of an even
 * length n are transformed as n / 2 complex numbers (Cooley, Lewis and Welch, 1970), and lengths with a large prime factor as a convolution
 * whose length is a power of two (Bluestein, 1970). The way depends on the length and on whether there is an imaginary part, so that a
 * line's result does not depend on other lines. */
#include <math.h>
#include "cpu/cost.h"
#include "cpu/matrix_product/transpose.h"
#include "tensor/tensor.h"

enum { MOST_RADIX = 61, MOST_PASSES = 62, ALIGNED = 64 };

/* How lines of one length are transformed. Tables are counted in elements of the operand's dtype, of real parts and of as many imaginary
 * ones after them. */
typedef struct passes {
  int64_t n, table; /* table: w_n^t for each t below n */
  int count, radix[MOST_PASSES];
} passes;

typedef struct transform {
  int64_t n, twist; /* twist: w_n^(k j) for k < columns.n, j < rows.n */
  passes columns, rows;
} transform;

/* shared: this and the tables. */
typedef struct fourier_plan {
  int64_t size; /* of the op */
  int64_t n;    /* of the complex transform: size, or half of it where `split` is used */
  int packed, chirped;
  int64_t split;    /* w_size^k for k <= n: takes packed lines apart */
  int64_t chirp;    /* e^(-pi i k^2 / n) for k < n */
  int64_t filter;   /* the transform of the conjugate chirp, over whole.n */
  transform whole;  /* of n elements, or of the convolution */
  int64_t elements; /* of all tables */
} fourier_plan;

static int64_t largest_prime(int64_t n)
{
  int64_t largest = 1;
  for (int64_t p = 2; p * p <= n; p++)
    for (; n % p == 0; n /= p) largest = p;
  return n > largest ? n : largest;
}

/* Room for a table of `count` complex numbers. */
static int64_t reserve(fourier_plan *plan, int64_t count)
{
  int64_t at = plan->elements;
  plan->elements += 2 * count;
  return at;
}

static void plan_passes(fourier_plan *plan, passes *p, int64_t n)
{
  *p = (passes){ .n = n, .table = reserve(plan, n) };
  for (int radix = 4; n > 1; radix = radix == 4 ? 2 : radix == 2 ? 3 : radix + 2)
    for (; n % radix == 0; n /= radix) p->radix[p->count++] = radix;
}

static void plan_transform(fourier_plan *plan, transform *t, int64_t n)
{
  int64_t a = (int64_t)sqrt((double)n);
  while (a > 1 && n % a != 0) a--;
  if (a < 1) a = 1;
  t->n = n;
  plan_passes(plan, &t->columns, a);
  plan_passes(plan, &t->rows, n / a);
  t->twist = reserve(plan, n);
}

/* By shapes and attributes alone. */
static fourier_plan plan_of(const flow_call *call)
{
  int64_t size = call->attributes->fourier.size;
  fourier_plan plan = { .size = size, .packed = call->input_count == 1 && size % 2 == 0 };
  plan.n = plan.packed ? size / 2 : size;
  plan.split = reserve(&plan, plan.packed ? plan.n + 1 : 0);
  plan.chirped = largest_prime(plan.n) > MOST_RADIX;
  int64_t n = plan.n;
  if (plan.chirped) {
    for (n = 1; n < 2 * plan.n - 1; n *= 2) continue;
    plan.chirp = reserve(&plan, plan.n);
    plan.filter = reserve(&plan, n);
  }
  plan_transform(&plan, &plan.whole, n);
  return plan;
}

/* Lines of the call's operands. */
static int64_t lines_of(const flow_call *call)
{
  return flow_shape_size(call->inputs[0].rank - 1, call->inputs[0].shape);
}

/* Multiply-adds: about 2.5 n log2(n) for a complex line. */
static double fourier_cost(const flow_call *call)
{
  fourier_plan plan = plan_of(call);
  double n = (double)plan.whole.n, line = n * (4 + 2.5 * log2(n)) * (plan.chirped ? 2 : 1);
  return flow_cost_arithmetic((double)lines_of(call) * line, 0.25);
}

/* ---- powers of w --------------------------------------------------------------------------------------------------------- */

/* w_n^t = w_n^(t / near * near) w_n^(t % near): two tables, so that few sines are computed. */
typedef struct powers {
  int64_t n, near;
  double *far_cos, *far_sin, *near_cos, *near_sin;
} powers;

static int64_t near_of(int64_t n)
{
  int64_t near = 1;
  while (near * near < n) near *= 2;
  return near;
}

/* Doubles that make_powers wants for n. */
static int64_t powers_size(int64_t n)
{
  return 2 * (near_of(n) + n / near_of(n) + 1);
}

static powers make_powers(int64_t n, double *memory)
{
  int64_t near = near_of(n), far = n / near + 1;
  powers w = { n, near, memory, memory + far, memory + 2 * far, memory + 2 * far + near };
  for (int64_t i = 0; i < far; i++) {
    double angle = 2 * 3.14159265358979323846 * (double)(i * near) / (double)n;
    w.far_cos[i] = cos(angle);
    w.far_sin[i] = sin(angle);
  }
  for (int64_t i = 0; i < near; i++) {
    double angle = 2 * 3.14159265358979323846 * (double)i / (double)n;
    w.near_cos[i] = cos(angle);
    w.near_sin[i] = sin(angle);
  }
  return w;
}

/* The real and the imaginary part of w_n^t, 0 <= t < n. */
static inline void power(const powers *w, int64_t t, double *re, double *im)
{
  int64_t far = t / w->near, near = t & (w->near - 1);
  *re = w->far_cos[far] * w->near_cos[near] - w->far_sin[far] * w->near_sin[near];
  *im = -(w->far_sin[far] * w->near_cos[near] + w->far_cos[far] * w->near_sin[near]);
}

/* ---- squares ------------------------------------------------------------------------------------------------------------ */

/* x {rows, columns}, whose rows are VL apart, as {columns, rows}, whose rows are `step` apart. */
static inline void turn_float(const float *restrict x, float *restrict y, int64_t step, int64_t rows, int64_t columns)
{
  if (rows == VL && columns == VL) {
    vf r[VL];
    FLOW_UNROLL(16)
    for (int i = 0; i < VL; i++) r[i] = vf_load(x + i * VL);
    vf_transpose(r);
    FLOW_UNROLL(16)
    for (int i = 0; i < VL; i++) vf_store(y + i * step, r[i]);
    return;
  }
  for (int64_t j = 0; j < columns; j++)
    for (int64_t k = 0; k < rows; k++) y[j * step + k] = x[k * VL + j];
}

static inline void turn_double(const double *restrict x, double *restrict y, int64_t step, int64_t rows, int64_t columns)
{
  for (int64_t j = 0; j < columns; j++)
    for (int64_t k = 0; k < rows; k++) y[j * step + k] = x[k * VL + j];
}

/* ---- lines of each dtype ------------------------------------------------------------------------------------------------- */

#define T float
#define V vf
#define NAME(name) name##_float
#include "cpu/fourier/fourier_lines.inc"
#undef T
#undef V
#undef NAME
#define T double
#define V vd
#define NAME(name) name##_double
#include "cpu/fourier/fourier_lines.inc"
#undef T
#undef V
#undef NAME

/* The plan, its tables, and at their end the powers that they are made of. */
static size_t fourier_shared(const flow_call *call)
{
  fourier_plan plan = plan_of(call);
  int64_t largest = plan.size > plan.whole.n ? plan.size : plan.whole.n;
  if (largest < 2 * plan.n) largest = 2 * plan.n;
  size_t tables = (size_t)plan.elements * (size_t)flow_dtype_size(call->inputs[0].dtype);
  size_t scratch = plan.chirped ? 4 * (size_t)plan.whole.n * (size_t)flow_dtype_size(call->inputs[0].dtype) : 0;
  return sizeof plan + tables + scratch + (size_t)powers_size(largest) * sizeof(double) + 2 * ALIGNED;
}

/* Two complex lines, between which the passes go to and fro. */
static size_t fourier_scratch(const flow_call *call)
{
  return 4 * (size_t)plan_of(call).whole.n * (size_t)flow_dtype_size(call->inputs[0].dtype);
}

static flow_status fourier_prepare(const flow_call *call)
{
  if (call->inputs[0].dtype == FLOW_FLOAT64) make_tables_double(call);
  else make_tables_float(call);
  return FLOW_OK;
}

static flow_status fourier_run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  if (call->inputs[0].dtype == FLOW_FLOAT64) transform_lines_double(call);
  else transform_lines_float(call);
  return FLOW_OK;
}
const flow_kernel FLOW_KERNELS(fourier)[] = {
  { .variant = "passes",
    .cost = fourier_cost,
    .shared_bytes = fourier_shared,
    .scratch_bytes = fourier_scratch,
    .prepare = fourier_prepare,
    .run = fourier_run },
  { 0 }
};
