/* resize.c: every method is separable: taps for each axis, then per output row a weighted sum of input rows (long vectors)
 * and a weighted sum of neighbours in it (a vector per pixel). */
#include "data/resize.h"

#include <math.h>
#include <string.h>
#include "base/memory.h"

typedef float lanes __attribute__((vector_size(16), aligned(4), may_alias));    /* the channels of a pixel */

enum { BILINEAR, NEAREST, BICUBIC, AREA, LANCZOS3, LANCZOS5, GAUSSIAN, MITCHELLCUBIC, METHODS };

static const char *const method_names[METHODS] = {
  "bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic",
};

int flow_resize_method(const char *name)
{
  for (int i = 0; name && i < METHODS; i++) {
    if (strcmp(method_names[i], name) == 0) return i;
  }
  return -1;
}

void flow_resizer_free(flow_resizer *resizer)
{
  flow_taps *taps[2] = { &resizer->vertical, &resizer->horizontal };
  for (int i = 0; i < 2; i++) {
    flow_free(taps[i]->first);
    flow_free(taps[i]->weights);
  }
  flow_free(resizer->row);
  *resizer = (flow_resizer){ 0 };
}

/* ---- taps: float32 arithmetic throughout, as in TensorFlow's kernels (tensorflow/core/kernels/image) ------------------------------ */

static int clamp(int64_t value, int limit)
{
  return value < 0 ? 0 : value >= limit ? limit - 1 : (int)value;
}

/* Adds weight to the tap of output i that reads input `index`, or the input nearest to it. */
static void add_tap(flow_taps *taps, int i, int64_t index, float weight)
{
  int tap = clamp(index, taps->from) - taps->first[i];
  taps->weights[(int64_t)i * taps->count + clamp(tap, taps->count)] += weight;
}

static void start_at(flow_taps *taps, int i, int64_t index)
{
  int last = taps->from - taps->count;
  int start = clamp(index, taps->from);
  taps->first[i] = start < last ? start : last;
}

static void scale_taps(flow_taps *taps, int i)
{
  float *weights = taps->weights + (int64_t)i * taps->count, sum = 0;
  for (int k = 0; k < taps->count; k++) sum += weights[k];
  if (fabsf(sum) < 1000.0f * 0x1p-126f) return;
  for (int k = 0; k < taps->count; k++) weights[k] *= 1.0f / sum;
}

/* resize_bilinear_op.cc: between the two neighbours of the centre; t is not clamped at the edges, where both are the same. */
static void bilinear_tap(flow_taps *taps, int i, float scale)
{
  float s = ((float)i + 0.5f) * scale - 0.5f, below = floorf(s), t = s - below;
  start_at(taps, i, (int64_t)below);
  add_tap(taps, i, (int64_t)below, 1.0f - t);
  add_tap(taps, i, (int64_t)ceilf(s), t);
}

static void nearest_tap(flow_taps *taps, int i, float scale)
{
  int64_t index = (int64_t)floorf(((float)i + 0.5f) * scale);
  start_at(taps, i, index);
  add_tap(taps, i, index, 1.0f);
}

/* resize_bicubic_op.cc: Keys' cubic (a = -0.5) from a table of 1,024 steps; taps outside count nothing, the rest sums to 1. */
static void bicubic_tap(flow_taps *taps, int i, float scale)
{
  float s = ((float)i + 0.5f) * scale - 0.5f;
  int64_t below = (int64_t)floorf(s);
  float x = (float)lrintf((s - (float)below) * 1024.0f) / 1024.0f;
  start_at(taps, i, below - 1);
  for (int k = -1; k <= 2; k++) {
    if (below + k < 0 || below + k >= taps->from) continue;
    float distance = fabsf((float)k - x);
    float inner = (1.5f * distance - 2.5f) * distance * distance + 1.0f;
    float outer = ((-0.5f * distance + 2.5f) * distance - 4.0f) * distance + 2.0f;
    add_tap(taps, i, below + k, k == 0 || k == 1 ? inner : outer);
  }
  scale_taps(taps, i);
}

/* resize_area_op.cc: the mean over the inputs that the output covers, by how much of each. */
static void area_tap(flow_taps *taps, int i, float scale)
{
  float low = (float)i * scale, high = (float)(i + 1) * scale;
  start_at(taps, i, (int64_t)floorf(low));
  for (int64_t v = (int64_t)floorf(low); v < (int64_t)ceilf(high); v++) {
    float part = (float)v < low ? ((float)(v + 1) > high ? scale : (float)(v + 1) - low) : (float)(v + 1) > high ? high - (float)v : 1.0f;
    add_tap(taps, i, v, part / scale);
  }
}

/* sampling_kernels.h. */
static float kernel(int method, float x)
{
  const float pi = 3.14159265359f;
  switch (method) {
    case LANCZOS3: case LANCZOS5: {
      float radius = method == LANCZOS3 ? 3.0f : 5.0f;
      if (x > radius) return 0;
      return x <= 1e-3f ? 1.0f : radius * sinf(pi * x) * sinf(pi * x / radius) / (pi * pi * x * x);
    }
    case GAUSSIAN: return x >= 1.5f ? 0 : expf(-x * x / (2.0f * 0.5f * 0.5f));
    default:                          /* Mitchell and Netravali, B = C = 1/3 */
      if (x >= 2.0f) return 0;
      if (x >= 1.0f) return ((-7.0f / 18.0f * x + 2.0f) * x - 10.0f / 3.0f) * x + 16.0f / 9.0f;
      return (7.0f / 6.0f * x - 2.0f) * x * x + 8.0f / 9.0f;
  }
}

static float radius_of(int method)
{
  return method == LANCZOS3 ? 3.0f : method == LANCZOS5 ? 5.0f : method == GAUSSIAN ? 1.5f : 2.0f;
}

/* scale_and_translate_op.cc without translation and antialiasing. */
static void kernel_tap(flow_taps *taps, int i, float scale)
{
  float sample = ((float)i + 0.5f) * scale, radius = radius_of(taps->method);
  int start = clamp((int64_t)ceilf(sample - radius - 0.5f), taps->from);
  int end = clamp((int64_t)floorf(sample + radius - 0.5f), taps->from);
  start_at(taps, i, start);
  for (int source = start; source <= end; source++) {
    add_tap(taps, i, source, kernel(taps->method, fabsf((float)source + 0.5f - sample)));
  }
  scale_taps(taps, i);
}

static int count_taps(int method, float scale)
{
  switch (method) {
    case BILINEAR: return 2;
    case NEAREST: return 1;
    case BICUBIC: return 4;
    case AREA: return (int)ceilf(scale) + 2;
    default: return 2 * (int)ceilf(radius_of(method)) + 1;
  }
}

static flow_status prepare_taps(flow_taps *taps, int method, int from, int to)
{
  static void (*const functions[METHODS])(flow_taps *taps, int i, float scale) = {
    bilinear_tap, nearest_tap, bicubic_tap, area_tap, kernel_tap, kernel_tap, kernel_tap, kernel_tap,
  };
  if (taps->count > 0 && taps->method == method && taps->from == from && taps->to == to) return FLOW_OK;
  taps->count = 0;
  float scale = (float)from / (float)to;
  /* The inverse of to / from as scale_and_translate gets it. */
  if (method > AREA) scale = 1.0f / ((float)to / (float)from);
  int count = count_taps(method, scale);
  if (count > from) count = from;
  int64_t size = (int64_t)count * to;
  if (size > INT32_MAX) return flow_fail(FLOW_UNSUPPORTED, "resizing %d to %d pixels takes too many weights", from, to);
  FLOW_TRY(flow_grow(&taps->first, sizeof *taps->first, to, &taps->first_capacity));
  FLOW_TRY(flow_grow(&taps->weights, sizeof *taps->weights, (int)size, &taps->weight_capacity));
  memset(taps->weights, 0, (size_t)size * sizeof *taps->weights);
  taps->method = method;
  taps->from = from;
  taps->to = to;
  taps->count = count;
  for (int i = 0; i < to; i++) functions[method](taps, i, scale);
  return FLOW_OK;
}

/* ---- rows ------------------------------------------------------------------------------------------------------------------------- */

/* row[x] = sum of weights[k] x line k; lines are `stride` elements apart. Once for every machine, and for those with AVX2 or AVX-512
 * (without fused multiply-adds: the same result bit for bit). */
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
DEFINE_MIX_LINES(mix_bytes_avx2, unsigned char, __attribute__((target("avx2"))))
DEFINE_MIX_LINES(mix_floats_avx2, float, __attribute__((target("avx2"))))
DEFINE_MIX_LINES(mix_bytes_avx512, unsigned char, __attribute__((target("avx512f,avx512bw,prefer-vector-width=512"))))
DEFINE_MIX_LINES(mix_floats_avx512, float, __attribute__((target("avx512f,avx512bw,prefer-vector-width=512"))))
#endif

static void mix_lines(int dtype, const void *pixels, int64_t at, int64_t stride, const float *weights, int count, int64_t n, float *row)
{
  const unsigned char *bytes = pixels;
  const float *floats = pixels;
#if FLOW_HAVE_X86
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")) {
    if (dtype == FLOW_FLOAT32) mix_floats_avx512(floats + at, stride, weights, count, n, row);
    else mix_bytes_avx512(bytes + at, stride, weights, count, n, row);
    return;
  }
  if (__builtin_cpu_supports("avx2")) {
    if (dtype == FLOW_FLOAT32) mix_floats_avx2(floats + at, stride, weights, count, n, row);
    else mix_bytes_avx2(bytes + at, stride, weights, count, n, row);
    return;
  }
#endif
  if (dtype == FLOW_FLOAT32) mix_floats(floats + at, stride, weights, count, n, row);
  else mix_bytes(bytes + at, stride, weights, count, n, row);
}

/* One output row: pixel x is the sum of weights x neighbours. Pixels of 3 channels are read and written as vectors of 4: the
 * row has room behind its end, the output is overwritten by the next pixel, and the last pixel is written apart. */
static inline __attribute__((always_inline)) lanes mix_pixel(const flow_taps *taps, int x, const float *row, int channels, const int count)
{
  const float *from = row + (int64_t)taps->first[x] * channels, *weights = taps->weights + (int64_t)x * count;
  lanes sum = weights[0] * *(const lanes *)from;
  for (int k = 1; k < count; k++) sum += weights[k] * *(const lanes *)(from + k * channels);
  return sum;
}

static inline __attribute__((always_inline)) void mix_pixels(const flow_taps *taps, const float *row, const int channels, const int count,
                                                             float *to)
{
  int last = taps->to - 1;
  for (int x = 0; x < last; x++) *(lanes *)(to + x * channels) = mix_pixel(taps, x, row, channels, count);
  lanes pixel = mix_pixel(taps, last, row, channels, count);
  for (int c = 0; c < channels; c++) to[last * channels + c] = pixel[c];
}

static void mix_samples(const flow_taps *taps, const float *row, int channels, float *to)
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

static void mix_neighbours(const flow_taps *taps, const float *row, int channels, float *to)
{
  if (channels == 3 && taps->count == 2) mix_pixels(taps, row, 3, 2, to);
  else if (channels == 3) mix_pixels(taps, row, 3, taps->count, to);
  else if (channels == 4 && taps->count == 2) mix_pixels(taps, row, 4, 2, to);
  else if (channels == 4) mix_pixels(taps, row, 4, taps->count, to);
  else mix_samples(taps, row, channels, to);
}

/* ---- fitting ------------------------------------------------------------------------------------------------------------------------ */

/* A part of the input that goes to a part of the output. */
typedef struct fitting { int top, left, height, width, to_top, to_left, to_height, to_width; } fitting;

static int at_least_one(float size)
{
  return size < 1.0f ? 1 : (int)size;
}

/* Keras' smart_resize, in float32 as it does where sizes are not known beforehand. */
static fitting fit_by_cropping(fitting f)
{
  int crop_height = at_least_one((float)((int64_t)f.width * f.to_height) / (float)f.to_width);
  int crop_width = at_least_one((float)((int64_t)f.height * f.to_width) / (float)f.to_height);
  if (crop_height > f.height) crop_height = f.height;
  if (crop_width > f.width) crop_width = f.width;
  f.top = (f.height - crop_height) / 2;
  f.left = (f.width - crop_width) / 2;
  f.height = crop_height;
  f.width = crop_width;
  return f;
}

/* tf.image.resize_with_pad. */
static fitting fit_by_padding(fitting f)
{
  float ratio = fmaxf((float)f.width / (float)f.to_width, (float)f.height / (float)f.to_height);
  float height = (float)f.height / ratio, width = (float)f.width / ratio;
  float top = floorf(((float)f.to_height - height) / 2), left = floorf(((float)f.to_width - width) / 2);
  int inner_height = at_least_one(height), inner_width = at_least_one(width);
  if (inner_height > f.to_height) inner_height = f.to_height;
  if (inner_width > f.to_width) inner_width = f.to_width;
  f.to_top = top > 0 ? (int)top : 0;
  f.to_left = left > 0 ? (int)left : 0;
  if (f.to_top + inner_height > f.to_height) f.to_top = f.to_height - inner_height;
  if (f.to_left + inner_width > f.to_width) f.to_left = f.to_width - inner_width;
  f.to_height = inner_height;
  f.to_width = inner_width;
  return f;
}

flow_status flow_resize(flow_resizer *resizer, const void *pixels, int dtype, int height, int width, int channels, int method,
                        int fit, int to_height, int to_width, float *to)
{
  fitting f = { 0, 0, height, width, 0, 0, to_height, to_width };
  int64_t stride = (int64_t)width * channels, to_stride = (int64_t)to_width * channels;
  if (fit == FLOW_CROP) f = fit_by_cropping(f);
  if (fit == FLOW_PAD) {
    f = fit_by_padding(f);
    memset(to, 0, (size_t)to_height * (size_t)to_stride * sizeof *to);
  }
  FLOW_TRY(prepare_taps(&resizer->vertical, method, f.height, f.to_height));
  FLOW_TRY(prepare_taps(&resizer->horizontal, method, f.width, f.to_width));
  int64_t n = (int64_t)f.width * channels;
  if (n + 4 > INT32_MAX) return flow_fail(FLOW_UNSUPPORTED, "a row of %d pixels is too long", width);
  FLOW_TRY(flow_grow(&resizer->row, sizeof *resizer->row, (int)n + 4, &resizer->row_capacity));
  for (int i = 0; i < 4; i++) resizer->row[n + i] = 0;

  const flow_taps *vertical = &resizer->vertical;
  int64_t corner = (int64_t)f.top * stride + (int64_t)f.left * channels;
  for (int y = 0; y < f.to_height; y++) {
    const float *weights = vertical->weights + (int64_t)y * vertical->count;
    int64_t at = corner + vertical->first[y] * stride;
    mix_lines(dtype, pixels, at, stride, weights, vertical->count, n, resizer->row);
    mix_neighbours(&resizer->horizontal, resizer->row, channels, to + (f.to_top + y) * to_stride + (int64_t)f.to_left * channels);
  }
  return FLOW_OK;
}
