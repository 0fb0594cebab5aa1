/* memory.c: all allocations: aligned blocks, counted, with failures on demand for tests. Freed blocks are kept for the next ones of
 * their size: fresh pages from the kernel, which has to clear them, cost more than most of what is computed in them, and the allocator
 * more than an op on a few elements.
 *
 * Every block is preceded by one cache line that remembers its size, so that flow_free can keep the count of live bytes. posix_memalign
 * is the host's allocator: what it interposes (jemalloc, sanitizers) works here too.
 *
 * How blocks are kept. Sizes are rounded up to classes; a class has a stack of free blocks, so that the one that was freed last, whose
 * bytes may still be in a cache, is used first. All kept blocks are also in one list by age, from which the oldest are given back to the
 * allocator when there are too many bytes or they have waited too long. Both lists run through the headers, so keeping takes no memory.
 * A thread that finds the lists locked by another does not wait: it goes to the allocator. */
#include "base/memory.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/futex.h"

#define HEADER_BYTES    ((size_t)64)
#define LARGE_BYTES     ((size_t)4 << 20)      /* below, a huge page would mostly hold nothing */
#define HUGE_PAGE_BYTES ((size_t)2 << 20)
#define MOST_BYTES      ((size_t)1 << 46)      /* beyond every machine; keeps sums of sizes far from overflow */

/* Limits of what is kept. MOST_KEPT_BYTES: pictures and batches, but not whole data sets; and, of what is free, no more than a host
 * would miss. KEPT_NANOSECONDS: longer than a loop takes to come around. What garbage of tensors may build up (lua/flow/ffi.lua) fits. */
#define MOST_KEPT_BYTES  ((size_t)96 << 20)
#define KEPT_NANOSECONDS 5000000000
#define TIMED_BYTES      ((size_t)64 << 10)     /* smaller blocks are not worth a look at the clock */
#define SMALL_BYTES      ((size_t)512)          /* up to here capacities are multiples of cache lines, beyond eighths of powers of two */

/* Sanitizers must see that a freed block is free. */
#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined __SANITIZE_ADDRESS__ || __has_feature(address_sanitizer)
#define KEEPS_BLOCKS 0
#else
#define KEEPS_BLOCKS 1
#endif

typedef struct block_header {
  size_t bytes, capacity;                      /* as asked for; as there are */
  /* For a block that is kept: its neighbours in the list of all, by age, and in that of its capacity. */
  struct block_header *older, *newer, *below, *above;
  int64_t freed_at;                            /* nanoseconds */
} block_header;

_Static_assert(sizeof(block_header) <= HEADER_BYTES, "a header is one cache line");

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

/* Counts down to the allocation that flow_fail_allocation has chosen; 1 for that one only. Below 0 the counter is left alone, so that a
 * test's choice costs nothing once it is over. */
static int must_fail_now(void)
{
  if (atomic_load_explicit(&allocations_until_failure, memory_order_relaxed) < 0) return 0;
  return atomic_fetch_sub(&allocations_until_failure, 1) == 0;
}

/* ---- blocks kept for their size ------------------------------------------------------------------------------------------ */

enum { SMALL_CLASSES = SMALL_BYTES / HEADER_BYTES, CLASSES = SMALL_CLASSES + 8 * 20 };

/* No thread waits for the lock: if it is taken, the thread uses the allocator, so that a child that was forked meanwhile works. */
static struct {
  /* All that follows is only touched by the thread that has set it. */
  _Atomic int   taken;
  size_t        bytes;
  int64_t       now;                           /* when a block was last looked at by the clock */
  block_header *oldest, *newest;
  block_header *top[CLASSES];                  /* the newest of each capacity: it may still be in the processor's caches */
} kept;

static int try_kept(void) { return KEEPS_BLOCKS && !atomic_exchange_explicit(&kept.taken, 1, memory_order_acquire); }
static void leave_kept(void) { atomic_store_explicit(&kept.taken, 0, memory_order_release); }

/* Which blocks can serve `bytes`, and their capacity: at most an eighth of it is unused, and its pages are never touched. -1: only a
 * separate block, which is not kept. A capacity is its own class's: class_of(capacity) gives the same class and capacity again, by
 * which keep() and make_room() find it. */
static int class_of(size_t bytes, size_t *capacity)
{
  *capacity = bytes;
  if (!KEEPS_BLOCKS || bytes > MOST_KEPT_BYTES / 2) return -1;
  if (bytes <= SMALL_BYTES) {
    size_t lines = bytes ? (bytes + HEADER_BYTES - 1) / HEADER_BYTES : 1;
    *capacity = lines * HEADER_BYTES;
    return (int)lines - 1;
  }
  int power = 63 - __builtin_clzll((unsigned long long)bytes - 1);      /* 2^power < bytes <= 2^(power + 1) */
  size_t step = ((size_t)1 << power) / 8, eighths = (bytes - ((size_t)1 << power) + step - 1) / step;
  *capacity = ((size_t)1 << power) + eighths * step;
  return SMALL_CLASSES + 8 * (power - 9) + (int)eighths - 1;
}

/* Takes a kept block out of both lists. By the holder of the lock. */
static void take_out(block_header *block, int class)
{
  if (block->older) block->older->newer = block->newer;
  else kept.oldest = block->newer;
  if (block->newer) block->newer->older = block->older;
  else kept.newest = block->older;
  if (block->below) block->below->above = block->above;
  if (block->above) block->above->below = block->below;
  else kept.top[class] = block->below;
  kept.bytes -= block->capacity;
}

/* The newest kept block of a class, or NULL. */
static block_header *reuse(int class)
{
  if (class < 0 || !try_kept()) return NULL;
  block_header *found = kept.top[class];
  if (found) take_out(found, class);
  leave_kept();
  return found;
}

/* Frees the oldest blocks until `bytes` more can be kept, and those that were not used for long. From the oldest on; those after the
 * first that may stay are younger, and stay too. */
static void make_room(size_t bytes)
{
  for (block_header *block = kept.oldest, *next; block; block = next) {
    size_t capacity;
    next = block->newer;
    if (kept.bytes <= MOST_KEPT_BYTES - bytes && kept.now - block->freed_at <= KEPT_NANOSECONDS) return;
    take_out(block, class_of(block->capacity, &capacity));
    free(block);
  }
}

/* Returns 0 if the block is not kept. */
static int keep(block_header *block)
{
  size_t capacity;
  int class = class_of(block->capacity, &capacity);
  if (class < 0 || !try_kept()) return 0;
  if (capacity >= TIMED_BYTES) kept.now = flow_now_nanoseconds();
  make_room(capacity);
  block->freed_at = kept.now;
  block->older = kept.newest;
  block->below = kept.top[class];
  block->newer = block->above = NULL;
  if (block->older) block->older->newer = block;
  else kept.oldest = block;
  if (block->below) block->below->above = block;
  kept.newest = kept.top[class] = block;
  kept.bytes += capacity;
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

/* A fresh block with room for `capacity` bytes after its header, or NULL. Large blocks begin at a huge page, so that the kernel can use
 * whole ones. capacity is at most MOST_BYTES, so that the sum does not overflow. */
static block_header *allocate(size_t capacity)
{
  void *base = NULL;
  int large = capacity >= LARGE_BYTES;
  if (posix_memalign(&base, large ? HUGE_PAGE_BYTES : HEADER_BYTES, HEADER_BYTES + capacity) != 0) return NULL;
  if (large) madvise(base, HEADER_BYTES + capacity, MADV_HUGEPAGE);   /* advice only: without it pages are small */
  ((block_header *)base)->capacity = capacity;
  return base;
}

/* Where the system lets this process have less memory than there is, how much, and how that is changed; else "". */
static const char *say_limit(char *text, size_t size)
{
  struct rlimit limit;
  text[0] = '\0';
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    snprintf(text, size, ", or raise the limit of %.0f bytes that this process has (ulimit -v)", (double)limit.rlim_cur);
  return text;
}

/* Any thread. Without memory what is kept is given back to the system, and the allocator asked once more. */
flow_status flow_alloc(size_t bytes, void **out)
{
  *out = NULL;
  block_header *base = NULL;
  if (bytes <= MOST_BYTES && !must_fail_now()) {
    size_t capacity;
    int class = class_of(bytes, &capacity);
    base = reuse(class);
    if (!base) base = allocate(capacity);
    if (!base) {
      flow_memory_trim();
      base = allocate(capacity);
    }
  }
  if (!base) {
    char limit[120];
    return flow_fail(FLOW_OUT_OF_MEMORY,
                     "out of memory: %.0f bytes asked for while %.0f bytes are in use; release tensors "
                     "or use smaller batches%s",
                     (double)bytes, flow_live_bytes(), say_limit(limit, sizeof limit));
  }
  base->bytes = bytes;
  atomic_fetch_add_explicit(&live_bytes, (int64_t)bytes, memory_order_relaxed);
  atomic_fetch_add_explicit(&allocation_count, 1, memory_order_relaxed);
  *out = (char *)base + HEADER_BYTES;
  return FLOW_OK;
}

/* Any thread, not only the one that allocated it. */
void flow_free(void *block)
{
  if (!block) return;
  block_header *base = (block_header *)(void *)((char *)block - HEADER_BYTES);
  atomic_fetch_sub_explicit(&live_bytes, (int64_t)base->bytes, memory_order_relaxed);
  if (!keep(base)) free(base);
}
