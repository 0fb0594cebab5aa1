/* quantized_depthwise_bytes.c: quantized convolutions in which each channel has one kernel of its own, by AVX-512 VNNI. Without it the
 * variant supports nothing.
 *
 * A row of outputs is one string of bytes, 64 at a time whatever the channels: the bytes of cell (ky, kx) for all of them are 64 bytes of
 * the input, too. Four such vectors are unpacked until the four bytes of an output are side by side in 32 bits, which vpdpbusd multiplies
 * with the four weights of the output's channel; packing the results to bytes brings them back into order. Weights, scales and biases are
 * repeated until channels and vectors end together.
 *
 * Bands of input rows are copied with their padding, pixels filled up to LANE channels unless a vector is a whole number of pixels. With a
 * stride of n, a row is n strings: the pixels 0, n, 2n ..., then 1, n + 1 ... */
#include "cpu/quantized/quantized.h"
#include "cpu/cost.h"

enum { BYTES = 64, LANE = 16, TAPS = 4 /* of a group */, BAND_BYTES = 32 * 1024 };

/* How a call is walked, from its shapes alone. */
typedef struct layout {
  flow_geometry s;
  int64_t pixel, columns, row;          /* bytes of a pixel, pixels of a string, bytes of a row: as many strings as the stride */
  int64_t band;                         /* rows of outputs that are done together */
  int64_t period, groups;               /* vectors until channels repeat; of taps */
  size_t  floats_bytes, weight_bytes;   /* of a number for each output in a period; of the weights */
} layout;

static int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/* Sizes as the comments of `layout` say. The period is the least number of vectors that end with a whole pixel. */
static layout layout_of(const flow_call *call)
{
  layout l = { .s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]) };
  const flow_geometry *s = &l.s;
  l.pixel = s->channels_in > 0 && BYTES % s->channels_in == 0 ? s->channels_in : round_up(s->channels_in, LANE);
  l.columns = (s->before[1] + s->in[1] + s->after[1] + s->stride[1] - 1) / s->stride[1];
  l.row = l.columns * s->stride[1] * l.pixel;
  l.band = l.row > 0 && l.row * s->stride[0] < BAND_BYTES ? BAND_BYTES / (l.row * s->stride[0]) : 1;
  if (l.band > s->out[0]) l.band = s->out[0];
  for (l.period = 1; l.period * BYTES % (l.pixel > 0 ? l.pixel : 1) != 0;) l.period++;
  l.groups = (s->kernel[0] * s->kernel[1] + TAPS - 1) / TAPS;
  l.floats_bytes = (size_t)(l.period * BYTES) * sizeof(float);
  l.weight_bytes = (size_t)(l.period * l.groups * BYTES * TAPS);
  return l;
}

/* Input rows under `rows` rows of outputs. */
static int64_t band_rows(const layout *l, int64_t rows) { return (rows - 1) * l->s.stride[0] + flow_reach(&l->s, 0) + 1; }

/* shared: scales and biases in the order of channels, then as lanes, like what the sums begin with; weights; offsets of taps. */
typedef struct shared_view { float *scales, *biases; int32_t *sums; int8_t *weights; int64_t *offsets; } shared_view;

/* The parts of the block that prepare() fills and all members read. */
static shared_view shared_of(const flow_call *call, const layout *l)
{
  char *at = (char *)call->shared + flow_requantization_bytes(call);
  shared_view v = { .scales = (float *)(void *)at, .biases = (float *)(void *)(at + l->floats_bytes) };
  v.sums = (int32_t *)(void *)(at + 2 * l->floats_bytes);
  v.weights = (int8_t *)(at + 3 * l->floats_bytes);
  v.offsets = (int64_t *)(void *)(at + 3 * l->floats_bytes + l->weight_bytes);
  return v;
}

#if defined(FLOW_ISA_AVX512)
#define AVAILABLE __builtin_cpu_supports("avx512vnni")
#else
#define AVAILABLE 0
#endif

/* Without a residual, which would have to be brought into the order of the lanes. */
int FLOW_ISA_NAME(quantized_depthwise_bytes_supports)(const flow_call *call)
{
  if (!AVAILABLE) return 0;
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  int sizes = s.groups == s.channels_in && s.groups == s.channels_out && s.groups > 1 && s.out[0] > 0 && s.out[1] > 0;
  return sizes && call->input_count < 5;          /* no residual */
}

/* Cycles of a vector of 64 outputs: 12 for each group of four taps, 20 to finish it; the band is written and read in caches. */
double FLOW_ISA_NAME(quantized_depthwise_bytes_cost)(const flow_call *call)
{
  layout l = layout_of(call);
  double vectors = (double)(l.s.images * l.s.out[0] * ((l.s.out[1] * l.pixel + BYTES - 1) / BYTES));
  return vectors * (double)(l.groups * 12 + 20) * PEAK + flow_cost_cached((double)(l.s.images * l.s.in[0] * l.row));
}

size_t FLOW_ISA_NAME(quantized_depthwise_bytes_shared_bytes)(const flow_call *call)
{
  layout l = layout_of(call);
  return flow_requantization_bytes(call) + 3 * l.floats_bytes + l.weight_bytes + (size_t)(l.groups * TAPS) * sizeof(int64_t);
}

/* A band in scratch; the last load of a row reads up to BYTES beyond it. */
static int64_t band_bytes(const layout *l) { return band_rows(l, l->band) * l->row + BYTES; }

/* scratch: a band, and a row of results if its pixels are filled up. */
size_t FLOW_ISA_NAME(quantized_depthwise_bytes_scratch_bytes)(const flow_call *call)
{
  layout l = layout_of(call);
  return (size_t)round_up(band_bytes(&l), BYTES) + (size_t)round_up(l.s.out[1] * l.pixel, BYTES) * sizeof(float);
}

/* Which byte of its vector is lane i of vector u of the four that it is unpacked to, and back. */
static int64_t byte_of_lane(int64_t u, int64_t i) { return i / 4 * LANE + u * 4 + i % 4; }

/* Taps beyond the kernel, which fill up the last group, have weights 0 and read where the last cell does. Offsets count from the tap of the
 * first cell: rows of the band, then the string of the pixel's phase, then the pixel in it. */
flow_status FLOW_ISA_NAME(quantized_depthwise_bytes_prepare)(const flow_call *call)
{
  layout l = layout_of(call);
  const flow_geometry *s = &l.s;
  shared_view to = shared_of(call, &l);
  const int8_t *w = call->inputs[1].data;
  int64_t cells = s->kernel[0] * s->kernel[1], lanes = BYTES / TAPS;
  flow_requantization_prepare(call);
  flow_requantization r = flow_requantization_of(call);
  memset(to.scales, 0, 3 * l.floats_bytes + l.weight_bytes);
  for (int64_t tap = 0; tap < l.groups * TAPS; tap++) {
    int64_t cell = tap < cells ? tap : cells - 1, reach = cell % s->kernel[1] * s->dilation[1], step = s->stride[1];
    to.offsets[tap] = cell / s->kernel[1] * s->dilation[0] * l.row + (reach % step * l.columns + reach / step) * l.pixel;
  }
  for (int64_t at = 0; at < l.period * BYTES; at++) {
    int64_t vector = at / BYTES, u = at / lanes % TAPS, c = (vector * BYTES + byte_of_lane(u, at % lanes)) % l.pixel;
    if (c >= s->channels_out) continue;
    to.scales[at] = r.scales[c];
    to.biases[at] = r.biases[c];
    for (int64_t cell = 0; cell < cells; cell++) {
      int8_t value = w[cell * s->channels_out + c];
      to.weights[((vector * l.groups + cell / TAPS) * BYTES + at % BYTES) * TAPS + cell % TAPS] = value;
      to.sums[at] -= r.in.zero * value;
    }
  }
  return FLOW_OK;
}

/* What the vectors of a call have in common. */
typedef struct task { const layout *l; const flow_requantization *r; flow_finish finish; shared_view shared; } task;

#if defined(FLOW_ISA_AVX512)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512vnni"))), apply_to = function)
#else
#pragma GCC target("avx512vnni")
#endif

ALWAYS_INLINE __m512i load(const void *p) { return _mm512_loadu_si512(p); }

/* The sums of 64 outputs, whose tap at offset 0 is at x. */
ALWAYS_INLINE void sum_vector(const task *t, const uint8_t *x, int64_t vector, __m512i sums[TAPS])
{
  const int8_t *w = t->shared.weights + vector * t->l->groups * BYTES * TAPS;
  const int64_t *offset = t->shared.offsets;
  for (int u = 0; u < TAPS; u++) sums[u] = load(t->shared.sums + vector * BYTES + u * VL);
  for (int64_t group = 0; group < t->l->groups; group++, w += BYTES * TAPS, offset += TAPS) {
    __m512i a = load(x + offset[0]), b = load(x + offset[1]), c = load(x + offset[2]), d = load(x + offset[3]);
    __m512i ab = _mm512_unpacklo_epi8(a, b), cd = _mm512_unpacklo_epi8(c, d);
    sums[0] = _mm512_dpbusd_epi32(sums[0], _mm512_unpacklo_epi16(ab, cd), load(w));
    sums[1] = _mm512_dpbusd_epi32(sums[1], _mm512_unpackhi_epi16(ab, cd), load(w + BYTES));
    ab = _mm512_unpackhi_epi8(a, b);
    cd = _mm512_unpackhi_epi8(c, d);
    sums[2] = _mm512_dpbusd_epi32(sums[2], _mm512_unpacklo_epi16(ab, cd), load(w + 2 * BYTES));
    sums[3] = _mm512_dpbusd_epi32(sums[3], _mm512_unpackhi_epi16(ab, cd), load(w + 3 * BYTES));
  }
}

/* The first n outputs of a vector to y, bytes or floats. */
ALWAYS_INLINE void finish_vector(const task *t, const flow_finish_kind kind, const __m512i sums[TAPS], int64_t vector, int64_t n, void *y)
{
  __m512 value[TAPS];
  for (int u = 0; u < TAPS; u++) {
    vf scales = vf_load(t->shared.scales + vector * BYTES + u * VL), biases = vf_load(t->shared.biases + vector * BYTES + u * VL);
    vf scaled = __builtin_convertvector((vi)sums[u], vf) * scales + biases;
    value[u] = (__m512)(kind == FLOW_FINISH_ONLY_BYTES ? scaled : vf_at_least(scaled, t->finish.least));
  }
  if (kind == FLOW_FINISH_FLOATS) {
    float lanes[TAPS][VL], ordered[BYTES];
    memcpy(lanes, value, sizeof lanes);
    for (int u = 0; u < TAPS; u++)
      for (int i = 0; i < VL; i++) ordered[byte_of_lane(u, i)] = lanes[u][i];
    memcpy(y, ordered, (size_t)n * sizeof(float));
    return;
  }
  __m512i whole[TAPS];
  /* Values are limited before they become integers, so that no later step saturates: packing keeps all bits. */
  const __m512 most = _mm512_set1_ps((float)(255 - t->r->out.zero));
  const __m512i zero = _mm512_set1_epi16((short)t->r->out.zero);
  for (int u = 0; u < TAPS; u++) {
    vf scaled = vf_max((vf)value[u] * t->finish.steps.inverse, t->finish.steps.least);
    whole[u] = _mm512_cvtps_epi32(_mm512_min_ps((__m512)scaled, most));
  }
  __m512i low = _mm512_add_epi16(_mm512_packs_epi32(whole[0], whole[1]), zero);
  __m512i high = _mm512_add_epi16(_mm512_packs_epi32(whole[2], whole[3]), zero), all = _mm512_packus_epi16(low, high);
  if (n == BYTES) _mm512_storeu_si512(y, all);
  else _mm512_mask_storeu_epi8(y, ((__mmask64)1 << n) - 1, all);
}

/* A row of outputs of `size` bytes, a vector at a time; kind: known when this is compiled. */
ALWAYS_INLINE void row_of(const task *t, const flow_finish_kind kind, const uint8_t *x, int64_t size, char *y)
{
  const int64_t element = kind == FLOW_FINISH_FLOATS ? sizeof(float) : 1;
  for (int64_t at = 0, vector = 0; at < size; at += BYTES, vector = vector + 1 < t->l->period ? vector + 1 : 0) {
    __m512i sums[TAPS];
    sum_vector(t, x + at, vector, sums);
    finish_vector(t, kind, sums, vector, size - at < BYTES ? size - at : BYTES, y + at * element);
  }
}

/* A row of outputs, in pixels that are filled up. */
static void convolve_row(const task *t, const uint8_t *x, int64_t size, void *y)
{
  switch (t->finish.kind) {
  case FLOW_FINISH_FLOATS: row_of(t, FLOW_FINISH_FLOATS, x, size, y); break;
  case FLOW_FINISH_BYTES: row_of(t, FLOW_FINISH_BYTES, x, size, y); break;
  case FLOW_FINISH_ONLY_BYTES: row_of(t, FLOW_FINISH_ONLY_BYTES, x, size, y); break;
  }
}
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
static void convolve_row(const task *t, const uint8_t *x, int64_t size, void *y) { (void)t, (void)x, (void)size, (void)y; }
#endif

/* `bytes` is a constant at most calls: memcpy is then one or two instructions. */
ALWAYS_INLINE void copy_each(char *to, int64_t to_step, const char *from, int64_t from_step, const int64_t bytes, int64_t n)
{
  for (int64_t i = 0; i < n; i++, to += to_step, from += from_step) memcpy(to, from, (size_t)bytes);
}

/* Copies n pixels of `bytes` bytes each, from_step and to_step bytes apart. */
static void copy_pixels(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t bytes, int64_t n)
{
  if (to_step == bytes && from_step == bytes) memcpy(to, from, (size_t)(n * bytes));
  else if (bytes == 8) copy_each(to, to_step, from, from_step, 8, n);          /* the lengths that instructions copy */
  else if (bytes == 16) copy_each(to, to_step, from, from_step, 16, n);
  else if (bytes == 32) copy_each(to, to_step, from, from_step, 32, n);
  else if (bytes == 64) copy_each(to, to_step, from, from_step, 64, n);
  else copy_each(to, to_step, from, from_step, bytes, n);
}

/* Input rows first .. first + rows - 1, counted from the top padding. */
static void fill_band(const layout *l, const uint8_t *x, int64_t first, int64_t rows, int32_t zero, uint8_t *band)
{
  const flow_geometry *s = &l->s;
  int64_t step = s->stride[1], channels = s->channels_in;
  int padded = s->before[1] || s->after[1] || l->pixel != channels || l->columns * step != s->in[1];
  for (int64_t row = 0; row < rows; row++, band += l->row) {
    int64_t iy = first + row - s->before[0];
    int outside = iy < 0 || iy >= s->in[0];
    if (outside || padded) memset(band, zero, (size_t)l->row);
    if (outside) continue;
    for (int64_t phase = 0; phase < step; phase++) {
      /* Of the padded row's pixels phase, phase + step ..., those from `begin` on are in the image. */
      int64_t begin = s->before[1] > phase ? (s->before[1] - phase + step - 1) / step : 0, column = begin * step + phase - s->before[1];
      int64_t n = column < s->in[1] ? (s->in[1] - column + step - 1) / step : 0;
      copy_pixels((char *)band + (phase * l->columns + begin) * l->pixel, l->pixel,
                  (const char *)x + (iy * s->in[1] + column) * channels, step * channels, channels, n);
    }
  }
}

/* Rows [first, last) of the results of an image. */
static void convolve(const flow_call *call, const layout *l, int64_t image, int64_t first, int64_t last)
{
  const flow_geometry *s = &l->s;
  flow_requantization r = flow_requantization_of(call);
  task t = { .l = l, .r = &r, .finish = flow_finish_of(&r), .shared = shared_of(call, l) };
  int64_t element = r.bytes ? 1 : sizeof(float), size = s->out[1] * l->pixel, output = s->channels_out * element;
  const uint8_t *x = (const uint8_t *)call->inputs[0].data + image * s->in[0] * s->in[1] * s->channels_in;
  uint8_t *band = call->scratch;
  char *y = call->outputs[0].data, *filled = (char *)band + round_up(band_bytes(l), BYTES);
  if (!y) return;
  y += (image * s->out[0] + first) * s->out[1] * output;
  memset(band + band_bytes(l) - BYTES, 0, BYTES);
  for (int64_t top = first; top < last; top += l->band) {
    int64_t rows = last - top < l->band ? last - top : l->band;
    fill_band(l, x, top * s->stride[0], band_rows(l, rows), r.in.zero, band);
    for (int64_t row = 0; row < rows; row++, y += s->out[1] * output) {
      int direct = l->pixel == s->channels_out;
      convolve_row(&t, band + row * s->stride[0] * l->row, size, direct ? y : filled);
      if (!direct) copy_pixels(y, output, filled, l->pixel * element, output, s->out[1]);
    }
  }
}

/* Image by image, all rows. */
flow_status FLOW_ISA_NAME(quantized_depthwise_bytes_run)(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  layout l = layout_of(call);
  for (int64_t image = 0; image < l.s.images; image++) convolve(call, &l, image, 0, l.s.out[0]);
  return FLOW_OK;
}

int64_t FLOW_ISA_NAME(quantized_depthwise_bytes_pieces)(const flow_call *call)
{
  layout l = layout_of(call);
  return l.s.images * flow_depthwise_pieces(&l.s).bands;
}

flow_status FLOW_ISA_NAME(quantized_depthwise_bytes_run_piece)(const flow_call *call, int64_t piece)
{
  layout l = layout_of(call);
  flow_piece_grid pieces = flow_depthwise_pieces(&l.s);
  flow_piece of = flow_piece_of(&pieces, piece, l.s.out[0], 1);
  convolve(call, &l, of.image, of.first, of.last);
  return FLOW_OK;
}
