/* group_sum.h: what ranks have is added up in their order, ((r0 + r1) + r2) + ... */
#ifndef FLOW_TRANSPORT_GROUP_SUM_H
#define FLOW_TRANSPORT_GROUP_SUM_H

#include "base/status.h"

/* to[i] = the sum of parts[0][i] to parts[ranks - 1][i], which are float32 or float64; `to` may be one of the parts. Copies where there is
 * one part. */
void flow_sum_ranks(int dtype, void *to, const void *const *parts, int ranks, int64_t bytes);

/* The part of `bytes` that a rank adds up for all: whole cache lines, as even as they go. */
void flow_find_share(int rank, int ranks, int64_t bytes, int64_t *first, int64_t *last);

#endif
