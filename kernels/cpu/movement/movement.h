/* movement.h: copying between strided arrays of one element size; what every op that only moves elements is made of. */
#ifndef FLOW_CPU_MOVEMENT_MOVEMENT_H
#define FLOW_CPU_MOVEMENT_MOVEMENT_H

#include "cpu/vector.h"

/* to[i] = from[i] for every position i of the shape. Strides in elements; a stride of 0 in from_strides repeats.
 * size: bytes of an element, 1, 2, 4 or 8. The arrays do not overlap, unless they are the same. */
void FLOW_ISA_NAME(copy_strided)(size_t size, int rank, const int64_t *shape, const void *from, const int64_t *from_strides,
                                 void *to, const int64_t *to_strides);

/* Fills `to` from `from`, which has its dtype and broadcasts to its shape. */
void FLOW_ISA_NAME(copy_operand)(const flow_operand *from, const flow_operand *to);

#endif
