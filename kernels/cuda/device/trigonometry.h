/* trigonometry.h: sine and cosine of any argument without an array of working memory: CUDA's own keep one on the stack of every thread of
 * a kernel that may come to need it.
 *
 * x = quadrant * pi/2 + r with |r| <= pi/4, then polynomials in r (those of fdlibm's k_sin.c and k_cos.c). pi/2 is subtracted
 * in three pieces (Cody and Waite) below 2^20; beyond, x is multiplied by as many bits of 2/pi as matter modulo 4 (M. Payne, R. Hanek,
 * "Radian reduction for trigonometric functions", 1983). Within 3 units in the last place of a double; floats are computed in double. */
#ifndef FLOW_CUDA_DEVICE_TRIGONOMETRY_H
#define FLOW_CUDA_DEVICE_TRIGONOMETRY_H

#include <string.h>
#include "cuda/device/body.h"

typedef struct reduced_angle { double r; int quadrant; } reduced_angle;

/* |x| of at least 2^20. Its 53 bits times 192 bits of 2/pi, those before which only multiples of 4 are, modulo 2^192: two bits of
 * quadrant and the fraction, of which 128 bits are kept. */
BODY reduced_angle reduce_large_angle(double x)
{
  static const uint64_t two_over_pi[20] = {      /* 64 zeros, then the bits after the point */
    0, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0, 0x06492eea09d1921c,
    0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08,
    0x56033046fc7b6bab };
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  uint64_t significand = (bits & 0xfffffffffffffu) | 0x10000000000000u;
  int exponent = (int)(bits >> 52 & 0x7ff) - 1075, at = exponent + 62, word = at / 64, shift = at % 64;
  const uint64_t *from = two_over_pi + word;
  uint64_t w0 = from[0], w1 = from[1], w2 = from[2];
  if (shift > 0) {
    w0 = w0 << shift | w1 >> (64 - shift);
    w1 = w1 << shift | w2 >> (64 - shift);
    w2 = w2 << shift | from[3] >> (64 - shift);
  }
  unsigned __int128 product = ((unsigned __int128)(significand * w0) << 64) + (unsigned __int128)significand * w1 +
                              ((unsigned __int128)significand * w2 >> 64);
  int quadrant = (int)(product >> 126);
  product <<= 2;
  int above_half = (int)(product >> 127);       /* then the next quadrant is nearer, from below */
  if (above_half) product = -product;
  double r = ((double)(uint64_t)(product >> 64) + (double)(uint64_t)product * 0x1p-64) * 0x1p-64 * 0x1.921fb54442d18p+0;
  reduced_angle result = { above_half ? -r : r, quadrant + above_half };
  if (x < 0) {
    result.r = -result.r;
    result.quadrant = -result.quadrant;
  }
  return result;
}

BODY reduced_angle reduce_angle(double x)
{
  if (fabs(x) >= 0x1p20 && x - x == 0) return reduce_large_angle(x);
  double n = rint(x * 0x1.45f306dc9c883p-1);
  double r = fma(-n, -0x1.f1976b7ed8fbcp-110, fma(-n, 0x1.1a62633145c07p-54, fma(-n, 0x1.921fb54442d18p+0, x)));
  reduced_angle result = { r, x - x == 0 ? (int)n : 0 };     /* NaN and infinities: r is a NaN */
  return result;
}

/* Sine of an angle, `quarters` quarter turns further. */
BODY double sine_of(double x, int quarters)
{
  reduced_angle angle = reduce_angle(x);
  double r = angle.r, z = r * r;
  int quadrant = angle.quadrant + quarters;
  double s = r + r * z * (-1.66666666666666324348e-01 + z * (8.33333333332248946124e-03 + z * (-1.98412698298579493134e-04 +
             z * (2.75573137070700676789e-06 + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)))));
  double c = 1 - 0.5 * z + z * z * (4.16666666666666019037e-02 + z * (-1.38888888888741095749e-03 + z * (2.48015872894767294178e-05 +
             z * (-2.75573143513906633035e-07 + z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11)))));
  double y = quadrant & 1 ? c : s;
  return quadrant & 2 ? -y : y;
}

BODY double sine(double x)    { return sine_of(x, 0); }
BODY double cosine(double x)  { return sine_of(x, 1); }
BODY float  sinef(float x)    { return (float)sine((double)x); }
BODY float  cosinef(float x)  { return (float)cosine((double)x); }

#endif
