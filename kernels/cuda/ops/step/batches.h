/* batches.h: rows of tables in the device's memory, as the inputs of a step: many tables in one launch. Which rows is said in the device's
 * memory, too, so that a recorded step can be repeated with the next batch. */
#ifndef FLOW_CUDA_OPS_BATCHES_H
#define FLOW_CUDA_OPS_BATCHES_H

#include "cuda/ops/elementwise/elementwise.h"
#include "cuda/runtime/fault.h"

enum { MOST_TABLES = 16 };

/* Row after row, each of `units` (see view.h) of `size` bytes. first: of the table's units, among those of all tables. */
typedef struct batch_table { const void *from; void *to; int64_t rows, first; view_groups units; int64_t size; } batch_table;

typedef struct take_batch_arguments {
  batch_table table[MOST_TABLES];
  const int64_t *order;                   /* NULL: rows as they are */
  flow_device_fault *fault;
  const flow_scalars *scalars;            /* for the fault */
  const int64_t *first;                   /* the batch's, in the order */
  int32_t tables, op;
} take_batch_arguments;

BODY void take_batch(int64_t i, const take_batch_arguments *p)
{
  int t = 0;
  while (t + 1 < p->tables && p->table[t + 1].first <= i) t++;
  const batch_table *table = &p->table[t];
  int64_t at = i - table->first, position = group_of(&table->units, at), unit = at - position * table->units.size;
  int64_t row = *p->first + position;
  if (p->order) row = p->order[row];
  if (row < 0 || row >= table->rows) {
    raise_fault(p->fault, FAULT_INDEX, p->op, row, table->rows, position, p->scalars);
    return;
  }
  move_element((int)table->size, table->from, row * table->units.size + unit, table->to, at);
}

#define BATCHES_KERNELS(ELEMENT, BLOCK) ELEMENT(take_batch)

#endif
