/* memory_plan.h: packs blocks with known lifetimes into one arena so that blocks which are never needed at the same time
 * share bytes. */
#ifndef FLOW_PLAN_MEMORY_PLAN_H
#define FLOW_PLAN_MEMORY_PLAN_H

#include "base/status.h"

typedef struct flow_block {
  size_t bytes;
  int    begin, end;      /* needed from step begin to step end, both inclusive */
  size_t offset;          /* result, a multiple of the alignment */
} flow_block;

/* CPU: a line of its caches. DEVICE: what cuBLAS wants of a workspace (its documentation of cublasSetWorkspace), and what CUDA's
 * allocations have. */
enum { FLOW_CPU_ALIGNMENT = 64, FLOW_DEVICE_ALIGNMENT = 256 };

/* Greedy by size, first fit among the blocks that overlap in time. The alignment is a power of two. Returns the arena's size through
 * *total. */
flow_status flow_pack_blocks(flow_block *blocks, int count, size_t alignment, size_t *total);

#endif
