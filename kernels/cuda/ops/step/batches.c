/* batches.c: rows of tables in the device's memory, as the inputs of a step: many tables in one launch. Which rows is said in the device's
 * memory, too, so that a recorded step can be repeated with the next batch. */
#ifndef FLOW_CUDA_OPS_BATCHES
#define FLOW_CUDA_OPS_BATCHES

#include "cuda/ops/elementwise/elementwise.h"
#include "cuda/runtime/fault.h"

enum { MOST_TABLES = 16 };

/* Row after row, each of `units` (see view.h) of `size` bytes. first: of the table's units, among those of all tables. */
typedef struct batch_table {
  const void *from;
  void *to;
  int64_t rows, first;
  view_groups units;
  int64_t size;
} batch_table;

typedef struct take_batch_arguments {
  batch_table table[MOST_TABLES];
  const int64_t *order; /* NULL: rows as they are */
  flow_device_fault *fault;
  const flow_scalars *scalars; /* for the fault */
  const int64_t *first;        /* the batch's, in the order */
  int32_t tables, op;
} take_batch_arguments;

/* i: a unit of all tables'. There are few tables, so they are looked at one after the other. */
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

#if __INCLUDE_LEVEL__ == 0 /* the launches: families.h */
#include <string.h>
#include "cuda/runtime/device_table.h"
#include "cuda/runtime/launch.h"
#include "cuda/device/view_make.h"

/* What the launch touches, as a gather's call: bytes of tables, order and step; bytes of what is filled. */
typedef struct batch_call { flow_operand inputs[MOST_TABLES + 2], outputs[MOST_TABLES]; flow_call call; } batch_call;

static flow_operand bytes_at(const void *data, int64_t bytes)
{
  return (flow_operand){ .data = (void *)(uintptr_t)data, .dtype = FLOW_UINT8, .rank = 1, .shape = { bytes }, .strides = { 1 } };
}

/* So that launches before and after are ordered by what this one reads and writes. */
static void describe(flow_queue *queue, const flow_batch_table *tables, int count, const int64_t *order, int64_t order_count, int64_t rows,
                     const flow_batch_step *step, batch_call *out)
{
  int inputs = 0;
  memset(out, 0, sizeof *out);
  for (int t = 0; t < count; t++) {
    out->inputs[inputs++] = bytes_at(tables[t].from, tables[t].rows * tables[t].row_bytes);
    out->outputs[t] = bytes_at(tables[t].to, rows * tables[t].row_bytes);
  }
  out->inputs[inputs++] = bytes_at(step, sizeof *step);
  if (order) out->inputs[inputs++] = bytes_at(order, order_count * (int64_t)sizeof *order);
  out->call = (flow_call){ .op = FLOW_OP_gather, .queue = queue, .inputs = out->inputs, .input_count = inputs, .outputs = out->outputs,
                           .output_count = count };
}

/* One launch for up to MOST_TABLES tables: its elements are units of up to 16 bytes, those of the tables one after the other. */
static flow_status take(flow_queue *queue, const flow_batch_table *tables, int count, const int64_t *order, int64_t order_count,
                        int64_t rows, const flow_batch_step *step)
{
  batch_call call;
  take_batch_arguments a;
  int64_t units = 0;
  describe(queue, tables, count, order, order_count, rows, step, &call);
  memset(&a, 0, sizeof a);
  a.order = order;
  a.fault = flow_cuda_fault(&call.call);
  a.scalars = &step->scalars;
  a.first = &step->first;
  a.op = FLOW_OP_gather;
  for (int t = 0; t < count; t++) {
    if (tables[t].row_bytes == 0) continue;
    int64_t size = flow_cuda_unit_of(tables[t].from, tables[t].to, tables[t].row_bytes), in_row = tables[t].row_bytes / size;
    a.table[a.tables++] = (batch_table){ .from = tables[t].from, .to = tables[t].to, .rows = tables[t].rows, .first = units,
                                         .units = flow_cuda_groups(in_row, rows * in_row), .size = size };
    units += rows * in_row;
  }
  return flow_cuda_launch(&call.call, CUDA_take_batch, units, &a, sizeof a);
}

flow_status flow_cuda_take_batch(flow_queue *queue, const flow_batch_table *tables, int count, const int64_t *order, int64_t order_count,
                                 int64_t rows, const flow_batch_step *step)
{
  for (int first = 0; first < count; first += MOST_TABLES) {
    int some = count - first < MOST_TABLES ? count - first : MOST_TABLES;
    FLOW_TRY(take(queue, tables + first, some, order, order_count, rows, step));
  }
  return FLOW_OK;
}

#endif
