/* philox.h: counter-based random bits (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11).
 * Philox4x32-10: no state, so the same numbers for any number of threads, replicas or restarts. */
#ifndef FLOW_BASE_PHILOX_H
#define FLOW_BASE_PHILOX_H

#include <stdint.h>

/* How these functions are declared; files for another processor define it before. */
#ifndef FLOW_PHILOX_FUNCTION
#define FLOW_PHILOX_FUNCTION static inline
#endif

typedef struct { uint32_t word[4]; } flow_philox_block;

/* Block number `counter` (two 64-bit halves) of the stream `key`. */
FLOW_PHILOX_FUNCTION flow_philox_block flow_philox(uint64_t key, uint64_t counter_low, uint64_t counter_high)
{
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
  uint32_t c0 = (uint32_t)counter_low, c1 = (uint32_t)(counter_low >> 32);
  uint32_t c2 = (uint32_t)counter_high, c3 = (uint32_t)(counter_high >> 32);
  for (int round = 0; round < 10; round++) {
    uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
    uint32_t h0 = (uint32_t)(p0 >> 32), l0 = (uint32_t)p0, h1 = (uint32_t)(p1 >> 32), l1 = (uint32_t)p1;
    c0 = h1 ^ c1 ^ k0; c1 = l1; c2 = h0 ^ c3 ^ k1; c3 = l0;
    k0 += 0x9E3779B9u; k1 += 0xBB67AE85u;
  }
  flow_philox_block block = { { c0, c1, c2, c3 } };
  return block;
}

/* Mixes several numbers into one key (splitmix64 finalizer over a running sum). */
FLOW_PHILOX_FUNCTION uint64_t flow_mix(uint64_t a, uint64_t b)
{
  uint64_t z = a + 0x9E3779B97F4A7C15u * (b + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/* A float in [0, 1) with 24 random bits. */
FLOW_PHILOX_FUNCTION float flow_uniform_float(uint32_t bits) { return (float)(bits >> 8) * 0x1p-24f; }

#endif
