/* remainder.h: the remainder of floored division of vectors of floats, a - floor(a / b) b with the sign of b, exact as fmod is. Each lane's
 * bits follow from its own a and b. */
#ifndef FLOW_CPU_ELEMENTWISE_REMAINDER_H
#define FLOW_CPU_ELEMENTWISE_REMAINDER_H

#include <math.h>

#include "cpu/math.h"

/* fmod truncates, so its result is moved into the sign of b; zero has b's sign. */
static inline float float_mod(float a, float b)
{
  float r = fmodf(a, b);
  if (r == 0) return copysignf(0, b);
  return (r < 0) != (b < 0) ? r + b : r;
}

/* a - n b with the whole number n that is nearest to a / b. n has at most 29 bits, so that n b is exact in double; the difference has no
 * more digits than a float, since it is a multiple of the last place of a or b and at most b / 2. *quotient: a / b. */
ALWAYS_INLINE vd vd_nearest_remainder(vd a, vd b, vd *quotient)
{
  const vd magic = (vd){ 0 } + 0x1.8p52; /* added and subtracted: it leaves no digit after the point */
  *quotient = a / b;
  return a - ((*quotient + magic) - magic) * b;
}

/* Lanes that are not finite, whose b is 0, or whose quotient has more than 29 bits are libm's. */
static inline vf vf_mod(vf a, vf b)
{
  const vf zero = { 0 }, most = vf_set(0x1p29f), largest = vf_set(0x1.fffffep127f);
  vd low_quotient, high_quotient;
  vd low = vd_nearest_remainder(vd_low(a), vd_low(b), &low_quotient), high = vd_nearest_remainder(vd_high(a), vd_high(b), &high_quotient);
  vi usual = (vf_abs(vf_narrow(low_quotient, high_quotient)) < most) & (vf_abs(b) <= largest);
  vf r = vf_narrow(low, high);
  r = vf_select((r < zero) != (b < zero), r + b, r);
  r = vf_select(vf_narrow(low, high) == zero, vf_select(b < zero, -zero, zero), r);
  for (uint32_t others = vi_differs(usual, -1); others; others &= others - 1) {
    int lane = __builtin_ctz(others);
    r[lane] = float_mod(a[lane], b[lane]);
  }
  return r;
}

#endif
