/* emulated_memory.c: the memory of an emulated device, and who used which bytes of it last. */
#define _GNU_SOURCE                        /* MAP_ANONYMOUS */
#include "cuda/emulated.h"

#include <string.h>
#include <sys/mman.h>
#include "base/memory.h"

enum { ALIGNMENT = 256, GAP = 256 };       /* between blocks, so that one that is overrun does not hit the next */

flow_status emulated_memory_start(emulated_memory *memory, size_t size)
{
  void *region = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (region == MAP_FAILED) {
    return flow_fail(FLOW_OUT_OF_MEMORY, "an emulated device of %.0f bytes does not fit: set FLOW_EMULATED_MEMORY", (double)size);
  }
  *memory = (emulated_memory){ .region = region, .size = size };
  return FLOW_OK;
}

void emulated_memory_open(emulated_memory *memory)
{
  if (memory->used > 0) mprotect(memory->region, memory->used, PROT_READ | PROT_WRITE);
}

void emulated_memory_close(emulated_memory *memory)
{
  if (memory->used > 0) mprotect(memory->region, memory->used, PROT_NONE);
}

static void remove_block(emulated_memory *memory, int index)
{
  emulated_block *block = memory->blocks[index];
  memory->count--;
  memmove(&memory->blocks[index], &memory->blocks[index + 1], sizeof *memory->blocks * (size_t)(memory->count - index));
  flow_free(block->accesses.list);
  flow_free(block);
}

void emulated_memory_forget(emulated_memory *memory, int lane)
{
  for (int i = memory->count - 1; i >= 0; i--) {
    if (memory->blocks[i]->lane >= 0 && (lane < 0 || memory->blocks[i]->lane == lane)) remove_block(memory, i);
  }
}

static emulated_block *reuse(emulated_memory *memory, int lane, size_t bytes)
{
  for (int i = 0; i < memory->count; i++) {
    emulated_block *block = memory->blocks[i];
    if (block->lane == lane && block->capacity >= bytes && block->capacity / 2 <= bytes) return block;
  }
  return NULL;
}

/* The first gap that is large enough: the index of the block behind it; -1: there is none. */
static int find_gap(const emulated_memory *memory, size_t bytes, char **start)
{
  *start = memory->region;
  for (int i = 0; i < memory->count; i++) {
    const emulated_block *block = memory->blocks[i];
    if ((size_t)(block->start - *start) >= bytes) return i;
    *start = block->start + block->capacity + GAP;
  }
  size_t used = (size_t)(*start - memory->region);
  return used <= memory->size && memory->size - used >= bytes ? memory->count : -1;
}

flow_status emulated_memory_take(emulated_memory *memory, int lane, size_t bytes, emulated_block **out)
{
  enum { PAGE = 65536 };
  *out = NULL;
  if (bytes > memory->size) return FLOW_NOT_FOUND;
  size_t capacity = bytes < ALIGNMENT ? ALIGNMENT : (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  emulated_block *block = reuse(memory, lane, capacity);
  if (!block) {
    char *start;
    int index = find_gap(memory, capacity + GAP, &start);
    if (index < 0) return FLOW_NOT_FOUND;
    FLOW_TRY(flow_grow(&memory->blocks, sizeof *memory->blocks, memory->count + 1, &memory->capacity));
    void *made;
    FLOW_TRY(flow_alloc_zero(sizeof *block, &made));
    block = made;
    *block = (emulated_block){ .start = start, .capacity = capacity };
    memmove(&memory->blocks[index + 1], &memory->blocks[index], sizeof *memory->blocks * (size_t)(memory->count - index));
    memory->blocks[index] = block;
    memory->count++;
    size_t end = ((size_t)(start - memory->region) + capacity + GAP + PAGE - 1) / PAGE * PAGE;
    if (end > memory->size) end = memory->size;
    if (end > memory->used) memory->used = end;
  }
  block->lane = -1;
  block->bytes = bytes;
  *out = block;
  return FLOW_OK;
}

emulated_block *emulated_memory_find(const emulated_memory *memory, const void *address)
{
  const char *wanted = address;
  int low = 0, high = memory->count;       /* the last block that starts at or before it */
  while (low < high) {
    int middle = (low + high) / 2;
    if (memory->blocks[middle]->start <= wanted) low = middle + 1;
    else high = middle;
  }
  if (low == 0) return NULL;
  emulated_block *block = memory->blocks[low - 1];
  return wanted < block->start + block->capacity ? block : NULL;
}

size_t emulated_memory_held(const emulated_memory *memory, int free_ones)
{
  size_t bytes = 0;
  for (int i = 0; i < memory->count; i++) {
    if ((memory->blocks[i]->lane >= 0) == free_ones) bytes += memory->blocks[i]->capacity + GAP;
  }
  return bytes;
}

/* ---- accesses ---------------------------------------------------------------------------------------------------------------- */

const char *emulated_access_name(int op)
{
  static const char *const names[] = { "", "an upload", "a download", "a copy", "a clear", "a release", "a sum" };
  return op >= 0 ? flow_cuda_op_name(op) : names[-op];
}

static flow_status fail_hazard(const emulated_access *now, const emulated_access *before)
{
  return flow_fail(FLOW_INTERNAL, "hazard: %s on queue %d %s bytes that %s on queue %d %s, and nothing orders the two: one queue has to "
                   "follow the other in between", emulated_access_name(now->op), now->lane, now->write ? "writes" : "reads",
                   emulated_access_name(before->op), before->lane, before->write ? "writes" : "reads");
}

/* What is ordered before the new access and within it is of no further interest: who conflicts with it conflicts with the new one. */
flow_status emulated_access_add(emulated_accesses *accesses, const int64_t *clock, const emulated_access *access)
{
  int kept = 0;
  flow_status status = FLOW_OK;
  for (int i = 0; i < accesses->count; i++) {
    const emulated_access *old = &accesses->list[i];
    int ordered = old->lane == access->lane || clock[old->lane] > old->position;
    int overlap = old->from < access->to && access->from < old->to;
    if (!ordered && overlap && (old->write || access->write) && status == FLOW_OK) status = fail_hazard(access, old);
    int replaced = ordered && access->from <= old->from && old->to <= access->to && (access->write || !old->write);
    if (!replaced) accesses->list[kept++] = *old;
  }
  accesses->count = kept;
  FLOW_TRY(status);
  FLOW_TRY(flow_grow(&accesses->list, sizeof *accesses->list, accesses->count + 1, &accesses->capacity));
  accesses->list[accesses->count++] = *access;
  return FLOW_OK;
}
