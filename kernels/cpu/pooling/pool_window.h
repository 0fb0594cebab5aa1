/* pool_window.h: the rule of max pooling, one vector of channels at a time; the same in a separate pooling and after a
 * convolution. */
#ifndef FLOW_CPU_POOLING_POOL_WINDOW_H
#define FLOW_CPU_POOLING_POOL_WINDOW_H

#include "cpu/vector.h"

enum { NO_ARGMAX = 255 };      /* the index of a window that passes no gradient on */

/* One more value of a pooling window: position k of it. The first of equals wins, a NaN wins over numbers. */
ALWAYS_INLINE void flow_pool_take(vf *best, vi *argmax, vf value, int32_t k)
{
#if defined(FLOW_ISA_AVX512) && defined(__AVX512F__)
  __mmask16 number = _mm512_cmp_ps_mask((__m512)*best, (__m512)*best, _CMP_ORD_Q);
  __mmask16 better = _mm512_mask_cmp_ps_mask(number, (__m512)value, (__m512)*best, _CMP_NLE_UQ);
  *best = (vf)_mm512_mask_mov_ps((__m512)*best, better, (__m512)value);
  *argmax = (vi)_mm512_mask_mov_epi32((__m512i)*argmax, better, _mm512_set1_epi32(k));
#else
  vi better = ~(value <= *best) & (*best == *best);      /* NOLINT(misc-redundant-expression): no NaN */
  *best = vf_select(better, value, *best);
  *argmax = (better & k) | (~better & *argmax);
#endif
}

/* The value alone. */
ALWAYS_INLINE void flow_pool_larger(vf *best, vf value)
{
#if defined(FLOW_ISA_AVX512) && defined(__AVX512F__)
  __m512 larger = _mm512_max_ps((__m512)value, (__m512)*best); /* the second operand, if one is NaN */
  *best = (vf)_mm512_mask_mov_ps(larger, _mm512_cmp_ps_mask((__m512)value, (__m512)value, _CMP_UNORD_Q), (__m512)value);
#else
  *best = vf_select(~(value <= *best) & (*best == *best), value, *best); /* NOLINT(misc-redundant-expression): no NaN */
#endif
}

/* relu of the maxima: one that is 0 or less becomes 0 and passes no gradient on; a NaN stays and does. */
ALWAYS_INLINE void flow_pool_relu(vf *best, vi *argmax)
{
  const vf zero = { 0 };
#if defined(FLOW_ISA_AVX512) && defined(__AVX512F__)
  __mmask16 dead = _mm512_cmp_ps_mask((__m512)*best, (__m512)zero, _CMP_LE_OQ);
  *argmax = (vi)_mm512_mask_mov_epi32((__m512i)*argmax, dead, _mm512_set1_epi32(NO_ARGMAX));
#else
  *argmax |= (*best <= zero) & NO_ARGMAX;
#endif
  *best = vf_at_least(*best, zero);
}

#endif
