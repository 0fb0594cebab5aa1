/* eight.h: eight neighbouring elements at once, float32 or 16-bit floats: one access of 16 bytes, or two. */
#ifndef FLOW_CUDA_DEVICE_EIGHT_H
#define FLOW_CUDA_DEVICE_EIGHT_H

#include "cuda/device/convert.h"

typedef struct __attribute__((aligned(16))) eight_half_floats { uint16_t v[8]; } eight_half_floats;

/* Elements first to first + 7 of `count`, or eight times the first of all; together: they are all there, and at a multiple of 16 bytes. */
BODY void load_eight(const void *x, int dtype, int repeat, int64_t first, int64_t count, int together, float v[8])
{
  if (!together || repeat) {
    UNROLL for (int j = 0; j < 8; j++)
      v[j] = repeat ? load_float(dtype, x, 0) : first + j < count ? load_float(dtype, x, first + j) : 0;
  } else if (dtype == FLOW_FLOAT32) {
    four_floats low = *(const four_floats *)((const float *)x + first), high = *(const four_floats *)((const float *)x + first + 4);
    UNROLL for (int j = 0; j < 4; j++) v[j] = low.v[j];
    UNROLL for (int j = 0; j < 4; j++) v[j + 4] = high.v[j];
  } else {
    eight_half_floats half_floats = *(const eight_half_floats *)((const uint16_t *)x + first);
    UNROLL for (int j = 0; j < 8; j++)
      v[j] = dtype == FLOW_BFLOAT16 ? bfloat16_to_float(half_floats.v[j]) : half_to_float(half_floats.v[j]);
  }
}

/* The other way round: what is beyond `count` is not stored. */
BODY void store_eight(void *y, int dtype, int64_t first, int64_t count, int together, const float v[8])
{
  if (!together) {
    UNROLL for (int j = 0; j < 8; j++)
      if (first + j < count) store_float(dtype, y, first + j, v[j]);
  } else if (dtype == FLOW_FLOAT32) {
    four_floats low, high;
    UNROLL for (int j = 0; j < 4; j++) low.v[j] = v[j];
    UNROLL for (int j = 0; j < 4; j++) high.v[j] = v[j + 4];
    *(four_floats *)((float *)y + first) = low;
    *(four_floats *)((float *)y + first + 4) = high;
  } else {
    eight_half_floats half_floats;
    UNROLL for (int j = 0; j < 8; j++) half_floats.v[j] = dtype == FLOW_BFLOAT16 ? float_to_bfloat16(v[j]) : float_to_half(v[j]);
    *(eight_half_floats *)((uint16_t *)y + first) = half_floats;
  }
}

#endif
