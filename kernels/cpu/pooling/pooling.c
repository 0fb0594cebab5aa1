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

/* As window_maximum, where nobody asks which position it was. */
ALWAYS_INLINE vf window_largest(const float *x, int lanes, int64_t rows, int64_t columns, int64_t row_step, int64_t column_step)
{
  vf best = lanes == VL ? vf_load(x) : vf_load_part(x, lanes);
  for (int64_t ky = 0; ky < rows; ky++) {
    for (int64_t kx = 0; kx < columns; kx++) {
      const float *from = x + ky * row_step + kx * column_step;
      flow_pool_larger(&best, lanes == VL ? vf_load(from) : vf_load_part(from, lanes));
    }
  }
  return best;
}

/* The largest of `count` cells at distances of `step`, for n channels. */
static void take_largest(const float *x, int64_t count, int64_t step, float *y, int64_t n)
{
  int64_t c = 0;
  for (; c + VL <= n; c += VL) vf_store(y + c, window_largest(x + c, VL, count, 1, step, 0));
  if (c < n) vf_store_part(y + c, window_largest(x + c, (int)(n - c), count, 1, step, 0), (int)(n - c));
}

enum { STRIP_FLOATS = 8192 }; /* of the scratch block */

/* Whether the first and the last window of an axis, and so all between, hold a cell. */
static int has_cells(const flow_pooling *s, int axis)
{
  int64_t first, last, begin, end;
  pooling_clip(s, axis, 0, &first, &last);
  pooling_clip(s, axis, s->out[axis] - 1, &begin, &end);
  return first < last && begin < end;
}

/* Whether the largest values of columns are found first: windows overlap, so that several have a column. Not where nobody reads the
 * values, where somebody asks for positions, or where a window has padding only. */
static int goes_by_columns(const flow_call *call, const flow_pooling *s)
{
  if (!call->outputs[0].data || call->outputs[1].data) return 0;
  if (s->size[0] == 1 || s->size[1] <= 2 * s->stride[1] || s->size[1] * s->channels > STRIP_FLOATS) return 0;
  return has_cells(s, 0) && has_cells(s, 1);
}

/* One row of results: the largest of each column of the rows that its windows have, a strip of windows at a time, then those of the
 * windows' columns. */
static void pool_row_by_columns(const flow_pooling *s, const float *x, float *y, int64_t rows, float *strip)
{
  const int64_t most = (STRIP_FLOATS / s->channels - s->size[1]) / s->stride[1] + 1; /* windows of a strip */
  for (int64_t begin = 0; begin < s->out[1]; begin += most) {
    const int64_t end = begin + most < s->out[1] ? begin + most : s->out[1];
    int64_t left, right, unused;
    pooling_clip(s, 1, begin, &left, &unused);
    pooling_clip(s, 1, end - 1, &unused, &right);
    const int64_t first = begin * s->stride[1] - s->before[1] + left, last = (end - 1) * s->stride[1] - s->before[1] + right;
    take_largest(x + first * s->channels, rows, s->in[1] * s->channels, strip, (last - first) * s->channels);
    for (int64_t column = begin; column < end; column++) {
      pooling_clip(s, 1, column, &left, &right);
      const int64_t at = column * s->stride[1] - s->before[1] + left - first;
      take_largest(strip + at * s->channels, right - left, s->channels, y + column * s->channels, s->channels);
    }
  }
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
      for (; !index && y && c + VL <= s->channels; c += VL)
        vf_store(y + at + c, window_largest(first + c, VL, bottom - top, right - left, row_step, s->channels));
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

static void pool_image_by_columns(const flow_pooling *s, const float *x, float *y, int64_t first_row, int64_t last_row, float *strip)
{
  for (int64_t row = first_row; row < last_row; row++) {
    int64_t top, bottom;
    pooling_clip(s, 0, row, &top, &bottom);
    const float *first = x + (row * s->stride[0] - s->before[0] + top) * s->in[1] * s->channels;
    pool_row_by_columns(s, first, y + row * s->out[1] * s->channels, bottom - top, strip);
  }
}

static size_t scratch_bytes(const flow_call *call)
{
  const flow_pooling s = pooling_of(call, &call->inputs[0], &call->outputs[0]);
  return s.size[0] > 1 && s.size[1] > 2 * s.stride[1] ? STRIP_FLOATS * sizeof(float) : 0;
}

/* Some rows of one image (pooling_rows). of: the image, and which rows of its results. */
static void pool_vectors(const flow_call *call, const flow_pooling *s, flow_piece of)
{
  const float *x = call->inputs[0].data;
  float *y = call->outputs[0].data;
  uint8_t *index = call->outputs[1].data;
  int64_t input = s->in[0] * s->in[1] * s->channels, output = s->out[0] * s->out[1] * s->channels;
  if (goes_by_columns(call, s)) pool_image_by_columns(s, x + of.image * input, y + of.image * output, of.first, of.last, call->scratch);
  else pool_image(s, x + of.image * input, y ? y + of.image * output : NULL, index ? index + of.image * output : NULL, of.first, of.last);
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

/* The cells of a window inside of the image: rows and columns; first_k: the position of the first one in the window. */
typedef struct cells {
  int64_t rows, columns, first_k, window_width, row_step, column_step;
} cells;

/* `lanes` channels of one window: g goes to the cell whose value was the maximum. dx: the first cell. adds: other windows may have sent
 * something there. */
ALWAYS_INLINE void send_gradient(float *dx, const float *g, const uint8_t *index, int lanes, const cells *of, int adds)
{
  uint8_t part[VL] = { 0 };
  if (lanes < VL) memcpy(part, index, (size_t)lanes);
  const vi value = (vi)(lanes == VL ? vf_load(g) : vf_load_part(g, lanes)), winner = vi_load_bytes(lanes == VL ? index : part);
  for (int64_t ky = 0; ky < of->rows; ky++) {
    for (int64_t kx = 0; kx < of->columns; kx++) {
      float *to = dx + ky * of->row_step + kx * of->column_step;
      vf won = (vf)(value & (winner == (int32_t)(of->first_k + ky * of->window_width + kx)));
      if (lanes == VL) vf_store(to, adds ? vf_load(to) + won : won);
      else vf_store_part(to, adds ? vf_load_part(to, lanes) + won : won, lanes);
    }
  }
}

/* dx of one image from g and index of its windows, in their order. Which cell had the maximum is a comparison, without branches. */
ALWAYS_INLINE void send_image(const flow_pooling *s, const float *g, const uint8_t *index, float *dx, int adds)
{
  cells of = { .window_width = s->size[1], .row_step = s->in[1] * s->channels, .column_step = s->channels };
  for (int64_t row = 0; row < s->out[0]; row++) {
    int64_t top, bottom, left, right;
    pooling_clip(s, 0, row, &top, &bottom);
    for (int64_t column = 0; column < s->out[1]; column++, g += s->channels, index += s->channels) {
      pooling_clip(s, 1, column, &left, &right);
      int64_t pixel = (row * s->stride[0] - s->before[0] + top) * s->in[1] + column * s->stride[1] - s->before[1] + left, c = 0;
      of.rows = bottom - top;
      of.columns = right - left;
      of.first_k = top * s->size[1] + left;
      float *first = dx + pixel * s->channels;
      for (; c + VL <= s->channels; c += VL) send_gradient(first + c, g + c, index + c, VL, &of, adds);
      if (c < s->channels) send_gradient(first + c, g + c, index + c, (int)(s->channels - c), &of, adds);
    }
  }
}

/* The loop over windows is not cut into pieces: two windows may add to one cell. */
static flow_status run_vector_gradient(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  flow_pooling s = pooling_of(call, &call->outputs[0], &call->inputs[0]);
  const float *g = call->inputs[0].data;
  const uint8_t *index = call->inputs[1].data;
  float *dx = call->outputs[0].data;
  if (!dx) return FLOW_OK;
  int64_t input = s.in[0] * s.in[1] * s.channels, output = s.out[0] * s.out[1] * s.channels;
  for (int64_t image = 0; image < s.images; image++, dx += input, g += output, index += output) {
    if (!pooling_covers(&s)) memset(dx, 0, (size_t)input * sizeof *dx); /* image by image: in the cache when it is added to */
    if (pooling_overlaps(&s)) send_image(&s, g, index, dx, 1);
    else send_image(&s, g, index, dx, 0);
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
  { .variant = "vector",
    .supports = supports_vector,
    .scratch_bytes = scratch_bytes,
    .run = run_vector,
    .pieces = pooling_count_pieces,
    .run_piece = run_vector_piece },
  { .variant = "bytes", .supports = supports_bytes, .run = run_bytes, .pieces = pooling_count_pieces, .run_piece = run_bytes_piece },
  { .variant = "plain", .run = run_plain },
  { 0 }
};

const flow_kernel FLOW_KERNELS(max_pool_gradient)[] = {
  { .variant = "vector", .supports = supports_vector, .run = run_vector_gradient },
  { .variant = "plain", .run = run_plain_gradient },
  { 0 }
};
