/* movement.h: copying between strided arrays of one element size; what every op that only moves elements is made of. */
#ifndef FLOW_CPU_MOVEMENT_MOVEMENT_H
#define FLOW_CPU_MOVEMENT_MOVEMENT_H

#include "cpu/vector.h"

/* Bytes that do not overlap. From LONG_COPY on glibc copies by one instruction, rep movsb, which on AMD's Zen 3 and 4 takes up to 25 times
 * as long where `to`, as a place in its page, is less than a cache line after `from` (sourceware.org, bug 30994). Tensors begin at the same
 * place of a page, so that a part of one that is joined with others or moved by a few elements is such a copy. Those are made by
 * vectors. */
ALWAYS_INLINE void copy_bytes(void *to, const void *from, size_t bytes)
{
  enum { LONG_COPY = 2048, PAGE = 4096, LINE_OF_CACHE = 64, AT_ONCE = 4 };
  size_t done = 0, after = ((uintptr_t)to - (uintptr_t)from) % PAGE;
  if (bytes >= LONG_COPY && after > 0 && after < LINE_OF_CACHE) {
    vf v[AT_ONCE];
    for (; done + sizeof v <= bytes; done += sizeof v) {
      memcpy(v, (const char *)from + done, sizeof v);
      memcpy((char *)to + done, v, sizeof v);
    }
  }
  memcpy((char *)to + done, (const char *)from + done, bytes - done);
}

/* to[i] = from[i] for every position i of the shape. Strides in elements; a stride of 0 in from_strides repeats.
 * size: bytes of an element, 1, 2, 4 or 8. The arrays do not overlap, unless they are the same. */
void FLOW_ISA_NAME(copy_strided)(size_t size, int rank, const int64_t *shape, const void *from, const int64_t *from_strides,
                                 void *to, const int64_t *to_strides);

/* Fills `to` from `from`, which has its dtype and broadcasts to its shape. */
void FLOW_ISA_NAME(copy_operand)(const flow_operand *from, const flow_operand *to);

#endif
