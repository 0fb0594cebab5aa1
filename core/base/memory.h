/* memory.h: all allocations of the library. Counts live bytes and allocations, can be told to fail (tests), never aborts.
 * Blocks are 64-byte aligned, so that every tensor can be read by whole vectors from its first element. */
#ifndef FLOW_BASE_MEMORY_H
#define FLOW_BASE_MEMORY_H

#include "base/status.h"

/* Returns memory that flow_free releases. FLOW_OUT_OF_MEMORY names the bytes asked for and the bytes held.
 * A size of 0 gives a valid pointer. Large blocks (>= 4 MB) start one cache line after a 2 MB boundary and are advised
 * to huge pages. */
flow_status flow_alloc(size_t bytes, void **out);
flow_status flow_alloc_zero(size_t bytes, void **out);
void        flow_free(void *block);            /* NULL is fine */
/* Freed blocks of up to 48 MB are kept for the next ones of about the same size: at most 96 MB, the newest ones of the process, and for 5 s
 * if no block of their size is allocated while others are freed. This returns them to the system. All counts treat them as free. */
void        flow_memory_trim(void);

/* Adds memory of another kind to flow_live_bytes; negative: it was freed. */
void        flow_memory_count(double bytes);

/* a * b in *out; FLOW_INVALID_ARGUMENT on overflow of size_t. */
flow_status flow_multiply(size_t a, size_t b, size_t *out);

/* Grows an array of `size`-byte elements so that at least `count` fit; *capacity counts elements. The array is a block of flow_alloc,
 * NULL for capacity 0, and may move: pointers into it are not valid any more. Array and capacity are unchanged after a failure. */
flow_status flow_grow(void *array_pointer, size_t size, int count, int *capacity);

char *flow_duplicate_text(const char *text);   /* NULL when memory is out (flow_last_error is set) */

#endif
