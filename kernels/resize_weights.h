/* resize_weights.h: along each axis an output pixel of a resized image is a weighted sum of a run of input pixels; which run, and the
 * weights, for every interpolation. Plain C for the kernels of all devices.
 *
 * Formulas and their rounding are TensorFlow's (kernels/image: resize_bilinear_op.cc, resize_nearest_neighbor_op.cc,
 * resize_bicubic_op.cc, resize_area_op.cc, scale_and_translate_op.cc), with half_pixel_centers: coordinates are float32 there, so
 * sums and products of them are rounded to float one by one here, whatever the compiler contracts. */
#ifndef FLOW_RESIZE_WEIGHTS_H
#define FLOW_RESIZE_WEIGHTS_H

#include <math.h>
#include "flow.h"

#ifndef BODY                     /* for the GPU: cuda/device/body.h */
#define BODY static inline
#endif

/* The run of input pixels of each output pixel of an axis. The three arrays are in one block (place_axis), which the caller owns. Every run
 * is within the axis: 0 <= first[i], first[i] + count[i] <= in, and count[i] <= taps. */
typedef struct resize_axis {
  int in, out, taps;               /* sizes in pixels, 1 or more each (the shape rule); taps: most pixels of a run */
  int32_t *first, *count;          /* [out] */
  double *weights;                 /* [out][taps]; of a run the first count[i] are set */
} resize_axis;

/* A product and a sum as TensorFlow has them, in float32. */
BODY double rounded_product(double a, double b) { return (float)(a * b); }
BODY double rounded_sum(double a, double b) { return (float)(a + b); }

/* ---- weights ------------------------------------------------------------------------------------------------------------- */

/* How far the kernel reaches, in pixels of the axis that it is stretched over; default: Lanczos5. */
BODY double resize_radius(int interpolation)
{
  switch (interpolation) {
  case FLOW_BILINEAR: return 1;
  case FLOW_BICUBIC:  return 2;
  case FLOW_LANCZOS3: return 3;
  default:            return 5;
  }
}

/* R. Keys: Cubic Convolution Interpolation for Digital Image Processing, 1981, a = -1/2. */
BODY double keys_cubic(double x)
{
  if (x >= 2) return 0;
  return x >= 1 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : (1.5 * x - 2.5) * x * x + 1;
}

/* sin(pi x): of small multiples of pi; the GPU's sine of any number needs memory. */
BODY double sine_of_turns(double x)
{
#if defined(__CUDACC__)
  return sinpi(x);
#else
  return sin(3.14159265358979323846 * x);
#endif
}

/* The kernel at x: a triangle, a cubic, or Lanczos' window of sinc, which is 1 near 0, where its quotient has no digits left. */
BODY double resize_kernel(int interpolation, double x)
{
  const double pi = 3.14159265358979323846, radius = resize_radius(interpolation);
  x = fabs(x);
  if (interpolation == FLOW_BILINEAR) return x < 1 ? 1 - x : 0;
  if (interpolation == FLOW_BICUBIC) return keys_cubic(x);
  if (x >= radius) return 0;
  return x <= 1e-3 ? 1 : radius * sine_of_turns(x) * sine_of_turns(x / radius) / (pi * pi * x * x);
}

/* Whether the kernel is stretched over the input pixels that an output pixel covers, and how far; Lanczos always goes by
 * this path, the others when they shrink without aliasing. */
BODY int resizes_by_kernel(const flow_attributes *a)
{
  int interpolation = a->resize.interpolation;
  if (interpolation == FLOW_LANCZOS3 || interpolation == FLOW_LANCZOS5) return 1;
  return a->resize.antialias && (interpolation == FLOW_BILINEAR || interpolation == FLOW_BICUBIC);
}

/* By how much the kernel is wider than an input pixel: as many input pixels as there are for an output pixel, at least 1. */
BODY double resize_stretch(const flow_attributes *a, int in, int out)
{
  double shrink = rounded_product(1, 1 / rounded_product(1, (double)out / in));
  return a->resize.antialias && shrink > 1 ? shrink : 1;
}

/* How many input pixels a run has at most: both sides of a stretched kernel and its middle, what an output pixel covers and two cut ones,
 * or what the formulas below read; never more than there are. */
BODY int resize_taps(const flow_attributes *a, int in, int out)
{
  double taps;
  if (resizes_by_kernel(a)) taps = 2 * ceil(resize_radius(a->resize.interpolation) * resize_stretch(a, in, out)) + 1;
  else if (a->resize.interpolation == FLOW_AREA) taps = ceil((double)in / out) + 2;
  else taps = a->resize.interpolation == FLOW_BICUBIC ? 4 : a->resize.interpolation == FLOW_BILINEAR ? 2 : 1;
  return taps < in ? (int)taps : in;
}

/* A position as a pixel's number; comparisons first, since a double beyond int must not be converted. */
BODY int clamp_to_axis(double x, int in) { return x < 0 ? 0 : x > in - 1 ? in - 1 : (int)x; }

/* The weigh_ functions fill in first, count and weights of output pixel i. Nearest: the pixel that holds the centre. */
BODY void weigh_nearest(resize_axis *s, int i)
{
  double scale = rounded_product(1, (double)s->in / s->out);
  s->first[i] = clamp_to_axis(floor(rounded_product(i + 0.5, scale)), s->in);
  s->count[i] = 1;
  s->weights[i] = 1;
}

/* The two pixels around the centre, by their distance; at the ends one pixel of weight 1. */
BODY void weigh_bilinear(resize_axis *s, int i)
{
  double at = rounded_sum(rounded_product(i + 0.5, rounded_product(1, (double)s->in / s->out)), -0.5), below = floor(at);
  int low = clamp_to_axis(below, s->in), high = clamp_to_axis(ceil(at), s->in);
  double *w = s->weights + (int64_t)i * s->taps;
  s->first[i] = low;
  s->count[i] = high - low + 1;
  w[0] = 1;
  if (high == low) return;
  w[1] = rounded_sum(at, -below);
  w[0] = 1 - w[1];
}

/* Fractions are rounded to 1/1024; pixels outside the image count for nothing. */
BODY void weigh_bicubic(resize_axis *s, int i)
{
  double at = rounded_sum(rounded_product(i + 0.5, rounded_product(1, (double)s->in / s->out)), -0.5), below = floor(at), total = 0;
  double fraction = rint(rounded_sum(at, -below) * 1024) / 1024;
  int low = clamp_to_axis(below - 1, s->in), high = clamp_to_axis(below + 2, s->in);
  double *w = s->weights + (int64_t)i * s->taps;
  s->first[i] = low;
  s->count[i] = high - low + 1;
  for (int k = low; k <= high; k++) total += w[k - low] = keys_cubic(fabs(k - below - fraction));
  for (int k = low; k <= high; k++) w[k - low] /= total;
}

/* The share of each input pixel that the output pixel covers. */
BODY void weigh_area(resize_axis *s, int i)
{
  double scale = rounded_product(1, (double)s->in / s->out), from = rounded_product(i, scale), to = rounded_product(i + 1, scale);
  int low = clamp_to_axis(floor(from), s->in), high = clamp_to_axis(ceil(to) - 1, s->in);
  double *w = s->weights + (int64_t)i * s->taps;
  if (high - low >= s->taps) high = low + s->taps - 1;
  s->first[i] = low;
  s->count[i] = high - low + 1;
  for (int k = low; k <= high; k++) w[k - low] = (fmin((double)(k + 1), to) - fmax((double)k, from)) / (to - from);
}

/* A kernel, stretched, over the pixels within its reach, divided by the sum of its weights. A sum of almost 0 is left unchanged. */
BODY void weigh_by_kernel(resize_axis *s, int i, int interpolation, double stretch)
{
  double inverse = rounded_product(1, 1 / rounded_product(1, (double)s->out / s->in)), at = rounded_product(i + 0.5, inverse), total = 0;
  double reach = rounded_product(resize_radius(interpolation), stretch);
  int low = clamp_to_axis(ceil(rounded_sum(rounded_sum(at, -reach), -0.5)), s->in);
  int high = clamp_to_axis(floor(rounded_sum(rounded_sum(at, reach), -0.5)), s->in);
  double *w = s->weights + (int64_t)i * s->taps;
  if (high - low >= s->taps) high = low + s->taps - 1;
  s->first[i] = low;
  s->count[i] = high - low + 1;
  for (int k = low; k <= high; k++) total += w[k - low] = resize_kernel(interpolation, (k + 0.5 - at) / stretch);
  for (int k = low; k <= high && fabs(total) >= 1e-35; k++) w[k - low] /= total;
}

/* Output pixel i of an axis. */
BODY void weigh_output(resize_axis *s, const flow_attributes *a, int i)
{
  if (resizes_by_kernel(a)) weigh_by_kernel(s, i, a->resize.interpolation, resize_stretch(a, s->in, s->out));
  else if (a->resize.interpolation == FLOW_NEAREST) weigh_nearest(s, i);
  else if (a->resize.interpolation == FLOW_BILINEAR) weigh_bilinear(s, i);
  else if (a->resize.interpolation == FLOW_BICUBIC) weigh_bicubic(s, i);
  else weigh_area(s, i);
}

/* Bytes of an axis' block, and its arrays in it; the block begins at a multiple of 8 bytes, and has the weights first, which need that
 * alignment. */
BODY size_t resize_axis_bytes(const resize_axis *s) { return (size_t)s->out * (2 * sizeof(int32_t) + (size_t)s->taps * sizeof(double)); }

BODY void place_axis(resize_axis *s, void *block)
{
  s->weights = (double *)block;
  s->first = (int32_t *)(s->weights + (int64_t)s->out * s->taps);
  s->count = s->first + s->out;
}

#endif
