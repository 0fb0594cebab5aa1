/* convolution_pooled.c: one row of 2 x 2 max pooling over a direct convolution, in registers: the outputs of the convolution
 * are never written.
 *
 * A tile is that of convolution_direct.c, folded over two rows: every vector of weights meets both, and the four outputs of
 * a window end up in registers, where the largest of them is found. */
#include "cpu/convolution/convolution.h"

enum { WINDOWS_1 = REGISTERS == 32 ? 6 : 3, WINDOWS_2 = REGISTERS == 32 ? 3 : 1, SUMS = 4 * WINDOWS_1 };   /* 8 x WINDOWS_2 at most */

/* Writes a window's largest value and where it was, or NO_ARGMAX: the rules of flow_pool_take. */
ALWAYS_INLINE void finish_window(const vf values[4], int relu, int64_t lanes, float *y, uint8_t *index)
{
  vf best = values[0];
  vi argmax = { 0 };
  FLOW_UNROLL(4)
  for (int k = 1; k < 4; k++) flow_pool_take(&best, &argmax, values[k], k);
  if (relu) flow_pool_relu(&best, &argmax);
  if (lanes >= VL) {
    if (y) vf_store(y, best);
    if (index) vi_store_bytes(index, argmax);
  } else {
    for (int64_t lane = 0; lane < lanes && y; lane++) y[lane] = best[lane];
    for (int64_t lane = 0; lane < lanes && index; lane++) index[lane] = (uint8_t)argmax[lane];
  }
}

/* `count` tiles one after the other. vectors and windows are constants at every call, so that sums stays in registers. */
ALWAYS_INLINE void pooled_tiles(const int vectors, const int windows, int64_t count, const flow_taps *taps, const float *x,
                                int64_t row_step, const float *weights, const float *bias, int relu, int64_t channels, float *y,
                                uint8_t *index, int64_t y_step)
{
  const int64_t step = taps->pixel_step;
  const int pixels = 2 * windows;
  for (; count > 0; count--, x += pixels * step) {
    vf sums[SUMS];
    FLOW_UNROLL(24)
    for (int i = 0; i < 2 * pixels * vectors; i++) sums[i] = vf_load(bias + i % vectors * VL);
    const float *w = weights;
    int64_t tap = 0;
    do {
      const float *first = x + taps->offsets[tap], *end = first + taps->run, *second = first + row_step;
      do {
        vf v[2];
        FLOW_UNROLL(2)
        for (int b = 0; b < vectors; b++, w += VL) v[b] = vf_load(w);
        FLOW_UNROLL(12)
        for (int p = 0; p < pixels; p++) {
          vf above = vf_set(first[p * step]), below = vf_set(second[p * step]);
          FLOW_UNROLL(2)
          for (int b = 0; b < vectors; b++) {
            sums[p * vectors + b] += above * v[b];
            sums[(pixels + p) * vectors + b] += below * v[b];
          }
        }
        second++;
      } while (++first != end);
    } while (++tap != taps->count);
    FLOW_UNROLL(6)
    for (int window = 0; window < windows; window++) {
      FLOW_UNROLL(2)
      for (int b = 0; b < vectors; b++) {
        const vf values[4] = { sums[2 * window * vectors + b], sums[(2 * window + 1) * vectors + b],
                               sums[(pixels + 2 * window) * vectors + b], sums[(pixels + 2 * window + 1) * vectors + b] };
        finish_window(values, relu, channels - b * VL, y ? y + b * VL : NULL, index ? index + b * VL : NULL);
      }
      if (y) y += y_step;
      if (index) index += y_step;
    }
  }
}

#define TILES(vectors, windows)                                                                                             \
  case windows:                                                                                                             \
    pooled_tiles(vectors, windows, count, taps, x, row_step, weights, bias, relu, channels, y, index, y_step);              \
    break;

/* The number of windows as a constant, so that each case has its sums in registers: tiles of one and of two vectors of channels. */
static void pooled_tiles_1(int64_t windows, int64_t count, const flow_taps *taps, const float *x, int64_t row_step, const float *weights,
                           const float *bias, int relu, int64_t channels, float *y, uint8_t *index, int64_t y_step)
{
  switch (windows) {
    TILES(1, 1) TILES(1, 2) TILES(1, 3)
#if defined(FLOW_ISA_AVX512)
    TILES(1, 4) TILES(1, 5) TILES(1, 6)
#endif
  }
}

/* The same with two vectors of channels in each window, whose four sums each then are eight registers of AVX2's sixteen: one window at a
 * time. */
static void pooled_tiles_2(int64_t windows, int64_t count, const flow_taps *taps, const float *x, int64_t row_step, const float *weights,
                           const float *bias, int relu, int64_t channels, float *y, uint8_t *index, int64_t y_step)
{
  switch (windows) {
    TILES(2, 1)
#if defined(FLOW_ISA_AVX512)
    TILES(2, 2) TILES(2, 3)
#endif
  }
}

/* The row is cut into the fewest tiles, whose widths differ by one at most. */
void flow_convolve_pooled_row(const flow_taps *taps, const float *x, int64_t row_step, const float *weights, const float *bias,
                              int relu, int64_t channels, float *y, uint8_t *index, int64_t y_step, int64_t width)
{
  if (width == 0) return;
  int two = channels > VL;
  int64_t widest = two ? WINDOWS_2 : WINDOWS_1;
  int64_t tiles = (width + widest - 1) / widest, narrow = width / tiles, wide_tiles = width % tiles;
  int64_t split = wide_tiles * (narrow + 1);
  const float *rest = x + 2 * split * taps->pixel_step;
  float *y_rest = y ? y + split * y_step : NULL;
  uint8_t *index_rest = index ? index + split * y_step : NULL;
  if (two) {
    pooled_tiles_2(narrow + 1, wide_tiles, taps, x, row_step, weights, bias, relu, channels, y, index, y_step);
    pooled_tiles_2(narrow, tiles - wide_tiles, taps, rest, row_step, weights, bias, relu, channels, y_rest, index_rest, y_step);
  } else {
    pooled_tiles_1(narrow + 1, wide_tiles, taps, x, row_step, weights, bias, relu, channels, y, index, y_step);
    pooled_tiles_1(narrow, tiles - wide_tiles, taps, rest, row_step, weights, bias, relu, channels, y_rest, index_rest, y_step);
  }
}
