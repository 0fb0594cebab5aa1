/* library_steps.h: the kernels around a library's convolution: what brings our tensors into the layout that it wants, and what it leaves
 * to us of a convolution fused with pooling and of its gradient.
 *
 * Where channels allow it a thread does `width` neighbouring channels, 16 bytes of them; else one. A bundle is what it does. */
#ifndef FLOW_CUDA_LIBRARY_LIBRARY_STEPS_H
#define FLOW_CUDA_LIBRARY_LIBRARY_STEPS_H

#include "cuda/device/numbers.h"
#include "cuda/ops/pooling/pooling.h"

enum { MOST_WIDTH = 8, SUM_CHANNELS = 32, SUM_LANES = BLOCK_THREADS / SUM_CHANNELS };

/* ---- elements: float32, 16-bit floats, uint8 ---------------------------------------------------------------------------------- */

typedef struct __attribute__((aligned(16))) bundle_bits { uint32_t at[4]; } bundle_bits;
typedef struct __attribute__((aligned(4))) bundle_half_bytes { uint8_t at[4]; } bundle_half_bytes;
typedef struct __attribute__((aligned(8))) bundle_bytes { uint8_t at[8]; } bundle_bytes;

BODY float float_at(const void *p, int dtype, int64_t i)
{
  if (dtype == FLOW_FLOAT32) return ((const float *)p)[i];
  if (dtype == FLOW_BFLOAT16) return bfloat16_to_float(((const uint16_t *)p)[i]);
  if (dtype == FLOW_FLOAT16) return half_to_float(((const uint16_t *)p)[i]);
  return (float)((const uint8_t *)p)[i];
}

BODY void put_float(void *p, int dtype, int64_t i, float value)
{
  if (dtype == FLOW_FLOAT32) ((float *)p)[i] = value;
  else if (dtype == FLOW_BFLOAT16) ((uint16_t *)p)[i] = float_to_bfloat16(value);
  else ((uint16_t *)p)[i] = float_to_half(value);
}

/* Element i of bundles: `width` numbers, or one. */
BODY void read_bundle(const void *p, int dtype, int width, int64_t i, float v[MOST_WIDTH])
{
  if (width == 1) {
    v[0] = float_at(p, dtype, i);
    return;
  }
  bundle_bits bits = ((const bundle_bits *)p)[i];
  for (int k = 0; k < 4; k++) {
    if (dtype == FLOW_FLOAT32) {
      v[k] = bits_to_float(bits.at[k]);
    } else if (dtype == FLOW_BFLOAT16) {
      v[2 * k] = bfloat16_to_float((uint16_t)(bits.at[k] & 0xffffu));
      v[2 * k + 1] = bfloat16_to_float((uint16_t)(bits.at[k] >> 16));
    } else {
      v[2 * k] = half_to_float((uint16_t)(bits.at[k] & 0xffffu));
      v[2 * k + 1] = half_to_float((uint16_t)(bits.at[k] >> 16));
    }
  }
}

BODY void write_bundle(void *p, int dtype, int width, int64_t i, const float v[MOST_WIDTH])
{
  if (width == 1) {
    put_float(p, dtype, i, v[0]);
    return;
  }
  bundle_bits bits;
  for (int k = 0; k < 4; k++) {
    if (dtype == FLOW_FLOAT32) {
      bits.at[k] = float_to_bits(v[k]);
    } else if (dtype == FLOW_BFLOAT16) {
      bits.at[k] = (uint32_t)float_to_bfloat16(v[2 * k]) | (uint32_t)float_to_bfloat16(v[2 * k + 1]) << 16;
    } else {
      bits.at[k] = (uint32_t)float_to_half(v[2 * k]) | (uint32_t)float_to_half(v[2 * k + 1]) << 16;
    }
  }
  ((bundle_bits *)p)[i] = bits;
}

/* Bytes that go with a bundle: 8, 4 or 1 of them. */
BODY void read_bytes(const uint8_t *p, int width, int64_t i, uint8_t v[MOST_WIDTH])
{
  if (width == 8) {
    bundle_bytes bytes = ((const bundle_bytes *)p)[i];
    for (int k = 0; k < 8; k++) v[k] = bytes.at[k];
  } else if (width == 4) {
    bundle_half_bytes bytes = ((const bundle_half_bytes *)p)[i];
    for (int k = 0; k < 4; k++) v[k] = bytes.at[k];
  } else {
    v[0] = p[i];
  }
}

BODY void write_bytes(uint8_t *p, int width, int64_t i, const uint8_t v[MOST_WIDTH])
{
  if (width == 8) {
    bundle_bytes bytes;
    for (int k = 0; k < 8; k++) bytes.at[k] = v[k];
    ((bundle_bytes *)p)[i] = bytes;
  } else if (width == 4) {
    bundle_half_bytes bytes;
    for (int k = 0; k < 4; k++) bytes.at[k] = v[k];
    ((bundle_half_bytes *)p)[i] = bytes;
  } else {
    p[i] = v[0];
  }
}

/* ---- layouts ------------------------------------------------------------------------------------------------------------------ */

/* Pixels with more channels, the new ones 0; scaled. Element i of the copy. */
typedef struct widen_image_arguments {
  void *to; const void *from;
  int64_t to_channels, from_channels;
  int32_t to_dtype, from_dtype;
  float scale;
} widen_image_arguments;

BODY void widen_image(int64_t i, const widen_image_arguments *a)
{
  int64_t channel, pixel = split(i, a->to_channels, &channel);
  float value = 0;
  if (channel < a->from_channels) value = a->scale * float_at(a->from, a->from_dtype, pixel * a->from_channels + channel);
  put_float(a->to, a->to_dtype, i, value);
}

/* {taps, in, out}, as our filters are, and {out, taps, wide}, wide >= in, as the library's are: the new ones are 0. */
typedef struct transpose_filter_arguments {
  void *to; const void *from;
  int64_t taps, in, out, wide;
  int32_t to_dtype, from_dtype;
} transpose_filter_arguments;

/* Ours to the library's; element i of the library's. */
BODY void transpose_filter(int64_t i, const transpose_filter_arguments *a)
{
  int64_t in, tap, row = split(i, a->wide, &in), out = split(row, a->taps, &tap);
  float value = 0;
  if (in < a->in) value = float_at(a->from, a->from_dtype, (tap * a->in + in) * a->out + out);
  put_float(a->to, a->to_dtype, i, value);
}

/* The library's to ours; element i of ours. */
typedef transpose_filter_arguments transpose_filter_back_arguments;

BODY void transpose_filter_back(int64_t i, const transpose_filter_arguments *a)
{
  int64_t out, in, row = split(i, a->out, &out), tap = split(row, a->in, &in);
  put_float(a->to, a->to_dtype, i, float_at(a->from, a->from_dtype, (out * a->taps + tap) * a->wide + in));
}

/* ---- pooling ------------------------------------------------------------------------------------------------------------------ */

typedef struct pool_geometry { int64_t in[2], out[2]; int32_t size[2], stride[2]; } pool_geometry;

/* y and index (see the op convolution) of z, before the activation. Each may be NULL. Bundle i of y. */
typedef struct pool_argmax_arguments {
  const void *z; void *y; uint8_t *index;
  pool_geometry pool;
  int64_t bundles;                            /* of a pixel */
  int32_t dtype, width, relu, unused;
} pool_argmax_arguments;

BODY void pool_argmax(int64_t i, const pool_argmax_arguments *a)
{
  int64_t bundle, column, row, rest = split(i, a->bundles, &bundle);
  rest = split(rest, a->pool.out[1], &column);
  int64_t image = split(rest, a->pool.out[0], &row);
  int64_t first = (image * a->pool.in[0] + row * a->pool.stride[0]) * a->pool.in[1] + column * a->pool.stride[1];
  float best[MOST_WIDTH], v[MOST_WIDTH];
  uint8_t argmax[MOST_WIDTH];
  read_bundle(a->z, a->dtype, a->width, first * a->bundles + bundle, best);
  for (int k = 0; k < MOST_WIDTH; k++) argmax[k] = 0;
  int position = 0;
  for (int y = 0; y < a->pool.size[0]; y++) {
    for (int x = 0; x < a->pool.size[1]; x++, position++) {
      read_bundle(a->z, a->dtype, a->width, (first + y * a->pool.in[1] + x) * a->bundles + bundle, v);
      for (int k = 0; k < MOST_WIDTH; k++) {
        if (k >= a->width || isnan(best[k]) || !(v[k] > best[k] || isnan(v[k]))) continue;
        best[k] = v[k];
        argmax[k] = (uint8_t)position;
      }
    }
  }
  for (int k = 0; k < MOST_WIDTH; k++) {
    if (k >= a->width || !a->relu || !(best[k] <= 0)) continue;
    best[k] = 0;
    argmax[k] = POOL_NO_ARGMAX;
  }
  if (a->y) write_bundle(a->y, a->dtype, a->width, i, best);
  if (a->index) write_bytes(a->index, a->width, i, argmax);
}

/* The gradient of z of that of y: each g goes to its window's maximum; windows that overlap are added in their order. Bundle i of dz. */
typedef struct spread_argmax_arguments {
  const void *g; const uint8_t *index; void *dz;
  pool_geometry pool;
  int64_t bundles;
  int32_t dtype, width;
} spread_argmax_arguments;

BODY void spread_argmax(int64_t i, const spread_argmax_arguments *a)
{
  int64_t bundle, column, row, rest = split(i, a->bundles, &bundle);
  rest = split(rest, a->pool.in[1], &column);
  int64_t image = split(rest, a->pool.in[0], &row);
  float sum[MOST_WIDTH], g[MOST_WIDTH];
  uint8_t argmax[MOST_WIDTH];
  for (int k = 0; k < MOST_WIDTH; k++) sum[k] = 0;
  int64_t y = row < a->pool.size[0] ? 0 : (row - a->pool.size[0]) / a->pool.stride[0] + 1;
  int64_t left = column < a->pool.size[1] ? 0 : (column - a->pool.size[1]) / a->pool.stride[1] + 1;
  for (; y < a->pool.out[0] && y * a->pool.stride[0] <= row; y++) {
    for (int64_t x = left; x < a->pool.out[1] && x * a->pool.stride[1] <= column; x++) {
      int64_t window = ((image * a->pool.out[0] + y) * a->pool.out[1] + x) * a->bundles + bundle;
      int position = (int)((row - y * a->pool.stride[0]) * a->pool.size[1] + column - x * a->pool.stride[1]);
      read_bundle(a->g, a->dtype, a->width, window, g);
      read_bytes(a->index, a->width, window, argmax);
      for (int k = 0; k < MOST_WIDTH; k++)
        if (k < a->width && argmax[k] == position) sum[k] += g[k];
    }
  }
  write_bundle(a->dz, a->dtype, a->width, i, sum);
}

/* dz = g (+ addend, unless that is NULL) where y > 0, else 0. Bundle i. */
typedef struct mask_gradient_arguments { const void *g, *addend, *y; void *dz; int32_t dtype, width; } mask_gradient_arguments;

BODY void mask_gradient(int64_t i, const mask_gradient_arguments *a)
{
  float g[MOST_WIDTH], y[MOST_WIDTH];
  read_bundle(a->g, a->dtype, a->width, i, g);
  if (a->addend) {
    read_bundle(a->addend, a->dtype, a->width, i, y);
    for (int k = 0; k < MOST_WIDTH; k++)
      if (k < a->width) g[k] += y[k];
  }
  read_bundle(a->y, a->dtype, a->width, i, y);
  for (int k = 0; k < MOST_WIDTH; k++)
    if (k < a->width && !(y[k] > 0)) g[k] = 0;
  write_bundle(a->dz, a->dtype, a->width, i, g);
}

/* y + bias, then relu, in place. Bundle i; bias: of a pixel's channels, or NULL. */
typedef struct end_image_arguments { void *y; const void *bias; int64_t bundles; int32_t dtype, width, relu, unused; } end_image_arguments;

BODY void end_image(int64_t i, const end_image_arguments *a)
{
  float y[MOST_WIDTH], bias[MOST_WIDTH];
  int64_t bundle;
  split(i, a->bundles, &bundle);
  read_bundle(a->y, a->dtype, a->width, i, y);
  for (int k = 0; k < MOST_WIDTH; k++) bias[k] = 0;
  if (a->bias) read_bundle(a->bias, a->dtype, a->width, bundle, bias);
  for (int k = 0; k < MOST_WIDTH; k++) {
    if (k >= a->width) continue;
    y[k] += bias[k];
    if (a->relu && y[k] <= 0) y[k] = 0;
  }
  write_bundle(a->y, a->dtype, a->width, i, y);
}

/* ---- the gradient of a bias ------------------------------------------------------------------------------------------------------ */

/* sums[slice][channel] of the rows of g that count: those with a maximum, or with y > 0, or all. A slice is slice_rows rows, channels are
 * cut into pieces of SUM_CHANNELS; block: slice * pieces + piece. */
typedef struct sum_channels_arguments {
  const void *g, *y; const uint8_t *index;    /* y and index: one of them or none */
  float *sums;
  int64_t rows, channels, slice_rows, pieces;
  int32_t dtype, unused;
} sum_channels_arguments;

BODY void sum_channels(int phase, int thread, int64_t block, void *shared, const sum_channels_arguments *a)
{
  float *lanes = (float *)shared;             /* [SUM_LANES][SUM_CHANNELS] */
  int64_t piece, slice = split(block, a->pieces, &piece);
  int64_t channel = piece * SUM_CHANNELS + thread % SUM_CHANNELS;
  if (phase == 0) {
    int64_t end = smaller((slice + 1) * a->slice_rows, a->rows);
    float sum = 0;
    for (int64_t row = slice * a->slice_rows + thread / SUM_CHANNELS; channel < a->channels && row < end; row += SUM_LANES) {
      int64_t at = row * a->channels + channel;
      if (a->index && a->index[at] == POOL_NO_ARGMAX) continue;
      if (a->y && !(float_at(a->y, a->dtype, at) > 0)) continue;
      sum += float_at(a->g, a->dtype, at);
    }
    lanes[thread] = sum;
  } else if (thread < SUM_CHANNELS && channel < a->channels) {
    float sum = 0;
    for (int lane = 0; lane < SUM_LANES; lane++) sum += lanes[lane * SUM_CHANNELS + thread];
    a->sums[slice * a->channels + channel] = sum;
  }
}

/* Channel i of the whole sum. */
typedef struct total_channels_arguments { const float *sums; void *to; int64_t channels, slices; int32_t dtype, unused; } total_channels_arguments;

BODY void total_channels(int64_t i, const total_channels_arguments *a)
{
  float sum = 0;
  for (int64_t slice = 0; slice < a->slices; slice++) sum += a->sums[slice * a->channels + i];
  put_float(a->to, a->dtype, i, sum);
}

#define LIBRARY_STEPS_KERNELS(ELEMENT, BLOCK) \
  ELEMENT(widen_image) ELEMENT(transpose_filter) ELEMENT(transpose_filter_back) ELEMENT(pool_argmax) ELEMENT(spread_argmax) ELEMENT(mask_gradient) ELEMENT(end_image) \
  BLOCK(sum_channels, 2) ELEMENT(total_channels)

#endif
