/* convolution_dots.c: one row of a direct convolution to a few channels, as the last layers of autoencoders and of nets that label pixels
 * are. Vectors of output channels would be mostly empty, so vectors run along the inputs: an output is a scalar product of the kernel with
 * what it covers. A tile is as many neighbouring pixels as have VL outputs together: a sum in registers for each, then one transposition,
 * which makes one vector of the sums of their lanes. */
#include "cpu/convolution/convolution.h"
#include "cpu/matrix_product/transpose.h"

/* A piece of a run, `lanes` floats of each of `pixels` pixels: sums[pixel * outputs + output] += x w. weights: of output 0; those of the
 * next one are `of_output` floats further on. What is beyond the run is not read: it may be infinite, or nothing. */
ALWAYS_INLINE void add_dots(const int outputs, const int pixels, const float *x, int64_t step, const float *weights, int64_t of_output,
                            int64_t lanes, vf *sums)
{
  vf w[FLOW_MOST_DOTS];
  FLOW_UNROLL(4)
  for (int o = 0; o < outputs; o++) w[o] = vf_load(weights + o * of_output);
  FLOW_UNROLL(16)
  for (int p = 0; p < pixels; p++) {
    vf input = lanes < VL ? vf_load_part(x + p * step, (int)lanes) : vf_load(x + p * step);
    FLOW_UNROLL(4)
    for (int o = 0; o < outputs; o++) sums[p * outputs + o] += input * w[o];
  }
}

/* outputs and pixels are constants at every call, so that sums stay in registers. */
ALWAYS_INLINE void dots_tile(const int outputs, const int pixels, const flow_taps *taps, const float *x, const float *weights, vf bias,
                             vf_limits within, float *y)
{
  const int64_t run = taps->run, whole = run / VL * VL, padded = flow_padded_channels(run), of_output = taps->count * padded;
  vf sums[VL];
  FLOW_UNROLL(16)
  for (int i = 0; i < VL; i++) sums[i] = (vf){ 0 };
  for (int64_t tap = 0; tap < taps->count; tap++, weights += padded) {
    const float *from = x + taps->offsets[tap];
    for (int64_t i = 0; i < whole; i += VL) add_dots(outputs, pixels, from + i, taps->pixel_step, weights + i, of_output, VL, sums);
    if (whole < run) add_dots(outputs, pixels, from + whole, taps->pixel_step, weights + whole, of_output, run - whole, sums);
  }
  /* Lane j of sums[i] is now lane i of what was sum j. Halves are added as vf_sum does it for one vector, here for VL outputs at a time.
   * Where pixels x outputs is less than VL, the rest are zeros. */
  vf_transpose(sums);
  FLOW_UNROLL(4)
  for (int width = VL / 2; width > 0; width /= 2) {
    FLOW_UNROLL(8)
    for (int i = 0; i < width; i++) sums[i] += sums[i + width];
  }
  vf_store_part(y, vf_within(sums[0] + bias, within), outputs * pixels);
}

/* All pixels of a row. The last tile may do some a second time, with the same bits. */
ALWAYS_INLINE void dots_row(const int outputs, const flow_taps *taps, const float *x, const float *weights, const float *bias,
                            flow_epilogue epilogue, float *y, int64_t width)
{
  enum { WIDEST = VL };
  /* A tile's outputs are neighbours in y, pixel after pixel: its biases are those of one pixel, repeated. */
  const int pixels = WIDEST / outputs;
  float repeated[VL] = { 0 };
  for (int i = 0; i < outputs * pixels; i++) repeated[i] = bias[i % outputs];
  const vf added = vf_load(repeated);
  const vf_limits within = vf_limits_of(epilogue);
  int64_t p = 0;
  for (; width >= pixels && p < width; p += pixels) {
    if (p > width - pixels) p = width - pixels;
    dots_tile(outputs, pixels, taps, x + p * taps->pixel_step, weights, added, within, y + p * outputs);
  }
  for (; p < width; p++) dots_tile(outputs, 1, taps, x + p * taps->pixel_step, weights, added, within, y + p * outputs);
}

/* The number of outputs as a constant, so that each case has its sums in registers. y_step is `channels` here (convolution.h). */
void flow_dots_row(const flow_taps *taps, const float *x, const float *weights, const float *bias, flow_epilogue epilogue, int64_t channels,
                   float *y, int64_t y_step, int64_t width)
{
  (void)y_step;
  switch (channels) {
  case 1: dots_row(1, taps, x, weights, bias, epilogue, y, width); break;
  case 2: dots_row(2, taps, x, weights, bias, epilogue, y, width); break;
  case 3: dots_row(3, taps, x, weights, bias, epilogue, y, width); break;
  case 4: dots_row(4, taps, x, weights, bias, epilogue, y, width); break;
  }
}

/* The zeros at the end of a run are multiplied with lanes that add_dots does not read. */
void flow_pack_dots(const flow_geometry *s, const float *w, float *packed)
{
  int64_t run = s->kernel[1] * s->group_in;
  for (int64_t channel = 0; channel < s->channels_out; channel++)
    for (int64_t row = 0; row < s->kernel[0]; row++, packed += flow_padded_channels(run))
      for (int64_t i = 0; i < flow_padded_channels(run); i++) packed[i] = i < run ? w[(row * run + i) * s->channels_out + channel] : 0.0f;
}
