/* pairwise.c: see pairwise.h. Block by block the terms of the tree are made as a binary counter counts: a part that comes second at its
 * level is added to the one that waits there, and what that gives waits one level higher. */
#include "tensor/pairwise.h"

#include <string.h>

enum { LEVELS = 15, BLOCK = 64 };        /* 16384 parts; elements of a term: all of them fit the first cache and a small stack */

/* Elements [begin, begin + count) of the sum, count at most BLOCK. waiting[k] is the sum of the last 2^k parts that wait for their
 * neighbours, in its own memory or in that of a part; part r is added as often as the number r ends in ones. Unless the number of parts is
 * a power of two, several sums are left in the end; the smaller ones are added first. sum may be one of the parts, since a block is read
 * before it is written. */
#define ADD_PAIRWISE(name, type)                                                                        \
  static void name(const void *const *parts, int parts_count, type *sum, int64_t begin, int count)      \
  {                                                                                                     \
    type terms[LEVELS][BLOCK];                                                                          \
    const type *waiting[LEVELS + 1], *x = NULL;                                                         \
    for (int r = 0; r < parts_count; r++) {                                                             \
      int level = 0;                                                                                    \
      x = (const type *)parts[r] + begin;                                                               \
      type *term = terms[__builtin_ctz(~(unsigned)r)];                                                  \
      for (; r >> level & 1; level++, x = term)                                                         \
        for (int i = 0; i < count; i++) term[i] = waiting[level][i] + x[i];                             \
      waiting[level] = x;                                                                               \
    }                                                                                                   \
    x = NULL;                                                                                           \
    for (int level = 0; level <= LEVELS; level++) {                                                     \
      if (!(parts_count >> level & 1)) continue;                                                        \
      if (x) for (int i = 0; i < count; i++) sum[begin + i] = waiting[level][i] + x[i];                 \
      x = x ? sum + begin : waiting[level];                                                             \
    }                                                                                                   \
    if (x != sum + begin) memcpy(sum + begin, x, sizeof(type) * (size_t)count);                         \
  }

ADD_PAIRWISE(add_floats, float)
ADD_PAIRWISE(add_doubles, double)

void flow_add_pairwise(flow_dtype dtype, const void *const *parts, int parts_count, void *sum, int64_t count)
{
  for (int64_t begin = 0; begin < count; begin += BLOCK) {
    int block = count - begin < BLOCK ? (int)(count - begin) : BLOCK;
    if (dtype == FLOW_FLOAT32) add_floats(parts, parts_count, sum, begin, block);
    else add_doubles(parts, parts_count, sum, begin, block);
  }
}

/* ---- spread over processes ----------------------------------------------------------------------------------------------------------- */

/* The largest power of two up to count: as many equal terms there are, of which the last ones are cut in two. */
static int whole_terms(int count)
{
  int whole = 1;
  while (2 * whole <= count) whole *= 2;
  return whole;
}

int flow_pairwise_begin(int arrays, int count, int index)
{
  int whole = whole_terms(count), uncut = 2 * whole - count, each = arrays / whole;
  return index <= uncut ? index * each : uncut * each + (index - uncut) * (each / 2);
}

/* Terms beyond the largest number of whole parts are added in pairs first, in their places, which changes those of `terms`. */
void flow_add_terms(flow_dtype dtype, void **terms, int terms_count, void *sum, int64_t count)
{
  int whole = whole_terms(terms_count), uncut = 2 * whole - terms_count;
  for (int i = uncut; i < whole; i++) {
    void *first = terms[2 * i - uncut], *const halves[2] = { first, terms[2 * i - uncut + 1] };
    flow_add_pairwise(dtype, (const void *const *)halves, 2, first, count);
    terms[i] = first;
  }
  flow_add_pairwise(dtype, (const void *const *)terms, whole, sum, count);
}
