/* along.c: kernels of ops along one axis of {outer, n, inner}, whose lines are n elements, `inner` apart: argsort, cumsum, take_along and
 * the gradient of that. Sums, and additions to one element, are made by one thread in the order of the line; all threads sort: runs that
 * are in order become runs twice as long, an element finding its place in the other run by bisection. */
#ifndef FLOW_CUDA_OPS_ALONG
#define FLOW_CUDA_OPS_ALONG

#include "cuda/ops/elementwise/elementwise.h"
#include "cuda/runtime/fault.h"

/* Where line number `line` begins: inner lines one after the other, then the next outer one. */
BODY int64_t begin_of_line(const view_groups *inner, int64_t n, int64_t line)
{
  int64_t outer = group_of(inner, line);
  return outer * n * inner->size + (line - outer * inner->size);
}

/* ---- argsort --------------------------------------------------------------------------------------------------------------- */

typedef struct sort_entry {
  uint64_t key;
  int64_t position;
} sort_entry;

typedef struct sort_lines_arguments {
  const void *x;
  sort_entry *from, *to; /* line after line */
  int64_t *y;
  view_groups n, inner, kept; /* kept: the first ones of a line, for y */
  int64_t run, base;
  int32_t dtype, reverse;
} sort_lines_arguments;
typedef sort_lines_arguments begin_sort_arguments, merge_sorted_arguments, end_sort_arguments;

/* Numbers whose order is that of the elements: of negative floats all bits are turned round, of others the sign. Both zeros are one key,
 * and all NaN are above infinity. */
BODY uint64_t sort_key(int dtype, const void *x, int64_t at)
{
  uint64_t bits;
  if (dtype == FLOW_INT64) return (uint64_t)((const int64_t *)x)[at] ^ (uint64_t)1 << 63;
  double value = load_double(dtype, x, at);
  if (value == 0) value = 0;
  if (value != value) return UINT64_MAX;
  memcpy(&bits, &value, sizeof bits);
  return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

/* i: an entry, line after line, whatever the axis. To sort the other way round keys are turned round, not positions, so that equal
 * elements keep their order. */
BODY void begin_sort(int64_t i, const begin_sort_arguments *a)
{
  int64_t line = group_of(&a->n, i), position = i - line * a->n.size;
  uint64_t key = sort_key(a->dtype, a->x, begin_of_line(&a->inner, a->n.size, line) + position * a->inner.size);
  a->from[i].key = a->reverse ? ~key : key;
  a->from[i].position = position;
}

/* i: an entry. Its place is its place in its own run and how many of the other run come before it, of equal ones those of the left run.
 * A run without a partner stays where it is. */
BODY void merge_sorted(int64_t i, const merge_sorted_arguments *a)
{
  int64_t line = group_of(&a->n, i), k = i - line * a->n.size, run = k / a->run, other = (run ^ 1) * a->run;
  int64_t own = run * a->run, low = other, end = other + a->run < a->n.size ? other + a->run : a->n.size, place = k;
  const sort_entry *sorted = a->from + line * a->n.size;
  uint64_t key = sorted[k].key;
  while (low < end) {
    int64_t middle = low + (end - low) / 2;
    if (sorted[middle].key < key || (other < own && sorted[middle].key == key)) low = middle + 1;
    else end = middle;
  }
  if (other < a->n.size) place = (own < other ? own : other) + (k - own) + (low - other);
  a->to[line * a->n.size + place] = sorted[k];
}

/* i: a result, one of the first kept.size of its line. */
BODY void end_sort(int64_t i, const end_sort_arguments *a)
{
  int64_t line = group_of(&a->kept, i), k = i - line * a->kept.size;
  a->y[begin_of_line(&a->inner, a->kept.size, line) + k * a->inner.size] = a->from[line * a->n.size + k].position + a->base;
}

/* ---- cumsum ---------------------------------------------------------------------------------------------------------------- */

typedef struct sum_along_arguments {
  const void *x;
  void *y;
  view_groups inner;
  int64_t n;
  int32_t dtype, reverse, exclusive, unused;
} sum_along_arguments;
typedef sum_along_arguments sum_along_double_arguments, sum_along_integer_arguments;

/* i: a line. Floats are added in double, integers wrap. */
#define SUM_ALONG(suffix, T, SUM)                                                                   \
  BODY void sum_along_##suffix(int64_t i, const sum_along_arguments *a)                             \
  {                                                                                                 \
    int64_t step = a->reverse ? -a->inner.size : a->inner.size;                                     \
    int64_t at = begin_of_line(&a->inner, a->n, i) + (a->reverse ? (a->n - 1) * a->inner.size : 0); \
    SUM sum = 0;                                                                                    \
    for (int64_t k = 0; k < a->n; k++, at += step) {                                                \
      SUM next = sum + (SUM)load_##suffix(a->dtype, a->x, at);                                      \
      store_##suffix(a->dtype, a->y, at, (T)(a->exclusive ? sum : next));                           \
      sum = next;                                                                                   \
    }                                                                                               \
  }
SUM_ALONG(double, double, double)
SUM_ALONG(integer, int64_t, uint64_t)
#undef SUM_ALONG

/* ---- take_along ------------------------------------------------------------------------------------------------------------- */

typedef struct take_along_arguments {
  const void *x, *indices; /* x: of the gradient g, of the indices' shape */
  void *y;
  flow_device_fault *fault;
  const flow_scalars *scalars;
  view_groups n, inner;                    /* n: indices of a line */
  int64_t size, row_indices;               /* elements of a line that indices name; indices of a row of the batch */
  int32_t element, dtype, index_dtype, op; /* element: bytes */
} take_along_arguments;
typedef take_along_arguments add_along_float_arguments, add_along_double_arguments;

/* The index number `at`, or -1 after a fault. */
BODY int64_t index_along(const take_along_arguments *a, int64_t at)
{
  int64_t index = load_integer(a->index_dtype, a->indices, at);
  if (index >= 0 && index < a->size) return index;
  raise_fault(a->fault, FAULT_INDEX, a->op, index, a->size, at / a->row_indices, a->scalars);
  return -1;
}

/* i: an index. Where one is refused, the output stays unchanged: the run fails. */
BODY void take_along(int64_t i, const take_along_arguments *a)
{
  int64_t above = group_of(&a->inner, i), outer = group_of(&a->n, above), index = index_along(a, i);
  if (index >= 0) move_element(a->element, a->x, (outer * a->size + index) * a->inner.size + (i - above * a->inner.size), a->y, i);
}

/* i: a line, whose elements are zero before. */
#define ADD_ALONG(T)                                                                                  \
  BODY void add_along_##T(int64_t i, const take_along_arguments *a)                                   \
  {                                                                                                   \
    int64_t from = begin_of_line(&a->inner, a->n.size, i), to = begin_of_line(&a->inner, a->size, i); \
    for (int64_t k = 0; k < a->size; k++) store_##T(a->dtype, a->y, to + k * a->inner.size, 0);       \
    for (int64_t k = 0; k < a->n.size; k++) {                                                         \
      int64_t at = from + k * a->inner.size, index = index_along(a, at);                              \
      if (index < 0) continue;                                                                        \
      int64_t into = to + index * a->inner.size;                                                      \
      store_##T(a->dtype, a->y, into, load_##T(a->dtype, a->y, into) + load_##T(a->dtype, a->x, at)); \
    }                                                                                                 \
  }
ADD_ALONG(float)
ADD_ALONG(double)
#undef ADD_ALONG

#define ALONG_KERNELS(ELEMENT, BLOCK) \
  ELEMENT(begin_sort)                 \
  ELEMENT(merge_sorted)               \
  ELEMENT(end_sort)                   \
  ELEMENT(sum_along_double) ELEMENT(sum_along_integer) ELEMENT(take_along) ELEMENT(add_along_float) ELEMENT(add_along_double)

#endif

#if __INCLUDE_LEVEL__ == 0 /* the launches: families.h */
#include "axis_lines.h"
#include "cuda/runtime/launch.h"
#include "cuda/device/view_make.h"
#include "ops/op.h"
#include "tensor/tensor.h"

/* The operand along the axis in the attributes. */
static flow_axis_lines lines_along(const flow_call *call, const flow_operand *x)
{
  return flow_lines_along(x, call->attributes->along.axis);
}

/* ---- argsort ------------------------------------------------------------------------------------------------------------------- */

static size_t sort_shared(const flow_call *call) { return 2 * sizeof(sort_entry) * (size_t)flow_cuda_size(&call->inputs[0]); }

/* A merge sort of all lines at once: entries of value and position, runs of 1, 2, 4... elements, between two buffers. Equal values keep
 * their order, since the merge takes the left one first. About log2(n) launches. */
static flow_status run_argsort(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_operand *x = &call->inputs[0];
  flow_axis_lines l = lines_along(call, x);
  int64_t count = l.count * l.n, size = call->attributes->along.size > 0 ? call->attributes->along.size : l.n;
  if (!call->outputs[0].data || count == 0) return FLOW_OK;
  sort_lines_arguments a = {
    .x = x->data,
    .from = call->shared,
    .to = (sort_entry *)call->shared + count,
    .y = call->outputs[0].data,
    .n = flow_cuda_groups(l.n, count),
    .inner = flow_cuda_groups(l.inner, l.count),
    .kept = flow_cuda_groups(size, l.count * size),
    .base = call->attributes->along.base,
    .dtype = x->dtype,
    .reverse = call->attributes->along.reverse
  };
  FLOW_TRY(flow_cuda_launch(call, CUDA_begin_sort, count, &a, sizeof a));
  for (a.run = 1; a.run < l.n; a.run *= 2) {
    FLOW_TRY(flow_cuda_launch(call, CUDA_merge_sorted, count, &a, sizeof a));
    sort_entry *swap = a.from;
    a.from = a.to;
    a.to = swap;
  }
  return flow_cuda_launch(call, CUDA_end_sort, l.count * size, &a, sizeof a);
}
const flow_kernel flow_cuda_argsort_kernels[] = { { .variant = "merge", .shared_bytes = sort_shared, .run = run_argsort }, { 0 } };

/* ---- cumsum -------------------------------------------------------------------------------------------------------------------- */

static flow_status run_cumsum(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_operand *x = &call->inputs[0];
  flow_axis_lines l = lines_along(call, x);
  if (!call->outputs[0].data || l.count * l.n == 0) return FLOW_OK;
  sum_along_arguments a = {
    .x = x->data,
    .y = call->outputs[0].data,
    .inner = flow_cuda_groups(l.inner, l.count),
    .n = l.n,
    .dtype = x->dtype,
    .reverse = call->attributes->along.reverse,
    .exclusive = call->attributes->along.exclusive
  };
  return flow_cuda_launch(call, flow_dtype_is_integer(x->dtype) ? CUDA_sum_along_integer : CUDA_sum_along_double, l.count, &a, sizeof a);
}
const flow_kernel flow_cuda_cumsum_kernels[] = { { .variant = "lines", .run = run_cumsum }, { 0 } };

/* ---- take_along ----------------------------------------------------------------------------------------------------------------- */

/* whole: the operand that the indices count in. */
static take_along_arguments along_arguments(const flow_call *call, const flow_operand *whole)
{
  const flow_operand *x = &call->inputs[0], *indices = &call->inputs[1];
  flow_axis_lines l = lines_along(call, indices);
  int64_t count = l.count * l.n;
  return (take_along_arguments){
    .x = x->data,
    .indices = indices->data,
    .y = call->outputs[0].data,
    .fault = flow_cuda_fault(call),
    .scalars = call->scalars,
    .n = flow_cuda_groups(l.n, count),
    .inner = flow_cuda_groups(l.inner, count > l.count ? count : l.count),
    .size = lines_along(call, whole).n,
    .row_indices = indices->shape[0] > 0 && count > 0 ? count / indices->shape[0] : 1,
    .element = (int32_t)flow_dtype_size(x->dtype),
    .dtype = x->dtype,
    .index_dtype = indices->dtype,
    .op = call->op
  };
}

static flow_status run_take_along(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  int64_t count = flow_cuda_size(&call->outputs[0]);
  if (!call->outputs[0].data || count == 0) return FLOW_OK;
  take_along_arguments a = along_arguments(call, &call->inputs[0]);
  return flow_cuda_launch(call, CUDA_take_along, count, &a, sizeof a);
}
const flow_kernel flow_cuda_take_along_kernels[] = { { .variant = "elements", .run = run_take_along }, { 0 } };

static flow_status run_take_along_gradient(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_operand *y = &call->outputs[0];
  if (!y->data || flow_cuda_size(y) == 0) return FLOW_OK;
  take_along_arguments a = along_arguments(call, y);
  return flow_cuda_launch(call, y->dtype == FLOW_FLOAT64 ? CUDA_add_along_double : CUDA_add_along_float, lines_along(call, y).count, &a,
                          sizeof a);
}
const flow_kernel flow_cuda_take_along_gradient_kernels[] = { { .variant = "lines", .run = run_take_along_gradient }, { 0 } };

#endif
