/* fourier.c: the op fourier. Lines are copied as complex numbers, go through Stockham's passes, one launch for each factor of the length,
 * and are copied out. A thread makes one element of a pass, by the sum that defines a transform as long as the factor: a length that is a
 * large prime number takes as many multiplications for each element. */
#ifndef FLOW_CUDA_OPS_FOURIER
#define FLOW_CUDA_OPS_FOURIER

#include "cuda/ops/elementwise/elementwise.h"

typedef struct fourier_arguments {
  const void *re, *im;  /* the operands; im may be NULL */
  void *to_re, *to_im;  /* the results; each may be NULL */
  void *from, *to;      /* complex lines: all real parts, then all imaginary ones */
  void *table;          /* w_n^t = e^(-2 pi i t / n) for t < n, likewise */
  view_groups n, count; /* elements of a line; entries of a result's line */
  view_groups done, radix;
  int64_t given, all; /* elements of a line that the operands have; of all complex lines */
  int32_t dtype, inverse;
} fourier_arguments;
typedef fourier_arguments fourier_table_float_arguments, fourier_table_double_arguments, fourier_begin_float_arguments,
    fourier_begin_double_arguments, fourier_pass_float_arguments, fourier_pass_double_arguments, fourier_end_float_arguments,
    fourier_end_double_arguments;

/* The cosine and the sine of 2 pi t / n, 0 <= t < n. CUDA's functions for multiples of pi need no memory for large angles. */
BODY void fourier_wave(int64_t t, int64_t n, double *cosine, double *sine)
{
#if defined(__CUDACC__)
  sincospi(2.0 * (double)t / (double)n, sine, cosine);
#else
  double angle = 2 * 3.14159265358979323846 * (double)t / (double)n;
  *cosine = cos(angle);
  *sine = sin(angle);
#endif
}

/* table: i is t. begin: i is an element of the complex lines. pass: i is an element of what the pass makes, element q of run j of butterfly
 * k; its term number l is element q of run k + l n / (radix done), times w_n^((k done + l n / radix) j). end: i is an entry of the
 * results. */
#define FOURIER_BODIES(T)                                                                                                       \
  BODY void fourier_table_##T(int64_t i, const fourier_arguments *a)                                                            \
  {                                                                                                                             \
    double cosine, sine;                                                                                                        \
    fourier_wave(i, a->n.size, &cosine, &sine);                                                                                 \
    ((T *)a->table)[i] = (T)cosine;                                                                                             \
    ((T *)a->table)[i + a->n.size] = (T)-sine;                                                                                  \
  }                                                                                                                             \
  BODY void fourier_begin_##T(int64_t i, const fourier_arguments *a)                                                            \
  {                                                                                                                             \
    int64_t line = group_of(&a->n, i), k = i - line * a->n.size;                                                                \
    T im = k < a->given && a->im ? load_##T(a->dtype, a->im, line * a->given + k) : (T)0;                                       \
    ((T *)a->from)[i] = k < a->given ? load_##T(a->dtype, a->re, line * a->given + k) : (T)0;                                   \
    ((T *)a->from)[i + a->all] = a->inverse ? -im : im;                                                                         \
  }                                                                                                                             \
  BODY void fourier_pass_##T(int64_t i, const fourier_arguments *a)                                                             \
  {                                                                                                                             \
    int64_t n = a->n.size, radix = a->radix.size, line = group_of(&a->n, i), entry = i - line * n;                              \
    int64_t run = group_of(&a->done, entry), q = entry - run * a->done.size, k = group_of(&a->radix, run), j = run - k * radix; \
    const T *re = (const T *)a->from + line * n + k * a->done.size + q, *im = re + a->all;                                      \
    const T *wr = (const T *)a->table, *wi = wr + n;                                                                            \
    int64_t step = n / radix, at = k * a->done.size * j % n, next = step * j % n;                                               \
    T sum_re = 0, sum_im = 0;                                                                                                   \
    for (int64_t l = 0; l < radix; l++) {                                                                                       \
      T xr = re[l * step], xi = im[l * step], fr = wr[at], fi = wi[at];                                                         \
      sum_re += xr * fr - xi * fi;                                                                                              \
      sum_im += xr * fi + xi * fr;                                                                                              \
      at = at + next < n ? at + next : at + next - n;                                                                           \
    }                                                                                                                           \
    ((T *)a->to)[i] = sum_re;                                                                                                   \
    ((T *)a->to)[i + a->all] = sum_im;                                                                                          \
  }                                                                                                                             \
  BODY void fourier_end_##T(int64_t i, const fourier_arguments *a)                                                              \
  {                                                                                                                             \
    int64_t line = group_of(&a->count, i), at = line * a->n.size + (i - line * a->count.size);                                  \
    T im = ((const T *)a->from)[at + a->all];                                                                                   \
    if (a->to_re) store_##T(a->dtype, a->to_re, i, ((const T *)a->from)[at]);                                                   \
    if (a->to_im) store_##T(a->dtype, a->to_im, i, a->inverse ? -im : im);                                                      \
  }
FOURIER_BODIES(float)
FOURIER_BODIES(double)
#undef FOURIER_BODIES

#define FOURIER_KERNELS(ELEMENT, BLOCK)                                                                                \
  ELEMENT(fourier_table_float)                                                                                         \
  ELEMENT(fourier_table_double) ELEMENT(fourier_begin_float) ELEMENT(fourier_begin_double) ELEMENT(fourier_pass_float) \
      ELEMENT(fourier_pass_double) ELEMENT(fourier_end_float) ELEMENT(fourier_end_double)

#endif

#if __INCLUDE_LEVEL__ == 0 /* the launches: families.h */
#include "cuda/runtime/launch.h"
#include "cuda/device/view_make.h"
#include "ops/op.h"
#include "tensor/tensor.h"

/* Most terms of a sum, where the length has such factors: more passes read memory more often. */
enum { LARGEST_RADIX = 16 };

static int64_t lines_of(const flow_call *call)
{
  return flow_shape_size(call->inputs[0].rank - 1, call->inputs[0].shape);
}
static int64_t element_bytes(const flow_call *call)
{
  return call->inputs[0].dtype == FLOW_FLOAT64 ? 8 : 4;
}

/* The largest factor of n up to LARGEST_RADIX, or its smallest one. */
static int64_t radix_of(int64_t n)
{
  for (int64_t radix = LARGEST_RADIX; radix > 1; radix--)
    if (n % radix == 0) return radix;
  for (int64_t radix = LARGEST_RADIX + 1; radix * radix <= n; radix++)
    if (n % radix == 0) return radix;
  return n;
}

/* Two buffers of complex lines and the table. */
static size_t fourier_shared(const flow_call *call)
{
  int64_t n = call->attributes->fourier.size;
  return (size_t)(2 * (2 * lines_of(call) + 1) * n * element_bytes(call));
}

static flow_status run_fourier(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_operand *x = &call->inputs[0];
  int64_t n = call->attributes->fourier.size, count = call->attributes->fourier.count, lines = lines_of(call), all = lines * n;
  int is_double = x->dtype == FLOW_FLOAT64;
  char *memory = call->shared;
  if (lines == 0 || count == 0) return FLOW_OK;
  fourier_arguments a = {
    .re = x->data,
    .im = call->input_count > 1 ? call->inputs[1].data : NULL,
    .to_re = call->outputs[0].data,
    .to_im = call->outputs[1].data,
    .from = memory,
    .to = memory + 2 * all * element_bytes(call),
    .table = memory + 4 * all * element_bytes(call),
    .n = flow_cuda_groups(n, all),
    .count = flow_cuda_groups(count, lines * count),
    .given = x->shape[x->rank - 1],
    .all = all,
    .dtype = x->dtype,
    .inverse = call->attributes->fourier.inverse
  };
  FLOW_TRY(flow_cuda_launch(call, is_double ? CUDA_fourier_table_double : CUDA_fourier_table_float, n, &a, sizeof a));
  FLOW_TRY(flow_cuda_launch(call, is_double ? CUDA_fourier_begin_double : CUDA_fourier_begin_float, all, &a, sizeof a));
  for (int64_t done = 1; done < n; done *= a.radix.size) {
    a.done = flow_cuda_groups(done, n);
    a.radix = flow_cuda_groups(radix_of(n / done), n / done);
    FLOW_TRY(flow_cuda_launch(call, is_double ? CUDA_fourier_pass_double : CUDA_fourier_pass_float, all, &a, sizeof a));
    void *swap = a.from;
    a.from = a.to;
    a.to = swap;
  }
  return flow_cuda_launch(call, is_double ? CUDA_fourier_end_double : CUDA_fourier_end_float, lines * count, &a, sizeof a);
}
const flow_kernel flow_cuda_fourier_kernels[] = { { .variant = "passes", .shared_bytes = fourier_shared, .run = run_fourier }, { 0 } };
#endif
