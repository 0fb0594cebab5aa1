/* group_sum.c: see group_sum.h. Block by block, so that what was added stays in the core's own cache. */
#include "transport/group_sum.h"

#include <string.h>
#include "base/loops.h"

enum { BLOCK_BYTES = 8192, SHORTS = BLOCK_BYTES / sizeof(float), LINE = 64 };

#define ADD(type)                                                                                                       \
  /* `to` may be one of the others. */                                                                                  \
  static void add_##type(type *to, const type *a, const type *b, int64_t count)                                         \
  {                                                                                                                     \
    FLOW_NO_OVERLAP                                                                                                     \
    for (int64_t i = 0; i < count; i++) to[i] = a[i] + b[i];                                                            \
  }
ADD(float)
ADD(double)

/* At most SHORTS elements, from element `first` on. The sum begins at -0, which leaves every number unchanged, -0 too; +0 would make +0
 * of it. */
static void sum_shorts(int dtype, uint16_t *to, const void *const *parts, int ranks, int64_t first, int64_t count)
{
  float sums[SHORTS];
  for (int rank = 0; rank < ranks; rank++) {
    const uint16_t *part = (const uint16_t *)parts[rank] + first;
    for (int64_t i = 0; i < count; i++) sums[i] = (rank == 0 ? -0.0f : sums[i]) + flow_short_to_float(dtype, part[i]);
  }
  for (int64_t i = 0; i < count; i++) to[first + i] = flow_float_to_short(dtype, sums[i]);
}

/* At most a block, from byte `at` on. Partial sums stay in `block`; only the last addition writes to `to`, when the block of every part
 * was read. */
static void sum_block(int dtype, char *to, const void *const *parts, int ranks, int64_t at, int64_t bytes)
{
  union { float floats[BLOCK_BYTES / sizeof(float)]; double doubles[BLOCK_BYTES / sizeof(double)]; } block;
  const void *sum = (const char *)parts[0] + at;
  for (int rank = 1; rank < ranks; rank++) {
    const void *next = (const char *)parts[rank] + at;
    void *result = rank == ranks - 1 ? (void *)(to + at) : (void *)&block;
    if (dtype == FLOW_FLOAT32) add_float(result, sum, next, bytes / (int64_t)sizeof(float));
    else add_double(result, sum, next, bytes / (int64_t)sizeof(double));
    sum = result;
  }
}

/* `to` may be parts[0] or any other part: each block of every part is read before that block of `to` is written. The order ((r0 + r1) + r2)
 * + ... is the contract of transport.h. 16-bit floats are summed in float32 and rounded once, at the end. */
void flow_sum_ranks(int dtype, void *to, const void *const *parts, int ranks, int64_t bytes)
{
  if (ranks == 1) {
    if (to != parts[0] && bytes > 0) memcpy(to, parts[0], (size_t)bytes);
    return;
  }
  if (dtype == FLOW_BFLOAT16 || dtype == FLOW_FLOAT16) {
    int64_t all = bytes / (int64_t)sizeof(uint16_t);
    for (int64_t at = 0; at < all; at += SHORTS) sum_shorts(dtype, to, parts, ranks, at, all - at < SHORTS ? all - at : SHORTS);
    return;
  }
  for (int64_t at = 0; at < bytes; at += BLOCK_BYTES)
    sum_block(dtype, to, parts, ranks, at, bytes - at < BLOCK_BYTES ? bytes - at : BLOCK_BYTES);
}

/* Whole cache lines, so that two ranks never write to the same line. Shares follow each other without gaps, and some are empty if there
 * are fewer lines than ranks. The product does not overflow: bytes * ranks fits into an int64_t (transport.c). */
void flow_find_share(int rank, int ranks, int64_t bytes, int64_t *first, int64_t *last)
{
  int64_t lines = (bytes + LINE - 1) / LINE;
  *first = lines * rank / ranks * LINE;
  *last = lines * (rank + 1) / ranks * LINE;
  if (*first > bytes) *first = bytes;
  if (*last > bytes) *last = bytes;
}
