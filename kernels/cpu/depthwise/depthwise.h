/* depthwise.h: the engines of the depthwise variant (depthwise.c), for one block of at most VL channels of one image.
 *
 * In a depthwise convolution every channel has its own kernel, so lanes are channels and a tap is one vector of
 * weights. Nothing is padded or copied: taps that fall beside the image are left out. */
#ifndef FLOW_CPU_DEPTHWISE_DEPTHWISE_H
#define FLOW_CPU_DEPTHWISE_DEPTHWISE_H

#include "cpu/convolution/convolution.h"

/* One axis of a convolution without padding in memory: result t sees source t * stride + origin + k * step for the taps
 * k = 0 .. taps - 1, as far as they are within 0 .. source - 1. */
typedef struct flow_depthwise_axis { int64_t source, result, taps, stride, origin, step; } flow_depthwise_axis;

/* Rows ([0]) and columns ([1]) of the planes; floats between them. */
typedef struct flow_depthwise_plane {
  flow_depthwise_axis axis[2];
  int64_t source_step[2], result_step[2];
  int     lanes;                        /* channels of this block, at most VL */
  const float *zeros;                   /* as many as a row of the source has */
} flow_depthwise_plane;

#define flow_depthwise_floats FLOW_ISA_NAME(depthwise_floats)
#define flow_depthwise_pack FLOW_ISA_NAME(depthwise_pack)
#define flow_depthwise_band FLOW_ISA_NAME(depthwise_band)
#define flow_depthwise_convolve  FLOW_ISA_NAME(depthwise_convolve)
#define flow_depthwise_gradient  FLOW_ISA_NAME(depthwise_gradient)

/* Blocks of channels. */
static inline int64_t flow_depthwise_blocks(const flow_geometry *s)
{
  return (s->channels_in + VL - 1) / VL;
}

/* What the forward pass reads of the kernel, in flow_depthwise_floats() floats: per block the taps, times the input's scale, then the
 * biases of all blocks, then a row of zeros, which stands for rows beside the image. b may be NULL. */
size_t flow_depthwise_floats(const flow_geometry *s);
void flow_depthwise_pack(const flow_geometry *s, const float *w, const float *b, float *packed);

/* Rows first .. last - 1 of the result and its blocks [begin, end) of channels. x: the image; y: where row `first` goes. */
void flow_depthwise_band(const flow_geometry *s, const float *packed, const float *x, int64_t first, int64_t last, int64_t begin,
                         int64_t end, float *y);

/* result = bias + sum over taps of source * weights, within the epilogue's limits, for the result rows first .. last - 1.
 * weights: [tap][VL] row by row, bias: [VL]. */
void flow_depthwise_convolve(const flow_depthwise_plane *plane, int64_t first, int64_t last, const float *source, const float *weights,
                             const float *bias, flow_epilogue epilogue, float *result);

/* sums[tap][VL] += sum over the result rows first .. last - 1 and their columns, in a fixed order, of source * g. */
void flow_depthwise_gradient(const flow_depthwise_plane *plane, int64_t first, int64_t last, const float *source, const float *g,
                             float *sums);

/* The taps of result t that are within the source: *begin .. *end - 1. */
static inline void flow_depthwise_taps(const flow_depthwise_axis *axis, int64_t t, int64_t *begin, int64_t *end)
{
  int64_t first = t * axis->stride + axis->origin, room = axis->source - 1 - first;
  int64_t low = first < 0 ? (-first + axis->step - 1) / axis->step : 0, high = room < 0 ? 0 : room / axis->step + 1;
  *end = high < axis->taps ? high : axis->taps;
  *begin = low < *end ? low : *end;
}

/* The results that see all taps: *begin .. *end - 1. */
static inline void flow_depthwise_middle(const flow_depthwise_axis *axis, int64_t *begin, int64_t *end)
{
  int64_t room = axis->source - 1 - axis->origin - (axis->taps - 1) * axis->step;
  int64_t low = axis->origin < 0 ? (-axis->origin + axis->stride - 1) / axis->stride : 0, high = room < 0 ? 0 : room / axis->stride + 1;
  if (axis->taps == 0) low = 0, high = axis->result;
  *end = high < axis->result ? high : axis->result;
  if (*end < 0) *end = 0;
  *begin = low < *end ? low : *end;
}

/* How many of the result rows row .. last - 1 see the same kernel rows as the first of them, and which these are. */
static inline int64_t flow_depthwise_equal_rows(const flow_depthwise_plane *plane, int64_t row, int64_t last, int64_t *begin, int64_t *end)
{
  int64_t top, bottom;
  flow_depthwise_taps(&plane->axis[0], row, begin, end);
  flow_depthwise_middle(&plane->axis[0], &top, &bottom);
  return row >= top && row < bottom ? (bottom < last ? bottom : last) - row : 1;
}

/* A 3 x 3 kernel over neighbours, the usual one. */
static inline int flow_depthwise_three(const flow_depthwise_plane *plane)
{
  for (int i = 0; i < 2; i++) {
    const flow_depthwise_axis *a = &plane->axis[i];
    if (a->taps != 3 || a->stride != 1 || a->step != 1 || a->origin > 0 || a->origin < -2) return 0;
  }
  return 1;
}

/* Row `row` of the source, or of zeros beside it. */
static inline const float *flow_depthwise_source_row(const flow_depthwise_plane *plane, const float *source, int64_t row)
{
  return row >= 0 && row < plane->axis[0].source ? source + row * plane->source_step[0] : plane->zeros;
}

/* A vector of channels, or, if it is a part, its first `lanes`; `part` is known when this is compiled. */
ALWAYS_INLINE vf flow_depthwise_load(const int part, const float *p, int lanes) { return part ? vf_load_part(p, lanes) : vf_load(p); }

#endif
