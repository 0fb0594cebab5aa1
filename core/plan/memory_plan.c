/* memory_plan.c: see memory_plan.h. Greedy-by-size placement (Pisarchyk and Lee, "Efficient memory management for deep
 * neural net inference", 2020): largest block first, into the lowest gap that is free during its life. */
#include "plan/memory_plan.h"
#include "base/memory.h"
#include <stdlib.h>

#define MOST_BYTES ((size_t)1 << 46)     /* beyond every machine; sums of block sizes stay far from overflow */

static int larger_first(const void *a, const void *b)
{
  const flow_block *x = *(flow_block *const *)a, *y = *(flow_block *const *)b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
  return x < y ? -1 : x > y;   /* stable: the same plan gives the same arena */
}

/* Lowest offset at which `block` fits among the placed ones (ordered by offset) that live at the same time. */
static size_t lowest_gap(const flow_block *block, flow_block *const *placed, int count)
{
  size_t offset = 0;
  for (int i = 0; i < count; i++) {
    if (placed[i]->end < block->begin || block->end < placed[i]->begin) continue;
    if (placed[i]->offset >= offset + block->bytes) break;
    size_t end = placed[i]->offset + placed[i]->bytes;
    if (end > offset) offset = end;
  }
  return offset;
}

/* O(n^2) in the number of blocks. `placed` is kept in the order of offsets, so that lowest_gap finds the first gap that is large enough
 * in one pass. Bytes are rounded up to the alignment in blocks[] itself. */
flow_status flow_pack_blocks(flow_block *blocks, int count, size_t alignment, size_t *total)
{
  void *memory;
  *total = 0;
  FLOW_TRY(flow_alloc(2 * sizeof(flow_block *) * (size_t)(count + 1), &memory));
  flow_block **order = memory, **placed = order + count;
  int placed_count = 0;
  for (int i = 0; i < count; i++) {
    if (blocks[i].bytes > MOST_BYTES) {
      flow_free(memory);
      return flow_fail(FLOW_OUT_OF_MEMORY, "a value of the plan would take %.3g bytes; use smaller batches", (double)blocks[i].bytes);
    }
    blocks[i].bytes = (blocks[i].bytes + alignment - 1) & ~(alignment - 1);
    order[i] = &blocks[i];
  }
  qsort(order, (size_t)count, sizeof *order, larger_first);
  for (int i = 0; i < count; i++) {
    flow_block *block = order[i];
    block->offset = lowest_gap(block, placed, placed_count);
    int at = placed_count++;
    for (; at > 0 && placed[at - 1]->offset > block->offset; at--) placed[at] = placed[at - 1];
    placed[at] = block;
    if (block->offset + block->bytes > *total) *total = block->offset + block->bytes;
  }
  flow_free(memory);
  return FLOW_OK;
}
