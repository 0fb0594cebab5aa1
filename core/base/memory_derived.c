/* memory_derived.c: what is built on flow_alloc and flow_free alone; a plugin that has those two is compiled with it, too. */
#include "base/memory.h"

#include <string.h>

flow_status flow_alloc_zero(size_t bytes, void **out)
{
  FLOW_TRY(flow_alloc(bytes, out));
  memset(*out, 0, bytes);
  return FLOW_OK;
}

flow_status flow_multiply(size_t a, size_t b, size_t *out)
{
  if (__builtin_mul_overflow(a, b, out)) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "a size of %.0f x %.0f is too large for this machine", (double)a, (double)b);
  }
  return FLOW_OK;
}

/* Doubles the capacity, so that appending n elements copies at most 2 n. The old array stays valid after a failure. */
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
