/* xxh64.c: see xxh64.h. The formula is that of xxHash's specification (xxhash_spec.md, "XXH64 Algorithm Description"). */
#include "base/xxh64.h"

#include <string.h>

static const uint64_t P1 = UINT64_C(0x9e3779b185ebca87), P2 = UINT64_C(0xc2b2ae3d27d4eb4f), P3 = UINT64_C(0x165667b19e3779f9),
                      P4 = UINT64_C(0x85ebca77c2b2ae63), P5 = UINT64_C(0x27d4eb2f165667c5);

static inline uint64_t rotate(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }
static inline uint64_t mix(uint64_t lane, uint64_t word) { return rotate(lane + word * P2, 31) * P1; }

/* Eight bytes from any address, as this machine orders them. */
static inline uint64_t word_at(const void *bytes)
{
  uint64_t word;
  memcpy(&word, bytes, sizeof word);
  return word;
}

/* The seed is 0: the lanes begin as the specification's step 1 says. */
void flow_xxh64_begin(flow_xxh64 *hash)
{
  *hash = (flow_xxh64){ .lanes = { P1 + P2, P2, 0, 0 - P1 } };
}

/* Four lanes, each of its own 8 bytes of a stripe, so that four multiplications are under way at a time. */
void flow_xxh64_add(flow_xxh64 *hash, const void *bytes, size_t count)
{
  const char *at = bytes, *end = at + count;
  uint64_t a = hash->lanes[0], b = hash->lanes[1], c = hash->lanes[2], d = hash->lanes[3];
  for (; at < end; at += FLOW_XXH64_STRIPE) {
    a = mix(a, word_at(at));
    b = mix(b, word_at(at + 8));
    c = mix(c, word_at(at + 16));
    d = mix(d, word_at(at + 24));
  }
  memcpy(hash->lanes, (uint64_t[4]){ a, b, c, d }, sizeof hash->lanes);
  hash->bytes += count;
}

/* Merges the lanes; data of less than a stripe has none. */
static uint64_t join(const flow_xxh64 *hash)
{
  const uint64_t *lanes = hash->lanes;
  if (hash->bytes < FLOW_XXH64_STRIPE) return P5;
  uint64_t x = rotate(lanes[0], 1) + rotate(lanes[1], 7) + rotate(lanes[2], 12) + rotate(lanes[3], 18);
  for (int i = 0; i < 4; i++) x = (x ^ mix(0, lanes[i])) * P1 + P4;
  return x;
}

/* What is left after whole stripes goes in by 8, 4 and 1 bytes; the last three lines spread every bit over all others ("avalanche" in
 * the specification). */
uint64_t flow_xxh64_end(flow_xxh64 *hash, const void *bytes, size_t count)
{
  size_t whole = count - count % FLOW_XXH64_STRIPE;
  const unsigned char *at = (const unsigned char *)bytes + whole, *end = at + (count - whole);
  if (whole > 0) flow_xxh64_add(hash, bytes, whole);
  uint64_t x = join(hash) + hash->bytes + (count - whole);
  for (; end - at >= 8; at += 8) x = rotate(x ^ mix(0, word_at(at)), 27) * P1 + P4;
  if (end - at >= 4) {
    uint32_t half;
    memcpy(&half, at, sizeof half);
    x = rotate(x ^ half * P1, 23) * P2 + P3;
    at += 4;
  }
  for (; at < end; at++) x = rotate(x ^ *at * P5, 11) * P1;
  x = (x ^ x >> 33) * P2;
  x = (x ^ x >> 29) * P3;
  return x ^ x >> 32;
}
