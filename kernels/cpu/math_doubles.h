/* math_doubles.h: elementary functions of vectors of doubles. They have the structure of those of floats in math.h: no lane branches; what
 * holds for special arguments alone is selected at the end.
 *
 * exp, log and arctan are within 1, expm1, log1p, sigmoid, softplus, sin and cos within 2, tanh 2.5, tan and silu 3 units in the last
 * place, denormal arguments and results included; NaN stays NaN (spec/c/test_double_functions.c). */
#ifndef FLOW_CPU_MATH_DOUBLES_H
#define FLOW_CPU_MATH_DOUBLES_H

#include <math.h>

#include "cpu/vector.h"

/* The bits of a vd; what comparing two vd gives, made unsigned, is a mask of them. */
typedef uint64_t vq __attribute__((vector_size(sizeof(vd))));

ALWAYS_INLINE vd vd_set(double x)
{
  return x - (vd){ 0 };
}
ALWAYS_INLINE vq vq_set(uint64_t x)
{
  return x - (vq){ 0 };
}
ALWAYS_INLINE vd vd_select(vq mask, vd a, vd b)
{
  return (vd)(((vq)a & mask) | ((vq)b & ~mask));
}
ALWAYS_INLINE vd vd_abs(vd x)
{
  return (vd)((vq)x & vq_set(INT64_MAX));
}
ALWAYS_INLINE vd vd_copysign(vd magnitude, vd of)
{
  return (vd)((vq)vd_abs(magnitude) | ((vq)of & ~vq_set(INT64_MAX)));
}
ALWAYS_INLINE vd vd_at_least(vd x, vd least)
{
  return vd_select((vq)(x < least), least, x);
} /* a NaN in x stays */
ALWAYS_INLINE vd vd_at_most(vd x, vd most)
{
  return vd_select((vq)(x > most), most, x);
}

/* Adding it to a number below 2^51 leaves the nearest whole number in the low bits. */
#define VD_MAGIC 0x1.8p52

/* 2^n, where n is a whole number from -1022 to 1023 in the low bits of a sum with VD_MAGIC. */
ALWAYS_INLINE vd vd_power_of_2(vq n)
{
  return (vd)((n + vq_set(1023)) << 52);
}

/* x 2^n for n from -2044 to 2046, by two factors, since 2^n itself may not be a normal number. */
ALWAYS_INLINE vd vd_times_power_of_2(vd x, vq n)
{
  vq half = ((n + vq_set(4096)) >> 1) - vq_set(2048);
  return x * vd_power_of_2(half) * vd_power_of_2(n - half);
}

/* e^x = 2^n e^r with n = round(x / ln 2), |r| <= ln 2 / 2, for x between -746 and 710: e^r - 1, and n. ln 2 is in two pieces, of which n
 * times the first is exact; the series of e^r up to r^13, beyond which terms are below 2^-57. */
ALWAYS_INLINE vd vd_expm1_parts(vd x, vq *n)
{
  vd shifted = x * vd_set(1.44269504088896338700e+00) + vd_set(VD_MAGIC), whole = shifted - vd_set(VD_MAGIC);
  vd r = (x - whole * vd_set(6.93147180369123816490e-01)) - whole * vd_set(1.90821492927058770002e-10);
  vd p = vd_set(1.0 / 6227020800);
  p = p * r + vd_set(1.0 / 479001600);
  p = p * r + vd_set(1.0 / 39916800);
  p = p * r + vd_set(1.0 / 3628800);
  p = p * r + vd_set(1.0 / 362880);
  p = p * r + vd_set(1.0 / 40320);
  p = p * r + vd_set(1.0 / 5040);
  p = p * r + vd_set(1.0 / 720);
  p = p * r + vd_set(1.0 / 120);
  p = p * r + vd_set(1.0 / 24);
  p = p * r + vd_set(1.0 / 6);
  p = p * r + vd_set(0.5);
  *n = (vq)shifted - (vq)vd_set(VD_MAGIC);
  return p * (r * r) + r;
}

/* e^x: infinity above 709.8, 0 below -745.2. */
ALWAYS_INLINE vd vd_exp(vd x)
{
  vq n;
  vd p = vd_expm1_parts(vd_at_least(vd_at_most(x, vd_set(710)), vd_set(-746)), &n);
  return vd_times_power_of_2(p + vd_set(1), n);
}

/* e^x - 1 = 2^n (e^r - 1) + (2^n - 1): near 0 n is 0; from 2^55 on the 1 drowns. */
ALWAYS_INLINE vd vd_expm1(vd x)
{
  const vd one = vd_set(1);
  vq n, large = (vq)(x > vd_set(38));
  vd q = vd_expm1_parts(vd_at_least(vd_at_most(x, vd_set(710)), vd_set(-80)), &n), scale = vd_power_of_2(n & ~large);
  vd y = vd_select(large, vd_times_power_of_2(q + one, n), q * scale + (scale - one));
  return vd_select((vq)(x == vd_set(0)), x, y); /* -0 */
}

/* ln (x 2^-fewer) for normal x above 0; for others something. ln x = e ln 2 + ln (1 + f) with x = 2^e (1 + f), 1 + f between sqrt(1/2) and
 * sqrt(2); the polynomial in s = f / (2 + f) and how its parts are added up are those of FreeBSD's e_log.c. */
ALWAYS_INLINE vd vd_log_of_normal(vd x, vd fewer)
{
  const vq root = vq_set(0x3fe6a09e667f3bcd); /* bits of sqrt(1/2) */
  vq bits = (vq)x - root;                     /* wraps below it: the exponent is a number of 12 bits with a sign */
  vd e = (vd)(((bits >> 52) ^ vq_set(0x800)) + (vq)vd_set(VD_MAGIC)) - vd_set(VD_MAGIC + 0x800) - fewer;
  vd f = (vd)((bits & vq_set(0x000fffffffffffff)) + root) - vd_set(1), s = f / (vd_set(2) + f), z = s * s, w = z * z;
  vd odd = w * (vd_set(3.999999999940941908e-01) + w * (vd_set(2.222219843214978396e-01) + w * vd_set(1.531383769920937332e-01)));
  vd even = z * (vd_set(6.666666666666735130e-01) +
                 w * (vd_set(2.857142874366239149e-01) + w * (vd_set(1.818357216161805012e-01) + w * vd_set(1.479819860511658591e-01))));
  vd half = vd_set(0.5) * f * f;
  return e * vd_set(6.93147180369123816490e-01) - ((half - (s * (half + (odd + even)) + e * vd_set(1.90821492927058770002e-10))) - f);
}

ALWAYS_INLINE vd vd_log(vd x)
{
  vq denormal = (vq)(x < vd_set(0x1p-1022));
  vd y = vd_log_of_normal(vd_select(denormal, x * vd_set(0x1p54), x), (vd)((vq)vd_set(54) & denormal));
  y = vd_select((vq)(x == vd_set(0)), vd_set(-INFINITY), y);
  y = vd_select((vq)(x == vd_set(INFINITY)), x, y);
  return vd_select((vq)(x >= vd_set(0)), y, vd_set(NAN));
}

/* log(1 + x) = log(u) + c / u, u = 1 + x as rounded, c what the rounding cut off. */
ALWAYS_INLINE vd vd_log1p(vd x)
{
  vd one = vd_set(1), u = one + x, cut_off = vd_select((vq)(x >= one), one - (u - x), x - (u - one));
  vd y = vd_log(u) + vd_select((vq)(u > vd_set(0)), cut_off, vd_set(0)) / vd_select((vq)(u == vd_set(0)), one, u);
  y = vd_select((vq)(u == vd_set(INFINITY)), u, y);
  return vd_select((vq)(x == vd_set(0)), x, y); /* -0 */
}

/* 1 / (1 + e^-x) without overflow: only e^-|x| is formed. */
ALWAYS_INLINE vd vd_sigmoid(vd x)
{
  vd e = vd_exp(-vd_abs(x));
  return vd_select((vq)(x < vd_set(0)), e, vd_set(1)) / (vd_set(1) + e);
}

/* q / (q + 2) with q = e^2|x| - 1; from 20 on it is 1 after rounding. */
ALWAYS_INLINE vd vd_tanh(vd x)
{
  vd a = vd_at_most(vd_abs(x), vd_set(20)), q = vd_expm1(a + a);
  return vd_copysign(q / (q + vd_set(2)), x);
}

/* As vf_softplus. */
ALWAYS_INLINE vd vd_softplus(vd x)
{
  const vd one = vd_set(1);
  vd e = vd_exp(-vd_abs(x)), u = one + e;
  return vd_at_least(x, vd_set(0)) + (vd_log_of_normal(u, vd_set(0)) + (e - (u - one)) * (one - e * vd_set(0.5)));
}

ALWAYS_INLINE vd vd_softsign(vd x)
{
  return x / (vd_set(1) + vd_abs(x));
}

ALWAYS_INLINE vd vd_silu(vd x)
{
  return x * vd_sigmoid(x);
}

/* Sine and cosine of an angle of which `turn`, in its lowest bits, is the number of quarters of a turn and sin_r and cos_r are those of the
 * rest: if the number is odd, they are exchanged; its bit 1 is the sign of the sine, bit 1 of the next number that of the cosine. */
ALWAYS_INLINE void vd_turned(vq turn, vd sin_r, vd cos_r, vd *sine, vd *cosine)
{
  vq odd = vq_set(0) - (turn & vq_set(1)), sign = vq_set((uint64_t)1 << 63);
  *sine = (vd)((vq)vd_select(odd, cos_r, sin_r) ^ (turn << 62 & sign));
  *cosine = (vd)((vq)vd_select(odd, sin_r, cos_r) ^ ((turn + vq_set(1)) << 62 & sign));
}

/* Sine and cosine of angles up to VD_ANGLES by their size: the angle less n quarters of a turn, pi/2 in three pieces of which the first
 * two, times n, are exact; polynomials of FreeBSD's k_sin.c and k_cos.c. */
#define VD_ANGLES 1e6

ALWAYS_INLINE void vd_sine_cosine(vd x, vd *sine, vd *cosine)
{
  vd shifted = x * vd_set(6.36619772367581382433e-01) + vd_set(VD_MAGIC), n = shifted - vd_set(VD_MAGIC);
  vd r = ((x - n * vd_set(1.57079632673412561417e+00)) - n * vd_set(6.07710050630396597660e-11)) - n * vd_set(2.02226624879595063154e-21);
  vd z = r * r, p = vd_set(1.58969099521155010221e-10), q = vd_set(-1.13596475577881948265e-11);
  p = p * z + vd_set(-2.50507602534068634195e-08);
  p = p * z + vd_set(2.75573137070700676789e-06);
  p = p * z + vd_set(-1.98412698298579493134e-04);
  p = p * z + vd_set(8.33333333332248946124e-03);
  p = p * z + vd_set(-1.66666666666666324348e-01);
  q = q * z + vd_set(2.08757232129817482790e-09);
  q = q * z + vd_set(-2.75573143513906633035e-07);
  q = q * z + vd_set(2.48015872894767294178e-05);
  q = q * z + vd_set(-1.38888888888741095749e-03);
  q = q * z + vd_set(4.16666666666666019037e-02);
  vd half = vd_set(0.5) * z, near = vd_set(1) - half;
  vd_turned((vq)shifted, r + r * z * p, near + (((vd_set(1) - near) - half) + z * z * q), sine, cosine);
}

/* Whether every lane is all ones: what a comparison gave. */
ALWAYS_INLINE int vq_all(vq mask)
{
  return vi_differs((vi)mask, -1) == 0;
}

/* Lanes with a larger angle, or one that is not a number, by libm: a neighbour changes nothing. result keeps -0, if the function does. */
#define VD_ANGLE(name, result)                      \
  static inline vd vd_##name(vd x)                  \
  {                                                 \
    vd sine, cosine;                                \
    vq near = (vq)(vd_abs(x) <= vd_set(VD_ANGLES)); \
    vd_sine_cosine(x, &sine, &cosine);              \
    vd y = result;                                  \
    if (vq_all(near)) return y;                     \
    for (int i = 0; i < VL / 2; i++)                \
      if (!near[i]) y[i] = name(x[i]);              \
    return y;                                       \
  }
VD_ANGLE(sin, vd_select((vq)(x == vd_set(0)), x, sine))
VD_ANGLE(cos, cosine)
VD_ANGLE(tan, vd_select((vq)(x == vd_set(0)), x, sine / cosine))

/* The inverse tangent as FreeBSD's s_atan.c has it: |x| is within 7/16 of 0, or of the tangent t of 1/2, pi/4, 3/2 or a right angle, and
 * atan |x| = atan t + atan r with r = (|x| - t) / (1 + t |x|), -1 / |x| of the last; a polynomial of r.
 *
 * ARCTAN_RANGE is one of these ranges, from `least` on, for floats (V = vf) or doubles (vd): in the lanes of `a`, which is |x|, that are
 * in the range it selects r's numerator and denominator and the two parts of atan t. */
#define ARCTAN_RANGE(V, mask, least, numerator, denominator, high_part, low_part) \
  do {                                                                            \
    mask within = (mask)(a >= V##_set(least));                                    \
    above = V##_select(within, numerator, above);                                 \
    below = V##_select(within, denominator, below);                               \
    high = V##_select(within, V##_set(high_part), high);                          \
    low = V##_select(within, V##_set(low_part), low);                             \
  } while (0)
ALWAYS_INLINE vd vd_arctan(vd x)
{
  const vd one = vd_set(1);
  vd a = vd_abs(x), above = a, below = one, high = vd_set(0), low = vd_set(0);
  ARCTAN_RANGE(vd, vq, 0.4375, a + a - one, vd_set(2) + a, 4.63647609000806093515e-01, 2.26987774529616870924e-17);
  ARCTAN_RANGE(vd, vq, 0.6875, a - one, a + one, 7.85398163397448278999e-01, 3.06161699786838301793e-17);
  ARCTAN_RANGE(vd, vq, 1.1875, a - vd_set(1.5), one + vd_set(1.5) * a, 9.82793723247329054082e-01, 1.39033110312309984516e-17);
  ARCTAN_RANGE(vd, vq, 2.4375, -one, a, 1.57079632679489655800e+00, 6.12323399573676603587e-17);
  vd r = above / below, z = r * r, w = z * z;
  vd even = vd_set(1.62858201153657823623e-02), odd = vd_set(-3.65315727442169155270e-02);
  even = even * w + vd_set(4.97687799461593236017e-02);
  even = even * w + vd_set(6.66107313738753120669e-02);
  even = even * w + vd_set(9.09088713343650656196e-02);
  even = even * w + vd_set(1.42857142725034663711e-01);
  even = even * w + vd_set(3.33333333333329318027e-01);
  odd = odd * w + vd_set(-5.83357013379057348645e-02);
  odd = odd * w + vd_set(-7.69187620504482999495e-02);
  odd = odd * w + vd_set(-1.11111104054623557880e-01);
  odd = odd * w + vd_set(-1.99999999998764832476e-01);
  return vd_copysign(high - ((r * (z * even + w * odd) - low) - r), x);
}

/* As vf_gelu_tanh. */
ALWAYS_INLINE vd vd_gelu_tanh(vd x)
{
  vd u = x * (x * x * vd_set(0.044715) + vd_set(1)) * vd_set(0.79788456080286535588);
  return x * (vd_set(1) + vd_tanh(u)) * vd_set(0.5);
}

#endif
