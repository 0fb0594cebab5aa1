/* wide.h: 16 bytes of neighbouring floats at a time, a bundle: four of 32 bits or eight of 16. dtype is a constant where it is called. */
#ifndef FLOW_CUDA_DEVICE_WIDE_H
#define FLOW_CUDA_DEVICE_WIDE_H

#include "cuda/device/convert.h"

enum { WIDE_BYTES = 16, MOST_WIDE = 8 };

typedef struct __attribute__((aligned(16))) wide_bits { uint32_t at[4]; } wide_bits;

BODY wide_bits load_wide(const void *p, int dtype, int aligned, int64_t bundle)
{
  wide_bits bits;
  if (aligned) return ((const wide_bits *)p)[bundle];
  UNROLL for (int k = 0; k < 4; k++) {
    if (dtype == FLOW_FLOAT32) bits.at[k] = ((const uint32_t *)p)[4 * bundle + k];
    else bits.at[k] = ((const uint16_t *)p)[8 * bundle + 2 * k] | (uint32_t)((const uint16_t *)p)[8 * bundle + 2 * k + 1] << 16;
  }
  return bits;
}

BODY float wide_at(const wide_bits *bits, int dtype, int k)
{
  if (dtype == FLOW_FLOAT32) return bits_to_float(bits->at[k % 4]);
  uint16_t half = (uint16_t)(bits->at[k / 2] >> (k % 2 * 16));
  return dtype == FLOW_BFLOAT16 ? bfloat16_to_float(half) : half_to_float(half);
}

#endif
