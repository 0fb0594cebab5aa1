/* group_sum.h: what ranks have is added up in their order, ((r0 + r1) + r2) + ... */
#ifndef FLOW_TRANSPORT_GROUP_SUM_H
#define FLOW_TRANSPORT_GROUP_SUM_H

#include "flow.h"
#include "tensor/tensor.h"

/* to[i] = the sum of parts[0][i] to parts[ranks - 1][i], which are float32 or float64, or bfloat16 or float16: these are added as float32
 * and rounded once. `to` may be one of the parts. Copies where there is one part. */
void flow_sum_ranks(int dtype, void *to, const void *const *parts, int ranks, int64_t bytes);

/* bfloat16 and float16 as float32 and back, to the nearest. What float16 cannot hold becomes its largest number, unless it
 * is infinite. */
static inline float flow_short_to_float(int dtype, uint16_t value)
{
  return dtype == FLOW_BFLOAT16 ? flow_bfloat16_to_float(value) : flow_half_to_float(value);
}

static inline uint16_t flow_float_to_short(int dtype, float value)
{
  const float most = 65504, infinite = __builtin_inff();
  if (dtype == FLOW_BFLOAT16) return flow_float_to_bfloat16(value);
  return flow_float_to_half(value > most && value < infinite ? most : value < -most && value > -infinite ? -most : value);
}

/* The part of `bytes` that a rank adds up for all: whole cache lines, as even as they go. */
void flow_find_share(int rank, int ranks, int64_t bytes, int64_t *first, int64_t *last);

#endif
