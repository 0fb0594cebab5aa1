/* image_sampling.h: which pixels of an image a transformed one is made of. Plain C for the kernels of all devices.
 *
 * Output pixel (column, row) reads the input at the place to which t takes it. Outside the image the fill mode says what is
 * there (TensorFlow: kernels/image/image_ops.h, ImageProjectiveTransformV3, after SciPy's map_coordinates). Reading is a sum of at
 * most four pixels, and of the fill value with the weight of those that are outside. */
#ifndef FLOW_IMAGE_SAMPLING_H
#define FLOW_IMAGE_SAMPLING_H

#include <math.h>
#include "flow.h"

#ifndef BODY                     /* for the GPU: cuda/device/body.h */
#define BODY static inline
#endif

BODY float clamp_to_pixels(float x, float last) { return !(x >= 0) ? 0 : x > last ? last : x; }

/* dcba|abcd|dcba: period 2 n, and -1 - x for x in front of the image. */
BODY float reflect_into(float x, float n)
{
  float period = 2 * n;
  if (x < 0) {
    x += period * truncf(-x / period);
    x = x < -n ? x + period : -x - 1;
  } else if (x > n - 1) {
    x -= period * truncf(x / period);
    if (x >= n) x = period - x - 1;
  }
  return clamp_to_pixels(x, n - 1);
}

/* abcd|abcd|abcd, where one pixel's distance is between d and a, too. */
BODY float wrap_into(float x, float n)
{
  if (n <= 1) return 0;
  if (x < 0) x += n * (truncf(-x / (n - 1)) + 1);
  else if (x > n - 1) x -= n * truncf(x / (n - 1));
  return clamp_to_pixels(x, n - 1);
}

BODY float sample_coordinate(int fill_mode, float x, int64_t size)
{
  float n = (float)size;
  switch (fill_mode) {
  case FLOW_FILL_REFLECT: return reflect_into(x, n);
  case FLOW_FILL_WRAP:    return wrap_into(x, n);
  case FLOW_FILL_NEAREST: return clamp_to_pixels(x, n - 1);
  default:                return x;
  }
}

/* The pixels that an output pixel is made of: at most two rows by two columns; pixel -1: none. */
typedef struct sample_taps { int64_t pixel[4]; float weight[4], outside; } sample_taps;

BODY void put_sample_tap(sample_taps *t, int slot, int64_t row, int64_t column, float weight, int64_t height, int64_t width)
{
  int is_inside = row >= 0 && row < height && column >= 0 && column < width;
  t->pixel[slot] = is_inside && weight != 0 ? row * width + column : -1;
  t->weight[slot] = weight;
  if (!is_inside) t->outside += weight;
}

BODY sample_taps sample_taps_at(const flow_attributes *a, const float *t, int64_t row, int64_t column, int64_t height, int64_t width)
{
  sample_taps result;
  for (int i = 0; i < 4; i++) {
    result.pixel[i] = -1;
    result.weight[i] = 0;
  }
  result.outside = 0;
  double c = (double)column, r = (double)row, k = t[6] * c + t[7] * r + 1;       /* products are exact: contraction changes nothing */
  float x = sample_coordinate(a->sampling.fill_mode, (float)((t[0] * c + t[1] * r + t[2]) / k), width);
  float y = sample_coordinate(a->sampling.fill_mode, (float)((t[3] * c + t[4] * r + t[5]) / k), height);
  if (k == 0 || !(x > -2 && x < (float)width + 1 && y > -2 && y < (float)height + 1)) {      /* all of it, also of NaN */
    result.outside = 1;
    return result;
  }
  if (a->sampling.interpolation == FLOW_NEAREST) {
    put_sample_tap(&result, 0, (int64_t)roundf(y), (int64_t)roundf(x), 1, height, width);
    return result;
  }
  float left = floorf(x), top = floorf(y), right_weight = x - left, bottom_weight = y - top;
  int64_t row_above = (int64_t)top, column_before = (int64_t)left;
  put_sample_tap(&result, 0, row_above, column_before, (1 - bottom_weight) * (1 - right_weight), height, width);
  put_sample_tap(&result, 1, row_above, column_before + 1, (1 - bottom_weight) * right_weight, height, width);
  put_sample_tap(&result, 2, row_above + 1, column_before, bottom_weight * (1 - right_weight), height, width);
  put_sample_tap(&result, 3, row_above + 1, column_before + 1, bottom_weight * right_weight, height, width);
  return result;
}

#endif
