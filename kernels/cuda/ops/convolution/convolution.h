/* convolution.h: own kernels of convolutions, for calls that cuDNN does not take and machines without it. A thread makes four channels of a
 * pixel; with max pooling, of a window, whose convolutions it compares.
 *
 * The gradient goes in steps: spread, the gradient of the convolution's own output (pooling and relu undone), where that is not g itself;
 * dx, gathered from the outputs that saw a pixel; dw and db as sums over slices of the pixels, as many as the shape asks for, that a last
 * launch adds in order. db is the weight of one more input, which is always 1. */
#ifndef FLOW_CUDA_OPS_CONVOLUTION_H
#define FLOW_CUDA_OPS_CONVOLUTION_H

#include "cuda/device/numbers.h"

enum { CONVOLUTION_NO_ARGMAX = 255, PIXEL_RUN = 256 };     /* PIXEL_RUN: products that are added up before their sum is added to others */

/* Sizes as in convolution_geometry.h; group_fours, in_fours: runs of four channels of a group. */
typedef struct convolution_arguments {
  const void    *x, *w, *b, *g, *y;   /* b may be NULL */
  const uint8_t *index;
  void          *to;                  /* y, or dx */
  uint8_t       *index_out;
  void          *spread;              /* {images, out, channels_out}: of NUMBERs, or g itself */
  void          *partial, *dw, *db;   /* partial: NUMBERs [slices][positions][channels_out] */
  int64_t        in[2], out[2], result[2], kernel[2], stride[2], dilation[2], before[2], pool[2], pool_stride[2];
  int64_t        channels_in, channels_out, group_in, group_out, groups, in_fours, group_fours, all_fours;
  int64_t        pixels, slices, slice, weights, first_position, positions;    /* weights: positions of one output channel's weights */
  double         input_scale;
  int            pooled, relu, accumulate, x_dtype, w_dtype, b_dtype, g_dtype, y_dtype, to_dtype, spread_dtype, dw_dtype, db_dtype;
  int            w_together, to_together, index_together, spread_together, g_together, y_together;
} convolution_arguments;
typedef convolution_arguments convolve_float32_arguments, convolve_other_arguments;
typedef convolution_arguments convolution_spread_float32_arguments, convolution_spread_other_arguments;
typedef convolution_arguments convolution_input_float32_arguments, convolution_input_other_arguments;
typedef convolution_arguments convolution_weights_float32_arguments, convolution_weights_other_arguments;
typedef convolution_arguments convolution_slices_float32_arguments, convolution_slices_other_arguments;

/* A pixel of a side and a run of four channels in it, of one group where it is a group's. */
typedef struct convolution_place { int64_t image, row, column, group, channel; int valid; } convolution_place;

BODY convolution_place convolution_place_of(int64_t i, const int64_t *side, int64_t fours, int64_t groups, int64_t of_group)
{
  convolution_place p;
  int64_t four, pixel, line;
  i = split(i, fours, &four);
  pixel = split(i, groups, &p.group);
  line = split(pixel, side[1], &p.column);
  p.image = split(line, side[0], &p.row);
  p.channel = 4 * four;
  p.valid = (int)smaller(4, of_group - p.channel);
  return p;
}

/* The output along an axis that read input `at` with kernel position `tap`; -1: none. */
BODY int64_t convolution_reader(const convolution_arguments *a, int axis, int64_t at, int64_t tap)
{
  int64_t rest, reach = at + a->before[axis] - tap * a->dilation[axis];
  if (reach < 0) return -1;
  int64_t output = split(reach, a->stride[axis], &rest);
  return rest == 0 && output < a->out[axis] ? output : -1;
}

#define BODIES "cuda/ops/convolution/convolution_bodies.h"
#include "cuda/device/for_float32.h"
#include "cuda/device/for_other.h"
#undef BODIES

#define CONVOLUTION_KERNELS(ELEMENT, BLOCK)                                                                                  \
  ELEMENT(convolve_float32) ELEMENT(convolve_other) ELEMENT(convolution_spread_float32) ELEMENT(convolution_spread_other)    \
  ELEMENT(convolution_input_float32) ELEMENT(convolution_input_other) ELEMENT(convolution_weights_float32)                   \
  ELEMENT(convolution_weights_other) ELEMENT(convolution_slices_float32) ELEMENT(convolution_slices_other)

#endif
