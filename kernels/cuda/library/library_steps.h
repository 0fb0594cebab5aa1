/* library_steps.h: the kernels around a library's convolution: what brings our tensors into the layout that it wants, and what it leaves
 * to us of a convolution fused with pooling and of its gradient.
 *
 * Where channels allow it a thread does `width` neighbouring channels: 16 bytes of them, or 32 of eight float32; else one. A bundle is what
 * it does. */
#ifndef FLOW_CUDA_LIBRARY_LIBRARY_STEPS_H
#define FLOW_CUDA_LIBRARY_LIBRARY_STEPS_H

#include "cuda/device/arrival.h"
#include "cuda/device/numbers.h"
#include "cuda/ops/pooling/pooling.h"

enum { MOST_WIDTH = 8, SUM_LANES = 8, SUM_ROWS = 4 };

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

/* 16 bytes: four or eight numbers. */
BODY void unpack_bundle(bundle_bits bits, int dtype, float *v)
{
  UNROLL for (int k = 0; k < 4; k++) {
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

/* Element i of bundles: `width` numbers, or one. Eight float32 are two accesses. */
BODY void read_bundle(const void *p, int dtype, int width, int64_t i, float v[MOST_WIDTH])
{
  const bundle_bits *bits = (const bundle_bits *)p;
  if (width == 1) {
    v[0] = float_at(p, dtype, i);
  } else if (width == MOST_WIDTH && dtype == FLOW_FLOAT32) {
    bundle_bits low = bits[2 * i], high = bits[2 * i + 1];
    unpack_bundle(low, FLOW_FLOAT32, v);
    unpack_bundle(high, FLOW_FLOAT32, v + 4);
  } else {
    unpack_bundle(bits[i], dtype, v);
  }
}

/* The other way round: 16 bytes of v. */
BODY bundle_bits pack_bundle(int dtype, const float *v)
{
  bundle_bits bits;
  UNROLL for (int k = 0; k < 4; k++) {
    if (dtype == FLOW_FLOAT32) {
      bits.at[k] = float_to_bits(v[k]);
    } else if (dtype == FLOW_BFLOAT16) {
      bits.at[k] = (uint32_t)float_to_bfloat16(v[2 * k]) | (uint32_t)float_to_bfloat16(v[2 * k + 1]) << 16;
    } else {
      bits.at[k] = (uint32_t)float_to_half(v[2 * k]) | (uint32_t)float_to_half(v[2 * k + 1]) << 16;
    }
  }
  return bits;
}

BODY void write_bundle(void *p, int dtype, int width, int64_t i, const float v[MOST_WIDTH])
{
  bundle_bits *bits = (bundle_bits *)p;
  if (width == 1) {
    put_float(p, dtype, i, v[0]);
  } else if (width == MOST_WIDTH && dtype == FLOW_FLOAT32) {
    bits[2 * i] = pack_bundle(FLOW_FLOAT32, v);
    bits[2 * i + 1] = pack_bundle(FLOW_FLOAT32, v + 4);
  } else {
    bits[i] = pack_bundle(dtype, v);
  }
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

/* Pixels with more or fewer channels, the new ones 0; scaled. A block makes a tile of the copy's bundles. The pixels of `from` rarely
 * begin at multiples of 16 bytes, but their bytes are next to each other: a block brings those of its tile into its memory, 16 at a time,
 * and takes its pixels from there. together: those of `from` are whole bundles of the copy's width at multiples of 16 bytes, and are read
 * where they are. */
typedef struct widen_image_arguments {
  void *to; const void *from;
  int64_t pixels, to_channels, from_channels, bundles, tile;     /* bundles: of a pixel of the copy */
  int32_t to_dtype, from_dtype, from_size, width, together;      /* from_size: bytes of an element */
  float scale;
} widen_image_arguments;

/* How many elements of `from` are before those of bundle i of the copy. */
BODY int64_t elements_before(int64_t i, const widen_image_arguments *a)
{
  int64_t bundle, pixel = split(i, a->bundles, &bundle);
  return pixel * a->from_channels + smaller(bundle * a->width, a->from_channels);
}

/* Bytes of `from` are counted from the multiple of 16 bytes at or before it. */
BODY int64_t first_byte_of(int64_t i, const widen_image_arguments *a)
{
  return (int64_t)((uintptr_t)a->from % sizeof(bundle_bits)) + elements_before(i, a) * a->from_size;
}

/* What of 16 bytes at `at` belongs to `from`, bytes begin to end - 1, element by element. */
BODY void bring_edge(const char *base, int64_t at, int64_t begin, int64_t end, int size, char *to)
{
  for (int k = 0; k < (int)sizeof(bundle_bits); k += size) {
    if (at + k < begin || at + k >= end) continue;
    if (size == 4) *(uint32_t *)(to + k) = *(const uint32_t *)(base + at + k);
    else if (size == 2) *(uint16_t *)(to + k) = *(const uint16_t *)(base + at + k);
    else to[k] = base[at + k];
  }
}

/* The bytes for bundles first to last - 1, as they are, from the multiple of 16 at or before them on; they fit into BLOCK_SHARED. */
BODY void bring_tile(int thread, int64_t first, int64_t last, char *tile, const widen_image_arguments *a)
{
  enum { SIZE = sizeof(bundle_bits), ROUNDS = BLOCK_SHARED / SIZE / BLOCK_THREADS };
  const char *base = (const char *)a->from - (uintptr_t)a->from % SIZE;
  int64_t begin = first_byte_of(0, a), end = first_byte_of(a->pixels * a->bundles, a);
  int64_t from = first_byte_of(first, a) / SIZE * SIZE, to = first_byte_of(last, a);
  bundle_bits bits[ROUNDS];
  UNROLL for (int j = 0; j < ROUNDS; j++) {
    int64_t at = from + (int64_t)(j * BLOCK_THREADS + thread) * SIZE;
    if (at < to && at >= begin && at + SIZE <= end) bits[j] = *(const bundle_bits *)(base + at);
  }
  UNROLL for (int j = 0; j < ROUNDS; j++) {
    int64_t place = (int64_t)(j * BLOCK_THREADS + thread) * SIZE, at = from + place;
    if (at >= to) continue;
    if (at >= begin && at + SIZE <= end) *(bundle_bits *)(tile + place) = bits[j];
    else bring_edge(base, at, begin, end, a->from_size, tile + place);
  }
}

/* Bundle i of the copy; in_tile: the element of `from` that the tile begins with. */
BODY void widen_bundle(int64_t i, const char *tile, int64_t in_tile, const widen_image_arguments *a)
{
  float v[MOST_WIDTH] = { 0 };
  if (a->together) {
    read_bundle(a->from, a->from_dtype, a->width, i, v);
  } else {
    int64_t bundle, pixel = split(i, a->bundles, &bundle), left = smaller(a->from_channels - bundle * a->width, a->width);
    int64_t from = pixel * a->from_channels + bundle * a->width - in_tile;
    UNROLL for (int k = 0; k < MOST_WIDTH; k++) v[k] = k < left ? float_at(tile, a->from_dtype, from + k) : 0;
  }
  UNROLL for (int k = 0; k < MOST_WIDTH; k++) v[k] *= a->scale;
  write_bundle(a->to, a->to_dtype, a->width, i, v);
}

BODY void widen_image(int phase, int thread, int64_t block, void *shared, const widen_image_arguments *a)
{
  int64_t first = block * a->tile, last = smaller(first + a->tile, a->pixels * a->bundles);
  if (phase == 0) {
    if (!a->together) bring_tile(thread, first, last, (char *)shared, a);
  } else {
    int64_t skipped = first_byte_of(first, a) % (int64_t)sizeof(bundle_bits) / a->from_size, in_tile = elements_before(first, a) - skipped;
    for (int64_t i = first + thread; i < last; i += BLOCK_THREADS) widen_bundle(i, (const char *)shared, in_tile, a);
  }
}

/* {taps, in, out}, as our filters are, and {out, taps, wide}, wide >= in, as the library's are: the new ones are 0. */
typedef struct transpose_filter_arguments {
  void *to; const void *from;
  int64_t taps, in, out, wide, bundles;         /* bundles: of `width` in `wide`, where those are read */
  int32_t to_dtype, from_dtype, width, unused;
} transpose_filter_arguments;

/* Ours to the library's; element i of the library's. */
BODY void transpose_filter(int64_t i, const transpose_filter_arguments *a)
{
  int64_t in, tap, row = split(i, a->wide, &in), out = split(row, a->taps, &tap);
  float value = 0;
  if (in < a->in) value = float_at(a->from, a->from_dtype, (tap * a->in + in) * a->out + out);
  put_float(a->to, a->to_dtype, i, value);
}

/* Both at once: a block has as many elements of the filter as threads, or, from filter_blocks on, a tile of the image. */
typedef struct bring_operands_arguments {
  widen_image_arguments image;
  transpose_filter_arguments filter;
  int64_t filter_size, filter_blocks;
} bring_operands_arguments;

BODY void bring_operands(int phase, int thread, int64_t block, void *shared, const bring_operands_arguments *a)
{
  int64_t i = block * BLOCK_THREADS + thread;
  if (block >= a->filter_blocks) widen_image(phase, thread, block - a->filter_blocks, shared, &a->image);
  else if (phase == 0 && i < a->filter_size) transpose_filter(i, &a->filter);
}

/* The library's to ours; bundle i of the library's, those of neighbouring outs next to each other. */
typedef transpose_filter_arguments transpose_filter_back_arguments;

BODY void transpose_filter_back(int64_t i, const transpose_filter_arguments *a)
{
  int64_t out, bundle, tap = split(split(i, a->out, &out), a->bundles, &bundle), first = bundle * a->width;
  float v[MOST_WIDTH];
  read_bundle(a->from, a->from_dtype, a->width, (out * a->taps + tap) * a->bundles + bundle, v);
  UNROLL for (int k = 0; k < MOST_WIDTH; k++)
    if (k < a->width && first + k < a->in) put_float(a->to, a->to_dtype, (tap * a->in + first + k) * a->out + out, v[k]);
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

/* Both at once: a block has as many bundles of dz as threads, or, from spread_blocks on, a tile of the image. */
typedef struct spread_and_widen_arguments {
  spread_argmax_arguments spread;
  widen_image_arguments image;
  int64_t spread_size, spread_blocks;
} spread_and_widen_arguments;

BODY void spread_and_widen(int phase, int thread, int64_t block, void *shared, const spread_and_widen_arguments *a)
{
  int64_t i = block * BLOCK_THREADS + thread;
  if (block >= a->spread_blocks) widen_image(phase, thread, block - a->spread_blocks, shared, &a->image);
  else if (phase == 0 && i < a->spread_size) spread_argmax(i, &a->spread);
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

/* to[channel] = the rows of g that count: those with a maximum, or with y > 0, or all, added up slice by slice; dz: see channel_sums.h. A
 * slice is slice_rows rows; bundles of channels are cut into pieces of `lanes`, a power of two. A block sums a slice of a piece, the last
 * block of a piece its slices. block: slice * pieces + piece - first_piece. paired: a thread reads two neighbouring bundles of float32, so
 * that it reads eight bytes of the index at once; what is added to what is as if it did not. */
typedef struct sum_channels_arguments {
  const void *g, *y; const uint8_t *index;    /* y and index: one of them or none */
  void *dz, *to;
  float *sums;                                /* [slice][channel] */
  uint32_t *counters;                         /* [piece] */
  int64_t rows, channels, bundles, slices, slice_rows, first_piece, pieces;
  int32_t dtype, to_dtype, width, lanes, paired, unused;
} sum_channels_arguments;

/* What lets a row count. */
typedef enum sum_mask { SUM_ALL, SUM_BY_Y, SUM_BY_INDEX } sum_mask;

/* Rows row, row + step ... below end of a bundle: SUM_ROWS of them are asked for before the first is used; after the last row it is asked
 * for that one again. width, accesses, those of 16 bytes that a bundle takes, and mask are known when this is compiled. */
BODY void sum_rows(const int width, const int accesses, const sum_mask mask, const sum_channels_arguments *a, int64_t bundle, int64_t row,
                   int64_t step, int64_t end, float sum[MOST_WIDTH])
{
  bundle_bits g[SUM_ROWS], high[SUM_ROWS], y[SUM_ROWS];
  float v[MOST_WIDTH], other[MOST_WIDTH];
  uint8_t index[SUM_ROWS][MOST_WIDTH];
  int64_t bundles = accesses > 1 ? a->bundles / 2 : a->bundles;
  for (; row < end; row += SUM_ROWS * step) {
    UNROLL for (int j = 0; j < SUM_ROWS; j++) {
      int64_t at = (row + j * step < end ? row + j * step : row) * bundles + bundle;
      if (accesses > 0) g[j] = ((const bundle_bits *)a->g)[accesses * at];
      if (accesses > 1) high[j] = ((const bundle_bits *)a->g)[accesses * at + 1];
      if (accesses > 0 && mask == SUM_BY_Y) y[j] = ((const bundle_bits *)a->y)[at];
      if (mask == SUM_BY_INDEX) read_bytes(a->index, width, at, index[j]);
    }
    UNROLL for (int j = 0; j < SUM_ROWS; j++) {
      int64_t at = (row + j * step) * bundles + bundle;
      if (row + j * step >= end) continue;
      if (accesses > 0) unpack_bundle(g[j], accesses > 1 ? FLOW_FLOAT32 : a->dtype, v);
      else v[0] = float_at(a->g, a->dtype, at);
      if (accesses > 1) unpack_bundle(high[j], FLOW_FLOAT32, v + 4);
      if (accesses > 0 && mask == SUM_BY_Y) unpack_bundle(y[j], a->dtype, other);
      else if (mask == SUM_BY_Y) other[0] = float_at(a->y, a->dtype, at);
      UNROLL for (int k = 0; k < width; k++) {
        if ((mask == SUM_BY_Y && !(other[k] > 0)) || (mask == SUM_BY_INDEX && index[j][k] == POOL_NO_ARGMAX)) v[k] = 0;
        sum[k] += v[k];
      }
      if (a->dz) write_bundle(a->dz, a->dtype, width, at, v);
    }
  }
}

BODY void sum_rows_by(const int width, const int accesses, const sum_channels_arguments *a, int64_t bundle, int64_t row, int64_t step,
                      int64_t end, float sum[MOST_WIDTH])
{
  if (a->y) sum_rows(width, accesses, SUM_BY_Y, a, bundle, row, step, end, sum);
  else if (a->index) sum_rows(width, accesses, SUM_BY_INDEX, a, bundle, row, step, end, sum);
  else sum_rows(width, accesses, SUM_ALL, a, bundle, row, step, end, sum);
}

BODY void sum_channels(int phase, int thread, int64_t block, void *shared, const sum_channels_arguments *a)
{
  int64_t piece, slice = split(block, a->pieces, &piece), first = (a->first_piece + piece) * a->lanes;
  int ranks = BLOCK_THREADS / a->lanes;
  int channels = a->lanes * a->width, teams = BLOCK_THREADS / channels, place = thread % channels, team = thread / channels;
  int64_t channel = first * a->width + place;
  int *is_last = (int *)shared;
  float *sums = (float *)shared, *of_teams = sums + 16;     /* [ranks][channels]; [teams][channels] */
  if (phase == 0) {
    int64_t end = smaller((slice + 1) * a->slice_rows, a->rows);
    float sum[MOST_WIDTH];
    UNROLL for (int k = 0; k < MOST_WIDTH; k++) sum[k] = 0;
    int at_once = a->paired + 1, lanes = a->lanes / at_once, lane = thread % lanes, rank = thread / lanes, width = at_once * a->width;
    if (rank >= ranks) return;
    int64_t row = slice * a->slice_rows + rank, bundle = first / at_once + lane;
    if (bundle * at_once < a->bundles) {
      if (a->paired) sum_rows(MOST_WIDTH, 2, SUM_BY_INDEX, a, bundle, row, ranks, end, sum);
      else if (width == MOST_WIDTH) sum_rows_by(MOST_WIDTH, 1, a, bundle, row, ranks, end, sum);
      else if (width == 4) sum_rows_by(4, 1, a, bundle, row, ranks, end, sum);
      else sum_rows_by(1, 0, a, bundle, row, ranks, end, sum);
    }
    UNROLL for (int k = 0; k < MOST_WIDTH; k++)
      if (k < width) sums[rank * channels + lane * width + k] = sum[k];
  } else if (phase == 1) {
    if (team > 0 || channel >= a->channels) return;
    float sum = 0;
    for (int k = 0; k < ranks; k++) sum += sums[k * channels + place];
    a->sums[slice * a->channels + channel] = sum;
    publish();
  } else if (phase == 2) {
    if (thread == 0) *is_last = arrive(&a->counters[piece], a->slices);
  } else if (phase == 3) {
    if (!*is_last || channel >= a->channels) return;
    float sum = 0;
    observe();
    for (int64_t k = team; k < a->slices; k += teams) sum += a->sums[k * a->channels + channel];
    of_teams[team * channels + place] = sum;
  } else if (*is_last && team == 0 && channel < a->channels) {
    float sum = 0;
    for (int k = 0; k < teams; k++) sum += of_teams[k * channels + place];
    put_float(a->to, a->to_dtype, channel, sum);
  }
}

/* Sums in the dtype of the result. */
typedef struct narrow_sums_arguments { const float *from; void *to; int32_t dtype, unused; } narrow_sums_arguments;

BODY void narrow_sums(int64_t i, const narrow_sums_arguments *a) { put_float(a->to, a->dtype, i, a->from[i]); }

#define LIBRARY_STEPS_KERNELS(ELEMENT, BLOCK) \
  BLOCK(widen_image, 2) BLOCK(bring_operands, 2) ELEMENT(transpose_filter) ELEMENT(transpose_filter_back) ELEMENT(pool_argmax) \
  ELEMENT(spread_argmax) BLOCK(spread_and_widen, 2) ELEMENT(mask_gradient) ELEMENT(end_image) \
  BLOCK(sum_channels, 5) ELEMENT(narrow_sums)

#endif
