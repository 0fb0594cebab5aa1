/* wide_sum.c: see wide_sum.h. */
#include "ops/wide_sum.h"

#include "tensor/convert.h"
#include "tensor/tensor.h"

/* Lanes fill vectors of 8 doubles, and 32 are enough for additions not to wait for each other. */
enum { WANTED = 32, VECTOR = 8, BLOCK = WANTED * VECTOR };

/* A power of two: the fewest lanes with which lanes x n numbers fill whole vectors and reach WANTED; 1 where n alone does. */
int64_t flow_wide_lanes(int64_t n)
{
  int64_t lanes = 1;
  while (n > 0 && n < WANTED && (lanes * n < WANTED || lanes * n % VECTOR != 0)) lanes *= 2;
  return lanes;
}

/* The sums and one number of the kernel's own, rounded up to a line of the cache, so that slots of different threads share none. */
size_t flow_wide_bytes(int64_t n)
{
  if (n < 0 || n > INT64_MAX / 8 - 64) return SIZE_MAX;
  return ((size_t)(flow_wide_lanes(n) * n + 1) * 8 + 63) & ~(size_t)63;
}

/* sum[i] = the sum over the slots of element first + i of all lanes, as one array. */
#define ADD_UP(name, type)                                                                                                 \
  static void name(const char *partial, size_t stride, int64_t slots, int64_t first, int64_t count, type *sum)             \
  {                                                                                                                        \
    for (int64_t i = 0; i < count; i++) sum[i] = 0;                                                                        \
    for (int64_t slot = 0; slot < slots; slot++) {                                                                         \
      const type *part = (const type *)(const void *)(partial + (size_t)slot * stride) + first;                            \
      for (int64_t i = 0; i < count; i++) sum[i] += part[i];                                                               \
    }                                                                                                                      \
  }                                                                                                                        \
  static void name##_lanes(type *sum, int64_t lanes, int64_t n)                                                            \
  {                                                                                                                        \
    for (int64_t lane = 1; lane < lanes; lane++)                                                                           \
      for (int64_t i = 0; i < n; i++) sum[i] += sum[lane * n + i];                                                         \
  }
ADD_UP(add_doubles, double)
ADD_UP(add_integers, uint64_t)      /* they wrap */

/* Slots first, in their order, then lanes: the order of additions depends on n and the slots alone. Called for disjoint ranges of
 * elements by several threads. */
void flow_wide_finish(const void *partial, size_t stride, int64_t slots, int64_t n, int64_t begin, int64_t end, int dtype, void *to)
{
  union { double doubles[BLOCK]; uint64_t integers[BLOCK]; } sum;
  size_t size = (size_t)flow_dtype_size(dtype);
  int64_t lanes = flow_wide_lanes(n);      /* several only of so few elements that all fit into a block */
  for (int64_t first = begin; first < end; first += BLOCK) {
    int64_t count = end - first < BLOCK ? end - first : BLOCK, from = lanes > 1 ? 0 : first, all = lanes > 1 ? lanes * n : count;
    char *at = (char *)to + (size_t)first * size;
    if (flow_dtype_is_float(dtype)) {
      add_doubles(partial, stride, slots, from, all, sum.doubles);
      add_doubles_lanes(sum.doubles, lanes, n);
      flow_convert_from_double(dtype, sum.doubles + (first - from), at, 1, count);
    } else {
      add_integers(partial, stride, slots, from, all, sum.integers);
      add_integers_lanes(sum.integers, lanes, n);
      flow_convert_from_int64(dtype, (const int64_t *)sum.integers + (first - from), at, 1, count);
    }
  }
}
