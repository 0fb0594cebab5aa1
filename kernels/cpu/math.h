/* math.h: elementary functions of whole vectors of floats.
 *
 * exp, expm1, log and tanh are within 1.5, sigmoid within 2.5 units in the last place of the exact value for every float, denormal
 * arguments and results included; NaN stays NaN (spec/c/test_network_kernels.c). Range reduction and polynomials as in Cephes' single
 * precision library (S. Moshier, netlib.org/cephes), rearranged so that no lane branches: what holds for special arguments alone is
 * selected at the end. */
#ifndef FLOW_CPU_MATH_H
#define FLOW_CPU_MATH_H

#include "cpu/vector.h"

ALWAYS_INLINE vi vi_set(int32_t x) { return x - (vi){ 0 }; }
ALWAYS_INLINE vf vf_abs(vf x)      { return (vf)((vi)x & vi_set(0x7fffffff)); }

/* |magnitude| with the sign of `sign`. */
ALWAYS_INLINE vf vf_copysign(vf magnitude, vf sign)
{
  vi mask = vi_set(0x7fffffff);
  return (vf)(((vi)magnitude & mask) | ((vi)sign & ~mask));
}

/* Square root, correctly rounded. GCC turns the loop into one instruction where math errno is off. */
ALWAYS_INLINE vf vf_sqrt(vf x)
{
  vf y;
  for (int i = 0; i < VL; i++) y[i] = __builtin_sqrtf(x[i]);
  return y;
}

/* e^x = 2^n e^r with n = round(x / ln 2), |r| <= ln 2 / 2, for x between -104 and 89: e^r - 1, and n. */
ALWAYS_INLINE vf expm1_parts(vf x, vi *n)
{
  const vf magic = vf_set(0x1.8p23f);                           /* adding it leaves round(x / ln 2) in the low bits */
  vf shifted = x * vf_set(1.44269504f) + magic;
  vf whole = shifted - magic;
  vf r = x - whole * vf_set(0.693359375f);                      /* ln 2 in two pieces: n times the first is exact */
  r = r - whole * vf_set(-2.12194440e-4f);
  vf p = vf_set(1.9875691500e-4f);
  p = p * r + vf_set(1.3981999507e-3f);
  p = p * r + vf_set(8.3334519073e-3f);
  p = p * r + vf_set(4.1665795894e-2f);
  p = p * r + vf_set(1.6666665459e-1f);
  p = p * r + vf_set(5.0000001201e-1f);
  *n = (vi)((vu)shifted - (vu)magic);
  return p * (r * r) + r;
}

/* The same: e^r, and n. */
ALWAYS_INLINE vf exp_parts(vf x, vi *n) { return expm1_parts(x, n) + vf_set(1.0f); }

/* x 2^n for n from -252 to 254, by two factors, since 2^n itself may not be a normal float. */
ALWAYS_INLINE vf times_power_of_2(vf x, vi n)
{
  vi half = n >> 1;
  vf first = (vf)((half + 127) << 23), second = (vf)((n - half + 127) << 23);
  return x * first * second;
}

/* e^x: infinity above 88.7, 0 below -104. */
ALWAYS_INLINE vf vf_exp(vf x)
{
  vi n;
  x = vf_at_least(vf_at_most(x, vf_set(89.0f)), vf_set(-104.0f));   /* beyond them: infinity and 0 also after rounding */
  vf p = exp_parts(x, &n);
  return times_power_of_2(p, n);
}

/* ln (x 2^-fewer) for normal x above 0; for others something. ln x = e ln 2 + ln m with x = 2^e m and m between sqrt(1/2) and sqrt(2). */
ALWAYS_INLINE vf log_of_normal(vf x, vi fewer)
{
  vi bits = (vi)((vu)x - 0x3f3504f3u);                          /* bits of sqrt(1/2); wraps for negative x */
  vi exponent = (bits >> 23) - fewer;
  vf m = (vf)((bits & 0x007fffff) + 0x3f3504f3) - vf_set(1.0f);
  vf e = __builtin_convertvector(exponent, vf);
  vf p = vf_set(7.0376836292e-2f);
  p = p * m + vf_set(-1.1514610310e-1f);
  p = p * m + vf_set(1.1676998740e-1f);
  p = p * m + vf_set(-1.2420140846e-1f);
  p = p * m + vf_set(1.4249322787e-1f);
  p = p * m + vf_set(-1.6668057665e-1f);
  p = p * m + vf_set(2.0000714765e-1f);
  p = p * m + vf_set(-2.4999993993e-1f);
  p = p * m + vf_set(3.3333331174e-1f);
  vf square = m * m;
  vf y = p * m * square + e * vf_set(-2.12194440e-4f) - square * vf_set(0.5f);
  return (m + y) + e * vf_set(0.693359375f);
}

ALWAYS_INLINE vf vf_log(vf x)
{
  vi denormal = x < vf_set(0x1p-126f);
  vf y = log_of_normal(vf_select(denormal, x * vf_set(0x1p23f), x), denormal & 23);
  y = vf_select(x == vf_set(0.0f), vf_set(-__builtin_inff()), y);
  y = vf_select(x == vf_set(__builtin_inff()), x, y);
  return vf_select(x >= vf_set(0.0f), y, vf_set(__builtin_nanf("")));
}

/* 1 / (1 + e^-x) without overflow: only e^-|x| is formed. */
ALWAYS_INLINE vf vf_sigmoid(vf x)
{
  vi n;
  vf p = exp_parts(vf_at_least(-vf_abs(x), vf_set(-104.0f)), &n), e = times_power_of_2(p, n);
  return vf_select(x < vf_set(0.0f), e, vf_set(1.0f)) / (vf_set(1.0f) + e);
}

/* A polynomial near 0, where 1 - 2 / (e^2x + 1) would cancel; from 10 on it is 1 after rounding. */
ALWAYS_INLINE vf vf_tanh(vf x)
{
  vi n;
  vf a = vf_abs(x), square = x * x;
  vf p = vf_set(-5.70498872745e-3f);
  p = p * square + vf_set(2.06390887954e-2f);
  p = p * square + vf_set(-5.37397155531e-2f);
  p = p * square + vf_set(1.33314422036e-1f);
  p = p * square + vf_set(-3.33332819422e-1f);
  vf small = p * square * x + x;
  /* e^2x = p 2^n with n of at most 29: 2^n is a normal float, and one product is enough. */
  vf bounded = vf_at_most(a, vf_set(10.0f)), e = exp_parts(bounded + bounded, &n);
  vf large = vf_set(1.0f) - vf_set(2.0f) / (e * (vf)((n + 127) << 23) + vf_set(1.0f));
  return vf_select(a < vf_set(0.625f), small, vf_copysign(large, x));
}

#endif
