/* power.h: x^y of vectors of floats, in double: 2^(y log2 x), whose error of some 1e-10 is far below half a unit in the last place of a
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

/* log2 of positive normal floats. x = 2^e m with m between sqrt(1/2) and sqrt(2), and log m = 2 artanh s with s = (m - 1) / (m + 1), whose
 * series is cut after s^15: |s| < 0.172. */
ALWAYS_INLINE vd vd_log2(vd x)
{
  const power_bits root = (power_bits)V(0x1.6a09e667f3bcdp-1), mantissa = (power_bits){ 0 } + 0x000fffffffffffff;
  const power_bits magic = (power_bits)V(0x1.8p52);
  /* A small integer becomes a double without a conversion, which AVX2 lacks for 64 bits: it is added to the bits of 1.5 * 2^52, and that
   * number is subtracted. */
  power_bits bits = (power_bits)x - root, exponent = bits >> 52;
  vd m = (vd)((bits & mantissa) + root), e = (vd)(magic + exponent) - V(0x1.8p52);
  vd s = (m - V(1)) / (m + V(1)), z = s * s;
  vd p = V(1.0 / 15);
  p = p * z + V(1.0 / 13);
  p = p * z + V(1.0 / 11);
  p = p * z + V(1.0 / 9);
  p = p * z + V(1.0 / 7);
  p = p * z + V(1.0 / 5);
  p = p * z + V(1.0 / 3);
  p = p * z + V(1.0);
  return e + s * p * V(2 * 1.44269504088896340736);
}

/* 2^t for |t| < 1000, else some number: t = n + r with a whole n, and the series of e^(r ln 2), |r ln 2| < 0.347, up to the tenth power. */
ALWAYS_INLINE vd vd_exp2(vd t)
{
  vd shifted = t + V(0x1.8p52), r = (t - (shifted - V(0x1.8p52))) * V(0.693147180559945309417);
  vd p = V(1.0 / 3628800);
  p = p * r + V(1.0 / 362880);
  p = p * r + V(1.0 / 40320);
  p = p * r + V(1.0 / 5040);
  p = p * r + V(1.0 / 720);
  p = p * r + V(1.0 / 120);
  p = p * r + V(1.0 / 24);
  p = p * r + V(1.0 / 6);
  p = p * r + V(1.0 / 2);
  p = p * r + V(1.0);
  p = p * r + V(1.0);
  /* The whole part is in the lowest bits of `shifted`. Moved to the place of the exponent, it multiplies p by a power of two. */
  return (vd)((power_words)p + ((power_words)shifted << 52));
}

#undef V

/* Lanes whose base is not a positive normal number, or whose result is not, are libm's. */
static inline vf vf_any_pow(vf x, vf y)
{
  const vf one = vf_set(1.0f), most = vf_set(0x1.fffffep127f), most_exponent = vf_set(125.0f);
  vi usual = (x >= vf_set(0x1p-126f)) & (x <= most) & (vf_abs(y) <= most);
  vf base = vf_select(usual, x, one), exponent = vf_select(usual, y, one);
  vd low = vd_low(exponent) * vd_log2(vd_low(base)), high = vd_high(exponent) * vd_log2(vd_high(base));
  vi inside = vf_abs(vf_narrow(low, high)) < most_exponent;
  uint32_t others = vi_differs(usual & inside, -1);
  vf result = vf_narrow(vd_exp2(low), vd_exp2(high));      /* of lanes beyond, something */
  for (; others; others &= others - 1) {
    int lane = __builtin_ctz(others);
    result[lane] = powf(x[lane], y[lane]);
  }
  return result;
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

#endif
