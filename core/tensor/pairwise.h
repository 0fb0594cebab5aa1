/* pairwise.h: sums of several arrays in the order of a balanced tree: ((x0 + x1) + (x2 + x3)) + ...
 *
 * The sum of any 2^k neighbours from a multiple of 2^k on is a term of it. So when a power of two of arrays is spread over processes such
 * that each adds up a term of the tree, the sum of those terms has the same bits whatever their number. */
#ifndef FLOW_TENSOR_PAIRWISE_H
#define FLOW_TENSOR_PAIRWISE_H

#include "flow.h"

/* sum[i] = the sum of parts[0 .. parts_count)[i], for i in [0, count). dtype: float32 or float64; parts_count: 1 to 16384. sum may be one
 * of the parts; otherwise it must not overlap them. */
void flow_add_pairwise(flow_dtype dtype, const void *const *parts, int parts_count, void *sum, int64_t count);

/* The first of `arrays` arrays, a power of two, whose sum is the term of process `index` of `count`, at most as many; `index` may be
 * `count`, for the end. Where count is a power of two all have equally many; else the first ones have twice as many as the others: 8 over 3
 * are 4, 2 and 2. */
int  flow_pairwise_begin(int arrays, int count, int index);
/* The sum of the terms of `terms_count` processes, as flow_add_pairwise of the arrays gives it. It uses up terms[..], pointers and what
 * they point to; sum may not be one of them. */
void flow_add_terms(flow_dtype dtype, void **terms, int terms_count, void *sum, int64_t count);

#endif
