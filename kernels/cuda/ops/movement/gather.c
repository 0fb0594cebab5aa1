/* gather.c: kernels of gather, rows of a table by their index, and of its gradient, which adds rows of g to the table's rows.
 *
 * The gradient's sums do not depend on who does what: the indices are sorted together with their positions (sort_indices: runs of
 * SORT_KEYS, a block each; merge_runs: pairs of runs become one), so that all that is added to a table row is in one piece, in the order
 * of the positions. Of pieces that are long, groups of GATHER_GROUP are added first (sum_groups), and the table's rows are made of those
 * and of what is left (sum_rows). */
#ifndef FLOW_CUDA_OPS_GATHER
#define FLOW_CUDA_OPS_GATHER

#include "cuda/ops/elementwise/elementwise.h"
#include "cuda/runtime/fault.h"

enum { SORT_KEYS = BLOCK_SHARED / 8, SORT_LEVELS = 10, SORT_PHASES = 2 + SORT_LEVELS * (SORT_LEVELS + 1) / 2, GATHER_GROUP = 64 };

/* An index above the position that it is at; keys differ, so that there is one order of them. */
#define NO_KEY UINT64_MAX

typedef struct take_rows_arguments {
  const void *table, *indices;
  void *y;
  flow_device_fault *fault;
  const flow_scalars *scalars;
  int64_t rows, row_indices; /* of the table; in a row of indices */
  view_groups units;         /* of a row, `size` bytes each */
  int32_t size, index_dtype, op, unused;
} take_rows_arguments;

/* i: a unit of the output. Where an index is refused, the output stays unchanged: the run fails. */
BODY void take_rows(int64_t i, const take_rows_arguments *p)
{
  int64_t position = group_of(&p->units, i), unit = i - position * p->units.size;
  int64_t index = load_integer(p->index_dtype, p->indices, position);
  if (index < 0 || index >= p->rows) {
    raise_fault(p->fault, FAULT_INDEX, p->op, index, p->rows, position / p->row_indices, p->scalars);
    return;
  }
  move_element(p->size, p->table, index * p->units.size + unit, p->y, i);
}

/* ---- sorting --------------------------------------------------------------------------------------------------------------- */

typedef struct sort_indices_arguments {
  const void *indices;
  uint64_t *keys;
  flow_device_fault *fault;
  const flow_scalars *scalars;
  int64_t count, rows, row_indices;
  int32_t index_dtype, op;
} sort_indices_arguments;

/* K. Batcher's bitonic network: level l, steps of 2^l, 2^(l - 1), ..., 1, a phase each. */
BODY void sort_indices(int phase, int thread, int64_t block, void *shared, const sort_indices_arguments *p)
{
  uint64_t *keys = (uint64_t *)shared;
  if (phase == 0 || phase == SORT_PHASES - 1) {
    for (int k = thread; k < SORT_KEYS; k += BLOCK_THREADS) {
      int64_t position = block * SORT_KEYS + k;
      if (phase > 0) {
        p->keys[position] = keys[k];
        continue;
      }
      int64_t index = position < p->count ? load_integer(p->index_dtype, p->indices, position) : -1;
      int known = index >= 0 && index < p->rows;
      keys[k] = known ? (uint64_t)index << 32 | (uint64_t)position : NO_KEY;
      if (position < p->count && !known) raise_fault(p->fault, FAULT_INDEX, p->op, index, p->rows, position / p->row_indices, p->scalars);
    }
    return;
  }
  int level = 0, step = phase - 1;
  while (step > level) step -= ++level;
  int distance = 1 << (level - step);
  for (int pair = thread; pair < SORT_KEYS / 2; pair += BLOCK_THREADS) {
    int low = pair / distance * 2 * distance + pair % distance, high = low + distance, falling = low >> (level + 1) & 1;
    uint64_t a = keys[low], b = keys[high];
    if ((a > b) != falling) {
      keys[low] = b;
      keys[high] = a;
    }
  }
}

/* Keys below `key`, or not above it, among the sorted ones [first, end). */
BODY int64_t keys_before(const uint64_t *keys, int64_t first, int64_t end, uint64_t key, int or_equal)
{
  int64_t low = first;
  while (low < end) {
    int64_t middle = low + (end - low) / 2;
    if (keys[middle] < key || (or_equal && keys[middle] == key)) low = middle + 1;
    else end = middle;
  }
  return low - first;
}

/* Runs of `run` sorted keys become runs twice as long. */
typedef struct merge_runs_arguments {
  const uint64_t *from;
  uint64_t *to;
  int64_t count, run;
} merge_runs_arguments;

/* i: a key. Its place is its place in its own run and how many of the other one are before it; a run without a partner stays where it
 * is. */
BODY void merge_runs(int64_t i, const merge_runs_arguments *p)
{
  int64_t run = i / p->run, own = run * p->run, other = (run ^ 1) * p->run, end = other + p->run, place = i;
  if (end > p->count) end = p->count;
  if (other < p->count) place = (own < other ? own : other) + (i - own) + keys_before(p->from, other, end, p->from[i], other < own);
  p->to[place] = p->from[i];
}

/* ---- sums --------------------------------------------------------------------------------------------------------------------- */

typedef struct gather_sum_arguments {
  const uint64_t *keys; /* `count`, sorted, a multiple of SORT_KEYS */
  const void *g;        /* {positions, columns.size} */
  void *groups, *y;     /* {count / GATHER_GROUP, columns.size}, {rows, columns.size} */
  int64_t count;
  view_groups columns;
  int32_t dtype, unused; /* of g and y */
} gather_sum_arguments;

/* Whether keys [first, first + GATHER_GROUP) are of one row. */
BODY int is_one_row(const uint64_t *keys, int64_t first)
{
  return keys[first] >> 32 == keys[first + GATHER_GROUP - 1] >> 32;
}

/* sum_groups, i: a column of a group; groups of several rows are left out, as sum_rows does not read them. sum_rows, i: an element of y.
 * Keys of a row begin at row << 32, and NO_KEY is above them all. */
#define GATHER_BODIES(T, suffix)                                                                                  \
  typedef gather_sum_arguments sum_groups_##suffix##_arguments, sum_rows_##suffix##_arguments;                    \
  BODY T gather_term_##suffix(const gather_sum_arguments *p, int64_t k, int64_t column)                           \
  {                                                                                                               \
    return load_##suffix(p->dtype, p->g, (int64_t)(uint32_t)p->keys[k] * p->columns.size + column);               \
  }                                                                                                               \
  BODY void sum_groups_##suffix(int64_t i, const gather_sum_arguments *p)                                         \
  {                                                                                                               \
    int64_t group = group_of(&p->columns, i), column = i - group * p->columns.size, first = group * GATHER_GROUP; \
    T sum = 0;                                                                                                    \
    if (!is_one_row(p->keys, first) || p->keys[first] == NO_KEY) return;                                          \
    for (int k = 0; k < GATHER_GROUP; k++) sum += gather_term_##suffix(p, first + k, column);                     \
    ((T *)p->groups)[i] = sum;                                                                                    \
  }                                                                                                               \
  BODY void sum_rows_##suffix(int64_t i, const gather_sum_arguments *p)                                           \
  {                                                                                                               \
    int64_t row = group_of(&p->columns, i), column = i - row * p->columns.size;                                   \
    int64_t k = keys_before(p->keys, 0, p->count, (uint64_t)row << 32, 0);                                        \
    T sum = 0;                                                                                                    \
    while (k < p->count && p->keys[k] >> 32 == (uint64_t)row) {                                                   \
      if (k % GATHER_GROUP == 0 && is_one_row(p->keys, k)) {                                                      \
        sum += ((const T *)p->groups)[k / GATHER_GROUP * p->columns.size + column];                               \
        k += GATHER_GROUP;                                                                                        \
      } else {                                                                                                    \
        sum += gather_term_##suffix(p, k++, column);                                                              \
      }                                                                                                           \
    }                                                                                                             \
    store_##suffix(p->dtype, p->y, i, sum);                                                                       \
  }
GATHER_BODIES(float, float)
GATHER_BODIES(double, double)
#undef GATHER_BODIES

#define GATHER_KERNELS(ELEMENT, BLOCK) \
  ELEMENT(take_rows)                   \
  BLOCK(sort_indices, SORT_PHASES)     \
  ELEMENT(merge_runs) ELEMENT(sum_groups_float) ELEMENT(sum_rows_float) ELEMENT(sum_groups_double) ELEMENT(sum_rows_double)

#endif

#if __INCLUDE_LEVEL__ == 0 /* the launches: families.h */
#include "cuda/runtime/launch.h"
#include "cuda/device/view_make.h"
#include "ops/op.h"
#include "tensor/tensor.h"

/* Elements of a row of the table. */
static int64_t row_size(const flow_operand *table) { return flow_shape_size(table->rank - 1, table->shape + 1); }

/* Of indices, 1 at least. */
static int64_t row_indices(const flow_operand *indices)
{
  int64_t count = indices->rank > 0 ? flow_shape_size(indices->rank - 1, indices->shape + 1) : 1;
  return count > 0 ? count : 1;
}

/* Rows move in the widest units that both addresses and the bytes of a row are multiples of. */
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

/* Sums are doubles or floats, of 16-bit floats, too. */
static int64_t group_bytes(const flow_call *call)
{
  int64_t size = call->outputs[0].dtype == FLOW_FLOAT64 ? sizeof(double) : sizeof(float);
  return key_count(call) / GATHER_GROUP * row_size(&call->outputs[0]) * size;
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

#endif
