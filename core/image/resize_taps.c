/* resize_taps.c: which inputs make an output of an axis, and with what weights, for every method. Float32 arithmetic throughout, as in
 * TensorFlow's kernels (tensorflow/core/kernels/image). */
#include "image/resize_parts.h"

#include <limits.h>
#include <math.h>
#include <string.h>
#include "base/memory.h"

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

int flow_resize_dtype(int method)
{
  return method == NEAREST ? FLOW_UINT8 : FLOW_FLOAT32;
}

static int clamp(int64_t value, int limit)
{
  return value < 0 ? 0 : value >= limit ? limit - 1 : (int)value;
}

/* Adds weight to the tap of output i that reads input `index`, or the input nearest to it. */
static void add_tap(flow_resize_taps *taps, int i, int64_t index, float weight)
{
  int tap = clamp(index, taps->from) - taps->first[i];
  taps->weights[(int64_t)i * taps->count + clamp(tap, taps->count)] += weight;
}

/* The first input that output i reads, so that `count` inputs from there on are inside. count is at most the number of
 * inputs, so `last` is not negative. */
static void start_at(flow_resize_taps *taps, int i, int64_t index)
{
  int last = taps->from - taps->count;
  int start = clamp(index, taps->from);
  taps->first[i] = start < last ? start : last;
}

/* To a sum of 1, unless it is next to 0, as TensorFlow's kernel does it. */
static void scale_taps(flow_resize_taps *taps, int i)
{
  float *weights = taps->weights + (int64_t)i * taps->count, sum = 0;
  for (int k = 0; k < taps->count; k++) sum += weights[k];
  if (fabsf(sum) < 1000.0f * 0x1p-126f) return;
  for (int k = 0; k < taps->count; k++) weights[k] *= 1.0f / sum;
}

/* resize_bilinear_op.cc: between the two neighbours of the centre; t is not clamped at the edges, where both are the same. */
static void bilinear_tap(flow_resize_taps *taps, int i, float scale)
{
  float s = ((float)i + 0.5f) * scale - 0.5f, below = floorf(s), t = s - below;
  start_at(taps, i, (int64_t)below);
  add_tap(taps, i, (int64_t)below, 1.0f - t);
  add_tap(taps, i, (int64_t)ceilf(s), t);
}

/* The pixel in which the centre falls. */
static void nearest_tap(flow_resize_taps *taps, int i, float scale)
{
  int64_t index = (int64_t)floorf(((float)i + 0.5f) * scale);
  start_at(taps, i, index);
  add_tap(taps, i, index, 1.0f);
}

/* resize_bicubic_op.cc: Keys' cubic (a = -0.5) from a table of 1,024 steps; taps outside count nothing, the rest sums to 1. */
static void bicubic_tap(flow_resize_taps *taps, int i, float scale)
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
static void area_tap(flow_resize_taps *taps, int i, float scale)
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
static void kernel_tap(flow_resize_taps *taps, int i, float scale)
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

/* The most inputs that an output may read. AREA: the inputs under a stretch of `scale`, which may begin and end inside
 * of one. */
static int count_taps(int method, float scale)
{
  switch (method) {
    case BILINEAR: return 2;
    case NEAREST: return 1;
    case BICUBIC: return 4;
    case AREA: return scale < 0x1p30f ? (int)ceilf(scale) + 2 : INT_MAX;
    default: return 2 * (int)ceilf(radius_of(method)) + 1;
  }
}

/* count 0 while the taps are not complete, so that a failure does not leave half of them for the next picture of that
 * size. */
flow_status flow_taps_prepare(flow_resize_taps *taps, int method, int from, int to)
{
  static void (*const functions[METHODS])(flow_resize_taps *taps, int i, float scale) = {
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
