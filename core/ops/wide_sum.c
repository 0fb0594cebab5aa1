/* wide_sum.c: see wide_sum.h. */
#include "ops/wide_sum.h"

#include <string.h>

#include "tensor/convert.h"
#include "tensor/tensor.h"

/* Lanes fill vectors of 8 doubles, and 32 are enough for additions not to wait for each other. */
enum { WANTED = 32, VECTOR = 8, BLOCK = 128 };

int64_t flow_wide_lanes(int64_t n)
{
  int64_t lanes = 1;
  while (n > 0 && n < WANTED && (lanes * n < WANTED || lanes * n % VECTOR != 0)) lanes *= 2;
  return lanes;
}

size_t flow_wide_bytes(int64_t n)
{
  if (n < 0 || n > INT64_MAX / 8 - 64) return SIZE_MAX;
  return ((size_t)(flow_wide_lanes(n) * n + 1) * 8 + 63) & ~(size_t)63;
}

/* sum[i] = element first + i of the slots, lane by lane. */
#define ADD_UP(name, type)                                                                                                     \
  static void name(const char *partial, size_t stride, int64_t slots, int64_t n, int64_t first, int64_t count, type *sum)      \
  {                                                                                                                            \
    memset(sum, 0, sizeof(type) * (size_t)count);                                                                              \
    for (int64_t lane = 0, lanes = slots ? flow_wide_lanes(n) : 0; lane < lanes; lane++) {                                     \
      type total[BLOCK] = { 0 };                                                                                               \
      for (int64_t slot = 0; slot < slots; slot++) {                                                                           \
        const type *part = (const type *)(const void *)(partial + (size_t)slot * stride) + lane * n + first;                   \
        for (int64_t i = 0; i < count; i++) total[i] += part[i];                                                               \
      }                                                                                                                        \
      for (int64_t i = 0; i < count; i++) sum[i] += total[i];                                                                  \
    }                                                                                                                          \
  }
ADD_UP(add_up_doubles, double)
ADD_UP(add_up_integers, uint64_t)      /* they wrap */

void flow_wide_finish(const void *partial, size_t stride, int64_t slots, int64_t n, int64_t begin, int64_t end, int dtype, void *to)
{
  union { double doubles[BLOCK]; uint64_t integers[BLOCK]; } sum;
  size_t size = (size_t)flow_dtype_size(dtype);
  for (int64_t first = begin; first < end; first += BLOCK) {
    int64_t count = end - first < BLOCK ? end - first : BLOCK;
    char *at = (char *)to + (size_t)first * size;
    if (flow_dtype_is_float(dtype)) {
      add_up_doubles(partial, stride, slots, n, first, count, sum.doubles);
      flow_convert_from_double(dtype, sum.doubles, at, 1, count);
    } else {
      add_up_integers(partial, stride, slots, n, first, count, sum.integers);
      flow_convert_from_int64(dtype, (const int64_t *)sum.integers, at, 1, count);
    }
  }
}
