/* gather.c: the ops gather and gather_gradient. */
#include "cuda/ops/movement/gather.h"

#include "cuda/runtime/launch.h"
#include "cuda/device/view_make.h"
#include "ops/op.h"
#include "tensor/tensor.h"

static int64_t row_size(const flow_operand *table) { return flow_shape_size(table->rank - 1, table->shape + 1); }

/* Of indices, 1 at least. */
static int64_t row_indices(const flow_operand *indices)
{
  int64_t count = indices->rank > 0 ? flow_shape_size(indices->rank - 1, indices->shape + 1) : 1;
  return count > 0 ? count : 1;
}

static flow_status run_gather(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_operand *table = &call->inputs[0], *indices = &call->inputs[1], *y = &call->outputs[0];
  int64_t bytes = row_size(table) * flow_dtype_size(table->dtype), positions = flow_cuda_size(indices);
  if (!y->data || bytes == 0) return FLOW_OK;
  take_rows_arguments a = { .table = table->data, .indices = indices->data, .y = y->data, .fault = flow_cuda_fault(call),
                            .scalars = call->scalars, .row_indices = row_indices(indices), .rows = table->shape[0],
                            .size = flow_cuda_unit_of(table->data, y->data, bytes), .index_dtype = indices->dtype,
                            .op = call->op };
  int64_t units = bytes / a.size;
  a.units = flow_cuda_groups(units, positions * units);
  return flow_cuda_launch(call, CUDA_take_rows, positions * units, &a, sizeof a);
}
const flow_kernel flow_cuda_gather_kernels[] = { { .variant = "rows", .run = run_gather }, { 0 } };

/* ---- the gradient ------------------------------------------------------------------------------------------------------------ */

/* Keys with those that fill the last run up. */
static int64_t key_count(const flow_call *call)
{
  return (flow_cuda_size(&call->inputs[1]) + SORT_KEYS - 1) / SORT_KEYS * SORT_KEYS;
}

static int64_t group_bytes(const flow_call *call)
{
  return key_count(call) / GATHER_GROUP * row_size(&call->outputs[0]) * flow_dtype_size(call->outputs[0].dtype);
}

/* Keys twice, and the groups' sums. */
static size_t gradient_shared(const flow_call *call) { return (size_t)(2 * 8 * key_count(call) + group_bytes(call)); }

/* An index and a position share a key. */
static int fits_keys(const flow_call *call)
{
  return call->outputs[0].shape[0] < INT64_C(1) << 31 && flow_cuda_size(&call->inputs[1]) < INT64_C(1) << 32;
}

/* Sorts keys of index and position (index in the upper bits), so that the rows of g that belong to one row of the table are neighbours,
 * in the order of the batch. Blocks sort runs of SORT_KEYS, then runs are merged between the two halves of the shared block. *sorted:
 * the half in which they end. */
static flow_status sort(const flow_call *call, uint64_t **sorted)
{
  const flow_operand *indices = &call->inputs[1];
  int64_t count = key_count(call);
  uint64_t *from = call->shared, *to = from + count;
  *sorted = from;
  sort_indices_arguments a = { .indices = indices->data, .keys = from, .fault = flow_cuda_fault(call), .count = flow_cuda_size(indices),
                               .scalars = call->scalars, .row_indices = row_indices(indices), .rows = call->outputs[0].shape[0],
                               .index_dtype = indices->dtype, .op = call->op };
  FLOW_TRY(flow_cuda_launch(call, CUDA_sort_indices, count / SORT_KEYS, &a, sizeof a));
  for (int64_t run = SORT_KEYS; run < count; run *= 2) {
    merge_runs_arguments m = { .from = from, .to = to, .count = count, .run = run };
    FLOW_TRY(flow_cuda_launch(call, CUDA_merge_runs, count, &m, sizeof m));
    *sorted = to;
    to = from;
    from = *sorted;
  }
  return FLOW_OK;
}

/* Without atomics: groups of GATHER_GROUP neighbouring keys are added up first, then each row of the table adds its groups, so that the
 * sum has one order however the device schedules its blocks. */
static flow_status run_gradient(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_operand *table = &call->outputs[0];
  int64_t count = key_count(call), columns = row_size(table), size = flow_cuda_size(table), groups = count / GATHER_GROUP * columns;
  int doubles = table->dtype == FLOW_FLOAT64;
  uint64_t *keys;
  if (!table->data || columns == 0) return FLOW_OK;
  FLOW_TRY(sort(call, &keys));
  gather_sum_arguments a = { .keys = keys, .g = call->inputs[0].data, .groups = (uint64_t *)call->shared + 2 * count, .y = table->data,
                             .count = count, .columns = flow_cuda_groups(columns, groups > size ? groups : size), .dtype = table->dtype };
  FLOW_TRY(flow_cuda_launch(call, doubles ? CUDA_sum_groups_double : CUDA_sum_groups_float, groups, &a, sizeof a));
  return flow_cuda_launch(call, doubles ? CUDA_sum_rows_double : CUDA_sum_rows_float, size, &a, sizeof a);
}
const flow_kernel flow_cuda_gather_gradient_kernels[] = {
  { .variant = "sorted", .supports = fits_keys, .shared_bytes = gradient_shared, .run = run_gradient }, { 0 }
};
