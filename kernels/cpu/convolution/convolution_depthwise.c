/* convolution_depthwise.c: the inner engines of a depthwise convolution, where every channel has its own kernel:
 * the same as convolution_direct.c and convolution_outer.c with vectors of inputs in the place of broadcasts. */
#include "cpu/convolution/convolution.h"

enum { PIXELS = 6, TAPS = 9 };   /* sums of a tile: a 3 x 3 kernel is one */

/* pixels is a constant at every call, so that sums stays in registers. */
ALWAYS_INLINE void depthwise_tiles(const int pixels, int64_t count, const flow_taps *taps, const float *x, const float *weights,
                                   int64_t weight_step, vf bias, vf_limits within, int64_t lanes, float *y, int64_t y_step)
{
  const int64_t step = taps->pixel_step;
  for (; count > 0; count--, x += pixels * step, y += pixels * y_step) {
    vf sums[PIXELS];
    FLOW_UNROLL(6)
    for (int p = 0; p < pixels; p++) sums[p] = bias;
    const float *w = weights;
    for (int64_t tap = 0; tap < taps->count; tap++, w += weight_step) {
      const float *first = x + taps->offsets[tap];
      vf weight = vf_load(w);
      FLOW_UNROLL(6)
      for (int p = 0; p < pixels; p++) sums[p] += vf_load(first + p * step) * weight;
    }
    FLOW_UNROLL(6)
    for (int p = 0; p < pixels; p++) {
      vf sum = vf_within(sums[p], within);
      if (lanes >= VL) vf_store(y + p * y_step, sum);
      else for (int64_t lane = 0; lane < lanes; lane++) y[p * y_step + lane] = sum[lane];
    }
  }
}

/* One row of outputs, a vector of channels at a time: tiles of PIXELS pixels, then the pixels that are left one by one. */
void flow_depthwise_row(const flow_taps *taps, const float *x, const float *weights, const float *bias, flow_epilogue epilogue,
                        int64_t channels, float *y, int64_t y_step, int64_t width)
{
  int64_t padded = flow_padded_channels(channels), tiles = width / PIXELS, done = tiles * PIXELS;
  for (int64_t c = 0; c < channels; c += VL) {
    vf start = vf_load(bias + c);
    const vf_limits within = vf_limits_of(epilogue);
    depthwise_tiles(PIXELS, tiles, taps, x + c, weights + c, padded, start, within, channels - c, y + c, y_step);
    depthwise_tiles(1, width - done, taps, x + done * taps->pixel_step + c, weights + c, padded, start, within, channels - c,
                    y + done * y_step + c, y_step);
  }
}

/* taps is a constant at every call, so that sums stays in registers. */
ALWAYS_INLINE void depthwise_tile(const int taps, const flow_pixels *pixels, const float *x, const int64_t *offsets, const float *g,
                                  int64_t lanes, float *dw, int64_t dw_step)
{
  /* Lanes beyond the channels are added up as the others are, from whatever the padding holds; they are not stored. */
  vf sums[TAPS];
  FLOW_UNROLL(9)
  for (int t = 0; t < taps; t++) {
    vf part = { 0 };
    if (lanes >= VL && !pixels->anew) part = vf_load(dw + t * dw_step);
    else
      for (int64_t lane = 0; lane < lanes && !pixels->anew; lane++) part[lane] = dw[t * dw_step + lane];
    sums[t] = part;
  }
  for (int64_t row = 0; row < pixels->rows; row++) {
    const float *input = x + row * pixels->x_row_step, *gradient = g + row * pixels->g_row_step;
    for (int64_t column = 0; column < pixels->columns; column++, input += pixels->x_step, gradient += pixels->g_step) {
      vf v = vf_load(gradient);
      FLOW_UNROLL(9)
      for (int t = 0; t < taps; t++) sums[t] += vf_load(input + offsets[t]) * v;
    }
  }
  FLOW_UNROLL(9)
  for (int t = 0; t < taps; t++) {
    const vf sum = sums[t];
    if (lanes >= VL) vf_store(dw + t * dw_step, sum);
    else for (int64_t lane = 0; lane < lanes; lane++) dw[t * dw_step + lane] = sum[lane];
  }
}

/* Nine positions are a kernel of 3 x 3, five a row of a kernel of 5 x 5; the rest goes one by one. */
void flow_depthwise_products(const flow_pixels *pixels, const float *x, const int64_t *offsets, int64_t positions, const float *g,
                             int64_t channels, float *dw, int64_t dw_step)
{
  for (int64_t c = 0; c < channels; c += VL) {
    int64_t tap = 0;
    for (; tap + 9 <= positions; tap += 9)
      depthwise_tile(9, pixels, x + c, offsets + tap, g + c, channels - c, dw + tap * dw_step + c, dw_step);
    for (; tap + 5 <= positions; tap += 5)
      depthwise_tile(5, pixels, x + c, offsets + tap, g + c, channels - c, dw + tap * dw_step + c, dw_step);
    for (; tap < positions; tap++)
      depthwise_tile(1, pixels, x + c, offsets + tap, g + c, channels - c, dw + tap * dw_step + c, dw_step);
  }
}
