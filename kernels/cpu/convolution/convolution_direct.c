/* convolution_direct.c: one row of a direct convolution, and the weights in the order in which it reads them.
 *
 * A tile of P neighbouring outputs times V vectors of output channels lives in registers. For every tap V vectors of
 * weights are loaded once and multiplied with P inputs, each broadcast to all lanes: P + V loads for P x V fused
 * multiply-adds. 12 sums keep both multiply-add units of AVX2 busy (2 a cycle, 4 cycles latency) and leave registers
 * for the weights and one input; with 32 registers twice as many weigh less on the load ports. */
#include "cpu/convolution/convolution.h"

enum { PIXELS_1 = 12, PIXELS_2 = REGISTERS == 32 ? 12 : 6, SUMS = 2 * PIXELS_2 };

/* Asks for the lines that the tile after the next one writes. A line that another core has read has to be taken away from it, and stores
 * wait for that one after the other: with few taps the multiply-adds are over long before. The last lines may be beyond the end of the
 * outputs: to fetch a line is not an access. */
ALWAYS_INLINE void own_lines(const int vectors, const int pixels, float *y, int64_t y_step)
{
  const float *to = y + 2 * pixels * y_step;
  FLOW_UNROLL(12)
  for (int p = 0; p < pixels; p++) {
    FLOW_UNROLL(2)
    for (int b = 0; b < vectors; b++) __builtin_prefetch(to + p * y_step + b * VL, 1, 3);
  }
}

/* What is added to the sums of a tile. */
ALWAYS_INLINE void add_to_tile(const int vectors, const int pixels, const float *added, int64_t step, int64_t channels, vf *sums)
{
  FLOW_UNROLL(12)
  for (int p = 0; p < pixels; p++) {
    FLOW_UNROLL(2)
    for (int b = 0; b < vectors; b++) {
      int64_t lanes = channels - b * VL;
      sums[p * vectors + b] += lanes >= VL ? vf_load(added + p * step + b * VL) : vf_load_part(added + p * step + b * VL, (int)lanes);
    }
  }
}

/* `count` tiles one after the other. vectors and pixels are constants at every call, so that sums stays in registers. */
ALWAYS_INLINE void convolve_tiles(const int vectors, const int pixels, int64_t count, const flow_taps *taps, const float *x,
                                  const float *weights, const float *bias, flow_epilogue epilogue, int64_t channels, float *y,
                                  int64_t y_step)
{
  const int64_t step = taps->pixel_step;
  const int whole = channels == vectors * VL;   /* else the tile is stored through spill */
  float spill[SUMS * VL];
  const vf_limits within = vf_limits_of(epilogue);
  const float *added = epilogue.added;
  for (; count > 0; count--, x += pixels * step, y += pixels * y_step) {
    vf sums[SUMS];
    FLOW_UNROLL(24)
    for (int i = 0; i < pixels * vectors; i++) sums[i] = vf_load(bias + i % vectors * VL);
    if (added) {
      add_to_tile(vectors, pixels, added, y_step, channels, sums);
      added += pixels * y_step;
    }
    if (taps->passed_on) own_lines(vectors, pixels, y, y_step);
    /* Loops that test at their end: the overhead of a tile counts when a kernel has few taps. */
    const float *w = weights, *fetched = flow_fetch_lines(taps->ahead, taps->count * taps->run);
    const int64_t fetch_step = fetched ? FLOW_LINE : 0;
    if (!fetched) fetched = weights; /* a line that is there: cheaper than a branch */
    int64_t tap = 0;
    do {
      const float *first = x + taps->offsets[tap], *end = first + taps->run;
      do {
        __builtin_prefetch(fetched, 0, 2);
        fetched += fetch_step;
        vf v[2];
        FLOW_UNROLL(2)
        for (int b = 0; b < vectors; b++, w += VL) v[b] = vf_load(w);
        FLOW_UNROLL(12)
        for (int p = 0; p < pixels; p++) {
          vf input = vf_set(first[p * step]);
          FLOW_UNROLL(2)
          for (int b = 0; b < vectors; b++) sums[p * vectors + b] += input * v[b];
        }
      } while (++first != end);
    } while (++tap != taps->count);
    float *to = whole ? y : spill;
    const int64_t to_step = whole ? y_step : vectors * VL;
    FLOW_UNROLL(12)
    for (int p = 0; p < pixels; p++) {
      FLOW_UNROLL(2)
      for (int b = 0; b < vectors; b++) vf_store(to + p * to_step + b * VL, vf_within(sums[p * vectors + b], within));
    }
    if (!whole)
      for (int p = 0; p < pixels; p++)
        for (int64_t c = 0; c < channels; c++) y[p * y_step + c] = spill[p * vectors * VL + c];
  }
}

/* One case for each width of a tile: constants, for which compilers keep all sums in registers. */
#define TILES(vectors, pixels) \
  case pixels: convolve_tiles(vectors, pixels, count, taps, x, weights, bias, epilogue, channels, y, y_step); break;

static void convolve_tiles_1(int64_t pixels, int64_t count, const flow_taps *taps, const float *x, const float *weights, const float *bias,
                             flow_epilogue epilogue, int64_t channels, float *y, int64_t y_step)
{
  switch (pixels) {
    TILES(1, 1) TILES(1, 2) TILES(1, 3) TILES(1, 4) TILES(1, 5) TILES(1, 6)
    TILES(1, 7) TILES(1, 8) TILES(1, 9) TILES(1, 10) TILES(1, 11) TILES(1, 12)
  }
}

/* The numbers of pixels and vectors as constants, so that each case has its sums in registers. Tiles are at most as large as the registers
 * allow (first comment). */
static void convolve_tiles_2(int64_t pixels, int64_t count, const flow_taps *taps, const float *x, const float *weights, const float *bias,
                             flow_epilogue epilogue, int64_t channels, float *y, int64_t y_step)
{
  switch (pixels) {
    TILES(2, 1) TILES(2, 2) TILES(2, 3) TILES(2, 4) TILES(2, 5) TILES(2, 6)
#if defined(FLOW_ISA_AVX512)
    TILES(2, 7) TILES(2, 8) TILES(2, 9) TILES(2, 10) TILES(2, 11) TILES(2, 12)
#endif
  }
}

#if defined(FLOW_ISA_AVX512)
/* The same for at most half a vector of channels: processors do as many multiply-adds a cycle with half vectors as with whole ones, or
 * twice as many, and half of a whole one would be of no use. Weights and bias are laid out as whole vectors; the sums have the same
 * bits. */
typedef float vh __attribute__((vector_size(32)));
typedef float vh_unaligned __attribute__((vector_size(32), aligned(4), may_alias));
enum { HALF = VL / 2 };

ALWAYS_INLINE void convolve_half_tiles(const int pixels, int64_t count, const flow_taps *taps, const float *x, const float *weights,
                                       const float *bias, flow_epilogue epilogue, int64_t channels, float *y, int64_t y_step)
{
  const int64_t step = taps->pixel_step;
  const vh least = epilogue.least - (vh){ 0 }, most = epilogue.most - (vh){ 0 };
  const __mmask8 lanes = (__mmask8)((1u << channels) - 1);
  const float *added = epilogue.added;
  for (; count > 0; count--, x += pixels * step, y += pixels * y_step) {
    vh sums[PIXELS_1];
    FLOW_UNROLL(12)
    for (int i = 0; i < pixels; i++) sums[i] = *(const vh_unaligned *)bias;
    if (added) {
      FLOW_UNROLL(12)
      for (int p = 0; p < pixels; p++) sums[p] += (vh)_mm256_maskz_loadu_ps(lanes, added + p * y_step);
      added += pixels * y_step;
    }
    const float *w = weights;
    int64_t tap = 0;
    do {
      const float *first = x + taps->offsets[tap], *end = first + taps->run;
      do {
        vh v = *(const vh_unaligned *)w;
        w += VL;
        FLOW_UNROLL(12)
        for (int p = 0; p < pixels; p++) sums[p] += (first[p * step] - (vh){ 0 }) * v;
      } while (++first != end);
    } while (++tap != taps->count);
    FLOW_UNROLL(12)
    for (int p = 0; p < pixels; p++) {
      vh sum = (vh)_mm256_min_ps((__m256)most, _mm256_max_ps((__m256)least, (__m256)sums[p])); /* a NaN stays */
      if (channels == HALF) *(vh_unaligned *)(y + p * y_step) = sum;
      else _mm256_mask_storeu_ps(y + p * y_step, lanes, (__m256)sum);
    }
  }
}

#define HALF_TILES(pixels) \
  case pixels: convolve_half_tiles(pixels, count, taps, x, weights, bias, epilogue, channels, y, y_step); break;

static void convolve_tiles_half(int64_t pixels, int64_t count, const flow_taps *taps, const float *x, const float *weights,
                                const float *bias, flow_epilogue epilogue, int64_t channels, float *y, int64_t y_step)
{
  switch (pixels) {
    HALF_TILES(1) HALF_TILES(2) HALF_TILES(3) HALF_TILES(4) HALF_TILES(5) HALF_TILES(6)
    HALF_TILES(7) HALF_TILES(8) HALF_TILES(9) HALF_TILES(10) HALF_TILES(11) HALF_TILES(12)
  }
}
#endif

typedef void tiles_function(int64_t pixels, int64_t count, const flow_taps *taps, const float *x, const float *weights, const float *bias,
                            flow_epilogue epilogue, int64_t channels, float *y, int64_t y_step);

/* For a block of this many channels. */
static tiles_function *tiles_for(int64_t channels)
{
#if defined(FLOW_ISA_AVX512)
  if (channels <= HALF) return convolve_tiles_half;
#endif
  return channels > VL ? convolve_tiles_2 : convolve_tiles_1;
}

/* The row is cut into the fewest tiles, whose widths differ by one at most: no narrow tile at the end. */
void flow_convolve_row(const flow_taps *taps, const float *x, const float *weights, const float *bias, flow_epilogue epilogue,
                       int64_t channels, float *y, int64_t y_step, int64_t width)
{
  if (width == 0) return;
  tiles_function *convolve_tiles_of = tiles_for(channels);
  int64_t widest = channels > VL ? PIXELS_2 : PIXELS_1;
  int64_t tiles = (width + widest - 1) / widest, narrow = width / tiles, wide_tiles = width % tiles;
  int64_t split = wide_tiles * (narrow + 1);
  const float *rest = x + split * taps->pixel_step;
  convolve_tiles_of(narrow + 1, wide_tiles, taps, x, weights, bias, epilogue, channels, y, y_step);
  convolve_tiles_of(narrow, tiles - wide_tiles, taps, rest, weights, bias, flow_epilogue_at(epilogue, split * y_step), channels,
                    y + split * y_step, y_step);
}

/* Only the last block of a group is filled up, to whole vectors: the same as if the whole group were. */
size_t flow_packed_floats(const flow_geometry *s, int transposed)
{
  int64_t inputs = transposed ? s->group_out : s->group_in, outputs = transposed ? s->group_in : s->group_out;
  return (size_t)(s->groups * s->kernel[0] * s->kernel[1] * inputs * flow_padded_channels(outputs));
}

/* Group by group, block by block: exactly the order in which convolve_tiles reads, so that weights stream. */
float *flow_pack_weights(const flow_geometry *s, const float *w, int transposed, const flow_tap_range ranges[2], float *packed)
{
  int64_t inputs = transposed ? s->group_out : s->group_in, outputs = transposed ? s->group_in : s->group_out;
  int64_t input_step = transposed ? 1 : s->channels_out, output_step = transposed ? s->channels_out : 1;
  for (int64_t group = 0; group < s->groups; group++) {
    for (int64_t block = 0; block < outputs; block += BLOCK) {
      int64_t channels = outputs - block < BLOCK ? outputs - block : BLOCK, padded = flow_padded_channels(channels);
      for (int64_t tap = 0; tap < ranges[0].count * ranges[1].count; tap++) {
        int64_t ky = ranges[0].first + tap / ranges[1].count * ranges[0].step;
        int64_t kx = ranges[1].first + tap % ranges[1].count * ranges[1].step;
        const float *from = w + (ky * s->kernel[1] + kx) * s->group_in * s->channels_out + group * s->group_out + block * output_step;
        for (int64_t input = 0; input < inputs; input++, packed += padded) {
          for (int64_t c = 0; c < channels; c++) packed[c] = from[input * input_step + c * output_step];
          for (int64_t c = channels; c < padded; c++) packed[c] = 0.0f;
        }
      }
    }
  }
  return packed;
}
