/* quantized_depthwise.c: quantized convolutions in which each channel has one kernel of its own, a vector of channels at a time. The
 * weights are int32 lanes whose upper halves are 0, so that vpmaddwd multiplies the lower halves, which hold x - zero. Without AVX2 the
 * variant supports nothing. */
#include "cpu/quantized/quantized.h"
#include "cpu/cost.h"

#if defined(FLOW_ISA_AVX512)
enum { AVAILABLE = 1 };
ALWAYS_INLINE vi multiply_words(vi a, vi b) { return (vi)_mm512_madd_epi16((__m512i)a, (__m512i)b); }
#elif defined(FLOW_ISA_AVX2)
enum { AVAILABLE = 1 };
ALWAYS_INLINE vi multiply_words(vi a, vi b) { return (vi)_mm256_madd_epi16((__m256i)a, (__m256i)b); }
#else
enum { AVAILABLE = 0 };
ALWAYS_INLINE vi multiply_words(vi a, vi b) { return a * b; }
#endif

/* Cells of the kernel, each of which has a weight for every channel. */
static int64_t cells_of(const flow_geometry *s) { return s->kernel[0] * s->kernel[1]; }

/* As many outputs as inputs, each in its own group. */
int FLOW_ISA_NAME(quantized_depthwise_supports)(const flow_call *call)
{
  if (!AVAILABLE) return 0;
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  return s.groups == s.channels_in && s.groups == s.channels_out && s.groups > 1;
}

/* Loads and conversions take three quarters of the time. */
double FLOW_ISA_NAME(quantized_depthwise_cost)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  double products = (double)(s.images * s.out[0] * s.out[1] * cells_of(&s)) * (double)flow_padded_lanes(s.channels_out);
  return flow_cost_arithmetic(products, 0.25);
}

/* shared: scales and biases, then the weights as lanes, [cell][channels up to whole vectors]. */
size_t FLOW_ISA_NAME(quantized_depthwise_shared_bytes)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  return flow_requantization_bytes(call) + (size_t)(cells_of(&s) * flow_padded_lanes(s.channels_out)) * sizeof(int32_t);
}

/* x is read where it is: padding is left out, not copied. */
size_t FLOW_ISA_NAME(quantized_depthwise_scratch_bytes)(const flow_call *call) { return (void)call, 0; }

/* Weights {cells, channels} as int32 lanes with their upper halves 0, the channels padded to whole vectors by zeros. */
flow_status FLOW_ISA_NAME(quantized_depthwise_prepare)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  int64_t padded = flow_padded_lanes(s.channels_out);
  const int8_t *w = call->inputs[1].data;
  int32_t *lanes = (int32_t *)(void *)((char *)call->shared + flow_requantization_bytes(call));
  flow_requantization_prepare(call);
  memset(lanes, 0, (size_t)(cells_of(&s) * padded) * sizeof *lanes);
  for (int64_t cell = 0; cell < cells_of(&s); cell++)
    for (int64_t c = 0; c < s.channels_out; c++) lanes[cell * padded + c] = w[cell * s.channels_out + c] & 0xffff;
  return FLOW_OK;
}

/* VL channels of a pixel less zero, or the last n of them. */
ALWAYS_INLINE vi load_pixel(const uint8_t *x, int n, vi zero)
{
  if (n == VL) return vi_load_bytes(x) - zero;
#if defined(FLOW_ISA_AVX512)
  return (vi)_mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8((__mmask16)((1u << n) - 1), x)) - zero;
#else
  uint8_t bytes[VL] = { 0 };
  memcpy(bytes, x, (size_t)n);
  return vi_load_bytes(bytes) - zero;
#endif
}

/* The cells of the kernel that are inside the image, of one output: rows [first[0], last[0]), columns [first[1], last[1]). */
typedef struct window { int64_t first[2], last[2], top[2]; } window;

/* n / step, rounded up; most steps are 1. */
static inline int64_t steps_of(int64_t n, int64_t step) { return step == 1 ? n : (n + step - 1) / step; }

/* The kernel's cells that are inside of the image; those outside would be x = zero, whose product is 0, and are left out. */
static window window_at(const flow_geometry *s, int64_t row, int64_t column)
{
  window at = { .top = { row * s->stride[0] - s->before[0], column * s->stride[1] - s->before[1] } };
  for (int axis = 0; axis < 2; axis++) {
    int64_t step = s->dilation[axis], top = at.top[axis], room = s->in[axis] - top;
    int64_t inside = room <= 0 ? 0 : steps_of(room, step);
    at.first[axis] = top < 0 ? steps_of(-top, step) : 0;
    at.last[axis] = inside < s->kernel[axis] ? inside : s->kernel[axis];
  }
  return at;
}

/* `lanes` channels of one output pixel. Sums are exact in int32, so that their order does not matter. */
ALWAYS_INLINE void convolve_lanes(const flow_geometry *s, const flow_requantization *r, const flow_finish *finish, const window *at,
                                  const uint8_t *x, const int32_t *weights, int64_t padded, int64_t channel, int lanes, void *y, int64_t to)
{
  vi sums = { 0 }, zero = sums + r->in.zero, w;
  for (int64_t ky = at->first[0]; ky < at->last[0]; ky++) {
    int64_t line = (at->top[0] + ky * s->dilation[0]) * s->in[1] + at->top[1];
    for (int64_t kx = at->first[1]; kx < at->last[1]; kx++) {
      memcpy(&w, weights + (ky * s->kernel[1] + kx) * padded + channel, sizeof w);
      sums += multiply_words(load_pixel(x + (line + kx * s->dilation[1]) * s->channels_in + channel, lanes, zero), w);
    }
  }
  flow_requantize(finish, finish->kind, sums, vf_load(r->scales + channel), vf_load(r->biases + channel), lanes, y, to + channel);
}

/* Rows [first, last) of the results of an image. */
static void convolve(const flow_call *call, const flow_geometry *s, int64_t image, int64_t first, int64_t last)
{
  flow_requantization r = flow_requantization_of(call);
  const int32_t *weights = (const int32_t *)(const void *)((const char *)call->shared + flow_requantization_bytes(call));
  const uint8_t *x = (const uint8_t *)call->inputs[0].data + image * s->in[0] * s->in[1] * s->channels_in;
  flow_finish finish = flow_finish_of(&r);
  void *y = call->outputs[0].data;
  int64_t padded = flow_padded_lanes(s->channels_out), whole = s->channels_out / VL * VL;
  int64_t at = (image * s->out[0] + first) * s->out[1] * s->channels_out;
  for (int64_t row = first; row < last && y; row++)
    for (int64_t column = 0; column < s->out[1]; column++, at += s->channels_out) {
      window cells = window_at(s, row, column);
      for (int64_t c = 0; c < whole; c += VL) convolve_lanes(s, &r, &finish, &cells, x, weights, padded, c, VL, y, at);
      int rest = (int)(s->channels_out - whole);
      if (rest > 0) convolve_lanes(s, &r, &finish, &cells, x, weights, padded, whole, rest, y, at);
    }
}

/* Image by image, all rows. */
flow_status FLOW_ISA_NAME(quantized_depthwise_run)(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  for (int64_t image = 0; image < s.images; image++) convolve(call, &s, image, 0, s.out[0]);
  return FLOW_OK;
}

int64_t FLOW_ISA_NAME(quantized_depthwise_pieces)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  return s.images * flow_depthwise_pieces(&s).bands;
}

/* A band of rows of one image, with the same sums: they are exact. */
flow_status FLOW_ISA_NAME(quantized_depthwise_run_piece)(const flow_call *call, int64_t piece)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  flow_piece_grid pieces = flow_depthwise_pieces(&s);
  flow_piece of = flow_piece_of(&pieces, piece, s.out[0], 1);
  convolve(call, &s, of.image, of.first, of.last);
  return FLOW_OK;
}
