/* quantized.h: what the kernels of quantized ops share: float32 as bytes, and what is done with the sums of products of bytes. The files
 * that use it are compiled without fused multiply-adds, and sums of integers are exact: all variants and instruction sets give the same
 * bits. */
#ifndef FLOW_CPU_QUANTIZED_QUANTIZED_H
#define FLOW_CPU_QUANTIZED_QUANTIZED_H

#include "convolution_geometry.h"
#include "cpu/piece_grid.h"
#include "cpu/variant.h"
#include "quantization.h"

/* The steps of a range in every lane, for flow_store_quantized. least: -zero, which becomes byte 0. */
typedef struct flow_byte_steps { vf inverse, least; vi zero; } flow_byte_steps;

static inline flow_byte_steps flow_byte_steps_of(flow_quantization q)
{
  return (flow_byte_steps){ .inverse = vf_set(q.inverse), .least = vf_set((float)-q.zero), .zero = (vi){ 0 } + q.zero };
}

/* x as bytes, the first n <= VL of them to memory: what is outside of the range becomes its end, NaN its lower one; halves are rounded to
 * even. */
ALWAYS_INLINE void flow_store_quantized(uint8_t *p, vf x, const flow_byte_steps *q, int n)
{
  vf scaled = vf_max(x * q->inverse, q->least);
#if defined(FLOW_ISA_AVX512)
  __m512i whole = (__m512i)((vu)_mm512_cvtps_epi32((__m512)scaled) + (vu)q->zero);      /* 2^31 if it is larger: 255, too */
  if (n == VL) _mm_storeu_si128((__m128i *)(void *)p, _mm512_cvtusepi32_epi8(whole));
  else _mm_mask_storeu_epi8(p, (__mmask16)((1u << n) - 1), _mm512_cvtusepi32_epi8(whole));
#else
  /* Adding 1.5 * 2^23 rounds a float of less than 2^22 to an integer, halves to even, which is then in its lowest bits. */
  const vf rounds = vf_set(12582912.0f), most = __builtin_convertvector(255 - q->zero, vf);
  scaled = vf_select(scaled < most, scaled, most);
  vi whole = (vi)(scaled + rounds) - (vi)rounds + q->zero;
  uint8_t bytes[VL];
  vi_store_bytes(n == VL ? p : bytes, whole);
  if (n < VL) memcpy(p, bytes, (size_t)n);
#endif
}

/* What is done with the sums of a quantized convolution: y = activation(sum * scales[c] + biases[c] + residual), as float32 or as bytes. */
typedef struct flow_requantization {
  flow_quantization in, out;
  int               bytes, relu;
  const float      *scales, *biases;      /* shared: what flow_requantization_prepare made */
  const float      *residual;             /* like y, or NULL */
} flow_requantization;

/* Channels filled up to whole vectors. */
static inline int64_t flow_padded_lanes(int64_t channels) { return (channels + VL - 1) / VL * VL; }

/* Bytes of the scales and biases, with which `shared` begins. */
static inline size_t flow_requantization_bytes(const flow_call *call)
{
  return ((size_t)flow_padded_lanes(call->inputs[1].shape[3]) * 2 * sizeof(float) + 63) / 64 * 64;
}

/* From the attributes and operands of a call; a range of y that is empty says that y is float32. `shared` may be NULL: then scales and
 * biases are not addresses. */
static inline flow_requantization flow_requantization_of(const flow_call *call)
{
  double low = call->attributes->convolution.low, high = call->attributes->convolution.high;
  flow_requantization r = {
    .in = flow_quantization_of(call->attributes->convolution.input_low, call->attributes->convolution.input_high),
    .bytes = high > low, .relu = call->attributes->convolution.activation == FLOW_RELU, .scales = call->shared,
  };
  if (r.bytes) r.out = flow_quantization_of(low, high);
  if (call->input_count > 4) r.residual = call->inputs[4].data;
  r.biases = r.scales + flow_padded_lanes(call->inputs[1].shape[3]);
  return r;
}

/* The scales of the sums, which are those of x times those of the weights, and the biases, both up to whole vectors. */
static inline void flow_requantization_prepare(const flow_call *call)
{
  flow_requantization r = flow_requantization_of(call);
  int64_t channels = call->inputs[1].shape[3], padded = flow_padded_lanes(channels);
  const float *given = call->inputs[2].data;
  float *scales = call->shared, *biases = scales + padded;
  memset(scales, 0, (size_t)padded * 2 * sizeof(float));
  for (int64_t c = 0; c < channels; c++) scales[c] = r.in.scale * given[c];
  if (call->input_count > 3) memcpy(biases, call->inputs[3].data, (size_t)channels * sizeof(float));
}

/* What a call does to every vector of sums. ONLY_BYTES: the range of the bytes does what a relu would do, and there is no residual. */
typedef enum flow_finish_kind { FLOW_FINISH_FLOATS, FLOW_FINISH_BYTES, FLOW_FINISH_ONLY_BYTES } flow_finish_kind;
typedef struct flow_finish { flow_byte_steps steps; vf least; const float *residual; flow_finish_kind kind; } flow_finish;

/* What the requantization of a call does, decided once for all vectors. */
static inline flow_finish flow_finish_of(const flow_requantization *r)
{
  flow_finish f = { .steps = flow_byte_steps_of(r->out), .least = vf_set(r->relu ? 0.0f : -INFINITY), .residual = r->residual };
  /* Bytes stand for no number below the range's lower end: if that is 0, rounding into the range is the relu. */
  int relu_is_range = !r->relu || r->out.zero == 0;       /* no byte is below 0 anyway */
  f.kind = !r->bytes ? FLOW_FINISH_FLOATS : r->residual || !relu_is_range ? FLOW_FINISH_BYTES : FLOW_FINISH_ONLY_BYTES;
  return f;
}

/* The first `lanes` sums, with their scales and biases, to element `at` of y; kind: that of f, known where loops are compiled. */
ALWAYS_INLINE void flow_requantize(const flow_finish *f, const flow_finish_kind kind, vi sums, vf scales, vf biases, int lanes, void *y,
                                   int64_t at)
{
  vf value = __builtin_convertvector(sums, vf) * scales + biases;
  if (kind != FLOW_FINISH_ONLY_BYTES) {
    if (f->residual) value += lanes == VL ? vf_load(f->residual + at) : vf_load_part(f->residual + at, lanes);
    value = vf_at_least(value, f->least);
  }
  if (kind != FLOW_FINISH_FLOATS) flow_store_quantized((uint8_t *)y + at, value, &f->steps, lanes);
  else if (lanes == VL) vf_store((float *)y + at, value);
  else vf_store_part((float *)y + at, value, lanes);
}

/* The pieces of one image of a depthwise convolution: bands of rows. A multiply-add of bytes takes about as long as one of floats in a
 * product, since most of the time goes into moving bytes. */
static inline flow_piece_grid flow_depthwise_pieces(const flow_geometry *s)
{
  return flow_cut_pieces(flow_multiply_adds(s) / (double)(s->images ? s->images : 1), s->out[0] > 0 ? s->out[0] : 1, 1, 1, 1);
}

/* The variants in their own files: one group, by bytes and by words; as many groups as channels, by bytes and by words. */
FLOW_PIECES(quantized_bytes);
FLOW_PIECES(quantized_words);
FLOW_PIECES(quantized_depthwise_bytes);
FLOW_PIECES(quantized_depthwise);

#endif
