/* memory.c: the one door to the heap: aligned blocks, counted, with failures on demand for tests.
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

typedef struct block_header { size_t bytes; } block_header;

static _Atomic int64_t live_bytes;
static _Atomic int64_t allocation_count;
static _Atomic int64_t allocations_until_failure = -1;   /* flow_fail_allocation; negative: never */

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

flow_status flow_alloc(size_t bytes, void **out)
{
  *out = NULL;
  void *base = NULL;
  int large = bytes >= LARGE_BYTES;
  if (bytes > MOST_BYTES || must_fail_now() ||
      posix_memalign(&base, large ? HUGE_PAGE_BYTES : HEADER_BYTES, HEADER_BYTES + bytes) != 0) {
    return flow_fail(FLOW_OUT_OF_MEMORY, "out of memory: %.0f bytes asked for while %.0f bytes are in use; release tensors "
                     "or use smaller batches", (double)bytes, flow_live_bytes());
  }
  if (large) madvise(base, HEADER_BYTES + bytes, MADV_HUGEPAGE);   /* advice only: without it pages are small */
  ((block_header *)base)->bytes = bytes;
  atomic_fetch_add_explicit(&live_bytes, (int64_t)bytes, memory_order_relaxed);
  atomic_fetch_add_explicit(&allocation_count, 1, memory_order_relaxed);
  *out = (char *)base + HEADER_BYTES;
  return FLOW_OK;
}

flow_status flow_alloc_zero(size_t bytes, void **out)
{
  FLOW_TRY(flow_alloc(bytes, out));
  memset(*out, 0, bytes);
  return FLOW_OK;
}

void flow_free(void *block)
{
  if (!block) return;
  void *base = (char *)block - HEADER_BYTES;
  atomic_fetch_sub_explicit(&live_bytes, (int64_t)((block_header *)base)->bytes, memory_order_relaxed);
  free(base);
}

flow_status flow_multiply(size_t a, size_t b, size_t *out)
{
  if (__builtin_mul_overflow(a, b, out)) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "a size of %.0f x %.0f is too large for this machine", (double)a, (double)b);
  }
  return FLOW_OK;
}

flow_status flow_grow(void *array_pointer, size_t size, int count, int *capacity)
{
  if (count <= *capacity) return FLOW_OK;
  int larger = *capacity > INT32_MAX / 2 ? INT32_MAX : *capacity * 2;
  if (larger < 8) larger = 8;
  if (larger < count) larger = count;
  size_t bytes;
  void *old, *grown;
  FLOW_TRY(flow_multiply(size, (size_t)larger, &bytes));
  FLOW_TRY(flow_alloc(bytes, &grown));
  memcpy(&old, array_pointer, sizeof old);        /* array_pointer is the address of some T *: read it as bytes */
  if (old) memcpy(grown, old, size * (size_t)*capacity);
  flow_free(old);
  memcpy(array_pointer, &grown, sizeof grown);
  *capacity = larger;
  return FLOW_OK;
}

char *flow_duplicate_text(const char *text)
{
  size_t bytes = strlen(text) + 1;
  void *copy;
  if (flow_alloc(bytes, &copy) != FLOW_OK) return NULL;
  return memcpy(copy, text, bytes);
}
