/* gather.h: kernels of gather, rows of a table by their index, and of its gradient, which adds rows of g to the table's rows.
 *
 * The gradient's sums do not depend on who does what: the indices are sorted together with their positions (sort_indices: runs of
 * SORT_KEYS, a block each; merge_runs: pairs of runs become one), so that all that is added to a table row is in one piece, in the order
 * of the positions. Of pieces that are long, groups of GATHER_GROUP are added first (sum_groups), and the table's rows are made of those
 * and of what is left (sum_rows). */
#ifndef FLOW_CUDA_OPS_GATHER_H
#define FLOW_CUDA_OPS_GATHER_H

#include "cuda/ops/elementwise/elementwise.h"
#include "cuda/runtime/fault.h"

enum { SORT_KEYS = BLOCK_SHARED / 8, SORT_LEVELS = 10, SORT_PHASES = 2 + SORT_LEVELS * (SORT_LEVELS + 1) / 2, GATHER_GROUP = 64 };

/* An index above the position that it is at; keys differ, so that there is one order of them. */
#define NO_KEY UINT64_MAX

typedef struct take_rows_arguments {
  const void *table, *indices;
  void       *y;
  flow_device_fault *fault;
  const flow_scalars *scalars;
  int64_t     rows, row_indices;          /* of the table; in a row of indices */
  view_groups units;                      /* of a row, `size` bytes each */
  int32_t     size, index_dtype, op, unused;
} take_rows_arguments;

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
  uint64_t   *keys;
  flow_device_fault *fault;
  const flow_scalars *scalars;
  int64_t     count, rows, row_indices;
  int32_t     index_dtype, op;
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
      if (position < p->count && !known)
        raise_fault(p->fault, FAULT_INDEX, p->op, index, p->rows, position / p->row_indices, p->scalars);
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

typedef struct merge_runs_arguments { const uint64_t *from; uint64_t *to; int64_t count, run; } merge_runs_arguments;

BODY void merge_runs(int64_t i, const merge_runs_arguments *p)
{
  int64_t run = i / p->run, own = run * p->run, other = (run ^ 1) * p->run, end = other + p->run, place = i;
  if (end > p->count) end = p->count;
  if (other < p->count)
    place = (own < other ? own : other) + (i - own) + keys_before(p->from, other, end, p->from[i], other < own);
  p->to[place] = p->from[i];
}

/* ---- sums --------------------------------------------------------------------------------------------------------------------- */

typedef struct gather_sum_arguments {
  const uint64_t *keys;                   /* `count`, sorted, a multiple of SORT_KEYS */
  const void     *g;                      /* {positions, columns.size} */
  void           *groups, *y;             /* {count / GATHER_GROUP, columns.size}, {rows, columns.size} */
  int64_t         count;
  view_groups     columns;
  int32_t         dtype, unused;          /* of g and y */
} gather_sum_arguments;

/* Whether keys [first, first + GATHER_GROUP) are of one row. */
BODY int is_one_row(const uint64_t *keys, int64_t first) { return keys[first] >> 32 == keys[first + GATHER_GROUP - 1] >> 32; }

#define GATHER_BODIES(T, suffix)                                                                   \
  typedef gather_sum_arguments sum_groups_##suffix##_arguments, sum_rows_##suffix##_arguments;     \
  BODY T gather_term_##suffix(const gather_sum_arguments *p, int64_t k, int64_t column)            \
  {                                                                                                \
    return load_##suffix(p->dtype, p->g, (int64_t)(uint32_t)p->keys[k] * p->columns.size + column); \
  }                                                                                                \
  BODY void sum_groups_##suffix(int64_t i, const gather_sum_arguments *p)                          \
  {                                                                                                \
    int64_t group = group_of(&p->columns, i), column = i - group * p->columns.size, first = group * GATHER_GROUP; \
    T sum = 0;                                                                                     \
    if (!is_one_row(p->keys, first) || p->keys[first] == NO_KEY) return;                           \
    for (int k = 0; k < GATHER_GROUP; k++) sum += gather_term_##suffix(p, first + k, column);      \
    ((T *)p->groups)[i] = sum;                                                                     \
  }                                                                                                \
  BODY void sum_rows_##suffix(int64_t i, const gather_sum_arguments *p)                            \
  {                                                                                                \
    int64_t row = group_of(&p->columns, i), column = i - row * p->columns.size;                    \
    int64_t k = keys_before(p->keys, 0, p->count, (uint64_t)row << 32, 0);                         \
    T sum = 0;                                                                                     \
    while (k < p->count && p->keys[k] >> 32 == (uint64_t)row) {                                    \
      if (k % GATHER_GROUP == 0 && is_one_row(p->keys, k)) {                                       \
        sum += ((const T *)p->groups)[k / GATHER_GROUP * p->columns.size + column];                \
        k += GATHER_GROUP;                                                                         \
      } else {                                                                                     \
        sum += gather_term_##suffix(p, k++, column);                                               \
      }                                                                                            \
    }                                                                                              \
    store_##suffix(p->dtype, p->y, i, sum);                                                        \
  }
GATHER_BODIES(float, float)
GATHER_BODIES(double, double)
#undef GATHER_BODIES

#define GATHER_KERNELS(ELEMENT, BLOCK)                                                             \
  ELEMENT(take_rows) BLOCK(sort_indices, SORT_PHASES) ELEMENT(merge_runs)                          \
  ELEMENT(sum_groups_float) ELEMENT(sum_rows_float) ELEMENT(sum_groups_double) ELEMENT(sum_rows_double)

#endif
