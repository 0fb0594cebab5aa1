/* random.h: keys of the random kernels. Bits come from base/philox.h; the same ops for another device use the
 * same keys and counters, and gets the same numbers. */
#ifndef FLOW_CPU_RANDOM_RANDOM_H
#define FLOW_CPU_RANDOM_RANDOM_H

#include "base/philox.h"
#include "cpu/vector.h"
#include "kernels.h"

/* Key of a random op outside a step: initializers, eager calls, map functions. */
static inline uint64_t random_key(uint64_t seed, uint64_t stream) { return flow_mix(seed, stream); }

/* Key of a random op in one step of a run. own_seed: whatever the seed of the run is. */
static inline uint64_t random_step_key(uint64_t seed, uint64_t stream, int own_seed, const flow_scalars *scalars)
{
  uint64_t key = random_key(seed, stream);
  return flow_mix(own_seed ? key : flow_mix(key, scalars->seed), (uint64_t)scalars->step);
}

enum { PHILOX_BLOCKS = 8, PHILOX_WORDS = 4 * PHILOX_BLOCKS };

#if defined(__AVX2__)
/* *high, *low: the halves of each lane times `factor`. */
ALWAYS_INLINE void philox_multiply(__m256i lanes, __m256i factor, __m256i *high, __m256i *low)
{
  __m256i even = _mm256_mul_epu32(lanes, factor), odd = _mm256_mul_epu32(_mm256_srli_epi64(lanes, 32), factor);
  *high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
  *low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
}
#endif

/* The words of PHILOX_BLOCKS blocks: counter_low, which is a multiple of their number, and those after it. */
static inline void philox_words(uint64_t key, uint64_t counter_low, uint64_t counter_high, uint32_t words[PHILOX_WORDS])
{
#if defined(__AVX2__)
  const __m256i first = _mm256_set1_epi32((int)0xD2511F53u), second = _mm256_set1_epi32((int)0xCD9E8D57u);
  __m256i c0 = _mm256_add_epi32(_mm256_set1_epi32((int)counter_low), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  __m256i c1 = _mm256_set1_epi32((int)(counter_low >> 32)), c2 = _mm256_set1_epi32((int)counter_high);
  __m256i c3 = _mm256_set1_epi32((int)(counter_high >> 32));
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
  for (int round = 0; round < 10; round++) {
    __m256i h0, l0, h1, l1;
    philox_multiply(c0, first, &h0, &l0);
    philox_multiply(c2, second, &h1, &l1);
    c0 = _mm256_xor_si256(_mm256_xor_si256(h1, c1), _mm256_set1_epi32((int)k0));
    c2 = _mm256_xor_si256(_mm256_xor_si256(h0, c3), _mm256_set1_epi32((int)k1));
    c1 = l1;
    c3 = l0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  /* Word by word to block by block. */
  __m256i a = _mm256_unpacklo_epi32(c0, c1), b = _mm256_unpackhi_epi32(c0, c1);
  __m256i c = _mm256_unpacklo_epi32(c2, c3), d = _mm256_unpackhi_epi32(c2, c3);
  __m256i pairs[4] = { _mm256_unpacklo_epi64(a, c), _mm256_unpackhi_epi64(a, c), _mm256_unpacklo_epi64(b, d), _mm256_unpackhi_epi64(b, d) };
  for (int i = 0; i < 4; i++) {
    _mm_storeu_si128((__m128i *)(words + 4 * i), _mm256_castsi256_si128(pairs[i]));
    _mm_storeu_si128((__m128i *)(words + 4 * i + PHILOX_WORDS / 2), _mm256_extracti128_si256(pairs[i], 1));
  }
#else
  for (int i = 0; i < PHILOX_BLOCKS; i++) {
    flow_philox_block block = flow_philox(key, counter_low + (uint64_t)i, counter_high);
    memcpy(words + 4 * i, block.word, sizeof block.word);
  }
#endif
}

#endif
