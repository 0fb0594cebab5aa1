/* resize_rows.c: the two sums of a resized row: of lines (long vectors) and of neighbours (shuffled vectors, or a vector for each pixel).
 * Once for every machine, and for those with AVX2 or AVX-512: without fused multiply-adds, the same result bit for bit. */
#include "image/resize_parts.h"

#include "base/memory.h"
#if FLOW_HAVE_X86
#include <immintrin.h>
#endif

enum { LANES = FLOW_SHUFFLE_LANES, MOST_STEPS = 1 << 20 };

typedef float lanes __attribute__((vector_size(16), aligned(4), may_alias));    /* the channels of a pixel */

/* ---- lines ------------------------------------------------------------------------------------------------------------------------ */

#define DEFINE_MIX_LINES(name, type, target)                                                                               \
target static void name(const type *restrict line, int64_t stride, const float *weights, int count, int64_t n, float *restrict row) \
{                                                                                                                          \
  if (count == 1) {                                                                                                        \
    for (int64_t x = 0; x < n; x++) row[x] = (float)line[x];                                                               \
    return;                                                                                                                \
  }                                                                                                                        \
  const type *restrict next = line + stride;                                                                               \
  float a = weights[0], b = weights[1];                                                                                    \
  for (int64_t x = 0; x < n; x++) row[x] = a * (float)line[x] + b * (float)next[x];                                        \
  for (int k = 2; k < count; k++) {                                                                                        \
    const type *restrict more = line + k * stride;                                                                         \
    float c = weights[k];                                                                                                  \
    for (int64_t x = 0; x < n; x++) row[x] += c * (float)more[x];                                                          \
  }                                                                                                                        \
}
DEFINE_MIX_LINES(mix_bytes, unsigned char, )
DEFINE_MIX_LINES(mix_floats, float, )
#if FLOW_HAVE_X86
#if defined(__clang__)
#define WIDE __attribute__((target("avx512f,avx512bw"), min_vector_width(512)))
#else
#define WIDE __attribute__((target("avx512f,avx512bw,prefer-vector-width=512")))
#endif
DEFINE_MIX_LINES(mix_bytes_avx2, unsigned char, __attribute__((target("avx2"))))
DEFINE_MIX_LINES(mix_floats_avx2, float, __attribute__((target("avx2"))))
DEFINE_MIX_LINES(mix_bytes_wide, unsigned char, WIDE)
DEFINE_MIX_LINES(mix_floats_avx512, float, WIDE)

__attribute__((target("avx512f"))) static inline __m512 sixteen_bytes(const unsigned char *from)
{
  return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)from)));
}

/* Two lines, the bytes widened in one step, which compilers do in two. Reads no further than the lines reach. */
__attribute__((target("avx512f,avx512bw")))
/* As mix_bytes_wide, which it calls for all but the common case: two lines of at least one vector. The last vector may overlap the one
 * before it, since each element is computed from the lines alone. */
static void mix_bytes_avx512(const unsigned char *line, int64_t stride, const float *weights, int count, int64_t n, float *row)
{
  if (count != 2 || n < LANES) {
    mix_bytes_wide(line, stride, weights, count, n, row);
    return;
  }
  const unsigned char *next = line + stride;
  __m512 a = _mm512_set1_ps(weights[0]), b = _mm512_set1_ps(weights[1]);
  for (int64_t x = 0; x < n; x += LANES) {
    int64_t at = x + LANES <= n ? x : n - LANES;      /* the last vector overlaps the one before */
    __m512 sum = _mm512_add_ps(_mm512_mul_ps(a, sixteen_bytes(line + at)), _mm512_mul_ps(b, sixteen_bytes(next + at)));
    _mm512_storeu_ps(row + at, sum);
  }
}
#endif

/* The instructions are chosen at each call: a test of a bit, against a row of work. */
void flow_mix_lines(int dtype, const void *lines, int64_t stride, const float *weights, int count, int64_t n, float *row)
{
  const unsigned char *bytes = lines;
  const float *floats = lines;
#if FLOW_HAVE_X86
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")) {
    if (dtype == FLOW_FLOAT32) mix_floats_avx512(floats, stride, weights, count, n, row);
    else mix_bytes_avx512(bytes, stride, weights, count, n, row);
    return;
  }
  if (__builtin_cpu_supports("avx2")) {
    if (dtype == FLOW_FLOAT32) mix_floats_avx2(floats, stride, weights, count, n, row);
    else mix_bytes_avx2(bytes, stride, weights, count, n, row);
    return;
  }
#endif
  if (dtype == FLOW_FLOAT32) mix_floats(floats, stride, weights, count, n, row);
  else mix_bytes(bytes, stride, weights, count, n, row);
}

/* ---- neighbours: pixel by pixel --------------------------------------------------------------------------------------------------- */

/* Pixels of 3 channels are read and written as vectors of 4: the
 * row has room after its end, the output is overwritten by the next pixel, and the last pixel is written apart. */
static inline __attribute__((always_inline)) lanes mix_pixel(const flow_resize_taps *taps, int x, const float *row, int channels,
                                                            const int count)
{
  const float *from = row + (int64_t)taps->first[x] * channels, *weights = taps->weights + (int64_t)x * count;
  lanes sum = weights[0] * *(const lanes *)from;
  for (int k = 1; k < count; k++) sum += weights[k] * *(const lanes *)(from + k * channels);
  return sum;
}

static inline __attribute__((always_inline)) void mix_pixels(const flow_resize_taps *taps, const float *row, const int channels,
                                                            const int count, float *to)
{
  int last = taps->to - 1;
  for (int x = 0; x < last; x++) *(lanes *)(to + x * channels) = mix_pixel(taps, x, row, channels, count);
  lanes pixel = mix_pixel(taps, last, row, channels, count);
  for (int c = 0; c < channels; c++) to[last * channels + c] = pixel[c];
}

/* Any number of channels and taps, one number at a time. */
static void mix_samples(const flow_resize_taps *taps, const float *row, int channels, float *to)
{
  for (int x = 0; x < taps->to; x++) {
    const float *from = row + (int64_t)taps->first[x] * channels, *weights = taps->weights + (int64_t)x * taps->count;
    for (int c = 0; c < channels; c++) {
      float sum = 0;
      for (int k = 0; k < taps->count; k++) sum += weights[k] * from[k * channels + c];
      to[(int64_t)x * channels + c] = sum;
    }
  }
}

/* ---- neighbours: shuffled vectors -------------------------------------------------------------------------------------------------- */

/* Where the 16 numbers from `first` on find their inputs. 0: further apart than two vectors reach. */
static int prepare_vector(flow_shuffles *s, const flow_resize_taps *taps, int channels, int vector)
{
  int total = taps->to * channels, at = vector * LANES;
  int base = taps->first[at / channels] * channels;
  s->base[vector] = base;
  for (int k = 0; k < taps->count; k++) {
    flow_shuffle_step *step = &s->steps[vector * taps->count + k];
    for (int lane = 0; lane < LANES; lane++) {
      int output = at + lane < total ? at + lane : total - 1, pixel = output / channels;
      int index = (taps->first[pixel] + k) * channels + output % channels - base;
      if (index < 0 || index >= 2 * LANES) return 0;
      step->index[lane] = index;
      step->weights[lane] = taps->weights[(int64_t)pixel * taps->count + k];
    }
  }
  return 1;
}

/* The permutation of 32 numbers by one instruction is AVX-512's. */
static int can_shuffle(void)
{
#if FLOW_HAVE_X86
  return __builtin_cpu_supports("avx512f") != 0;
#else
  return 0;
#endif
}

/* Leaves vectors 0, which flow_mix_neighbours understands, where the machine has no such shuffle or the picture is shrunk so far that
 * inputs are more than 32 numbers apart. */
flow_status flow_shuffles_prepare(flow_shuffles *s, const flow_resize_taps *taps, int channels)
{
  if (s->channels == channels && s->method == taps->method && s->from == taps->from && s->to == taps->to) return FLOW_OK;
  int64_t vectors = ((int64_t)taps->to * channels + LANES - 1) / LANES, steps = vectors * taps->count;
  s->vectors = s->channels = 0;
  if (!can_shuffle() || steps > MOST_STEPS) return FLOW_OK;
  FLOW_TRY(flow_grow(&s->base, sizeof *s->base, (int)vectors, &s->base_capacity));
  FLOW_TRY(flow_grow(&s->steps, sizeof *s->steps, (int)steps, &s->step_capacity));
  int reached = 1;
  for (int vector = 0; vector < vectors && reached; vector++) reached = prepare_vector(s, taps, channels, vector);
  s->vectors = reached ? (int)vectors : 0;
  s->channels = channels;
  s->method = taps->method;
  s->from = taps->from;
  s->to = taps->to;
  return FLOW_OK;
}

#if FLOW_HAVE_X86
/* One output row from an input row, sixteen results at a time: the pixels that they need are within two vectors from `base` on, and each
 * step picks one for each result by a permutation and adds it with its weight. Products are added in the order of the taps, as in the
 * plain loop, so that bits are the same. The row is readable for 2 LANES elements from each base. */
__attribute__((target("avx512f")))
static void mix_shuffled(const flow_shuffles *s, int count, const float *row, int total, float *to)
{
  for (int vector = 0; vector < s->vectors; vector++) {
    const float *from = row + s->base[vector];
    const flow_shuffle_step *step = &s->steps[(int64_t)vector * count];
    __m512 low = _mm512_loadu_ps(from), high = _mm512_loadu_ps(from + LANES);
    __m512 sum = _mm512_mul_ps(_mm512_loadu_ps(step->weights), _mm512_permutex2var_ps(low, _mm512_loadu_si512(step->index), high));
    for (int k = 1; k < count; k++) {
      __m512 more = _mm512_permutex2var_ps(low, _mm512_loadu_si512(step[k].index), high);
      sum = _mm512_add_ps(sum, _mm512_mul_ps(_mm512_loadu_ps(step[k].weights), more));
    }
    int left = total - vector * LANES;
    if (left >= LANES) _mm512_storeu_ps(to + vector * LANES, sum);
    else _mm512_mask_storeu_ps(to + vector * LANES, (__mmask16)((1u << left) - 1), sum);
  }
}
#else
static void mix_shuffled(const flow_shuffles *s, int count, const float *row, int total, float *to)
{
  (void)s, (void)count, (void)row, (void)total, (void)to;
}
#endif

/* The sums are added in the order of the taps in every case, so the bits are the same. */
void flow_mix_neighbours(const flow_resize_taps *taps, const flow_shuffles *shuffles, const float *row, int channels, float *to)
{
  if (shuffles->vectors > 0) mix_shuffled(shuffles, taps->count, row, taps->to * channels, to);
  else if (channels == 3 && taps->count == 2) mix_pixels(taps, row, 3, 2, to);
  else if (channels == 3) mix_pixels(taps, row, 3, taps->count, to);
  else if (channels == 4 && taps->count == 2) mix_pixels(taps, row, 4, 2, to);
  else if (channels == 4) mix_pixels(taps, row, 4, taps->count, to);
  else mix_samples(taps, row, channels, to);
}
