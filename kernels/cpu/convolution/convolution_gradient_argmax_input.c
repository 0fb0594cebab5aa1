/* convolution_gradient_argmax_input.c: dx from the maxima of max pooling.
 *
 * A row of a window and some rows of the kernel reach a patch of dx: for windows 2 and kernels 3 wide 4 pixels of each of
 * 3 rows. A vector of input channels of the patch is in registers and slides along the row of windows. For each place in
 * the window the live channels whose maximum it is add gradient times weights around it. Additions to a pixel of dx
 * run in the order of the windows' rows, blocks of channels, and kernel rows: fixed by the shapes. */
#include "cpu/convolution/convolution_gradient_argmax.h"

enum { PATCH = REGISTERS == 32 ? 30 : 15, TILE_ROWS = 3 };   /* sums that leave a register for the gradient */

/* What one pass along a row of windows works on: one row of the windows, from place `first` in them on; some rows of the
 * kernel; one vector of input channels; at most INDEX_BLOCK output channels. */
typedef struct pass {
  const float   *g;
  const uint8_t *index;
  const float   *weights;               /* of the first output channel and kernel row of the pass */
  float         *rows[TILE_ROWS];       /* of the canvas: where the pass's kernel rows fall for place `first` */
  int64_t        windows, channels, g_step, index_step, weight_step, pixel;
  int            first;
} pass;

/* patch += gradient * weights, at one place in the window. */
ALWAYS_INLINE void add_weights(const int kernel_rows, const int kernel_width, const int width, vf gradient, const float *weights,
                               vf *patch)
{
  OWN_REGISTER(weights);
  FLOW_UNROLL(30)
  for (int i = 0; i < kernel_rows * kernel_width; i++)
    patch[i / kernel_width * width + i % kernel_width] += gradient * vf_load(weights + i * VL);
}

/* Patches in registers: stride 1 along the row, windows side by side. The sizes are constants at every call. */
ALWAYS_INLINE void slide(const int kernel_rows, const int kernel_width, const int pool_width, const pass *p)
{
  /* The patch has kernel_rows rows of `width` pixels. The left `kept` pixels of a row were under the window before, too, and stay in
   * registers; the others are loaded for this window, and the left pool_width ones, which no later window reaches, are stored after it. */
  vf patch[PATCH];
  const int width = kernel_width + pool_width - 1, kept = kernel_width - 1;
  const float *g = p->g;
  const uint8_t *index = p->index;
  FLOW_UNROLL(30)
  for (int i = 0; i < kernel_rows * kept; i++) patch[i / kept * width + i % kept] = vf_load(p->rows[i / kept] + i % kept * p->pixel);
  /* Who is live in the next window is known before the loops over this one end, where the processor guesses wrong. */
  uint64_t next[3];
  FLOW_UNROLL(3)
  for (int place = 0; place < pool_width; place++) next[place] = flow_equal_bytes(index, p->first + place, p->channels);
  int64_t at = 0;
  for (int64_t window = 0; window < p->windows; window++, at += pool_width * p->pixel) {
    uint64_t now[3];
    index += p->index_step;
    FLOW_UNROLL(3)
    for (int place = 0; place < pool_width; place++) {
      now[place] = next[place];
      next[place] = flow_equal_bytes(index, p->first + place, p->channels);
    }
    FLOW_UNROLL(30)
    for (int i = 0; i < kernel_rows * pool_width; i++)
      patch[i / pool_width * width + kept + i % pool_width] = vf_load(p->rows[i / pool_width] + at + (kept + i % pool_width) * p->pixel);
    FLOW_UNROLL(3)
    for (int place = 0; place < pool_width; place++) {
      for (uint64_t live = now[place]; live; live &= live - 1) {
        int64_t channel = __builtin_ctzll(live);
        add_weights(kernel_rows, kernel_width, width, vf_set(g[channel]), p->weights + channel * p->weight_step, patch + place);
      }
    }
    FLOW_UNROLL(30)
    for (int i = 0; i < kernel_rows * pool_width; i++)
      vf_store(p->rows[i / pool_width] + at + i % pool_width * p->pixel, patch[i / pool_width * width + i % pool_width]);
    FLOW_UNROLL(30)
    for (int i = 0; i < kernel_rows * kept; i++)
      patch[i / kept * width + i % kept] = patch[i / kept * width + i % kept + pool_width];
    g += p->g_step;
  }
  FLOW_UNROLL(30)
  for (int i = 0; i < kernel_rows * kept; i++) vf_store(p->rows[i / kept] + at + i % kept * p->pixel, patch[i / kept * width + i % kept]);
}

/* The same for any sizes, in memory. */
static void spread(const flow_argmax_layout *l, int64_t kernel_rows, const pass *p)
{
  const flow_geometry *s = &l->s;
  for (int64_t window = 0; window < p->windows; window++) {
    const float *g = p->g + window * p->g_step;
    for (int64_t place = 0; place < s->pool[1]; place++) {
      uint64_t live = flow_equal_bytes(p->index + window * p->index_step, p->first + (int)place, p->channels);
      int64_t at = (window * l->step[1] + place * s->stride[1]) * p->pixel;
      for (; live; live &= live - 1) {
        int64_t channel = __builtin_ctzll(live);
        const vf gradient = vf_set(g[channel]);
        const float *weights = p->weights + channel * p->weight_step;
        for (int64_t row = 0; row < kernel_rows; row++)
          for (int64_t kx = 0; kx < s->kernel[1]; kx++, weights += VL) {
            float *to = p->rows[row] + at + kx * p->pixel;
            vf_store(to, vf_load(to) + gradient * vf_load(weights));
          }
      }
    }
  }
}

/* Kernel rows of a pass: the most whose patches fit in registers. */
static int64_t rows_of_pass(const flow_argmax_layout *l)
{
  int64_t most = PATCH / (l->s.kernel[1] + l->s.pool[1] - 1);
  return most < 1 || most > TILE_ROWS ? TILE_ROWS : most;
}

#define SLIDE(kernel_rows, kernel_width, pool_width) \
  case ((kernel_rows) * 8 + (kernel_width)) * 4 + (pool_width): slide(kernel_rows, kernel_width, pool_width, p); return;

/* One pass along a row of windows: in registers for the sizes that layers have, else in memory. The order of additions is the same. */
static void run_pass(const flow_argmax_layout *l, int64_t kernel_rows, const pass *p)
{
  const flow_geometry *s = &l->s;
  if (s->stride[1] == 1 && s->pool_stride[1] == s->pool[1] && s->kernel[1] < 8 && s->pool[1] < 4) {
    switch ((kernel_rows * 8 + s->kernel[1]) * 4 + s->pool[1]) {
      SLIDE(1, 1, 2) SLIDE(1, 3, 2) SLIDE(1, 5, 2) SLIDE(2, 3, 2) SLIDE(2, 5, 2) SLIDE(3, 3, 2)
      SLIDE(1, 1, 3) SLIDE(1, 3, 3) SLIDE(1, 5, 3) SLIDE(2, 3, 3) SLIDE(2, 5, 3) SLIDE(3, 3, 3)
#if defined(FLOW_ISA_AVX512)
      SLIDE(3, 5, 2) SLIDE(3, 5, 3)
#endif
    }
  }
  spread(l, kernel_rows, p);
}

/* Walks vectors of input channels, blocks of output channels, rows of the windows, and groups of kernel rows, in this order: the order
 * in which a pixel of dx is added to. */
void flow_argmax_input(const flow_argmax_layout *l, const flow_argmax_rows *windows, const float *weights, float *const *rows)
{
  const flow_geometry *s = &l->s;
  int64_t positions = s->kernel[0] * s->kernel[1], most = rows_of_pass(l);
  pass p = {
    .windows = s->result[1], .g_step = l->channels, .index_step = l->index_channels, .weight_step = positions * VL, .pixel = l->pixel,
  };
  for (int64_t input = 0; input < s->channels_in; input += VL) {
    for (int64_t channel = 0; channel < s->channels_out; channel += INDEX_BLOCK) {
      p.channels = s->channels_out - channel < INDEX_BLOCK ? s->channels_out - channel : INDEX_BLOCK;
      p.g = windows->g + channel;
      p.index = windows->index + channel;
      for (int64_t wy = 0; wy < s->pool[0]; wy++) {
        p.first = (int)(wy * s->pool[1]);
        for (int64_t ky = 0; ky < s->kernel[0]; ky += most) {
          int64_t count = s->kernel[0] - ky < most ? s->kernel[0] - ky : most;
          for (int64_t i = 0; i < count; i++) p.rows[i] = rows[wy * s->stride[0] + ky + i] + input;
          p.weights = weights + ((input / VL * s->channels_out + channel) * positions + ky * s->kernel[1]) * VL;
          run_pass(l, count, &p);
        }
      }
    }
  }
}
