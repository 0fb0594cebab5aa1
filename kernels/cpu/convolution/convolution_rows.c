/* convolution_rows.c: rows of the gradient of a convolution's own output, which all gradient kernels begin with. */
#include "cpu/convolution/convolution.h"

/* to[i] = (or +=, with add) g[i] where index[i] is k, else 0. */
ALWAYS_INLINE void take_argmax(float *to, const float *g, const uint8_t *index, int32_t k, int64_t n, const int add)
{
  int64_t i = 0;
  for (; i + VL <= n; i += VL) {
    vf won = (vf)((vi)vf_load(g + i) & (vi_load_bytes(index + i) == k));
    vf_store(to + i, add ? vf_load(to + i) + won : won);
  }
  for (; i < n; i++) {
    float won = index[i] == k ? g[i] : 0.0f;
    to[i] = add ? to[i] + won : won;
  }
}

/* Row `row` of the gradient g of the convolution's own output, `step` floats from pixel to pixel in `to`. Without pooling it is g, or 0
 * where relu stopped y. With pooling each pixel gets the gradient of every window whose maximum it was (index: the position in the window).
 * Windows that overlap add to pixels, which are then set to 0 first; where they do not, each pixel is written once, and only those that no
 * window covers are set to 0. */
void flow_gradient_row(const flow_geometry *s, int64_t row, const float *g, const float *y, const uint8_t *index, float *to, int64_t step)
{
  int64_t channels = s->channels_out;
  if (!s->pooled) {
    int64_t at = row * s->out[1] * channels, pixels = s->out[1];
    int64_t floats = channels;
    if (step == channels) floats *= pixels, pixels = 1;
    for (int64_t p = 0; p < pixels; p++, at += floats, to += step) {
      if (!s->relu) memcpy(to, g + at, (size_t)floats * sizeof(float));
      else for (int64_t i = 0; i < floats; i++) to[i] = y[at + i] > 0.0f ? g[at + i] : 0.0f;
    }
    return;
  }
  int overlap = s->pool_stride[0] < s->pool[0] || s->pool_stride[1] < s->pool[1];
  int64_t covered = 0;              /* pixels written without overlap; the rest is zeroed */
  int64_t window = row / s->pool_stride[0];
  int64_t lowest = row < s->pool[0] ? 0 : (row - s->pool[0]) / s->pool_stride[0] + 1;
  if (window > s->result[0] - 1) window = s->result[0] - 1;
  if (!overlap && s->pool_stride[1] == s->pool[1] && window >= lowest) covered = s->result[1] * s->pool[1];
  for (int64_t p = covered; p < s->out[1]; p++) memset(to + p * step, 0, (size_t)channels * sizeof(float));
  for (; lowest <= window; lowest++) {
    int32_t first = (int32_t)((row - lowest * s->pool_stride[0]) * s->pool[1]);
    for (int64_t px = 0; px < s->result[1]; px++) {
      int64_t at = (lowest * s->result[1] + px) * channels;
      for (int64_t kx = 0; kx < s->pool[1]; kx++) {
        float *pixel = to + (px * s->pool_stride[1] + kx) * step;
        if (overlap) take_argmax(pixel, g + at, index + at, first + (int32_t)kx, channels, 1);
        else take_argmax(pixel, g + at, index + at, first + (int32_t)kx, channels, 0);
      }
    }
  }
}

/* Four sums of every fourth pixel, then these, so that additions overlap. */
void flow_sum_row(float *db, const float *row, int64_t step, int64_t pixels, int64_t channels)
{
  int64_t c = 0;
  for (; c + VL <= channels; c += VL) {
    vf sums[4] = { { 0 } };
    const float *from = row + c;
    int64_t p = 0;
    for (; p + 4 <= pixels; p += 4, from += 4 * step)
      for (int k = 0; k < 4; k++) sums[k] += vf_load(from + k * step);
    for (; p < pixels; p++, from += step) sums[0] += vf_load(from);
    vf_store(db + c, vf_load(db + c) + ((sums[0] + sums[1]) + (sums[2] + sums[3])));
  }
  for (; c < channels; c++)
    for (int64_t p = 0; p < pixels; p++) db[c] += row[p * step + c];
}
