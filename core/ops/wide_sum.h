/* wide_sum.h: sums over the rows of a batch that keep their digits however many rows there are.
 *
 * Rows come in slots, a slot in chunks. An op marked FLOW_OP_WIDE gets for each slot a partial sum of n elements that is wider than its
 * output: {lanes, n} doubles, or int64_t of integers, then one int64_t that is the kernel's own; kernels see it as an operand of rank 1.
 * It holds what the slot's rows so far add up to, spread over the lanes in an order that does not depend on how the slot is cut into
 * chunks. Few elements have several lanes, so that neighbouring rows are added side by side. In the end slots and lanes are added up
 * here and rounded once. */
#ifndef FLOW_OPS_WIDE_SUM_H
#define FLOW_OPS_WIDE_SUM_H

#include <stddef.h>
#include <stdint.h>

/* The most slots that the rows of a run are cut into; slots have ceil(rows / FLOW_SUM_SLOTS) rows. */
enum { FLOW_SUM_SLOTS = 16 };

/* Lanes of a partial sum of n elements: a power of two; 1 from 32 elements on, and for none. */
int64_t flow_wide_lanes(int64_t n);
/* Of a partial sum, a multiple of 64; SIZE_MAX if they cannot be counted. */
size_t  flow_wide_bytes(int64_t n);
/* Elements [begin, end) of the sum of `slots` partial sums of n elements, `stride` bytes apart (flow_wide_bytes or more), in order, as
 * elements of the packed array `to` of this dtype, of which it writes these alone. Partial sums are doubles if the dtype is a float. */
void    flow_wide_finish(const void *partial, size_t stride, int64_t slots, int64_t n, int64_t begin, int64_t end, int dtype, void *to);

#endif
