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

#undef V

static __attribute__((noinline, cold)) vf vf_libm_pow(vf x, vf y, vf result, uint32_t lanes)
{
  for (; lanes; lanes &= lanes - 1) {
    int lane = __builtin_ctz(lanes);
    result[lane] = powf(x[lane], y[lane]);
  }
  return result;
}

/* Lanes whose base is not a positive normal number, or whose result is not, are libm's. */
ALWAYS_INLINE vf vf_any_pow(vf x, vf y)
{
  const vf one = vf_set(1.0f), most = vf_set(0x1.fffffep127f), most_exponent = vf_set(125.0f);
  vi usual = (x >= vf_set(0x1p-126f)) & (x <= most) & (vf_abs(y) <= most);
  vf base = vf_select(usual, x, one), exponent = vf_select(usual, y, one);
  vd low = vd_low(exponent) * vd_log2(vd_low(base)), high = vd_high(exponent) * vd_log2(vd_high(base));
  vi inside = vf_abs(vf_narrow(low, high)) < most_exponent;
  uint32_t others = vi_differs(usual & inside, -1);
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
