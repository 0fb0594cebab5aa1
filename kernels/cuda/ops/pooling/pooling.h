/* pooling.h: max and average pooling and their gradients, NHWC. In arrays of two, [0] is height and [1] is width. A thread makes eight
 * channels of one pixel; gradients are gathered: a thread looks at the windows that its pixel is in, in order. */
#ifndef FLOW_CUDA_OPS_POOLING_H
#define FLOW_CUDA_OPS_POOLING_H

#include "cuda/device/eight.h"
#include "cuda/device/numbers.h"

enum { POOL_CHANNELS = 8, POOL_NO_ARGMAX = 255 };        /* of a thread; index of a window that passes no gradient on */

/* large: the side before pooling, x or dx; small: y or g. together, index_together: how many channels may be read at once: 8, 4, or 0. */
typedef struct pooling_arguments {
  const void    *from;
  void          *to;
  uint8_t       *index_out;           /* of max pooling: may be NULL */
  const uint8_t *index;               /* of its gradient */
  int64_t        large[2], small[2], size[2], stride[2], before[2], channels, eights, lowest;  /* lowest: of an integer dtype */
  int            from_dtype, to_dtype, together, index_together;
} pooling_arguments;
typedef pooling_arguments max_pool_float32_arguments, max_pool_half_floats_arguments, max_pool_other_arguments, max_pool_integers_arguments;
typedef pooling_arguments max_pool_gradient_float32_arguments, max_pool_gradient_half_floats_arguments, max_pool_gradient_other_arguments;
typedef pooling_arguments average_pool_float32_arguments, average_pool_half_floats_arguments, average_pool_other_arguments;
typedef pooling_arguments average_pool_gradient_float32_arguments, average_pool_gradient_half_floats_arguments;
typedef pooling_arguments average_pool_gradient_other_arguments;

/* Eight channels of a pixel: where they are, and how many there are. */
typedef struct pool_place { int64_t image, row, column, channel; int valid; } pool_place;

BODY pool_place pool_place_of(int64_t i, const int64_t *side, int64_t channels, int64_t eights)
{
  pool_place p;
  int64_t eight, pixel = split(i, eights, &eight), line = split(pixel, side[1], &p.column);
  p.image = split(line, side[0], &p.row);
  p.channel = POOL_CHANNELS * eight;
  p.valid = (int)smaller(POOL_CHANNELS, channels - p.channel);
  return p;
}

BODY int64_t pool_element(const pool_place *p, const int64_t *side, int64_t row, int64_t column, int64_t channels)
{
  return ((p->image * side[0] + row) * side[1] + column) * channels + p->channel;
}

/* The pixels of the window at `at` along an axis: first .. last - 1. */
BODY void pool_window_of(const pooling_arguments *a, int axis, int64_t at, int64_t *first, int64_t *last)
{
  int64_t start = at * a->stride[axis] - a->before[axis];
  *first = larger(start, 0);
  *last = smaller(start + a->size[axis], a->large[axis]);
}

/* The windows along an axis that pixel `at` is in: first .. last - 1. */
BODY void pool_windows_over(const pooling_arguments *a, int axis, int64_t at, int64_t *first, int64_t *last)
{
  int64_t rest, end = at + a->before[axis];
  *first = end < a->size[axis] ? 0 : split(end - a->size[axis], a->stride[axis], &rest) + 1;
  *last = smaller(split(end, a->stride[axis], &rest) + 1, a->small[axis]);
}

typedef struct __attribute__((aligned(8))) eight_places { uint8_t v[POOL_CHANNELS]; } eight_places;

/* The places of the largest of `valid` channels from element i on. */
BODY void load_places(const uint8_t *p, int64_t i, int valid, int together, int v[POOL_CHANNELS])
{
  if (together == POOL_CHANNELS) {
    eight_places eight = *(const eight_places *)(p + i);
    UNROLL for (int k = 0; k < POOL_CHANNELS; k++) v[k] = eight.v[k];
  } else {
    UNROLL for (int k = 0; k < POOL_CHANNELS; k += 4) load_four_bytes(p, i + k, valid - k, together && k < valid, v + k);
  }
}

BODY void store_places(uint8_t *p, int64_t i, int valid, int together, const int v[POOL_CHANNELS])
{
  if (together == POOL_CHANNELS) {
    eight_places eight;
    UNROLL for (int k = 0; k < POOL_CHANNELS; k++) eight.v[k] = (uint8_t)v[k];
    *(eight_places *)(p + i) = eight;
  } else {
    UNROLL for (int k = 0; k < POOL_CHANNELS; k += 4) store_four_bytes(p, i + k, valid - k, together && k < valid, v + k);
  }
}

#define POOLING_FLOATS
#define BODIES "cuda/ops/pooling/pooling_bodies.h"
#include "cuda/device/for_float32.h"
#include "cuda/device/for_half_floats.h"
#include "cuda/device/for_other.h"
#undef POOLING_FLOATS
#include "cuda/device/for_integers.h"
#undef BODIES

#define POOLING_KERNELS(ELEMENT, BLOCK)                                                                                       \
  ELEMENT(max_pool_float32) ELEMENT(max_pool_half_floats) ELEMENT(max_pool_other) ELEMENT(max_pool_integers)                       \
  ELEMENT(max_pool_gradient_float32) ELEMENT(max_pool_gradient_half_floats) ELEMENT(max_pool_gradient_other)                       \
  ELEMENT(average_pool_float32) ELEMENT(average_pool_half_floats) ELEMENT(average_pool_other)                                      \
  ELEMENT(average_pool_gradient_float32) ELEMENT(average_pool_gradient_half_floats) ELEMENT(average_pool_gradient_other)

#endif
