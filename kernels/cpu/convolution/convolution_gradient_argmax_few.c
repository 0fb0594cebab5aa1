/* convolution_gradient_argmax_few.c: dw and db of a first layer, whose few input channels would leave most lanes of a list's
 * products empty. Lanes are output channels here: for every tap each lane picks the x under its own maximum from two rows in
 * registers. One permutation and one product stand for as many products as a window has pixels. Only AVX-512 permutes two
 * registers by one index, and as fast as it multiplies. */
#include "cpu/convolution/convolution_gradient_argmax.h"

#if defined(FLOW_ISA_AVX512) && defined(__AVX512F__)

enum { ROWS = 3, MOST = 9 };            /* kernel rows; floats of each that a pass takes: 27 sums */

/* Floats of a row that the maxima of a window spread over. */
static int64_t window_floats(const flow_geometry *s) { return (s->pool[1] - 1) * s->stride[1] * s->channels_in; }

/* Kernel row ky sees, under the two rows of a window, rows ky and ky + 1 of x. Of each a register holds all that the maxima of one window
 * reach with MOST neighbouring taps. At least half of the lanes must be channels: the others compute for nothing. */
int flow_argmax_few_fit(const flow_geometry *s)
{
  int64_t lanes = (s->channels_out + VL - 1) / VL * VL;
  return s->kernel[0] == ROWS && s->pool[0] == 2 && s->stride[0] == 1 && s->channels_in <= 4 && window_floats(s) + MOST <= VL
      && 2 * s->channels_out >= lanes;
}

/* dw for kernel positions `first` .. + width - 1 of each kernel row, counted in floats, of VL channels; db where it is not
 * NULL. width is a constant at every call. */
ALWAYS_INLINE void add_positions(const int width, const flow_argmax_layout *l, const flow_argmax_rows *rows, const float *x,
                                 int64_t first, int64_t channel, float *sums, float *db)
{
  const flow_geometry *s = &l->s;
  const int64_t run = s->kernel[1] * s->channels_in;
  const int32_t pool_width = (int32_t)s->pool[1], cells = pool_width * (int32_t)s->pool[0], step = (int32_t)(s->stride[1] * s->channels_in);
  __m512 tile[ROWS * MOST], total = db ? _mm512_loadu_ps(db) : _mm512_setzero_ps();
  FLOW_UNROLL(27)
  for (int i = 0; i < ROWS * width; i++) tile[i] = _mm512_loadu_ps(sums + (i / width * run + first + i % width) * l->channels + channel);
  for (int64_t row = 0; row < rows->count; row++) {
    const float *g = rows->g + row * s->result[1] * l->channels + channel, *from = x + row * l->step[0] * l->x_row + first;
    const uint8_t *index = rows->index + row * l->index_pixels * l->index_channels + channel;
    for (int64_t p = 0; p < s->result[1]; p++, g += l->channels, index += l->index_channels, from += l->step[1] * s->channels_in) {
      vi argmax = vi_load_bytes(index), lower = (argmax >= pool_width) & 1;
      vi place = (argmax - lower * pool_width) * step + lower * VL;     /* in the upper or in the lower register */
      __mmask16 live = (__mmask16)vi_below(argmax, cells);
      __m512 gradient = _mm512_loadu_ps(g), input[ROWS + 1];
      total = _mm512_mask_add_ps(total, live, total, gradient);
      FLOW_UNROLL(4)
      for (int ky = 0; ky <= ROWS; ky++) input[ky] = _mm512_loadu_ps(from + ky * l->x_row);
      FLOW_UNROLL(9)
      for (int i = 0; i < width; i++, place += 1) {
        FLOW_UNROLL(3)
        for (int ky = 0; ky < ROWS; ky++) {
          __m512 picked = _mm512_permutex2var_ps(input[ky], (__m512i)place, input[ky + 1]);
          tile[ky * width + i] = _mm512_mask3_fmadd_ps(gradient, picked, tile[ky * width + i], live);
        }
      }
    }
  }
  FLOW_UNROLL(27)
  for (int i = 0; i < ROWS * width; i++) _mm512_storeu_ps(sums + (i / width * run + first + i % width) * l->channels + channel, tile[i]);
  if (db) _mm512_storeu_ps(db, total);
}

#define POSITIONS(width) case width: add_positions(width, l, rows, x, first, channel, sums, with_db ? total : NULL); break;

void flow_argmax_few(const flow_argmax_layout *l, const flow_argmax_rows *rows, const float *x, float *sums, float *db)
{
  const flow_geometry *s = &l->s;
  /* Passes of nearly equal width over the taps of a kernel row. Gradients are the same in each of them, so that db is added up in the first
   * one only. */
  int64_t run = s->kernel[1] * s->channels_in, passes = (run + MOST - 1) / MOST, wide = (run + passes - 1) / passes;
  for (int64_t channel = 0; channel < s->channels_out; channel += VL) {
    int lanes = s->channels_out - channel < VL ? (int)(s->channels_out - channel) : VL;
    float total[VL] = { 0 };
    if (db) memcpy(total, db + channel, (size_t)lanes * sizeof(float));
    for (int64_t first = 0; first < run; first += wide) {
      int with_db = db && first == 0;
      switch (run - first < wide ? run - first : wide) {
        POSITIONS(1) POSITIONS(2) POSITIONS(3) POSITIONS(4) POSITIONS(5) POSITIONS(6) POSITIONS(7) POSITIONS(8) POSITIONS(9)
      }
    }
    if (db) memcpy(db + channel, total, (size_t)lanes * sizeof(float));
  }
}

#else

int flow_argmax_few_fit(const flow_geometry *s) { (void)s; return 0; }

void flow_argmax_few(const flow_argmax_layout *l, const flow_argmax_rows *rows, const float *x, float *sums, float *db)
{
  (void)l, (void)rows, (void)x, (void)sums, (void)db;
}

#endif
