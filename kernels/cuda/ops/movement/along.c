/* along.c: the ops argsort, cumsum, take_along and take_along_gradient. */
#include "cuda/ops/movement/along.h"

#include "cuda/runtime/launch.h"
#include "cuda/device/view_make.h"
#include "ops/op.h"
#include "tensor/tensor.h"

/* An operand seen as lines of n elements, of which each is `inner` elements from the next: shape {lines / inner, n, inner}. */
typedef struct axis_lines { int64_t lines, n, inner; } axis_lines;

static axis_lines lines_along(const flow_call *call, const flow_operand *x)
{
  int axis = call->attributes->along.axis < 0 ? call->attributes->along.axis + x->rank : call->attributes->along.axis;
  axis_lines l = { 1, x->shape[axis], 1 };
  for (int i = axis + 1; i < x->rank; i++) l.inner *= x->shape[i];
  for (int i = 0; i < axis; i++) l.lines *= x->shape[i];
  l.lines *= l.inner;
  return l;
}

/* ---- argsort ------------------------------------------------------------------------------------------------------------------- */

static size_t sort_shared(const flow_call *call) { return 2 * sizeof(sort_entry) * (size_t)flow_cuda_size(&call->inputs[0]); }

/* A merge sort of all lines at once: entries of value and position, runs of 1, 2, 4... elements, between two buffers. Equal values keep
 * their order, since the merge takes the left one first. About log2(n) launches. */
static flow_status run_argsort(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_operand *x = &call->inputs[0];
  axis_lines l = lines_along(call, x);
  int64_t count = l.lines * l.n, size = call->attributes->along.size > 0 ? call->attributes->along.size : l.n;
  if (!call->outputs[0].data || count == 0) return FLOW_OK;
  sort_lines_arguments a = { .x = x->data, .from = call->shared, .to = (sort_entry *)call->shared + count, .y = call->outputs[0].data,
                             .n = flow_cuda_groups(l.n, count), .inner = flow_cuda_groups(l.inner, l.lines),
                             .kept = flow_cuda_groups(size, l.lines * size), .base = call->attributes->along.base, .dtype = x->dtype,
                             .reverse = call->attributes->along.reverse };
  FLOW_TRY(flow_cuda_launch(call, CUDA_begin_sort, count, &a, sizeof a));
  for (a.run = 1; a.run < l.n; a.run *= 2) {
    FLOW_TRY(flow_cuda_launch(call, CUDA_merge_sorted, count, &a, sizeof a));
    sort_entry *swap = a.from;
    a.from = a.to;
    a.to = swap;
  }
  return flow_cuda_launch(call, CUDA_end_sort, l.lines * size, &a, sizeof a);
}
const flow_kernel flow_cuda_argsort_kernels[] = { { .variant = "merge", .shared_bytes = sort_shared, .run = run_argsort }, { 0 } };

/* ---- cumsum -------------------------------------------------------------------------------------------------------------------- */

static flow_status run_cumsum(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_operand *x = &call->inputs[0];
  axis_lines l = lines_along(call, x);
  if (!call->outputs[0].data || l.lines * l.n == 0) return FLOW_OK;
  sum_along_arguments a = { .x = x->data, .y = call->outputs[0].data, .inner = flow_cuda_groups(l.inner, l.lines), .n = l.n,
                            .dtype = x->dtype, .reverse = call->attributes->along.reverse,
                            .exclusive = call->attributes->along.exclusive };
  return flow_cuda_launch(call, flow_dtype_is_integer(x->dtype) ? CUDA_sum_along_integer : CUDA_sum_along_double, l.lines, &a, sizeof a);
}
const flow_kernel flow_cuda_cumsum_kernels[] = { { .variant = "lines", .run = run_cumsum }, { 0 } };

/* ---- take_along ----------------------------------------------------------------------------------------------------------------- */

/* whole: the operand that the indices count in. */
static take_along_arguments along_arguments(const flow_call *call, const flow_operand *whole)
{
  const flow_operand *x = &call->inputs[0], *indices = &call->inputs[1];
  axis_lines l = lines_along(call, indices);
  int64_t count = l.lines * l.n;
  return (take_along_arguments){
    .x = x->data, .indices = indices->data, .y = call->outputs[0].data, .fault = flow_cuda_fault(call), .scalars = call->scalars,
    .n = flow_cuda_groups(l.n, count), .inner = flow_cuda_groups(l.inner, count > l.lines ? count : l.lines),
    .size = lines_along(call, whole).n, .row_indices = indices->shape[0] > 0 && count > 0 ? count / indices->shape[0] : 1,
    .element = (int32_t)flow_dtype_size(x->dtype), .dtype = x->dtype, .index_dtype = indices->dtype, .op = call->op };
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
  return flow_cuda_launch(call, y->dtype == FLOW_FLOAT64 ? CUDA_add_along_double : CUDA_add_along_float, lines_along(call, y).lines, &a,
                          sizeof a);
}
const flow_kernel flow_cuda_take_along_gradient_kernels[] = { { .variant = "lines", .run = run_take_along_gradient }, { 0 } };
