/* pairwise.h: sums of several arrays in the order of a balanced tree: ((x0 + x1) + (x2 + x3)) + ...
 *
 * The sum of any 2^k neighbours from a multiple of 2^k on is a term of it. So when a power of two of arrays is spread evenly over 1, 2, 4, ...
 * processes, each of which adds up its own, the sum of those sums has the same bits whatever their number. */
#ifndef FLOW_TENSOR_PAIRWISE_H
#define FLOW_TENSOR_PAIRWISE_H

#include "flow.h"

/* sum[i] = the sum of parts[0 .. parts_count)[i], for i in [0, count). dtype: float32 or float64; parts_count: 1 to 16384. sum may be one of
 * the parts, or are apart from them. */
void flow_add_pairwise(flow_dtype dtype, const void *const *parts, int parts_count, void *sum, int64_t count);

#endif
