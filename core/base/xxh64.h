/* xxh64.h: XXH64 (Yann Collet, xxHash, seed 0): a hash of much data, some ten bytes a cycle; FNV-1a (hash.h) takes one byte at a time. Data
 * that differs within eight bytes, at multiples of eight, always has another hash; other data, except once in 2^64. Not cryptographic.
 * Numbers are read in the machine's byte order. */
#ifndef FLOW_BASE_XXH64_H
#define FLOW_BASE_XXH64_H

#include <stddef.h>
#include <stdint.h>

enum { FLOW_XXH64_STRIPE = 32 };      /* bytes */

typedef struct flow_xxh64 { uint64_t lanes[4], bytes; } flow_xxh64;

/* XXH64 with seed 0, in any number of pieces: begin, add, ..., end. */
void     flow_xxh64_begin(flow_xxh64 *hash);
/* count: a multiple of FLOW_XXH64_STRIPE. */
void     flow_xxh64_add(flow_xxh64 *hash, const void *bytes, size_t count);
/* With the last bytes, any number of them. */
uint64_t flow_xxh64_end(flow_xxh64 *hash, const void *bytes, size_t count);

#endif
