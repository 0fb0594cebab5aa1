/* quantized_convolution.c: y = activation(scale * sum of (x - zero) * w + bias) of uint8 x and int8 w: the plain variant, which serves
 * every shape, and the list of all. */
#include "cpu/quantized/quantized.h"

/* What one cell of the kernel adds to the sums of one pixel's outputs. */
static void add_cell(const flow_geometry *s, const uint8_t *pixel, int32_t zero, const int8_t *weights, int32_t *sums)
{
  if (s->group_in == 1 && s->group_out == 1) {
    for (int64_t c = 0; c < s->channels_out; c++) sums[c] += ((int32_t)pixel[c] - zero) * weights[c];
    return;
  }
  for (int64_t group = 0; group < s->groups; group++) {
    for (int64_t c = 0; c < s->group_in; c++) {
      int32_t value = (int32_t)pixel[group * s->group_in + c] - zero, *to = sums + group * s->group_out;
      const int8_t *from = weights + c * s->channels_out + group * s->group_out;
      for (int64_t o = 0; o < s->group_out; o++) to[o] += value * from[o];
    }
  }
}

/* sums[c] of the outputs of one pixel; x: of one image. */
static void add_pixel(const flow_geometry *s, const uint8_t *x, int32_t zero, const int8_t *w, int64_t row, int64_t column, int32_t *sums)
{
  memset(sums, 0, (size_t)flow_padded_lanes(s->channels_out) * sizeof *sums);
  for (int64_t ky = 0; ky < s->kernel[0]; ky++) {
    int64_t iy = row * s->stride[0] + ky * s->dilation[0] - s->before[0];
    if (iy < 0 || iy >= s->in[0]) continue;
    for (int64_t kx = 0; kx < s->kernel[1]; kx++) {
      int64_t ix = column * s->stride[1] + kx * s->dilation[1] - s->before[1];
      if (ix < 0 || ix >= s->in[1]) continue;
      add_cell(s, x + (iy * s->in[1] + ix) * s->channels_in, zero, w + (ky * s->kernel[1] + kx) * s->group_in * s->channels_out, sums);
    }
  }
}

/* The sums of one pixel, up to whole vectors, since flow_requantize reads whole ones. */
static size_t scratch_bytes(const flow_call *call) { return (size_t)flow_padded_lanes(call->inputs[1].shape[3]) * sizeof(int32_t); }

/* Only scales and biases: the plain variant reads the weights as they are. */
static flow_status prepare(const flow_call *call)
{
  flow_requantization_prepare(call);
  return FLOW_OK;
}

/* Pixel by pixel: exact sums of products of bytes in int32, then what flow_finish makes of them. */
static flow_status run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  flow_requantization r = flow_requantization_of(call);
  const uint8_t *x = call->inputs[0].data;
  int32_t *sums = call->scratch;
  int64_t pixels = s.out[0] * s.out[1];
  flow_finish finish = flow_finish_of(&r);
  void *y = call->outputs[0].data;
  if (!y) return FLOW_OK;
  for (int64_t at = 0; at < s.images * pixels; at++) {
    add_pixel(&s, x + at / pixels * s.in[0] * s.in[1] * s.channels_in, r.in.zero, call->inputs[1].data, at % pixels / s.out[1],
              at % s.out[1], sums);
    for (int64_t c = 0; c < s.channels_out; c += VL) {
      int64_t lanes = s.channels_out - c < VL ? s.channels_out - c : VL;
      vi sum;
      memcpy(&sum, sums + c, sizeof sum);
      vf scales = vf_load(r.scales + c), biases = vf_load(r.biases + c);
      flow_requantize(&finish, finish.kind, sum, scales, biases, (int)lanes, y, at * s.channels_out + c);
    }
  }
  return FLOW_OK;
}

const flow_kernel FLOW_KERNELS(quantized_convolution)[] = {
  FLOW_PIECES_ENTRY(quantized_bytes, "bytes"),
  FLOW_PIECES_ENTRY(quantized_words, "words"),
  FLOW_PIECES_ENTRY(quantized_depthwise_bytes, "depthwise bytes"),
  FLOW_PIECES_ENTRY(quantized_depthwise, "depthwise"),
  { .variant = "plain", .shared_bytes = flow_requantization_bytes, .scratch_bytes = scratch_bytes, .prepare = prepare, .run = run },
  { 0 }
};
