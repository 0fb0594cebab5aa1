/* pooling.c: max_pool (x -> y, index) and its gradient (g, index -> dx). index is the position of the maximum in its window, row by row,
 * padding counted; of equal elements the first one. Images are NHWC: vectors run along the channels, which are packed, so that a window is
 * a few loads at fixed distances. A maximum rounds nothing: all variants give the same bits, whatever the order. NaN wins over numbers
 * (flow_pool_take). */
#include <math.h>
#include "cpu/pooling/pool_window.h"
#include "cpu/pooling/pooling.h"

/* ---- float32, vectorised over channels ---------------------------------------------------------------------------------- */

/* One vector of channels of one window; x: its first inside pixel, first_k: that pixel's position in the window. rows, columns: of the part
 * of the window that is inside of the image, at least one of each. lanes: how many channels are left; a constant VL for whole vectors, so
 * that these have no masks. */
ALWAYS_INLINE vf window_maximum(const float *x, int lanes, int64_t rows, int64_t columns, int64_t row_step, int64_t column_step,
                                int64_t first_k, int64_t window_width, vi *index)
{
  vf best = lanes == VL ? vf_load(x) : vf_load_part(x, lanes);
  vi argmax = (vi){ 0 } + (int32_t)first_k;
  for (int64_t ky = 0; ky < rows; ky++) {
    for (int64_t kx = 0; kx < columns; kx++) {
      const float *from = x + ky * row_step + kx * column_step;
      vf value = lanes == VL ? vf_load(from) : vf_load_part(from, lanes);
      flow_pool_take(&best, &argmax, value, (int32_t)(first_k + ky * window_width + kx));
    }
  }
  *index = argmax;
  return best;
}

/* Rows [first_row, last_row) of the results of one image. y and index may be NULL: nobody reads them. A window of padding only has no
 * maximum: -infinity, and NO_ARGMAX, which sends no gradient. */
static void pool_image(const flow_pooling *s, const float *x, float *y, uint8_t *index, int64_t first_row, int64_t last_row)
{
  int64_t row_step = s->in[1] * s->channels;
  for (int64_t row = first_row; row < last_row; row++) {
    int64_t top, bottom, left, right;
    pooling_clip(s, 0, row, &top, &bottom);
    for (int64_t column = 0; column < s->out[1]; column++) {
      pooling_clip(s, 1, column, &left, &right);
      int64_t at = (row * s->out[1] + column) * s->channels;
      if (top >= bottom || left >= right) {   /* padding only */
        for (int64_t c = 0; c < s->channels; c++) {
          if (y) y[at + c] = -__builtin_inff();
          if (index) index[at + c] = NO_ARGMAX;
        }
        continue;
      }
      const float *first = x + (row * s->stride[0] - s->before[0] + top) * row_step
                             + (column * s->stride[1] - s->before[1] + left) * s->channels;
      int64_t k = top * s->size[1] + left, c = 0;
      vi argmax;
      for (; c + VL <= s->channels; c += VL) {
        vf best = window_maximum(first + c, VL, bottom - top, right - left, row_step, s->channels, k, s->size[1], &argmax);
        if (y) vf_store(y + at + c, best);
        if (index) vi_store_bytes(index + at + c, argmax);
      }
      if (c < s->channels) {
        int lanes = (int)(s->channels - c);
        vf best = window_maximum(first + c, lanes, bottom - top, right - left, row_step, s->channels, k, s->size[1], &argmax);
        if (y) vf_store_part(y + at + c, best, lanes);
        for (int lane = 0; lane < lanes && index; lane++) index[at + c + lane] = (uint8_t)argmax[lane];
      }
    }
  }
}

/* Some rows of one image (pooling_rows). of: the image, and which rows of its results. */
static void pool_vectors(const flow_call *call, const flow_pooling *s, flow_piece of)
{
  const float *x = call->inputs[0].data;
  float *y = call->outputs[0].data;
  uint8_t *index = call->outputs[1].data;
  int64_t input = s->in[0] * s->in[1] * s->channels, output = s->out[0] * s->out[1] * s->channels;
  pool_image(s, x + of.image * input, y ? y + of.image * output : NULL, index ? index + of.image * output : NULL, of.first, of.last);
}

/* All rows of all images, and the rows of one piece: windows only read, so that any rows can be done apart. */
static flow_status run_vector(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  return pooling_run(call, pool_vectors);
}

static flow_status run_vector_piece(const flow_call *call, int64_t piece)
{
  return pooling_run_piece(call, pool_vectors, piece);
}

/* ---- bytes, of which nobody asks the positions ------------------------------------------------------------------------------ */

/* The largest bytes of a window, in all channels; x: its first cell inside the image. Order and signedness of bytes are those of the
 * numbers that they stand for (byte_range.h), so that the largest byte is the largest number. */
static void pool_byte_window(const uint8_t *x, int64_t rows, int64_t columns, int64_t row_step, int64_t channels, uint8_t *y)
{
  int64_t c = 0;
#if defined(FLOW_ISA_AVX512) || defined(FLOW_ISA_AVX2)
  for (; c + 16 <= channels; c += 16) {
    __m128i best = _mm_setzero_si128();
    for (int64_t ky = 0; ky < rows; ky++)
      for (int64_t kx = 0; kx < columns; kx++)
        best = _mm_max_epu8(best, _mm_loadu_si128((const __m128i *)(const void *)(x + ky * row_step + kx * channels + c)));
    _mm_storeu_si128((__m128i *)(void *)(y + c), best);
  }
#endif
  for (; c < channels; c++) {
    uint8_t best = 0;
    for (int64_t ky = 0; ky < rows; ky++)
      for (int64_t kx = 0; kx < columns; kx++)
        best = x[ky * row_step + kx * channels + c] > best ? x[ky * row_step + kx * channels + c] : best;
    y[c] = best;
  }
}

/* Some rows of one image. A window of padding only would be 0, the lowest byte; the loops over it do nothing. */
static void pool_bytes(const flow_call *call, const flow_pooling *s, flow_piece of)
{
  const uint8_t *x = (const uint8_t *)call->inputs[0].data + of.image * s->in[0] * s->in[1] * s->channels;
  uint8_t *y = call->outputs[0].data;
  if (!y) return;
  y += (of.image * s->out[0] + of.first) * s->out[1] * s->channels;
  for (int64_t row = of.first; row < of.last; row++) {
    int64_t top, bottom, left, right;
    pooling_clip(s, 0, row, &top, &bottom);
    for (int64_t column = 0; column < s->out[1]; column++, y += s->channels) {
      pooling_clip(s, 1, column, &left, &right);
      int64_t first = (row * s->stride[0] - s->before[0] + top) * s->in[1] + column * s->stride[1] - s->before[1] + left;
      pool_byte_window(x + first * s->channels, bottom - top, right - left, s->in[1] * s->channels, s->channels, y);
    }
  }
}

/* The same for bytes. */
static flow_status run_bytes(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  return pooling_run(call, pool_bytes);
}

static flow_status run_bytes_piece(const flow_call *call, int64_t piece)
{
  return pooling_run_piece(call, pool_bytes, piece);
}

/* ---- gradient --------------------------------------------------------------------------------------------------------------- */

/* dx[i] += g[i] where index[i] is k. n channels of one cell; windows that overlap add to it one after the other, in the order of windows.
 * */
static void add_argmax(float *dx, const float *g, const uint8_t *index, int32_t k, int64_t n)
{
  int64_t i = 0;
  for (; i + VL <= n; i += VL) {
    vf won = (vf)((vi)vf_load(g + i) & (vi_load_bytes(index + i) == k));
    vf_store(dx + i, vf_load(dx + i) + won);
  }
  for (; i < n; i++)
    if (index[i] == k) dx[i] += g[i];
}

/* Each cell of each window adds g in the channels whose maximum it was; which one that was is a comparison of bytes, without branches. The
 * loop over windows is not cut into pieces: two windows may add to one cell. */
static flow_status run_vector_gradient(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  flow_pooling s = pooling_of(call, &call->outputs[0], &call->inputs[0]);
  const float *g = call->inputs[0].data;
  const uint8_t *index = call->inputs[1].data;
  float *dx = call->outputs[0].data;
  if (!dx) return FLOW_OK;
  int64_t input = s.in[0] * s.in[1] * s.channels, at = 0;
  memset(dx, 0, (size_t)(s.images * input) * sizeof(float));
  for (int64_t image = 0; image < s.images; image++, dx += input) {
    for (int64_t row = 0; row < s.out[0]; row++) {
      int64_t top, bottom, left, right;
      pooling_clip(&s, 0, row, &top, &bottom);
      for (int64_t column = 0; column < s.out[1]; column++, at += s.channels) {
        pooling_clip(&s, 1, column, &left, &right);
        for (int64_t ky = top; ky < bottom; ky++) {
          for (int64_t kx = left; kx < right; kx++) {
            int64_t pixel = (row * s.stride[0] - s.before[0] + ky) * s.in[1] + column * s.stride[1] - s.before[1] + kx;
            add_argmax(dx + pixel * s.channels, g + at, index + at, (int32_t)(ky * s.size[1] + kx), s.channels);
          }
        }
      }
    }
  }
  return FLOW_OK;
}

/* ---- plain: every dtype ----------------------------------------------------------------------------------------------------- */

/* For each dtype by the definition. LOWEST: what a window of padding only gives. */
#define TYPE float
#define LOWEST (-__builtin_inff())
#define PLAIN(name) name##_float
#include "cpu/pooling/pooling_plain.h"
#undef TYPE
#undef LOWEST
#undef PLAIN

#define TYPE double
#define LOWEST (-__builtin_inf())
#define PLAIN(name) name##_double
#include "cpu/pooling/pooling_plain.h"
#undef TYPE
#undef LOWEST
#undef PLAIN

#define TYPE int8_t
#define LOWEST INT8_MIN
#define PLAIN(name) name##_int8
#include "cpu/pooling/pooling_plain.h"
#undef TYPE
#undef LOWEST
#undef PLAIN

#define TYPE uint8_t
#define LOWEST 0
#define PLAIN(name) name##_uint8
#include "cpu/pooling/pooling_plain.h"
#undef TYPE
#undef LOWEST
#undef PLAIN

#define TYPE int32_t
#define LOWEST INT32_MIN
#define PLAIN(name) name##_int32
#include "cpu/pooling/pooling_plain.h"
#undef TYPE
#undef LOWEST
#undef PLAIN

#define TYPE int64_t
#define LOWEST INT64_MIN
#define PLAIN(name) name##_int64
#include "cpu/pooling/pooling_plain.h"
#undef TYPE
#undef LOWEST
#undef PLAIN

/* By dtype; the 16-bit floats arrive as float32 (VIA_FLOAT). */
static void (*const pool_images[FLOW_DTYPE_COUNT])(const flow_pooling *, const void *, void *, uint8_t *) = {
  [FLOW_FLOAT32] = pool_images_float, [FLOW_FLOAT64] = pool_images_double, [FLOW_INT8] = pool_images_int8,
  [FLOW_UINT8] = pool_images_uint8, [FLOW_BOOL] = pool_images_uint8, [FLOW_INT32] = pool_images_int32, [FLOW_INT64] = pool_images_int64,
};

/* Every dtype, one channel of one window after the other. */
static flow_status run_plain(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  flow_pooling s = pooling_of(call, &call->inputs[0], &call->outputs[0]);
  pool_images[call->inputs[0].dtype](&s, call->inputs[0].data, call->outputs[0].data, call->outputs[1].data);
  return FLOW_OK;
}

/* dx of float32 or float64 by one loop: the maximum's position says where g goes. An index is data, which nobody has checked if it comes
 * from a raw op: one that is not a cell of the window, or is in the padding, passes no gradient on, as in the vector variant. */
static flow_status run_plain_gradient(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  flow_pooling s = pooling_of(call, &call->outputs[0], &call->inputs[0]);
  const uint8_t *index = call->inputs[1].data;
  void *dx = call->outputs[0].data;
  if (!dx) return FLOW_OK;
  int wide = call->inputs[0].dtype == FLOW_FLOAT64;
  int64_t input = s.in[0] * s.in[1] * s.channels, output = s.out[0] * s.out[1] * s.channels;
  memset(dx, 0, (size_t)(s.images * input) * (wide ? sizeof(double) : sizeof(float)));
  for (int64_t i = 0; i < s.images * output; i++) {
    if (index[i] >= s.size[0] * s.size[1]) continue; /* NO_ARGMAX, too */
    int64_t c = i % s.channels, column = i / s.channels % s.out[1], row = i / s.channels / s.out[1] % s.out[0], image = i / output;
    int64_t iy = row * s.stride[0] - s.before[0] + index[i] / s.size[1], ix = column * s.stride[1] - s.before[1] + index[i] % s.size[1];
    if (iy < 0 || iy >= s.in[0] || ix < 0 || ix >= s.in[1]) continue;
    int64_t at = image * input + (iy * s.in[1] + ix) * s.channels + c;
    if (wide) ((double *)dx)[at] += ((const double *)call->inputs[0].data)[i];
    else ((float *)dx)[at] += ((const float *)call->inputs[0].data)[i];
  }
  return FLOW_OK;
}

static int supports_vector(const flow_call *call) { return call->inputs[0].dtype == FLOW_FLOAT32; }
/* A comparison of bytes finds no position: this variant is for predictions, where nothing reads the index. */
static int supports_bytes(const flow_call *call)
{
  return call->inputs[0].dtype == FLOW_UINT8 && call->outputs[1].unused;
}

const flow_kernel FLOW_KERNELS(max_pool)[] = {
  { .variant = "vector", .supports = supports_vector, .run = run_vector, .pieces = pooling_count_pieces, .run_piece = run_vector_piece },
  { .variant = "bytes", .supports = supports_bytes, .run = run_bytes, .pieces = pooling_count_pieces, .run_piece = run_bytes_piece },
  { .variant = "plain", .run = run_plain },
  { 0 }
};

const flow_kernel FLOW_KERNELS(max_pool_gradient)[] = {
  { .variant = "vector", .supports = supports_vector, .run = run_vector_gradient },
  { .variant = "plain", .run = run_plain_gradient },
  { 0 }
};
