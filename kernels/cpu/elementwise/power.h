/* power.h: x^y of vectors of floats, in double: 2^(y log2 x), whose error of some 1e-9 is far below half a unit in the last place of a
 * float, so that results are those of correct rounding but for the rarest ties. Exponents that people write, as in (a - b) ^ 2, need no
 * logarithm. Each lane's bits follow from its own x and y, whatever its neighbours are. */
#ifndef FLOW_CPU_ELEMENTWISE_POWER_H
#define FLOW_CPU_ELEMENTWISE_POWER_H

#include <math.h>

#include "cpu/math.h"

/* The bits of doubles as integers, signed so that an exponent below 0 is shifted with its sign. */
typedef int64_t power_bits __attribute__((vector_size(sizeof(vd))));
typedef uint64_t power_words __attribute__((vector_size(sizeof(vd))));      /* the same where sums may wrap */

#define V(number) ((number) - (vd){ 0 })

#if defined(FLOW_ISA_AVX512) && defined(__AVX512F__)

/* Tables of 16 numbers are two registers, of which each lane picks one by the lowest four bits of its index: structure, not coefficients,
 * as in ARM's optimized routines (powf). */
ALWAYS_INLINE vd vd_pick(const double *table, __m512i index)
{
  return (vd)_mm512_permutex2var_pd(_mm512_load_pd(table), index, _mm512_load_pd(table + 8));
}

/* c: about 1 / m for the middle m of each sixteenth of [0x1.66p-1, 0x1.66p0), 1 for that in which 1 is; log2(1 / c). */
static const _Alignas(64) double power_reciprocals[16] = {
  0x1.661ec6a5122f9p+0, 0x1.571ed3c506b3ap+0, 0x1.49539e3b2d067p+0, 0x1.3c995a47babe7p+0, 0x1.30d190130d190p+0,
  0x1.25e22708092f1p+0, 0x1.1bb4a4046ed29p+0, 0x1.12358e75d3033p+0, 0x1.0953f39010954p+0, 1,
  0x1.e573ac901e574p-1, 0x1.ca4b3055ee191p-1, 0x1.b2036406c80d9p-1, 0x1.9c2d14ee4a102p-1, 0x1.886e5f0abb04ap-1,
  0x1.767dce434a9b1p-1,
};
static const _Alignas(64) double power_logarithms[16] = {
  -0x1.efec61b011f85p-2, -0x1.b0b67f4f46812p-2, -0x1.7418acebbf18fp-2, -0x1.39de8e1559f6ep-2, -0x1.01d9bbcfa61d4p-2,
  -0x1.97c1cb13c7ec0p-3, -0x1.2f9e32d5bfdd1p-3, -0x1.960caf9abb7c1p-4, -0x1.a6f9c377dd31dp-5, 0,
  0x1.3aa2fdd27f1bfp-4,  0x1.476a9f983f74dp-3,  0x1.e840be74e6a4dp-3,  0x1.406463b1b0448p-2,  0x1.88e9c72e0b224p-2,
  0x1.ce0a4923a587dp-2,
};
/* The bits of 2^(i/16), less i << 48: what the index adds to them together with the exponent above it. */
static const _Alignas(64) uint64_t power_roots[16] = {
  0x3ff0000000000000, 0x3fefb5586cf9890f, 0x3fef72b83c7d517b, 0x3fef387a6e756238, 0x3fef06fe0a31b715, 0x3feedea64c123422,
  0x3feebfdad5362a27, 0x3feeab07dd485429, 0x3feea09e667f3bcd, 0x3feea11473eb0187, 0x3feeace5422aa0db, 0x3feec49182a3f090,
  0x3feee89f995ad3ad, 0x3fef199bdd85529c, 0x3fef5818dcfba487, 0x3fefa4afa2a490da,
};

/* log2 of the half of positive normal floats that is given as m, of x = 2^e m, with e and the sixteenth that m is in: log2(m c) - log2 c,
 * where m c - 1 is at most 0.03 by its size, and the polynomial is within 5e-12 of log2(1 + r) / r (Chebyshev). */
ALWAYS_INLINE vd vd_log2_of(vd m, __m256i e, __m256i sixteenth)
{
  const __m512i index = _mm512_cvtepu32_epi64(sixteenth);
  vd r = m * vd_pick(power_reciprocals, index) - V(1), z = r * r;
  vd p = (r * V(-0.721347520448298945) + V(1.44269504089332584)) +
         z * ((r * V(-0.360673681959926341) + V(0.480898257522863934)) + z * (r * V(-0.240686841925625632) + V(0.288810623292735277)));
  return ((vd)_mm512_cvtepi32_pd(e) + vd_pick(power_logarithms, index)) + r * p;
}

/* Both halves of a vector of positive normal floats. */
ALWAYS_INLINE void vf_log2_in_double(vf x, vd *low, vd *high)
{
  vi above = (vi)x - 0x3f330000, m = (vi)x - (above & -(1 << 23));
  __m512i e = (__m512i)(above >> 23), sixteenth = (__m512i)(above >> 19 & 15);
  *low = vd_log2_of(vd_low((vf)m), _mm512_castsi512_si256(e), _mm512_castsi512_si256(sixteenth));
  *high = vd_log2_of(vd_high((vf)m), _mm512_extracti64x4_epi64(e, 1), _mm512_extracti64x4_epi64(sixteenth, 1));
}

/* 2^t for |t| < 1000, else some number: t = n / 16 + r with a whole n, and a polynomial within 3e-12 of 2^r (Chebyshev). */
ALWAYS_INLINE vd vd_exp2(vd t)
{
  vd shifted = t + V(0x1.8p48), r = t - (shifted - V(0x1.8p48)), z = r * r;
  vd p = (r * V(0.693147180162568762) + V(1)) +
         z * ((r * V(0.0555057363146140381) + V(0.240226506913194134)) + z * V(0.00961831714058076599));
  power_words root = (power_words)vd_pick((const double *)(const void *)power_roots, (__m512i)shifted);
  return p * (vd)(root + ((power_words)shifted << 48));
}

#else

/* log2 of positive normal floats. x = 2^e m with m between sqrt(1/2) and sqrt(2), and log2 m = s p(s^2) with s = (m - 1) / (m + 1): p is
 * the polynomial of fourth degree that is nearest to 2 artanh(s) / (s ln 2), within 4e-12 of it (Chebyshev). */
ALWAYS_INLINE vd vd_log2(vd x)
{
  const power_bits root = (power_bits)V(0x1.6a09e667f3bcdp-1), mantissa = (power_bits){ 0 } + 0x000fffffffffffff;
  const power_bits magic = (power_bits)V(0x1.8p52);
  /* A small integer becomes a double without a conversion, which AVX2 lacks for 64 bits: it is added to the bits of 1.5 * 2^52, and that
   * number is subtracted. */
  power_bits bits = (power_bits)x - root, exponent = bits >> 52;
  vd m = (vd)((bits & mantissa) + root), e = (vd)(magic + exponent) - V(0x1.8p52);
  vd s = (m - V(1)) / (m + V(1)), z = s * s;
  vd low = z * V(0.961796673451465285) + V(2.88539008178998711), high = z * V(0.411673765159399392) + V(0.577083566021850346);
  vd p = low + (high + z * z * V(0.340712062512722778)) * (z * z);
  return e + s * p;
}

ALWAYS_INLINE void vf_log2_in_double(vf x, vd *low, vd *high)
{
  *low = vd_log2(vd_low(x));
  *high = vd_log2(vd_high(x));
}

/* 2^t for |t| < 1000, else some number: t = n + r with a whole n, and the polynomial of seventh degree that is nearest to 2^r for
 * |r| <= 1/2, within 5e-11 of it (Chebyshev). */
ALWAYS_INLINE vd vd_exp2(vd t)
{
  vd shifted = t + V(0x1.8p52), r = t - (shifted - V(0x1.8p52)), z = r * r;
  vd low = (r * V(0.693147180556832414) + V(0.999999999959561751)) + (r * V(0.0555041090632586661) + V(0.240226512134980927)) * z;
  vd high = (r * V(0.00133334784736854153) + V(0.00961802561331803425)) + (r * V(1.53037007113656939e-5) + V(0.000154697292141182971)) * z;
  vd p = low + high * (z * z);
  /* The whole part is in the lowest bits of `shifted`. Moved to the place of the exponent, it multiplies p by a power of two. */
  return (vd)((power_words)p + ((power_words)shifted << 52));
}

#endif
#undef V

static __attribute__((noinline, cold)) vf vf_libm_pow(vf x, vf y, vf result, uint32_t lanes)
{
  for (; lanes; lanes &= lanes - 1) {
    int lane = __builtin_ctz(lanes);
    result[lane] = powf(x[lane], y[lane]);
  }
  return result;
}

/* y log2 x of both halves, and the lanes that are libm's: those whose base is not a positive normal number, or whose result is not. */
ALWAYS_INLINE uint32_t vf_exponents_of_pow(vf x, vf y, vd *low, vd *high)
{
  const vf one = vf_set(1.0f), most = vf_set(0x1.fffffep127f), most_exponent = vf_set(125.0f);
  vi usual = (x >= vf_set(0x1p-126f)) & (x <= most) & (vf_abs(y) <= most);
  vf base = vf_select(usual, x, one), exponent = vf_select(usual, y, one);
  vf_log2_in_double(base, low, high);
  *low *= vd_low(exponent);
  *high *= vd_high(exponent);
  return vi_differs(usual & (vf_abs(vf_narrow(*low, *high)) < most_exponent), -1);
}

ALWAYS_INLINE vf vf_any_pow(vf x, vf y)
{
  vd low, high;
  uint32_t others = vf_exponents_of_pow(x, y, &low, &high);
  vf result = vf_narrow(vd_exp2(low), vd_exp2(high));      /* of lanes beyond, something */
  return __builtin_expect(others != 0, 0) ? vf_libm_pow(x, y, result, others) : result;
}

/* The third power in double, so that it is rounded once. */
ALWAYS_INLINE vf vf_cube(vf x)
{
  vd low = vd_low(x), high = vd_high(x);
  return vf_narrow(low * low * low, high * high * high);
}

static inline vf vf_pow(vf x, vf y)
{
  const vf zero = { 0 }, one = vf_set(1.0f);
  vi squared = y == vf_set(2.0f), cubed = y == vf_set(3.0f), same = y == one, inverse = y == -one;
  vi root = (y == vf_set(0.5f)) & (x != vf_set(-INFINITY));      /* pow takes -infinity to infinity, and -0 to 0 */
  if (!vi_differs(squared, -1)) return x * x;
  vf result = vi_differs(squared | cubed | same | inverse | root, -1) ? vf_any_pow(x, y) : x;
  result = vf_select(same, x, vf_select(squared, x * x, result));
  if (vi_differs(cubed, 0)) result = vf_select(cubed, vf_cube(x), result);
  if (vi_differs(inverse, 0)) result = vf_select(inverse, one / x, result);
  if (vi_differs(root, 0)) result = vf_select(root, vf_sqrt(x) + zero, result);
  return result;
}

/* Whether these exponents are one number, for which vf_pow knows nothing better than vf_any_pow. */
static inline int is_any_exponent(const float *y, int64_t n)
{
  const float first = n > 0 ? y[0] : 1;
  int others = first == 1 || first == 2 || first == 3 || first == -1 || first == 0.5f;
  for (int64_t i = 0; i < n; i++) others |= y[i] != first;
  return !others;
}

#endif
