/* quantization.h: how bytes stand for numbers, for the kernels of all devices: byte q is (q - zero) * scale. The bytes 0 to 255 of a range
 * low <= 0 <= high divide it evenly, and one of them, zero, is exactly 0, so that padding adds nothing (Jacob et al. 2018, section 2.1). */
#ifndef FLOW_QUANTIZATION_H
#define FLOW_QUANTIZATION_H

#include <math.h>
#include <stdint.h>

/* inverse: 1 / scale; zero: the byte that stands for 0, from 0 to 255. */
typedef struct flow_quantization { float scale, inverse; int32_t zero; } flow_quantization;

/* The shape rules have checked the range (core/ops/byte_range.h): around 0, and neither empty nor too wide for a float. */
static inline flow_quantization flow_quantization_of(double low, double high)
{
  double step = (high - low) / 255;
  return (flow_quantization){ .scale = (float)step, .inverse = (float)(1 / step), .zero = (int32_t)rint(-low / step) };
}

#endif
