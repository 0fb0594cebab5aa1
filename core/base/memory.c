/* memory.c: the one door to the heap: aligned blocks, counted, with failures on demand for tests. Large blocks are kept for the next
 * one of their size: fresh pages from the kernel, which it has to clear, cost more than most of what is computed in them.
 *
 * Every block is preceded by one cache line that remembers its size, so that flow_free can keep the count of live
 * bytes. posix_memalign is the host's allocator: what it interposes (jemalloc, sanitizers) works here too. */
#include "base/memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HEADER_BYTES    ((size_t)64)
#define LARGE_BYTES     ((size_t)4 << 20)      /* below, a huge page would mostly hold nothing */
#define HUGE_PAGE_BYTES ((size_t)2 << 20)
#define MOST_BYTES      ((size_t)1 << 46)      /* beyond every machine; keeps sums of sizes far from overflow */

/* Pictures and batches, but not whole data sets; of what is free, no more than a host would miss. */
#define LEAST_KEPT_BYTES ((size_t)128 << 10)     /* from here on glibc asks the kernel for pages */
#define MOST_KEPT_BYTES  ((size_t)64 << 20)
#define MOST_KEPT        64

/* Sanitizers must see that a freed block is free. */
#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined __SANITIZE_ADDRESS__ || __has_feature(address_sanitizer)
#define KEEPS_BLOCKS 0
#else
#define KEEPS_BLOCKS 1
#endif

typedef struct block_header { size_t bytes; } block_header;

static _Atomic int64_t live_bytes;
static _Atomic int64_t allocation_count;
static _Atomic int64_t allocations_until_failure = -1;   /* flow_fail_allocation; negative: never */

void flow_memory_count(double bytes)
{
  atomic_fetch_add_explicit(&live_bytes, (int64_t)bytes, memory_order_relaxed);
}

double flow_live_bytes(void)
{
  return (double)atomic_load_explicit(&live_bytes, memory_order_relaxed);
}

double flow_allocation_count(void)
{
  return (double)atomic_load_explicit(&allocation_count, memory_order_relaxed);
}

void flow_fail_allocation(double after)
{
  atomic_store(&allocations_until_failure, after >= 0 ? (int64_t)after : -1);
}

static int must_fail_now(void)
{
  if (atomic_load_explicit(&allocations_until_failure, memory_order_relaxed) < 0) return 0;
  return atomic_fetch_sub(&allocations_until_failure, 1) == 0;
}

/* ---- blocks kept for their size ------------------------------------------------------------------------------------------ */

/* Oldest first. Nobody waits for the lock: who does not get it at once goes to the allocator, so that a child forked while a
 * thread held it works on. */
static struct { _Atomic int taken; int count; size_t bytes; block_header *blocks[MOST_KEPT]; } kept;

static int try_kept(void) { return !atomic_exchange_explicit(&kept.taken, 1, memory_order_acquire); }
static void leave_kept(void) { atomic_store_explicit(&kept.taken, 0, memory_order_release); }

static block_header *take_out(int index)
{
  block_header *block = kept.blocks[index];
  kept.bytes -= block->bytes;
  kept.count--;
  memmove(&kept.blocks[index], &kept.blocks[index + 1], sizeof *kept.blocks * (size_t)(kept.count - index));
  return block;
}

/* A kept block of this size; NULL: there is none. */
static block_header *reuse(size_t bytes)
{
  block_header *found = NULL;
  if (bytes < LEAST_KEPT_BYTES || bytes > MOST_KEPT_BYTES / 2 || !try_kept()) return NULL;
  for (int i = kept.count - 1; i >= 0 && !found; i--) {      /* the newest: it may still be in the processor's caches */
    if (kept.blocks[i]->bytes == bytes) found = take_out(i);
  }
  leave_kept();
  return found;
}

/* Frees the oldest blocks until `bytes` more can be kept. */
static void make_room(size_t bytes)
{
  while (kept.count > 0 && (kept.count == MOST_KEPT || kept.bytes > MOST_KEPT_BYTES - bytes)) free(take_out(0));
}

/* 0: the block is not kept. */
static int keep(block_header *block)
{
  if (!KEEPS_BLOCKS || block->bytes < LEAST_KEPT_BYTES || block->bytes > MOST_KEPT_BYTES / 2 || !try_kept()) return 0;
  make_room(block->bytes);
  kept.bytes += block->bytes;
  kept.blocks[kept.count++] = block;
  leave_kept();
  return 1;
}

void flow_memory_trim(void)
{
  if (!try_kept()) return;
  make_room(MOST_KEPT_BYTES);
  leave_kept();
}

/* ---- blocks ---------------------------------------------------------------------------------------------------------------- */

static block_header *allocate(size_t bytes)
{
  void *base = NULL;
  int large = bytes >= LARGE_BYTES;
  if (posix_memalign(&base, large ? HUGE_PAGE_BYTES : HEADER_BYTES, HEADER_BYTES + bytes) != 0) return NULL;
  if (large) madvise(base, HEADER_BYTES + bytes, MADV_HUGEPAGE);   /* advice only: without it pages are small */
  ((block_header *)base)->bytes = bytes;
  return base;
}

flow_status flow_alloc(size_t bytes, void **out)
{
  *out = NULL;
  block_header *base = NULL;
  if (bytes <= MOST_BYTES && !must_fail_now()) {
    base = reuse(bytes);
    if (!base) base = allocate(bytes);
    if (!base) {
      flow_memory_trim();
      base = allocate(bytes);
    }
  }
  if (!base) {
    return flow_fail(FLOW_OUT_OF_MEMORY, "out of memory: %.0f bytes asked for while %.0f bytes are in use; release tensors "
                     "or use smaller batches", (double)bytes, flow_live_bytes());
  }
  atomic_fetch_add_explicit(&live_bytes, (int64_t)bytes, memory_order_relaxed);
  atomic_fetch_add_explicit(&allocation_count, 1, memory_order_relaxed);
  *out = (char *)base + HEADER_BYTES;
  return FLOW_OK;
}

void flow_free(void *block)
{
  if (!block) return;
  block_header *base = (block_header *)(void *)((char *)block - HEADER_BYTES);
  atomic_fetch_sub_explicit(&live_bytes, (int64_t)base->bytes, memory_order_relaxed);
  if (!keep(base)) free(base);
}
