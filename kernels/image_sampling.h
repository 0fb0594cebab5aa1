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

/* x within 0 .. last; 0 for a NaN, so that no coordinate beyond the image comes out of it. */
BODY float clamp_to_pixels(float x, float last) { return !(x >= 0) ? 0 : x > last ? last : x; }

/* dcba|abcd|dcba: period 2 n, and -1 - x for x in front of the image. The last clamp matters to 3.5 of 4 pixels, which would be rounded
 * to 4. */
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

/* The coordinate that is read for x along an axis of `size` pixels; of a constant fill x itself, which may be anywhere. */
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

/* What an output pixel is made of: pixels of the input, at most two rows by two columns, as row * width + column (-1: none), their weights,
 * and the weight of the fill value. A pixel whose weight is 0 is not read, so that a NaN in it does not spread. */
typedef struct sample_taps { int64_t pixel[4]; float weight[4], outside; } sample_taps;

/* Puts a pixel into a slot, or adds its weight to that of the fill value if it is outside of the image. */

BODY void put_sample_tap(sample_taps *t, int slot, int64_t row, int64_t column, float weight, int64_t height, int64_t width)
{
  int is_inside = row >= 0 && row < height && column >= 0 && column < width;
  t->pixel[slot] = is_inside && weight != 0 ? row * width + column : -1;
  t->weight[slot] = weight;
  if (!is_inside) t->outside += weight;
}

/* Whether the fill value has a share in the pixel. Where none of it is outside that is 0 times the value, which would be NaN of an infinite
 * fill or a NaN: their share is left out. */
BODY int shares_fill(const sample_taps *t, double fill)
{
  return t->outside != 0 || fill - fill == 0;
}

/* The taps of output pixel (row, column). t: the image's eight numbers (ops.def, sample_image). The test of x and y comes before they
 * become integers: farther than a pixel outside of the image all of the value is the fill, and so it is for a NaN and for k = 0. */
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
