/* functions.h: what elementwise ops compute for vectors of floats, and for doubles where libm has no such function, besides the functions
 * that other kernels share (math.h). */
#ifndef FLOW_CPU_ELEMENTWISE_FUNCTIONS_H
#define FLOW_CPU_ELEMENTWISE_FUNCTIONS_H

#include <math.h>

#include "cpu/math.h"
#include "cpu/math_doubles.h"

/* All ones in the lanes of a NaN, which differs from itself. */
ALWAYS_INLINE vi vf_is_nan(vf a) { return a != a; }      // NOLINT(misc-redundant-expression)

/* The larger, or the smaller, of a and b: b where they are equal, also as zeros of two signs; a NaN where either is one. */
ALWAYS_INLINE vf vf_maximum(vf a, vf b)
{
  return vf_select(vf_is_nan(a), a, vf_max(a, b));
}
ALWAYS_INLINE vf vf_minimum(vf a, vf b)
{
  return vf_select(vf_is_nan(a), a, vf_at_most(b, a));
}

/* log(1 + x) without the rounding error of 1 + x: log(u) x / (u - 1) with u = 1 + x as rounded (Kahan; N. Higham,
 * "Accuracy and Stability of Numerical Algorithms", 1.14.1). */
ALWAYS_INLINE vf vf_log1p(vf x)
{
  vf one = vf_set(1.0f), u = one + x, d = u - one;
  vf y = vf_log(u) * (x / d);
  y = vf_select(u == vf_set(INFINITY), u, y);
  return vf_select(d == vf_set(0.0f), x, y);
}

/* e^x - 1 = 2^n (e^r - 1) + (2^n - 1), see expm1_parts. Near 0, where 1 would drown it, n is 0; from 2^25 on the 1 itself drowns. */
ALWAYS_INLINE vf vf_expm1(vf x)
{
  const vf one = vf_set(1.0f), zero = { 0 };
  vi n, large = x > vf_set(18.0f);
  vf bounded = vf_at_least(vf_at_most(x, vf_set(89.0f)), vf_set(-80.0f)), q = expm1_parts(bounded, &n);
  vf scale = (vf)(((n & ~large) + 127) << 23);
  vf y = vf_select(large, times_power_of_2(q + one, n), q * scale + (scale - one));
  return vf_select(x == zero, x, y);      /* -0 */
}

/* erf: x times a ratio of polynomials in x^2, fitted on [-4, 4] as in Eigen (Core/MathFunctionsImpl.h); beyond, erf is 1 in
 * float. Within 6 units in the last place. */
ALWAYS_INLINE vf vf_erf(vf x)
{
  vf one = vf_set(1.0f), limit = vf_set(4.0f);
  vf bounded = vf_select(vf_abs(x) > limit, vf_copysign(limit, x), x), square = bounded * bounded;
  vf p = vf_set(-2.72614225801306e-10f);
  p = p * square + vf_set(2.77068142495902e-08f);
  p = p * square + vf_set(-2.10102402082508e-06f);
  p = p * square + vf_set(-5.69250639462346e-05f);
  p = p * square + vf_set(-7.34990630326855e-04f);
  p = p * square + vf_set(-2.95459980854025e-03f);
  p = p * square + vf_set(-1.60960333262415e-02f);
  vf q = vf_set(-1.45660718464996e-05f);
  q = q * square + vf_set(-2.13374055278905e-04f);
  q = q * square + vf_set(-1.68282697438203e-03f);
  q = q * square + vf_set(-7.37332916720468e-03f);
  q = q * square + vf_set(-1.42647390514189e-02f);
  vf y = bounded * (p / q);
  return vf_select(vf_abs(y) > one, vf_copysign(one, y), y);
}

/* x where it is not so large that slopes of sigmoids are 0 in float anyway, else such a number: infinity times 0 were NaN. */
ALWAYS_INLINE vf vf_near(vf x)
{
  return vf_select(vf_abs(x) > vf_set(100.0f), vf_copysign(vf_set(100.0f), x), x);
}

/* The normal distribution function and density: erf at x / sqrt 2, e^(-x^2 / 2) / sqrt(2 pi). */
ALWAYS_INLINE vf vf_normal_below(vf x)
{
  return (vf_set(1.0f) + vf_erf(x * vf_set(0.70710678f))) * vf_set(0.5f);
}
ALWAYS_INLINE vf vf_normal_density(vf x)
{
  return vf_exp(x * x * vf_set(-0.5f)) * vf_set(0.39894228f);
}
/* gelu(x) = x P(x), P the normal distribution function (D. Hendrycks, K. Gimpel, "Gaussian error linear units", 2016), and g times its
 * slope P(x) + x p(x). */
ALWAYS_INLINE vf vf_gelu(vf x)
{
  return x * vf_normal_below(x);
}
ALWAYS_INLINE vf vf_gelu_gradient(vf g, vf x)
{
  return g * (vf_normal_below(x) + vf_near(x) * vf_normal_density(x));
}

/* u = sqrt(2 / pi) (x + 0.044715 x^3); y = x (1 + t) / 2 with t = tanh u; y' = (1 + t) / 2 + x (1 - t^2) u' / 2. */
ALWAYS_INLINE vf vf_gelu_tanh(vf x)
{
  vf t = vf_tanh(x * (x * x * vf_set(0.035677408f) + vf_set(0.79788456f)));
  return x * vf_set(0.5f) * (vf_set(1.0f) + t);
}
ALWAYS_INLINE vf vf_gelu_tanh_gradient(vf g, vf x)
{
  vf one = vf_set(1.0f), half = vf_set(0.5f), near = vf_near(x), square = near * near;
  vf t = vf_tanh(x * (x * x * vf_set(0.035677408f) + vf_set(0.79788456f)));
  vf slope = square * vf_set(0.10703222f) + vf_set(0.79788456f);
  return g * (half * (one + t) + half * near * (one - t * t) * slope);
}

/* silu(x) = x s, s = sigmoid(x), and g times its slope s (1 + x (1 - s)). */
ALWAYS_INLINE vf vf_silu(vf x)
{
  return x * vf_sigmoid(x);
}
ALWAYS_INLINE vf vf_silu_gradient(vf g, vf x)
{
  vf s = vf_sigmoid(x), one = vf_set(1.0f);
  return g * (s * (one + vf_near(x) * (one - s)));
}

/* log(1 + e^x) = max(x, 0) + log(1 + e), e = e^-|x|: the exponential never overflows. log u, u = 1 + e as rounded, lacks what the rounding
 * cut off, e - (u - 1), divided by u. That is so small that 1 - e / 2 does for 1 / u. */
ALWAYS_INLINE vf vf_softplus(vf x)
{
  const vf one = vf_set(1.0f);
  vf e = vf_exp(-vf_abs(x)), u = one + e;
  return vf_relu(x) + (log_of_normal(u, vi_set(0)) + (e - (u - one)) * (one - e * vf_set(0.5f)));
}

ALWAYS_INLINE vf vf_softsign(vf x)
{
  return x / (vf_set(1.0f) + vf_abs(x));
}

/* The sine of VL / 2 floats, and their cosine as that of x + pi/2, in double with as many terms as a float needs: the angle less `turns`
 * half turns is r, at most pi/2 by its size, with pi in two pieces of which the first, times their number, is exact up to ANGLES;
 * then r times the polynomial in r^2 that is nearest to sin(r) / r, within 7e-11 of it (Chebyshev). The number in the lowest bits of
 * `shifted` is odd where the sign changes. A zero keeps its sign. */
#define ANGLES 1e6f

ALWAYS_INLINE vd vd_sine_of_rest(vd x, vd turns, vd shifted)
{
  vd r = (x - turns * vd_set(3.14159262180328369140e+00)) - turns * vd_set(3.17865095470563933832e-08), z = r * r;
  vd low = z * vd_set(8.3333327685293582e-03) + vd_set(-1.6666666663879851e-01);
  vd high = z * vd_set(2.7536459443646092e-06) + vd_set(-1.9841086507000569e-04);
  vd p = low + z * z * (high + z * z * vd_set(-2.4080095087122077e-08));
  return (vd)((vq)(r * (z * p + vd_set(1))) ^ (vq)shifted << 63);
}
ALWAYS_INLINE vd vd_sine_of_floats(vd x)
{
  vd shifted = x * vd_set(0.31830988618379067154) + vd_set(VD_MAGIC);
  return vd_sine_of_rest(x, shifted - vd_set(VD_MAGIC), shifted);
}
ALWAYS_INLINE vd vd_cosine_of_floats(vd x)
{
  vd shifted = (x * vd_set(0.31830988618379067154) + vd_set(0.5)) + vd_set(VD_MAGIC);
  return vd_sine_of_rest(x, (shifted - vd_set(VD_MAGIC)) - vd_set(0.5), shifted);
}
/* The tangent: the angle less quarters of a turn, in pieces as above, is at most pi/4 by its size, and its tangent t a polynomial within
 * 3e-11 of it. Where their number is odd, -1/t. */
ALWAYS_INLINE vd vd_tangent_of_floats(vd x)
{
  vd shifted = x * vd_set(0.63661977236758134308) + vd_set(VD_MAGIC), n = shifted - vd_set(VD_MAGIC);
  vd r = (x - n * vd_set(1.57079631090164184570e+00)) - n * vd_set(1.58932547735281966916e-08), z = r * r, w = z * z;
  vd low = (z * vd_set(0.1333333245916117) + vd_set(0.33333333336667413)) +
           w * (z * vd_set(0.021863342236561055) + vd_set(0.053968628879548783));
  vd high = (z * vd_set(0.0033665262815571477) + vd_set(0.0089132495511549289)) +
            w * (z * vd_set(-0.00025719194624982141) + vd_set(0.0020407325982170076) + w * vd_set(0.00083313793819028665));
  vd t = r * (z * (low + w * w * high) + vd_set(1));
  vq odd = vq_set(0) - ((vq)shifted & vq_set(1));
  return vd_select(odd, vd_set(-1), t) / vd_select(odd, t, vd_set(1));
}

/* Lanes with a larger angle, or one that is not a number, by libm: a neighbour changes nothing. */
#define ANGLE(name, function)                                              \
  static vf vf_##name(vf x)                                                \
  {                                                                        \
    vf y = vf_narrow(vd_##function(vd_low(x)), vd_##function(vd_high(x))); \
    uint32_t far = vi_differs(vf_abs(x) <= vf_set(ANGLES), -1);            \
    for (; far; far &= far - 1) {                                          \
      int lane = __builtin_ctz(far);                                       \
      y[lane] = name##f(x[lane]);                                          \
    }                                                                      \
    return y;                                                              \
  }
ANGLE(sin, sine_of_floats)
ANGLE(cos, cosine_of_floats)
ANGLE(tan, tangent_of_floats)

/* The inverse tangent, as vd_arctan, with the polynomial of FreeBSD's s_atanf.c. Within 1 unit in the last place. */
ALWAYS_INLINE vf vf_arctan(vf x)
{
  const vf one = vf_set(1.0f);
  vf a = vf_abs(x), above = a, below = one, high = vf_set(0.0f), low = vf_set(0.0f);
  ARCTAN_RANGE(vf, vi, 0.4375f, a + a - one, vf_set(2.0f) + a, 4.6364760399e-01f, 5.0121582440e-09f);
  ARCTAN_RANGE(vf, vi, 0.6875f, a - one, a + one, 7.8539812565e-01f, 3.7748947079e-08f);
  ARCTAN_RANGE(vf, vi, 1.1875f, a - vf_set(1.5f), one + vf_set(1.5f) * a, 9.8279368877e-01f, 3.4473217170e-08f);
  ARCTAN_RANGE(vf, vi, 2.4375f, -one, a, 1.5707962513e+00f, 7.5497894159e-08f);
  vf r = above / below, z = r * r, w = z * z;
  vf even = vf_set(6.1687607318e-02f) * w + vf_set(1.4253635705e-01f), odd = vf_set(-1.0648017377e-01f) * w + vf_set(-1.9999158382e-01f);
  even = even * w + vf_set(3.3333328366e-01f);
  return vf_copysign(high - ((r * (z * even + w * odd) - low) - r), x);
}

/* The same for doubles by libm's functions, where math_doubles.h has none; LANES makes such a function one of vectors. */
#define LANES(name, function)                               \
  static vd vd_##name(vd x)                                 \
  {                                                         \
    for (int i = 0; i < VL / 2; i++) x[i] = function(x[i]); \
    return x;                                               \
  }
LANES(erf, erf)

static double double_sigmoid(double x)
{
  return 1 / (1 + exp(-x));
}
/* In double slopes are 0 farther out. */
static double double_near(double x)
{
  return fabs(x) > 1000 ? copysign(1000, x) : x;
}
static double double_gelu(double x)
{
  return x * (1 + erf(x * M_SQRT1_2)) / 2;
}
LANES(gelu, double_gelu)
static double double_gelu_gradient(double g, double x)
{
  double near = double_near(x);
  return g * ((1 + erf(x * M_SQRT1_2)) / 2 + near * exp(-near * near / 2) * (M_2_SQRTPI * M_SQRT1_2 / 2));
}
static double double_gelu_tanh_gradient(double g, double x)
{
  double near = double_near(x), root = M_2_SQRTPI * M_SQRT1_2, t = tanh(x * (x * x * 0.044715 + 1) * root);
  return g * (1 + t + near * (1 - t * t) * root * (1 + 3 * 0.044715 * near * near)) / 2;
}
static double double_silu_gradient(double g, double x)
{
  double s = double_sigmoid(x);
  return g * (s * (1 + double_near(x) * (1 - s)));
}

#endif
