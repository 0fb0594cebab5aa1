/* byte_range.h: what quantized ops need of ranges and kernels (kernels/quantization.h), for their shape rules and for layers. */
#ifndef FLOW_OPS_BYTE_RANGE_H
#define FLOW_OPS_BYTE_RANGE_H

enum { FLOW_MOST_BYTE_PRODUCTS = 65535 };      /* products of two bytes of which an int32 holds the sum */

/* Whether the bytes 0 to 255 can divide the range from low to high, which has 0 in it. The bounds of the width keep its 255th part and
 * that part's inverse normal float32 numbers. False if an end is NaN. */
static inline int flow_byte_range_fits(double low, double high)
{
  return low <= 0 && high >= 0 && high - low >= 1e-30 && high - low <= 1e30;
}

#endif
